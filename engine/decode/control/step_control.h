// Statistics about a model's steps and guesses, shared by all of its runs: the time of a step, and
// how often guesses are right. Decoders choose the sizes that are set to "auto" by them. The sizes
// change no token of greedy and coupled decoding. Under rejection sampling they depend only on
// measured times and on earlier steps of the same run. Statistics of other runs are not used, because
// a run with the same seed has drawn the same random numbers; sizes that depend on them would change
// the distribution.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/decode/control/cost_model.h"
#include "engine/event/event.h"

namespace engine {

/// A decoder's statistics about its guesses. Each decoder derives its own.
class Learned {
 public:
  virtual ~Learned() = default;
};

/// The times of a model's forwards while it works alone, and while another model works beside it.
class StageCosts {
 public:
  StageCosts() = default;
  explicit StageCosts(CostModel alone) : alone_(std::move(alone)) {}
  /// The times beside another model start from those of the model alone.
  CostModel& of(bool is_beside) {
    if (is_beside && !beside_) beside_ = alone_;
    return is_beside ? *beside_ : alone_;
  }
  const CostModel& of(bool is_beside) const { return is_beside && beside_ ? *beside_ : alone_; }

 private:
  CostModel alone_;
  std::optional<CostModel> beside_;
};

/// The knowledge of one target model. Not thread-safe: all its runs verify on one thread, which also
/// chooses the sizes.
class StepControl {
 public:
  StepControl() = default;
  /// With a known cost of steps, for simulations.
  explicit StepControl(CostModel costs) : costs_(std::move(costs)) {}

  /// The times of the mode that set_overlapped() has set.
  CostModel& costs() { return costs_.of(is_overlapped()); }
  const CostModel& costs() const { return costs_.of(is_overlapped()); }
  /// Sets the number of sequences for which a draft model works while the target verifies; 0: both
  /// models work in turn.
  /// @param n_drafters  sequences that draft at the same time
  void set_overlapped(int n_sequences, int n_drafters = 1) {
    n_overlapped_ = n_sequences;
    n_drafters_ = n_drafters;
  }
  bool is_overlapped() const { return n_overlapped_ > 0; }
  /// Expected time of a sequence's round. In turn: the sum of draft and verification. Overlapped: the
  /// longest of draft_ms / the number of drafters, verify_ms, and the time of one sequence's round
  /// alone / the number of sequences.
  /// @param draft_ms   time of a draft
  /// @param verify_ms  a sequence's share of a verification
  double round_ms(double draft_ms, double verify_ms) const {
    if (!is_overlapped()) return draft_ms + verify_ms;
    const double alone = draft_ms + verify_ms * n_lanes_;
    return std::max({alone / n_overlapped_, draft_ms / n_drafters_, verify_ms});
  }
  /// Sets the number of sequences that share a forward.
  void set_lanes(int n_lanes) { n_lanes_ = n_lanes; }
  int n_lanes() const { return n_lanes_; }
  /// Sets the number of cached positions of the sequence whose next step is chosen.
  void set_positions(int n_positions) { n_positions_ = n_positions; }
  /// Expected time of a step of one sequence, its share of the forward that `n_lanes` sequences with
  /// as many rows and positions share.
  double ms(int n_rows) const {
    return costs().ms(step_work(n_rows, n_positions_, n_lanes_)) / n_lanes_;
  }
  /// The knowledge with this name; made on first use.
  template <class T>
  T& learned(const std::string& name) {
    std::unique_ptr<Learned>& known = learned_[name];
    if (!known) known = std::make_unique<T>();
    return dynamic_cast<T&>(*known);
  }

 private:
  StageCosts costs_;
  int n_lanes_ = 1;
  int n_overlapped_ = 0;
  int n_drafters_ = 1;
  int n_positions_ = 0;
  std::map<std::string, std::unique_ptr<Learned>> learned_;
};

/// The control that a decoder uses: the shared one of its context, or one of its own, which knows
/// only the prior of a step's time. It also keeps the run's choices for the recording, or repeats
/// those of a recorded run, so that the run makes the same steps.
class ControlUse {
 public:
  /// @param shared   owned by the engine, or null
  /// @param choices  of a recorded run, in order; empty: the run chooses by itself
  explicit ControlUse(StepControl* shared, std::vector<std::int32_t> choices = {})
      : shared_(shared), recorded_(std::move(choices)) {
    if (!shared_) own_ = std::make_unique<StepControl>();
  }
  StepControl& operator*() const { return shared_ ? *shared_ : *own_; }
  StepControl* operator->() const { return &**this; }

  /// The statistics with this name. All runs of the model share them, unless `repeatable`: then the
  /// run has its own, which start from the priors, and its choices can be recorded and repeated.
  template <class T>
  T& knowledge(const std::string& name, bool repeatable) {
    if (!repeatable) return (*this)->learned<T>(name);
    auto own = std::make_unique<T>();
    T& known = *own;
    own_knowledge_ = std::move(own);
    return known;
  }
  /// decide() if the run has statistics of its own. Else returns `chosen` and records nothing,
  /// because shared statistics depend on earlier runs.
  std::size_t decide_if_repeatable(std::size_t chosen, std::size_t n) {
    return own_knowledge_ ? decide(chosen, n) : chosen;
  }
  /// The choice to make: the recorded one, if there is one, else `chosen`.
  /// @param n  number of possible choices; a choice is 0 to n - 1
  /// @throws Error(BadInput)  if the recorded choice is not possible
  std::size_t decide(std::size_t chosen, std::size_t n);
  /// The same for a choice of several of n things.
  /// @param chosen  their indices, ascending
  std::vector<std::size_t> decide(std::vector<std::size_t> chosen, std::size_t n);
  /// The choices since the last call, for the step's event.
  std::vector<std::int32_t> take_choices() { return std::exchange(made_, {}); }

 private:
  StepControl* shared_;
  std::unique_ptr<StepControl> own_;
  std::unique_ptr<Learned> own_knowledge_;
  std::vector<std::int32_t> recorded_, made_;
  std::size_t n_repeated_ = 0;
};

}  // namespace engine
