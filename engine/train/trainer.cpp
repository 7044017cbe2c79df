#include "engine/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <numeric>
#include <optional>

#include <nlohmann/json.hpp>

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

constexpr int kTextsAtOnce = 32;
constexpr std::size_t kLosses = 100;  // of the last steps, for the loss a run ends with
constexpr int kPassRows = 512;        // rows a shard carries through the layers at once, about

// The rows of one step laid end to end.
struct StepBatch {
  std::vector<TokenId> token, target;
  std::vector<float> weight;
  std::vector<std::int32_t> pos;
  std::vector<Segment> segments;  // of each row of the context apart: begin and end in all rows
  std::vector<std::size_t> first_segment;  // [n packed rows + 1]
  double weight_sum = 0;
  std::int64_t n_tokens = 0;
};

StepBatch lay_out(const std::vector<PackedRow>& rows, int context) {
  StepBatch batch;
  for (const PackedRow& row : rows) {
    batch.token.insert(batch.token.end(), row.token.begin(), row.token.end());
    batch.target.insert(batch.target.end(), row.target.begin(), row.target.end());
    batch.weight.insert(batch.weight.end(), row.weight.begin(), row.weight.end());
    batch.pos.insert(batch.pos.end(), row.pos.begin(), row.pos.end());
    batch.n_tokens += row.n_used;
  }
  batch.segments = segments_of(rows, context);
  std::size_t at = 0;
  for (const PackedRow& row : rows) {
    batch.first_segment.push_back(at);
    at += row.length.size();
  }
  batch.first_segment.push_back(at);
  for (const float w : batch.weight) batch.weight_sum += w;
  return batch;
}

// A run with activations of type T.
template <typename T>
class Run {
 public:
  Run(const TrainRecipe& recipe,
      const TokenSource& texts,
      const TrainOptions& options,
      const TrainCallbacks& callbacks,
      Compute compute,
      int shards)
      : recipe_(recipe),
        texts_(texts),
        options_(options),
        callbacks_(callbacks),
        compute_(compute),
        layout_(recipe.model),
        workers_(std::min(usable_threads(options.n_threads), std::max(shards, 1))),
        packer_(
            recipe.context,
            recipe.open_rows,
            {static_cast<float>(recipe.prompt_weight), static_cast<float>(recipe.answer_weight)}),
        optimizer_({recipe.beta1, recipe.beta2, recipe.weight_decay, recipe.clip},
                   runs_of(layout_, recipe.model),
                   train_table()),
        math_(math_for<T>(compute)) {
    parameters_ = options.start_from;
    if (parameters_.empty()) {
      initialise(parameters_, layout_, recipe.model, static_cast<float>(recipe.init_deviation),
                 recipe.seed);
    }
    n_rows_ = recipe.batch_tokens / recipe.context;
    shards = std::min(shards, n_rows_);
    rows_a_pass_ = std::max(1, kPassRows / recipe.context);
    for (int i = 0; i < shards; i++) {
      passes_.push_back(std::make_unique<TrainPass<T>>(recipe.model, layout_, math_for<T>(compute),
                                                       train_table(),
                                                       rows_a_pass_ * recipe.context));
      gradients_.emplace_back(static_cast<std::size_t>(layout_.n), 0.0f);
    }
  }

  TrainResult run();
  void restore(Checkpoint checkpoint);

 private:
  StepBatch next_batch();
  void gradient_of(const StepBatch& batch, std::vector<float>& loss);
  void shard_gradient(int shard, const StepBatch& batch, std::vector<float>& loss);
  TrainProgress one_step();
  double done() const;
  void save() const;
  void log(const TrainProgress& progress);
  bool stop_asked() const { return callbacks_.stop && callbacks_.stop->load(); }
  std::string path(const char* name) const { return options_.directory + "/" + name; }

  const TrainRecipe& recipe_;
  const TokenSource& texts_;
  const TrainOptions& options_;
  const TrainCallbacks& callbacks_;
  Compute compute_;
  ParameterLayout layout_;
  Workers workers_;
  Packer packer_;
  Optimizer optimizer_;
  std::unique_ptr<LinearMath<T>> math_;
  std::vector<float> parameters_;
  std::unique_ptr<PackedWeights<T>> weights_;
  std::vector<std::unique_ptr<TrainPass<T>>> passes_;
  std::vector<std::vector<float>> gradients_;
  int n_rows_ = 0, rows_a_pass_ = 1;
  std::int64_t step_ = 0, tokens_ = 0, next_text_ = 0;
  double seconds_ = 0;
  std::deque<double> recent_losses_;                          // of completions, last kLosses steps
  std::deque<std::pair<double, std::int64_t>> recent_speed_;  // seconds and tokens, last steps
  std::optional<TrainingLog> log_;
};

template <typename T>
void Run<T>::restore(Checkpoint c) {
  const std::string where = path("checkpoint.bin");
  if (c.parameters.size() != static_cast<std::size_t>(layout_.n)) {
    throw Error(ErrorCode::BadInput, where + ": holds a model of another shape than the recipe's");
  }
  parameters_ = std::move(c.parameters);
  optimizer_.mean = std::move(c.mean);
  optimizer_.square = std::move(c.square);
  packer_.load(c.packer, where);
  step_ = c.step;
  tokens_ = c.tokens;
  next_text_ = c.next_text;
  seconds_ = c.seconds;
}

template <typename T>
StepBatch Run<T>::next_batch() {
  std::vector<TokenText> texts(kTextsAtOnce);
  while (packer_.n_ready() < n_rows_) {
    workers_.run(kTextsAtOnce,
                 [&](int i) { texts[static_cast<std::size_t>(i)] = texts_(next_text_ + i); });
    for (const TokenText& text : texts) packer_.add(text);
    next_text_ += kTextsAtOnce;
  }
  std::vector<PackedRow> rows;
  rows.reserve(static_cast<std::size_t>(n_rows_));
  for (int i = 0; i < n_rows_; i++) rows.push_back(packer_.take());
  return lay_out(rows, recipe_.context);
}

// Rows of the batch are dealt to shards in runs; a shard's rows go through in passes, and its
// gradient is their sum in that order.
template <typename T>
void Run<T>::shard_gradient(int shard, const StepBatch& batch, std::vector<float>& loss) {
  const int n_shards = static_cast<int>(passes_.size()), context = recipe_.context;
  const int begin = n_rows_ * shard / n_shards, end = n_rows_ * (shard + 1) / n_shards;
  std::vector<float> weight;
  std::vector<Segment> segments;
  for (int row = begin; row < end; row += rows_a_pass_) {
    const int last = std::min(row + rows_a_pass_, end);
    const auto at = static_cast<std::size_t>(row) * context;
    const auto n = static_cast<std::size_t>(last - row) * context;
    weight.assign(batch.weight.begin() + static_cast<std::ptrdiff_t>(at),
                  batch.weight.begin() + static_cast<std::ptrdiff_t>(at + n));
    for (float& w : weight) w = static_cast<float>(w / batch.weight_sum);
    segments.clear();
    for (std::size_t i = batch.first_segment[static_cast<std::size_t>(row)];
         i < batch.first_segment[static_cast<std::size_t>(last)]; i++) {
      const auto shift = static_cast<std::int32_t>(at);
      segments.push_back({batch.segments[i].begin - shift, batch.segments[i].end - shift});
    }
    const TrainRows rows{std::span(batch.token).subspan(at, n),
                         std::span(batch.target).subspan(at, n),
                         weight,
                         std::span(batch.pos).subspan(at, n),
                         segments,
                         {}};
    passes_[static_cast<std::size_t>(shard)]->forward_backward(
        parameters_, *weights_, rows, gradients_[static_cast<std::size_t>(shard)].data(),
        std::span(loss).subspan(at, n));
  }
}

template <typename T>
void Run<T>::gradient_of(const StepBatch& batch, std::vector<float>& loss) {
  workers_.run(static_cast<int>(passes_.size()),
               [&](int shard) { shard_gradient(shard, batch, loss); });
}

template <typename T>
double Run<T>::done() const {
  if (recipe_.tokens > 0) return static_cast<double>(tokens_) / static_cast<double>(recipe_.tokens);
  return seconds_ / (recipe_.minutes * 60);
}

template <typename T>
TrainProgress Run<T>::one_step() {
  const auto start = Clock::now();
  const StepBatch batch = next_batch();
  std::vector<float> loss(batch.token.size());
  gradient_of(batch, loss);

  TrainProgress progress;
  double completion_sum = 0, answer_sum = 0;
  std::int64_t n_completion = 0, n_answer = 0;
  for (std::size_t i = 0; i < loss.size(); i++) {
    progress.loss += static_cast<double>(batch.weight[i]) * loss[i] / batch.weight_sum;
    if (batch.weight[i] >= 1.0f) {
      completion_sum += loss[i];
      n_completion++;
    }
    if (batch.weight[i] > 1.0f) {
      answer_sum += loss[i];
      n_answer++;
    }
  }
  progress.completion_loss = n_completion ? completion_sum / static_cast<double>(n_completion) : 0;
  progress.answer_loss = n_answer ? answer_sum / static_cast<double>(n_answer) : 0;
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
  tokens_ += batch.n_tokens;
  const std::chrono::duration<double> took = Clock::now() - start;
  seconds_ += took.count();

  recent_speed_.emplace_back(took.count(), batch.n_tokens);
  if (recent_speed_.size() > 50) recent_speed_.pop_front();
  recent_losses_.push_back(progress.completion_loss);
  if (recent_losses_.size() > kLosses) recent_losses_.pop_front();
  double seconds = 0, tokens = 0;
  for (const auto& [s, t] : recent_speed_) {
    seconds += s;
    tokens += static_cast<double>(t);
  }
  progress.step = step_;
  progress.tokens = tokens_;
  progress.tokens_per_second = tokens / seconds;
  progress.done = std::min(1.0, done());
  progress.seconds = seconds_;
  progress.seconds_left =
      recipe_.tokens > 0
          ? static_cast<double>(std::max<std::int64_t>(0, recipe_.tokens - tokens_)) * seconds /
                tokens
          : std::max(0.0, recipe_.minutes * 60 - seconds_);
  return progress;
}

template <typename T>
void Run<T>::save() const {
  Checkpoint c;
  c.recipe = to_json(recipe_);
  c.compute = name_of(compute_);
  c.shards = static_cast<int>(passes_.size());
  c.step = step_;
  c.tokens = tokens_;
  c.next_text = next_text_;
  c.seconds = seconds_;
  c.packer = packer_.save();
  c.parameters = parameters_;
  c.mean = optimizer_.mean;
  c.square = optimizer_.square;
  write_checkpoint(path("checkpoint.bin"), c);
}

template <typename T>
void Run<T>::log(const TrainProgress& p) {
  if (p.step % 10 != 0 && p.step != 1) return;
  TrainingReport report{.step = p.step,
                        .tokens = p.tokens,
                        .seconds = p.seconds,
                        .seconds_left = p.seconds_left,
                        .tokens_per_second = p.tokens_per_second,
                        .lr = p.lr,
                        .gradient_norm = p.gradient_norm,
                        .loss = p.loss,
                        .losses = {{"completion", p.completion_loss}},
                        .probes = {}};
  if (recipe_.answer_weight != 1) report.losses.emplace_back("answer", p.answer_loss);
  log_->write(report);
}

template <typename T>
TrainResult Run<T>::run() {
  log_.emplace(options_.directory, step_);
  weights_ = std::make_unique<PackedWeights<T>>(recipe_.model, layout_, parameters_, *math_);
  auto last_saved = Clock::now();
  const std::int64_t first_step = step_;
  TrainResult result;
  const auto at_end = [&] {
    return (recipe_.tokens > 0 ? tokens_ >= recipe_.tokens : done() >= 1) ||
           (options_.stop_after_step > 0 && step_ >= options_.stop_after_step);
  };
  while (!at_end() && !stop_asked()) {
    const TrainProgress progress = one_step();
    log(progress);
    if (callbacks_.progress) callbacks_.progress(progress);
    const std::chrono::duration<double> since = Clock::now() - last_saved;
    if (since.count() > recipe_.checkpoint_minutes * 60) {
      save();
      last_saved = Clock::now();
    }
  }
  if (step_ > first_step) save();
  result.finished = done() >= 1;
  result.step = step_;
  result.steps_done = step_ - first_step;
  result.tokens = tokens_;
  result.seconds = seconds_;
  result.n_losses = static_cast<int>(recent_losses_.size());
  if (!recent_losses_.empty()) {
    result.completion_loss = std::accumulate(recent_losses_.begin(), recent_losses_.end(), 0.0) /
                             static_cast<double>(recent_losses_.size());
  }
  result.compute = name_of(compute_);
  result.n_texts_cut = packer_.n_cut();
  result.fill = packer_.n_closed() ? static_cast<double>(packer_.n_tokens()) /
                                         (static_cast<double>(packer_.n_closed()) * recipe_.context)
                                   : 0;
  result.parameters = std::move(parameters_);
  return result;
}

// What may differ between a checkpoint's recipe and the one given: how often to save, and how long
// to go on.
std::string essence(const std::string& recipe) {
  auto object = nlohmann::json::parse(recipe, nullptr, false);
  if (!object.is_object()) return recipe;
  for (const char* free : {"checkpoint_minutes", "tokens", "minutes", "compute", "shards"}) {
    object.erase(free);
  }
  return object.dump();
}

template <typename T>
TrainResult start(const TrainRecipe& recipe,
                  const TokenSource& texts,
                  const TrainOptions& options,
                  const TrainCallbacks& callbacks,
                  Compute compute,
                  int shards,
                  Checkpoint* checkpoint) {
  Run<T> run(recipe, texts, options, callbacks, compute, shards);
  if (checkpoint) run.restore(std::move(*checkpoint));
  return run.run();
}

}  // namespace

TrainResult train(const TrainRecipe& recipe,
                  const TokenSource& texts,
                  const TrainOptions& options,
                  const TrainCallbacks& callbacks) {
  ensure(!options.directory.empty(), "training needs a directory for its checkpoint");
  std::error_code failed;
  fs::create_directories(options.directory, failed);
  if (failed) {
    throw Error(ErrorCode::Resources, options.directory + ": cannot be made: " + failed.message());
  }
  const std::string path = options.directory + "/checkpoint.bin";
  const bool found = fs::exists(path), resume = options.resume && found;
  if (found && !options.resume) {
    throw Error(ErrorCode::Usage, path +
                                      ": a run was saved here; go on with --resume, or give "
                                      "another directory");
  }
  if (options.resume && !found && callbacks.notice) {
    callbacks.notice("nothing to resume in " + options.directory + ": starting from the beginning");
  }
  Checkpoint checkpoint;
  Compute compute = compute_named(recipe.compute, recipe.model);
  int shards = recipe.shards > 0 ? recipe.shards : usable_threads(options.n_threads);
  if (resume) {
    checkpoint = read_checkpoint(path);
    if (essence(checkpoint.recipe) != essence(to_json(recipe))) {
      throw Error(ErrorCode::BadInput,
                  path + ": was made by another recipe; give that recipe, or another directory");
    }
    compute = compute_named(checkpoint.compute, recipe.model);
    shards = checkpoint.shards;
    if (callbacks.notice) {
      callbacks.notice("resuming after step " + std::to_string(checkpoint.step));
    }
  }
  if (callbacks.notice) {
    callbacks.notice("computing in " + std::string(name_of(compute)) + " with " +
                     std::to_string(shards) + " shards, elementwise " + train_table().name);
  }
  Checkpoint* from = resume ? &checkpoint : nullptr;
  return compute == Compute::F32
             ? start<float>(recipe, texts, options, callbacks, compute, shards, from)
             : start<Bf16>(recipe, texts, options, callbacks, compute, shards, from);
}

}  // namespace engine
