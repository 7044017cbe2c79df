// What every training run does around its steps: where it begins, the learning rate, the log,
// checkpoints in between and at the end, the flag that stops it, how long it will take.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/run/checkpoint.h"
#include "engine/train/ops/linear.h"
#include "engine/train/core/optimizer.h"
#include "engine/train/core/trainer.h"

namespace engine {

/// Of a recipe.
struct LoopSettings {
  std::string name;
  double peak_lr = 0, final_lr = 0;
  int warmup_steps = 0;
  std::int64_t tokens = 0;  // where it ends ...
  std::int64_t steps = 0;   // ... or, if tokens is 0
  double minutes = 0;       // ... or, if both are
  double checkpoint_minutes = 3;
};

/// @param tokens, steps  where it ends; both 0: by minutes
template <typename Recipe>
LoopSettings loop_settings(const Recipe& r, std::int64_t tokens, std::int64_t steps = 0) {
  return {.name = r.name,
          .peak_lr = r.peak_lr,
          .final_lr = r.final_lr,
          .warmup_steps = r.warmup_steps,
          .tokens = tokens,
          .steps = steps,
          .minutes = r.minutes,
          .checkpoint_minutes = r.checkpoint_minutes};
}

/// The checkpoint in a directory, if there is one.
/// @param recipe  as JSON; it may differ from the checkpoint's in how long and how often, and in
///                engine and shards, which are the checkpoint's
/// @param notice  told after which step the run goes on; may be empty
/// @throws Error  as train()
std::optional<Checkpoint> checkpoint_found(const std::string& recipe,
                                           const std::string& directory,
                                           bool resume,
                                           const std::function<void(const std::string&)>& notice);
/// The same, but makes options.directory first, and says so where there is nothing to resume.
std::optional<Checkpoint> checkpoint_to_resume(const std::string& recipe,
                                               const TrainOptions& options,
                                               const TrainCallbacks& callbacks);

class TrainingLoop {
 public:
  TrainingLoop(const LoopSettings& settings,
               const TrainOptions& options,
               const TrainCallbacks& callbacks);

  /// Of training so far; a resumed run sets them before run().
  std::int64_t step = 0, tokens = 0;
  double seconds = 0;

  /// One update with this learning rate, as step number `step` from 1.
  /// @return  its tokens, loss, losses, completion_loss, gradient_norm; perhaps probes
  using Update = std::function<TrainProgress(std::int64_t step, double lr)>;
  /// Measures the weights, after every step but the last; what that takes is no training time.
  /// @return  for the log; most often none
  using Probe = std::function<NamedFigures()>;
  /// Steps until the end, the flag or options.stop_after_step; saves, and tells the log every tenth
  /// step and every probe.
  /// A step whose loss or gradient is no finite number changed nothing: it is left out, counted and
  /// told, and no part of the log.
  /// @throws Error(Device)  after kMostLeftOut of them in a row; the last checkpoint stays
  void run(const Update& update, const std::function<void()>& save, const Probe& probe = {});

  /// Goes on from a checkpoint, whose arrays it takes.
  /// @param n_parameters  of the run
  /// @param another       what the file holds if it has not so many: "heads of another shape"
  /// @throws Error(BadInput)
  void restore(Checkpoint& checkpoint,
               std::int64_t n_parameters,
               const std::string& another,
               std::vector<float>& parameters,
               Optimizer& optimizer);
  /// What a checkpoint holds of any run; which text comes next is the run's to add.
  /// @param recipe  as JSON
  Checkpoint checkpoint(std::string recipe,
                        Compute compute,
                        std::size_t shards,
                        const std::vector<float>& parameters,
                        const Optimizer& optimizer) const;
  std::string checkpoint_path() const;

  static constexpr int kMostLeftOut = 5;
  std::int64_t n_left_out() const { return n_left_out_; }
  double done() const;  // 0 to 1 or more
  std::int64_t steps_done() const { return step - first_step_; }
  int n_losses() const { return static_cast<int>(losses_.size()); }
  /// Mean of completion_loss over the last n_losses() steps, at most 100.
  double mean_loss() const;

 private:
  bool at_end() const;
  void leave_out(std::int64_t of_step);
  /// @throws Error(Resources)  of write(), with what became of save()
  void saved_though_refused(const std::function<void()>& save, const std::function<void()>& write);
  void complete(TrainProgress& progress, double took);
  double seconds_left(double recent_seconds, double recent_tokens) const;

  LoopSettings settings_;
  const TrainOptions& options_;
  const TrainCallbacks& callbacks_;
  std::int64_t first_step_ = 0;
  std::int64_t n_left_out_ = 0;
  int n_left_out_in_a_row_ = 0;
  std::deque<double> losses_;
  std::deque<std::pair<double, std::int64_t>> speed_;  // seconds and tokens, last steps
};

/// A probe that measures when so many minutes have gone by since it last did.
/// @param minutes  0: never
/// @param measure  may be empty
TrainingLoop::Probe probe_every(double minutes, std::function<NamedFigures()> measure);

}  // namespace engine
