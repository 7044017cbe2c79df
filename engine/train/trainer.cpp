#include "engine/train/trainer.h"

#include <algorithm>
#include <optional>

#include "engine/train/optimizer.h"
#include "engine/train/run_parts.h"
#include "engine/train/training_loop.h"
#include "engine/train/transformer.h"
#include "engine/train/workers.h"
#include "engine/types.h"

namespace engine {
namespace {

constexpr int kTextsAtOnce = 32;
constexpr int kPassRows = 512;  // rows a shard carries through the layers at once, about

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
        loop_(loop_settings(recipe, recipe.tokens), options, callbacks),
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

  TrainResult run(const TrainCallbacks& callbacks);
  void restore(Checkpoint checkpoint);

 private:
  StepBatch next_batch();
  void gradient_of(const StepBatch& batch, std::vector<float>& loss);
  void shard_gradient(int shard, const StepBatch& batch, std::vector<float>& loss);
  TrainProgress update(std::int64_t step, double lr);
  void save() const;

  const TrainRecipe& recipe_;
  const TokenSource& texts_;
  TrainingLoop loop_;
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
  std::int64_t next_text_ = 0;
};

template <typename T>
void Run<T>::restore(Checkpoint c) {
  loop_.restore(c, layout_.n, "a model of another shape than the recipe's", parameters_,
                optimizer_);
  packer_.load(c.packer, loop_.checkpoint_path());
  next_text_ = c.next_text;
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
TrainProgress Run<T>::update(std::int64_t step, double lr) {
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
  progress.losses = {{"completion", progress.completion_loss}};
  if (recipe_.answer_weight != 1) progress.losses.emplace_back("answer", progress.answer_loss);
  progress.tokens = batch.n_tokens;
  progress.gradient_norm = optimizer_.update(parameters_, gradients_, step, lr, workers_);
  workers_.run(weights_->n_matrices(), [&](int i) { weights_->repack(i, *math_); });
  return progress;
}

template <typename T>
void Run<T>::save() const {
  Checkpoint c =
      loop_.checkpoint(to_json(recipe_), compute_, passes_.size(), parameters_, optimizer_);
  c.next_text = next_text_;
  c.packer = packer_.save();
  write_checkpoint(loop_.checkpoint_path(), c);
}

template <typename T>
TrainResult Run<T>::run(const TrainCallbacks& callbacks) {
  weights_ = std::make_unique<PackedWeights<T>>(recipe_.model, layout_, parameters_, *math_);
  std::function<NamedFigures()> measure;
  if (callbacks.probe) measure = [&] { return callbacks.probe(parameters_); };
  loop_.run([&](std::int64_t step, double lr) { return update(step, lr); }, [&] { save(); },
            probe_every(recipe_.probe_minutes, std::move(measure)));
  TrainResult result;
  result.finished = loop_.done() >= 1;
  result.step = loop_.step;
  result.steps_done = loop_.steps_done();
  result.tokens = loop_.tokens;
  result.seconds = loop_.seconds;
  result.n_losses = loop_.n_losses();
  result.completion_loss = loop_.mean_loss();
  result.compute = name_of(compute_);
  result.n_texts_cut = packer_.n_cut();
  result.fill = packer_.n_closed() ? static_cast<double>(packer_.n_tokens()) /
                                         (static_cast<double>(packer_.n_closed()) * recipe_.context)
                                   : 0;
  result.parameters = std::move(parameters_);
  return result;
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
  return run.run(callbacks);
}

}  // namespace

TrainResult train(const TrainRecipe& recipe,
                  const TokenSource& texts,
                  const TrainOptions& options,
                  const TrainCallbacks& callbacks) {
  std::optional<Checkpoint> checkpoint = checkpoint_to_resume(to_json(recipe), options, callbacks);
  const Compute compute =
      compute_named(checkpoint ? checkpoint->compute : recipe.compute, recipe.model);
  const int shards = checkpoint          ? checkpoint->shards
                     : recipe.shards > 0 ? recipe.shards
                                         : usable_threads(options.n_threads);
  if (callbacks.notice) {
    callbacks.notice("computing in " + std::string(name_of(compute)) + " with " +
                     std::to_string(shards) + " shards, elementwise " + train_table().name);
  }
  Checkpoint* from = checkpoint ? &*checkpoint : nullptr;
  return compute == Compute::F32
             ? start<float>(recipe, texts, options, callbacks, compute, shards, from)
             : start<Bf16>(recipe, texts, options, callbacks, compute, shards, from);
}

}  // namespace engine
