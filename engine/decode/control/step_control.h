// Statistics about a model's steps and guesses, shared by all of its runs: the time of a step, and
// how often guesses are right. Decoders choose the sizes that are set to "auto" by them. The sizes change no token of greedy and coupled decoding.
// Under rejection sampling they depend only on earlier steps, so the tokens keep their distribution.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/decode/control/cost_model.h"
#include "engine/event/event.h"

namespace engine {

/// A decoder's statistics about its guesses. Each decoder derives its own.
class Learned {
 public:
  virtual ~Learned() = default;
};

/// The knowledge of one target model. Not thread-safe: all its runs step on one thread.
class StepControl {
 public:
  StepControl() = default;
  /// With a known cost of steps, for simulations.
  explicit StepControl(CostModel costs) : costs_(std::move(costs)) {}

  CostModel& costs() { return costs_; }
  const CostModel& costs() const { return costs_; }
  /// Sets the number of sequences that share a forward.
  void set_lanes(int n_lanes) { n_lanes_ = n_lanes; }
  int n_lanes() const { return n_lanes_; }
  /// Expected time of a step of one sequence, its share of the forward that `n_lanes` sequences with
  /// as many rows share.
  double ms(int n_rows) const { return costs_.ms(n_rows * n_lanes_) / n_lanes_; }
  /// The knowledge with this name; made on first use.
  template <class T>
  T& learned(const std::string& name) {
    std::unique_ptr<Learned>& known = learned_[name];
    if (!known) known = std::make_unique<T>();
    return dynamic_cast<T&>(*known);
  }

 private:
  CostModel costs_;
  int n_lanes_ = 1;
  std::map<std::string, std::unique_ptr<Learned>> learned_;
};

/// The control that a decoder uses: the shared one of its context, or one of its own, which knows
/// only the prior of a step's time.
class ControlUse {
 public:
  /// @param shared  owned by the engine, or null
  explicit ControlUse(StepControl* shared) : shared_(shared) {
    if (!shared_) own_ = std::make_unique<StepControl>();
  }
  StepControl& operator*() const { return shared_ ? *shared_ : *own_; }
  StepControl* operator->() const { return &**this; }

 private:
  StepControl* shared_;
  std::unique_ptr<StepControl> own_;
};

}  // namespace engine
