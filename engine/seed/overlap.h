// Whether the draft works beside the target's verification or in turn with it. At the same time is
// SEED's schedule; where both share cores and memory bandwidth, in turn with all threads for
// whoever works may be quicker. Which it is is measured on the running work. No token depends on
// it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/event/event.h"

namespace engine {

/// What a text's round took.
struct RoundTime {
  Nanoseconds whole = 0;
  Nanoseconds drafting = 0;  // of that, if it was made in turn
};

class Overlap {
 public:
  virtual ~Overlap() = default;
  /// Whether both work at once while so many branches are under way.
  virtual bool at_once(int n_branches) const = 0;
  /// What a text's round took, with n_branches under way, as at_once() said.
  virtual void measured(int /*n_branches*/, const RoundTime& /*per_text*/) {}
};

class FixedOverlap final : public Overlap {
 public:
  explicit FixedOverlap(bool at_once) : at_once_(at_once) {}
  bool at_once(int /*n_branches*/) const override { return at_once_; }

 private:
  bool at_once_;
};

/// The rule, for one number of branches: looks at both, in turn first, and keeps the quicker by the
/// median of three, the way kept so far being measured before the look and behind it; another look
/// after a while, which doubles each time nothing has changed, and at once where what
/// is kept takes a quarter more, or a fifth less, than it did. Where the other way took 15 % more
/// than what is kept, the while is four times as long and grows fourfold; and where what is kept
/// takes more or less than it did, the look that this brings waits until the shortest while has
/// passed. No look at working at once where that could not be quicker if drafting cost nothing at
/// all: the target's part of a round remains.
class OverlapTuner {
 public:
  OverlapTuner() = default;
  /// Of another number of branches: begins with what that one keeps, and looks after a while.
  explicit OverlapTuner(const OverlapTuner* like);
  bool at_once() const { return looking_ ? !kept_ : kept_; }
  void measured(const RoundTime& per_text);

  /// The way that is kept: in turn until working at once was seen to be quicker.
  bool keeps_at_once() const { return kept_; }
  /// Whether both ways were measured, or one was enough, or it began like another that knew.
  bool knows() const { return pause_ > 0; }
  /// The last median of each way; 0: not measured.
  Nanoseconds in_turn() const { return median_[0]; }
  Nanoseconds overlapped() const { return median_[1]; }
  /// Whether, when last asked, drafting took too little of a round in turn for a look.
  bool was_spared() const { return spared_; }
  int n_looks() const { return n_looks_; }      // at the way that was not kept
  int n_changes() const { return n_changes_; }  // of what is kept

 private:
  Nanoseconds& of_kept() { return median_[kept_ ? 1 : 0]; }
  void look_if_it_may_pay();
  void judge(Nanoseconds other);
  void confirm();
  void settle(bool changed);
  bool is_quicker(Nanoseconds other);

  bool kept_ = false, looking_ = false;
  bool lost_ = false;  // the last look: the other way took so much more that the next can wait
  Nanoseconds median_[2] = {0, 0};
  Nanoseconds candidate_ = 0;  // the median of a way that was quicker, while that is confirmed
  bool spared_ = false;
  std::vector<RoundTime> samples_;
  int n_since_ = 0;  // measured since the last look
  int pause_ = 0;    // until the next one
  int n_looks_ = 0, n_changes_ = 0;
};

/// A tuner for each number of branches under way, for that changes what a round takes; it begins
/// with what the nearest that knows keeps, as a search ends with fewer and fewer branches and would
/// have to look anew at each number. A branch alone works in turn: there is nothing to do
/// meanwhile.
class MeasuredOverlap final : public Overlap {
 public:
  bool at_once(int n_branches) const override;
  void measured(int n_branches, const RoundTime& per_text) override;
  /// By number of branches; those that were measured.
  const std::map<int, OverlapTuner>& tuners() const { return tuners_; }
  /// The tuner of most branches that has measured both ways, or that one was enough; null: none.
  const OverlapTuner* most_that_measured() const;

 private:
  /// Null: none knows yet.
  const OverlapTuner* nearest_that_knows(int n_branches) const;
  std::map<int, OverlapTuner> tuners_;
};

/// "auto", "always", "never".
const std::vector<std::string>& overlap_names();
/// @throws ContractError  if there is none of that name: the registry has checked it
std::unique_ptr<Overlap> overlap_named(const std::string& name);

}  // namespace engine
