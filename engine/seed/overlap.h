// Decides whether the draft model works while the target verifies (overlapped, SEED's schedule) or
// in turn with it. If both models share cores and memory bandwidth, working in turn, each with all
// threads, may be faster. The decision is made by measurements during the run. No token depends on
// it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/event/event.h"

namespace engine {

/// Duration of one branch's round.
struct RoundTime {
  Nanoseconds whole = 0;
  Nanoseconds drafting = 0;  // the draft's part of it, if the models worked in turn
};

/// Decides between overlapped and in-turn rounds.
class Overlap {
 public:
  virtual ~Overlap() = default;
  /// True if both models work at the same time while `n_branches` branches are active.
  virtual bool at_once(int n_branches) const = 0;
  /// Reports a branch's round time with `n_branches` active branches, in the mode that at_once()
  /// chose.
  virtual void measured(int /*n_branches*/, const RoundTime& /*per_text*/) {}
};

/// Always chooses the same mode.
class FixedOverlap final : public Overlap {
 public:
  /// @param at_once  the mode
  explicit FixedOverlap(bool at_once) : at_once_(at_once) {}
  bool at_once(int /*n_branches*/) const override { return at_once_; }

 private:
  bool at_once_;
};

/// Keeps the faster mode for one number of branches, and from time to time probes the other mode,
/// with backoff.
///   probe    runs three rounds in the other mode, and compares their median with the medians of
///            three rounds in the kept mode before and after the probe
///   backoff  after each probe that changes nothing, the pause until the next one doubles. If the
///            other mode was slower by more than 15 %, the first pause is four times longer and the
///            pause quadruples
///   change   if the kept mode becomes 25 % slower or 20 % faster, the next probe starts
///            immediately, or after the shortest pause if the last probe found the other mode slower
///            by more than 15 %
///   skipped  skips a probe of overlapped rounds if they could not be faster even if drafting took
///            no time, because the target's part of a round alone takes too long
class OverlapTuner {
 public:
  /// Starts in the mode "in turn", without measurements.
  OverlapTuner() = default;
  /// Starts in the mode that `like`, the tuner of another number of branches, keeps; probes after a
  /// pause.
  /// @param like  null: as the default constructor
  explicit OverlapTuner(const OverlapTuner* like);
  /// The mode of the next round: true if both models work at the same time.
  bool at_once() const { return probing_ ? !kept_ : kept_; }
  /// Reports a branch's round time in that mode.
  void measured(const RoundTime& per_text);

  /// The kept mode: true if overlapped, false if in turn. It starts with in turn, or with the mode of
  /// the tuner that the constructor copied.
  bool keeps_overlapped() const { return kept_; }
  /// True if measurements support the kept mode: a probe has ended, a probe was skipped because it
  /// could not succeed, or the mode was copied from another tuner.
  bool has_measurements() const { return pause_ > 0; }
  /// The last median of rounds in turn; 0: not measured.
  Nanoseconds in_turn() const { return median_[0]; }
  /// The last median of overlapped rounds; 0: not measured.
  Nanoseconds overlapped() const { return median_[1]; }
  /// True if the last probe was skipped because drafting took too little of a round.
  bool was_probe_skipped() const { return probe_skipped_; }
  int n_probes() const { return n_probes_; }    ///< number of probes of the mode that was not kept
  int n_changes() const { return n_changes_; }  ///< number of changes of the kept mode

 private:
  Nanoseconds& of_kept() { return median_[kept_ ? 1 : 0]; }
  void probe_if_it_may_pay();
  void finish_probe(Nanoseconds other);
  void confirm();
  void schedule_next_probe(bool changed);
  bool is_quicker(Nanoseconds other);

  bool kept_ = false, probing_ = false;
  // true if the other mode was so much slower in the last probe that the next probe can wait
  bool lost_ = false;
  Nanoseconds median_[2] = {0, 0};  // in turn, overlapped
  Nanoseconds candidate_ = 0;       // the median of a faster mode that is not confirmed yet
  bool probe_skipped_ = false;
  std::vector<RoundTime> samples_;
  int n_since_ = 0;  // rounds since the last probe
  int pause_ = 0;    // rounds until the next one; 0: no probe yet
  int n_probes_ = 0, n_changes_ = 0;
};

/// overlap=auto: one tuner per number of active branches, because this number changes a round's
/// time. A new tuner copies the mode of the tuner with the nearest number that has measured.
/// Otherwise each number would need its own probe at the end of a search, when fewer and fewer
/// branches are left. A single branch works in turn, because there is nothing to overlap with.
class MeasuredOverlap final : public Overlap {
 public:
  bool at_once(int n_branches) const override;
  void measured(int n_branches, const RoundTime& per_text) override;
  /// The tuners by number of branches.
  const std::map<int, OverlapTuner>& tuners() const { return tuners_; }
  /// The tuner with the most branches among those that have measured both modes, or one mode if
  /// that was enough; null: none.
  const OverlapTuner* largest_measured() const;

 private:
  /// The tuner with the nearest number of branches among those with measurements; null: none.
  const OverlapTuner* nearest_measured(int n_branches) const;
  std::map<int, OverlapTuner> tuners_;
};

/// The names of the modes: "auto", "always", "never".
const std::vector<std::string>& overlap_names();
/// Makes the decision rule with this name.
/// @throws ContractError  if there is none; parse_options() has checked the name
std::unique_ptr<Overlap> overlap_named(const std::string& name);

}  // namespace engine
