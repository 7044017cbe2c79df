#include "engine/train/cllm_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <numeric>
#include <optional>

#include "engine/train/checkpoint.h"
#include "engine/train/optimizer.h"
#include "engine/train/run_parts.h"
#include "engine/train/training_log.h"
#include "engine/train/transformer.h"
#include "engine/train/workers.h"
#include "engine/types.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kRecent = 100;  // steps whose mean is told
constexpr int kPassRows = 1024;       // rows a shard carries through the layers at once, about
constexpr std::int64_t kLogEvery = 10;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Segments laid one behind the other, as a pass takes them.
struct PassRows {
  std::vector<TokenId> token, target;
  std::vector<float> weight;
  std::vector<std::int32_t> pos;
  std::vector<Segment> segments;
  std::vector<RowView> views;
  std::vector<RowGoal> goals;
  std::vector<LossPart> part;

  int n_rows() const { return static_cast<int>(token.size()); }
  void clear() { *this = {}; }
  void add(const GuidedRows& rows) {
    const int begin = n_rows();
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(token, rows.token);
    append(target, rows.target);
    append(weight, rows.weight);
    append(pos, rows.pos);
    append(views, rows.view);
    append(part, rows.part);
    for (RowGoal goal : rows.goal) {
      goal.teacher += begin;
      goals.push_back(goal);
    }
    segments.push_back({begin, n_rows()});
  }
  void pad() {
    while (n_rows() % 32) {
      token.push_back(0);
      target.push_back(0);
      weight.push_back(0);
      pos.push_back(0);
      views.push_back({});
      goals.push_back({});
      part.push_back(LossPart::Autoregressive);
    }
  }
  TrainRows rows() const { return {token, target, weight, pos, segments, views, goals, {}}; }
};

using PartSums = std::array<double, kLossParts>;

template <typename T>
class CllmRun {
 public:
  CllmRun(const CllmRecipe& recipe,
          CllmTraining training,
          const CllmOptions& options,
          const CllmCallbacks& callbacks,
          Compute compute,
          int shards)
      : recipe_(recipe),
        training_(std::move(training)),
        options_(options),
        callbacks_(callbacks),
        compute_(compute),
        layout_(training_.model),
        workers_(std::min(usable_threads(options.n_threads), std::max(shards, 1))),
        optimizer_({recipe.beta1, recipe.beta2, recipe.weight_decay, recipe.clip},
                   runs_of(layout_, training_.model),
                   train_table()),
        math_(math_for<T>(compute)),
        part_weights_{recipe.ar_weight, recipe.consistency_weight, recipe.replay_weight},
        parameters_(training_.parameters) {
    for (int i = 0; i < shards; i++) {
      passes_.push_back(std::make_unique<TrainPass<T>>(training_.model, layout_,
                                                       math_for<T>(compute), train_table(),
                                                       std::max(kPassRows, recipe.context)));
      gradients_.emplace_back(static_cast<std::size_t>(layout_.n), 0.0f);
    }
    if (recipe.frozen_teacher) {
      frozen_ = std::make_unique<PackedWeights<T>>(training_.model, layout_, training_.parameters,
                                                   *math_);
    }
  }

  CllmResult run();
  void restore(Checkpoint checkpoint);

 private:
  std::size_t text_of_slot(std::int64_t slot);
  GuidedRows guided_rows(const Trajectory& trajectory, std::int64_t slot) const;
  std::vector<GuidedRows> next_segments();
  void shard_gradient(int shard, const std::vector<GuidedRows>& segments, PartSums& losses);
  void pass_gradient(int shard, PassRows& pass, PartSums& losses);
  CllmProgress one_step();
  void tell_times(CllmProgress& progress, double took, std::int64_t rows);
  std::int64_t n_steps() const;
  double done() const;
  void save() const;
  void log(const CllmProgress& progress, NamedFigures probes);
  bool stop_asked() const { return callbacks_.stop && callbacks_.stop->load(); }
  std::string path(const char* name) const { return options_.directory + "/" + name; }

  const CllmRecipe& recipe_;
  CllmTraining training_;
  const CllmOptions& options_;
  const CllmCallbacks& callbacks_;
  Compute compute_;
  ParameterLayout layout_;
  Workers workers_;
  Optimizer optimizer_;
  std::unique_ptr<LinearMath<T>> math_;
  PartSums part_weights_;
  std::vector<float> parameters_;
  std::unique_ptr<PackedWeights<T>> weights_, frozen_;
  std::vector<std::unique_ptr<TrainPass<T>>> passes_;
  std::vector<std::vector<float>> gradients_;
  std::array<float, kLossParts> row_scale_{};  // of this step: part weight / sum of its rows'
  std::vector<std::size_t> order_;             // of the epoch under way
  std::int64_t epoch_ = -1;
  std::int64_t step_ = 0, rows_ = 0;
  double seconds_ = 0;
  std::deque<PartSums> recent_;
  std::deque<std::pair<double, std::int64_t>> recent_speed_;
  std::optional<TrainingLog> log_;
};

template <typename T>
void CllmRun<T>::restore(Checkpoint c) {
  if (c.parameters.size() != static_cast<std::size_t>(layout_.n)) {
    throw Error(ErrorCode::BadInput,
                path("checkpoint.bin") + ": holds a model of another shape than the target");
  }
  parameters_ = std::move(c.parameters);
  optimizer_.mean = std::move(c.mean);
  optimizer_.square = std::move(c.square);
  step_ = c.step;
  rows_ = c.tokens;
  seconds_ = c.seconds;
}

// Every trajectory is met once an epoch, in an order of the epoch's own.
template <typename T>
std::size_t CllmRun<T>::text_of_slot(std::int64_t slot) {
  const auto n = static_cast<std::int64_t>(training_.trajectories.size());
  if (slot / n != epoch_) {
    epoch_ = slot / n;
    order_.resize(static_cast<std::size_t>(n));
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    Random rng(fnv1a("epoch/" + std::to_string(recipe_.seed) + "/" + std::to_string(epoch_)));
    rng.shuffle(order_);
  }
  return order_[static_cast<std::size_t>(slot % n)];
}

template <typename T>
GuidedRows CllmRun<T>::guided_rows(const Trajectory& trajectory, std::int64_t slot) const {
  GuidedRows rows = rows_of(trajectory, recipe_.loss);
  if (recipe_.consistency_weight == 0) return rows;
  std::vector<PointPlace> places = points_to_learn(trajectory);
  Random rng(fnv1a("points/" + std::to_string(recipe_.seed) + "/" + std::to_string(slot)));
  rng.shuffle(places);
  if (places.size() > static_cast<std::size_t>(recipe_.points))
    places.resize(static_cast<std::size_t>(recipe_.points));
  add_chains(rows, trajectory, places, recipe_.loss, recipe_.context);
  return rows;
}

template <typename T>
std::vector<GuidedRows> CllmRun<T>::next_segments() {
  const int n_texts = recipe_.batch_texts;
  const int n_replay = recipe_.replay_weight > 0 ? recipe_.replay_texts : 0;
  const bool truths = !recipe_.loss.own_labels && recipe_.ar_weight > 0;
  std::vector<std::size_t> texts;
  for (int i = 0; i < n_texts; i++) texts.push_back(text_of_slot(step_ * n_texts + i));
  const int n_own = truths ? 2 * n_texts : n_texts;
  std::vector<GuidedRows> segments(static_cast<std::size_t>(n_own + n_replay));
  workers_.run(n_own + n_replay, [&](int i) {
    GuidedRows& segment = segments[static_cast<std::size_t>(i)];
    if (i >= n_own) {
      const TokenText text = training_.replay(step_ * n_replay + i - n_own);
      segment = plain_rows(text, recipe_.loss.prompt_weight, 0, LossPart::Replay, recipe_.context);
      return;
    }
    const Trajectory& trajectory =
        training_.trajectories[texts[static_cast<std::size_t>(i % n_texts)]];
    segment = i < n_texts
                  ? guided_rows(trajectory, step_ * n_texts + i)
                  : plain_rows(truth_of(trajectory), recipe_.loss.prompt_weight,
                               recipe_.loss.smoothing, LossPart::Autoregressive, recipe_.context);
  });
  return segments;
}

template <typename T>
void CllmRun<T>::pass_gradient(int shard, PassRows& pass, PartSums& losses) {
  if (pass.n_rows() == 0) return;
  pass.pad();
  const std::vector<float> counted = pass.weight;
  for (std::size_t i = 0; i < pass.weight.size(); i++)
    pass.weight[i] *= row_scale_[static_cast<std::size_t>(pass.part[i])];
  TrainRows rows = pass.rows();
  TrainPass<T>& train = *passes_[static_cast<std::size_t>(shard)];
  std::vector<float> teacher;
  if (frozen_) {
    teacher.resize(pass.token.size() * static_cast<std::size_t>(training_.model.vocab_size));
    train.forward(training_.parameters, *frozen_, rows, teacher);
    rows.teacher_logits = teacher;
  }
  std::vector<float> loss(pass.token.size());
  train.forward_backward(parameters_, *weights_, rows,
                         gradients_[static_cast<std::size_t>(shard)].data(), loss);
  for (std::size_t i = 0; i < loss.size(); i++) {
    if (pass.weight[i] != 0)
      losses[static_cast<std::size_t>(pass.part[i])] += static_cast<double>(counted[i]) * loss[i];
  }
  pass.clear();
}

// Segments are dealt to shards in turn; a shard's go through in passes, its gradient is their sum
// in that order.
template <typename T>
void CllmRun<T>::shard_gradient(int shard,
                                const std::vector<GuidedRows>& segments,
                                PartSums& losses) {
  const int most = std::max(kPassRows, recipe_.context);
  PassRows pass;
  for (std::size_t i = static_cast<std::size_t>(shard); i < segments.size(); i += passes_.size()) {
    if (pass.n_rows() + segments[i].n_rows() > most) pass_gradient(shard, pass, losses);
    if (segments[i].n_rows() > 0) pass.add(segments[i]);
  }
  pass_gradient(shard, pass, losses);
}

template <typename T>
CllmProgress CllmRun<T>::one_step() {
  const auto start = Clock::now();
  const std::vector<GuidedRows> segments = next_segments();
  PartSums counted{};
  std::int64_t rows = 0;
  for (const GuidedRows& segment : segments) {
    rows += segment.n_rows();
    for (std::size_t i = 0; i < segment.weight.size(); i++)
      counted[static_cast<std::size_t>(segment.part[i])] += segment.weight[i];
  }
  for (std::size_t p = 0; p < kLossParts; p++)
    row_scale_[p] = counted[p] > 0 ? static_cast<float>(part_weights_[p] / counted[p]) : 0.0f;

  std::vector<PartSums> losses(passes_.size());
  workers_.run(static_cast<int>(passes_.size()), [&](int shard) {
    shard_gradient(shard, segments, losses[static_cast<std::size_t>(shard)]);
  });
  CllmProgress progress;
  for (std::size_t p = 0; p < kLossParts; p++) {
    for (const PartSums& sums : losses) progress.parts[p] += sums[p];
    if (counted[p] > 0) progress.parts[p] /= counted[p];
    progress.loss += part_weights_[p] * progress.parts[p];
  }
  progress.lr =
      cosine_lr(recipe_.peak_lr, step_ + 1, done(), recipe_.warmup_steps, recipe_.final_lr);
  progress.gradient_norm =
      optimizer_.update(parameters_, gradients_, step_ + 1, progress.lr, workers_);
  if (!std::isfinite(progress.loss) || !std::isfinite(progress.gradient_norm)) {
    throw Error(ErrorCode::Device, recipe_.name + ": step " + std::to_string(step_ + 1) +
                                       ": the loss is no longer a finite number; the last "
                                       "checkpoint is kept, try a smaller peak_lr");
  }
  workers_.run(weights_->n_matrices(), [&](int i) { weights_->repack(i, *math_); });
  step_++;
  rows_ += rows;
  recent_.push_back(progress.parts);
  if (recent_.size() > kRecent) recent_.pop_front();
  tell_times(progress, seconds_since(start), rows);
  return progress;
}

template <typename T>
void CllmRun<T>::tell_times(CllmProgress& progress, double took, std::int64_t rows) {
  seconds_ += took;
  recent_speed_.emplace_back(took, rows);
  if (recent_speed_.size() > 50) recent_speed_.pop_front();
  double seconds = 0, n = 0;
  for (const auto& [s, r] : recent_speed_) {
    seconds += s;
    n += static_cast<double>(r);
  }
  progress.step = step_;
  progress.n_steps = n_steps();
  progress.rows = rows_;
  progress.rows_per_second = n / seconds;
  progress.done = std::min(1.0, done());
  progress.seconds = seconds_;
  progress.seconds_left =
      progress.n_steps > 0
          ? static_cast<double>(std::max<std::int64_t>(0, progress.n_steps - step_)) * seconds /
                static_cast<double>(recent_speed_.size())
          : std::max(0.0, recipe_.minutes * 60 - seconds_);
}

template <typename T>
std::int64_t CllmRun<T>::n_steps() const {
  if (recipe_.epochs == 0) return 0;
  const double texts = recipe_.epochs * static_cast<double>(training_.trajectories.size());
  return std::max<std::int64_t>(1, std::llround(std::ceil(texts / recipe_.batch_texts)));
}

template <typename T>
double CllmRun<T>::done() const {
  if (const std::int64_t n = n_steps(); n > 0)
    return static_cast<double>(step_) / static_cast<double>(n);
  return seconds_ / (recipe_.minutes * 60);
}

template <typename T>
void CllmRun<T>::save() const {
  write_checkpoint(path("checkpoint.bin"), {.recipe = training_part(recipe_),
                                            .compute = name_of(compute_),
                                            .shards = static_cast<int>(passes_.size()),
                                            .step = step_,
                                            .tokens = rows_,
                                            .seconds = seconds_,
                                            .packer = {},
                                            .parameters = parameters_,
                                            .mean = optimizer_.mean,
                                            .square = optimizer_.square});
}

template <typename T>
void CllmRun<T>::log(const CllmProgress& p, NamedFigures probes) {
  if (p.step % kLogEvery != 0 && p.step != 1 && probes.empty()) return;
  TrainingReport report{.step = p.step,
                        .tokens = p.rows,
                        .seconds = p.seconds,
                        .seconds_left = p.seconds_left,
                        .tokens_per_second = p.rows_per_second,
                        .lr = p.lr,
                        .gradient_norm = p.gradient_norm,
                        .loss = p.loss,
                        .losses = {},
                        .probes = std::move(probes)};
  for (std::size_t part = 0; part < kLossParts; part++) {
    if (part_weights_[part] > 0)
      report.losses.emplace_back(name_of(static_cast<LossPart>(part)), p.parts[part]);
  }
  log_->write(report);
}

template <typename T>
CllmResult CllmRun<T>::run() {
  log_.emplace(options_.directory, step_);
  weights_ = std::make_unique<PackedWeights<T>>(training_.model, layout_, parameters_, *math_);
  auto last_saved = Clock::now(), last_probed = last_saved;
  const std::int64_t first_step = step_;
  const auto at_end = [&] {
    return done() >= 1 || (options_.stop_after_step > 0 && step_ >= options_.stop_after_step);
  };
  while (!at_end() && !stop_asked()) {
    const CllmProgress progress = one_step();
    NamedFigures probes;
    if (callbacks_.probe && recipe_.probe_minutes > 0 && !at_end() &&
        seconds_since(last_probed) > recipe_.probe_minutes * 60) {
      probes = callbacks_.probe(step_, parameters_);
      last_probed = Clock::now();
    }
    log(progress, std::move(probes));
    if (callbacks_.progress) callbacks_.progress(progress);
    if (seconds_since(last_saved) > recipe_.checkpoint_minutes * 60) {
      save();
      last_saved = Clock::now();
    }
  }
  if (step_ > first_step) save();
  CllmResult result;
  result.finished = done() >= 1;
  result.step = step_;
  result.steps_done = step_ - first_step;
  result.rows = rows_;
  result.seconds = seconds_;
  result.n_losses = static_cast<int>(recent_.size());
  for (const PartSums& parts : recent_) {
    for (std::size_t p = 0; p < kLossParts; p++)
      result.parts[p] += parts[p] / static_cast<double>(recent_.size());
  }
  result.compute = name_of(compute_);
  result.parameters = std::move(parameters_);
  return result;
}

template <typename T>
CllmResult start(const CllmRecipe& recipe,
                 CllmTraining training,
                 const CllmOptions& options,
                 const CllmCallbacks& callbacks,
                 Compute compute,
                 int shards,
                 Checkpoint* checkpoint) {
  CllmRun<T> run(recipe, std::move(training), options, callbacks, compute, shards);
  if (checkpoint) run.restore(std::move(*checkpoint));
  return run.run();
}

}  // namespace

CllmResult train_consistency(const CllmRecipe& recipe,
                             CllmTraining training,
                             const CllmOptions& options,
                             const CllmCallbacks& callbacks) {
  ensure(!training.trajectories.empty(), "consistency training needs trajectories");
  ensure(recipe.replay_texts == 0 || recipe.replay_weight == 0 || training.replay,
         "replay needs texts");
  const std::string path = options.directory + "/checkpoint.bin";
  const bool found = fs::exists(path);
  if (found && !options.resume) {
    throw Error(ErrorCode::Usage, path +
                                      ": a run was saved here; go on with --resume, or give "
                                      "another directory");
  }
  Checkpoint checkpoint;
  Compute compute = compute_named(recipe.compute, training.model);
  int shards = recipe.shards > 0 ? recipe.shards : usable_threads(options.n_threads);
  if (found) {
    checkpoint = read_checkpoint(path);
    if (checkpoint.recipe != training_part(recipe)) {
      throw Error(ErrorCode::BadInput,
                  path + ": was made by another recipe; give that recipe, or another directory");
    }
    compute = compute_named(checkpoint.compute, training.model);
    shards = checkpoint.shards;
    if (callbacks.notice)
      callbacks.notice("resuming after step " + std::to_string(checkpoint.step));
  }
  if (callbacks.notice) {
    callbacks.notice("training on " + std::to_string(training.trajectories.size()) +
                     " trajectories in " + std::string(name_of(compute)) + " with " +
                     std::to_string(shards) + " shards, elementwise " + train_table().name);
  }
  Checkpoint* from = found ? &checkpoint : nullptr;
  return compute == Compute::F32
             ? start<float>(recipe, std::move(training), options, callbacks, compute, shards, from)
             : start<Bf16>(recipe, std::move(training), options, callbacks, compute, shards, from);
}

}  // namespace engine
