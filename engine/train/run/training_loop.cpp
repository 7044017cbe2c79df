#include "engine/train/run/training_loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <nlohmann/json.hpp>

#include "engine/base/measure/remaining_time.h"
#include "engine/base/types.h"
#include "engine/train/core/training_log.h"
#include "engine/train/run/run_parts.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLosses = 100;  // the final loss is the mean over this many last steps
constexpr std::size_t kSpeeds = 50;

// The recipe without the fields that may differ from those of the checkpoint to resume.
std::string essence(const std::string& recipe) {
  auto object = nlohmann::json::parse(recipe, nullptr, false);
  if (!object.is_object()) return recipe;
  for (const char* free :
       {"checkpoint_minutes", "tokens", "minutes", "epochs", "compute", "shards", "probe_steps",
        "probe_texts", "probe_minutes", "probe_problems", "hidden_megabytes"}) {
    object.erase(free);
  }
  return object.dump();
}

bool was_taken(const TrainProgress& progress) {
  return std::isfinite(progress.loss) && std::isfinite(progress.gradient_norm);
}

std::string checkpoint_in(const std::string& directory) {
  return directory + "/checkpoint.bin";
}

}  // namespace

std::optional<Checkpoint> checkpoint_found(const std::string& recipe,
                                           const std::string& directory,
                                           bool resume,
                                           const std::function<void(const std::string&)>& notice) {
  const std::string path = checkpoint_in(directory);
  if (!fs::exists(path)) return {};
  if (!resume) {
    throw Error(
        ErrorCode::Usage,
        path +
            ": this directory has a saved run; continue with --resume, or name another directory");
  }
  Checkpoint checkpoint = read_checkpoint(path);
  if (essence(checkpoint.recipe) != essence(recipe)) {
    throw Error(ErrorCode::BadInput,
                path + ": belongs to another recipe; use that recipe, or another directory");
  }
  if (notice) notice("resuming after step " + std::to_string(checkpoint.step));
  return checkpoint;
}

std::optional<Checkpoint> checkpoint_to_resume(const std::string& recipe,
                                               const TrainOptions& options,
                                               const TrainCallbacks& callbacks) {
  ensure(!options.directory.empty(), "training needs a directory for its checkpoint");
  std::error_code failed;
  fs::create_directories(options.directory, failed);
  if (failed) {
    throw Error(ErrorCode::Resources, options.directory + ": cannot be made: " + failed.message());
  }
  auto checkpoint = checkpoint_found(recipe, options.directory, options.resume, callbacks.notice);
  if (!checkpoint && options.resume && callbacks.notice)
    callbacks.notice("nothing to resume in " + options.directory + ": starting from the beginning");
  return checkpoint;
}

TrainingLoop::TrainingLoop(const LoopSettings& settings,
                           const TrainOptions& options,
                           const TrainCallbacks& callbacks)
    : settings_(settings), options_(options), callbacks_(callbacks) {}

void TrainingLoop::restore(Checkpoint& c,
                           std::int64_t n_parameters,
                           const std::string& another,
                           std::vector<float>& parameters,
                           Optimizer& optimizer) {
  if (c.parameters.size() != static_cast<std::size_t>(n_parameters))
    throw Error(ErrorCode::BadInput, checkpoint_path() + ": holds " + another);
  parameters = std::move(c.parameters);
  optimizer.mean = std::move(c.mean);
  optimizer.square = std::move(c.square);
  step = c.step;
  tokens = c.tokens;
  seconds = c.seconds;
}

Checkpoint TrainingLoop::checkpoint(std::string recipe,
                                    Compute compute,
                                    std::size_t shards,
                                    const std::vector<float>& parameters,
                                    const Optimizer& optimizer) const {
  return {.recipe = std::move(recipe),
          .compute = name_of(compute),
          .shards = static_cast<int>(shards),
          .step = step,
          .tokens = tokens,
          .seconds = seconds,
          .packer = {},
          .parameters = parameters,
          .mean = optimizer.mean,
          .square = optimizer.square};
}

std::string TrainingLoop::checkpoint_path() const {
  return checkpoint_in(options_.directory);
}

double TrainingLoop::done() const {
  if (settings_.tokens > 0)
    return static_cast<double>(tokens) / static_cast<double>(settings_.tokens);
  if (settings_.steps > 0) return static_cast<double>(step) / static_cast<double>(settings_.steps);
  return seconds / (settings_.minutes * 60);
}

bool TrainingLoop::at_end() const {
  return (settings_.tokens > 0 ? tokens >= settings_.tokens : done() >= 1) ||
         (options_.stop_after_step > 0 && step >= options_.stop_after_step);
}

double TrainingLoop::mean_loss() const {
  if (losses_.empty()) return 0;
  return std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(losses_.size());
}

// Adds to the report of a step the figures that the loop knows.
void TrainingLoop::complete(TrainProgress& progress, double took) {
  speed_.emplace_back(took, progress.tokens);
  if (speed_.size() > kSpeeds) speed_.pop_front();
  losses_.push_back(progress.completion_loss);
  if (losses_.size() > kLosses) losses_.pop_front();
  double in_seconds = 0, n_tokens = 0;
  for (const auto& [s, t] : speed_) {
    in_seconds += s;
    n_tokens += static_cast<double>(t);
  }
  progress.step = step;
  progress.tokens = tokens;
  progress.tokens_per_second = n_tokens / in_seconds;
  progress.done = std::min(1.0, done());
  progress.seconds = seconds;
  progress.seconds_left = seconds_left(in_seconds, n_tokens);
}

double TrainingLoop::seconds_left(double recent_seconds, double recent_tokens) const {
  if (settings_.tokens > 0)
    return remaining_seconds(static_cast<double>(tokens), static_cast<double>(settings_.tokens),
                             recent_tokens, recent_seconds);
  if (settings_.steps > 0)
    return remaining_seconds(static_cast<double>(step), static_cast<double>(settings_.steps),
                             static_cast<double>(speed_.size()), recent_seconds);
  return std::max(0.0, settings_.minutes * 60 - seconds);
}

void TrainingLoop::skip_step(std::int64_t of_step) {
  n_skipped_++;
  n_skipped_in_a_row_++;
  const std::string what = settings_.name + ": step " + std::to_string(of_step) +
                           ": the loss or its gradient is not finite";
  if (n_skipped_in_a_row_ == kMaxSkippedSteps)
    throw Error(ErrorCode::Device,
                what + ", for " + std::to_string(kMaxSkippedSteps) +
                    " steps in a row; the last checkpoint is kept; start again in another --out "
                    "with a smaller peak_lr, or with compute f32");
  if (callbacks_.notice)
    callbacks_.notice(what + "; the step is skipped and changes no weight (" +
                      std::to_string(n_skipped_) + " so far)");
}

// Calls `write`. If it fails, saves a checkpoint, if possible, before the error ends the run.
void TrainingLoop::save_if_write_fails(const std::function<void()>& save,
                                       const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& refused) {
    if (refused.code() != ErrorCode::Resources) throw;
    const std::string what = refused.what();
    try {
      save();
    } catch (const Error& too) {
      throw Error(ErrorCode::Resources, what + "; " + too.what());
    }
    throw Error(ErrorCode::Resources, what + "; step " + std::to_string(step) + " is saved in " +
                                          checkpoint_path() + ", continue with --resume");
  }
}

void TrainingLoop::run(const Update& update,
                       const std::function<void()>& save,
                       const Probe& probe) {
  TrainingLog log(options_.directory, step);
  auto last_saved = Clock::now();
  first_step_ = step;
  while (!at_end() && !(callbacks_.stop && callbacks_.stop->load())) {
    const auto start = Clock::now();
    const double lr =
        cosine_lr(settings_.peak_lr, step + 1, done(), settings_.warmup_steps, settings_.final_lr);
    TrainProgress progress = update(step + 1, lr);
    const bool taken = was_taken(progress);
    if (taken)
      n_skipped_in_a_row_ = 0;
    else
      skip_step(step + 1);
    progress.lr = lr;
    step++;
    tokens += progress.tokens;
    const std::chrono::duration<double> took = Clock::now() - start;
    seconds += took.count();
    if (taken) complete(progress, took.count());
    if (taken) {
      save_if_write_fails(save, [&] {
        if (probe && !at_end())
          for (auto& figure : probe()) progress.probes.push_back(std::move(figure));
        if (step % 10 == 0 || step == 1 || !progress.probes.empty()) log.write(progress);
      });
    }
    if (taken && callbacks_.progress) callbacks_.progress(progress);
    const std::chrono::duration<double> since = Clock::now() - last_saved;
    if (since.count() > settings_.checkpoint_minutes * 60) {
      save();
      last_saved = Clock::now();
    }
  }
  if (step > first_step_) save();
}

TrainingLoop::Probe probe_every(double minutes, std::function<NamedFigures()> measure) {
  if (minutes == 0 || !measure) return {};
  return [minutes, measure = std::move(measure), last = Clock::now()]() mutable -> NamedFigures {
    const std::chrono::duration<double> since = Clock::now() - last;
    if (since.count() <= minutes * 60) return {};
    NamedFigures figures = measure();
    last = Clock::now();
    return figures;
  };
}

}  // namespace engine
