// The loop of every training run: resuming, learning rate, log, checkpoints, the stop flag, and the
// estimate of the time left.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/core/optimizer.h"
#include "engine/train/core/training.h"
#include "engine/train/ops/linear.h"
#include "engine/train/run/checkpoint.h"

namespace engine {

/// The part of a recipe that the loop needs.
struct LoopSettings {
  std::string name;
  double peak_lr = 0, final_lr = 0;
  int warmup_steps = 0;
  std::int64_t tokens = 0;  // length of the run in tokens
  std::int64_t steps = 0;   // length in steps, if tokens is 0
  double minutes = 0;       // length in minutes, if both are 0
  double checkpoint_minutes = 3;
};

/// @param tokens, steps  length of the run; if both are 0, it is r.minutes
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

/// The checkpoint in a directory, if it has one.
/// @param recipe  as JSON. It may differ from the checkpoint's recipe in lengths and intervals. It
///                may also differ in `compute` and `shards`, but then the checkpoint's values are
///                used
/// @param notice  receives a line with the step to resume at; may be empty
/// @throws Error  as train()
std::optional<Checkpoint> checkpoint_found(const std::string& recipe,
                                           const std::string& directory,
                                           bool resume,
                                           const std::function<void(const std::string&)>& notice);
/// The same, but first creates options.directory, and reports if there is nothing to resume.
std::optional<Checkpoint> checkpoint_to_resume(const std::string& recipe,
                                               const TrainOptions& options,
                                               const TrainCallbacks& callbacks);

/// The loop of a run.
class TrainingLoop {
 public:
  /// @param options, callbacks  outlive this
  TrainingLoop(const LoopSettings& settings,
               const TrainOptions& options,
               const TrainCallbacks& callbacks);

  /// Totals of the training so far; a resumed run sets them before run().
  std::int64_t step = 0, tokens = 0;
  double seconds = 0;

  /// Makes one update with this learning rate, as step `step` (from 1).
  /// @return  tokens, loss, losses, completion_loss, gradient_norm, and perhaps probes
  using Update = std::function<TrainProgress(std::int64_t step, double lr)>;
  /// Called after every step but the last; may measure the weights. The time that it takes does not
  /// count as training time.
  /// @return  figures for the log; empty after most steps
  using Probe = std::function<NamedFigures()>;
  /// Makes steps until the end, the stop flag or options.stop_after_step; saves checkpoints, and logs
  /// every tenth step and every probe. A step whose loss or gradient is not finite changes no weight:
  /// it is skipped, counted and reported by a notice, but not logged.
  /// @throws Error(Device)  after kMaxSkippedSteps such steps in a row; the last checkpoint stays
  void run(const Update& update, const std::function<void()>& save, const Probe& probe = {});

  /// Restores the state of a checkpoint; moves its arrays out of it.
  /// @param n_parameters  number of parameters of the run
  /// @param another       how the message describes a checkpoint with another number: "heads of
  ///                      another shape"
  /// @throws Error(BadInput)
  void restore(Checkpoint& checkpoint,
               std::int64_t n_parameters,
               const std::string& another,
               std::vector<float>& parameters,
               Optimizer& optimizer);
  /// The checkpoint of the current state, without next_text and packer.
  /// @param recipe  as JSON
  Checkpoint checkpoint(std::string recipe,
                        Compute compute,
                        std::size_t shards,
                        const std::vector<float>& parameters,
                        const Optimizer& optimizer) const;
  /// Path of the run's checkpoint.bin.
  std::string checkpoint_path() const;

  static constexpr int kMaxSkippedSteps = 5;
  /// Steps skipped so far.
  std::int64_t n_skipped() const { return n_skipped_; }
  /// Share of the run that is done, 0 to 1 or more.
  double done() const;
  /// Number of steps that this call has made.
  std::int64_t steps_done() const { return step - first_step_; }
  /// Number of steps that mean_loss() covers.
  int n_losses() const { return static_cast<int>(losses_.size()); }
  /// Mean of completion_loss over the last n_losses() steps, at most 100.
  double mean_loss() const;

 private:
  bool at_end() const;
  void skip_step(std::int64_t of_step);
  /// @throws Error(Resources)  the error of write(); its message also says whether save() succeeded
  void save_if_write_fails(const std::function<void()>& save, const std::function<void()>& write);
  void complete(TrainProgress& progress, double took);
  double seconds_left(double recent_seconds, double recent_tokens) const;

  LoopSettings settings_;
  const TrainOptions& options_;
  const TrainCallbacks& callbacks_;
  std::int64_t first_step_ = 0;
  std::int64_t n_skipped_ = 0;
  int n_skipped_in_a_row_ = 0;
  std::deque<double> losses_;
  std::deque<std::pair<double, std::int64_t>> speed_;  // seconds and tokens of the last steps
};

/// A probe that measures every `minutes`.
/// @param minutes  0: never
/// @param measure  may be empty
TrainingLoop::Probe probe_every(double minutes, std::function<NamedFigures()> measure);

}  // namespace engine
