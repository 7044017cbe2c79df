#include "engine/train/core/trainer.h"

#include <algorithm>
#include <optional>

#include "engine/base/types.h"
#include "engine/train/core/text_queue.h"
#include "engine/train/core/training_steps.h"
#include "engine/train/draft/shared_embedding.h"
#include "engine/train/run/run_parts.h"
#include "engine/train/run/training_loop.h"

namespace engine {
namespace {

class Run {
 public:
  Run(const TrainRecipe& recipe,
      const TokenSource& texts,
      const TrainOptions& options,
      const TrainCallbacks& callbacks,
      Compute compute,
      int shards,
      std::unique_ptr<kernels::Device> device)
      : recipe_(recipe),
        loop_(loop_settings(recipe, recipe.tokens), options, callbacks),
        compute_(compute),
        layout_(recipe.model),
        workers_(std::min(usable_threads(options.n_threads), std::max(shards, 1))),
        texts_(texts, workers_),
        packer_(
            recipe.context,
            recipe.open_rows,
            {static_cast<float>(recipe.prompt_weight), static_cast<float>(recipe.answer_weight)}),
        optimizer_({recipe.beta1, recipe.beta2, recipe.weight_decay, recipe.clip},
                   runs_of(layout_, recipe.model),
                   train_table()),
        n_rows_(recipe.batch_tokens / recipe.context),
        shards_(std::min(shards, n_rows_)),
        shared_(options.shared),
        device_(std::move(device)) {
    parameters_ = options.start_from;
    if (parameters_.empty()) {
      initialise(parameters_, layout_, recipe.model, static_cast<float>(recipe.init_deviation),
                 recipe.seed);
    }
  }

  TrainResult run(const TrainCallbacks& callbacks);
  void restore(Checkpoint checkpoint);

 private:
  /// @param index  of the text in its source
  void expect_tokens(const TokenText& text, std::int64_t index) const;
  StepBatch next_batch();
  TrainProgress update(std::int64_t step, double lr);
  void save();

  const TrainRecipe& recipe_;
  TrainingLoop loop_;
  Compute compute_;
  ParameterLayout layout_;
  Workers workers_;
  TextQueue texts_;
  Packer packer_;
  Optimizer optimizer_;
  int n_rows_, shards_;
  std::vector<float> parameters_;
  const SharedEmbedding* shared_;            // null: the model has its own embedding
  std::unique_ptr<kernels::Device> device_;  // null: the CPU
  std::unique_ptr<TrainSteps> steps_;
};

void Run::restore(Checkpoint c) {
  loop_.restore(c, layout_.n, "a model of another shape than the recipe's", parameters_,
                optimizer_);
  packer_.load(c.packer, loop_.checkpoint_path());
  texts_.next = c.next_text;
}

void Run::expect_tokens(const TokenText& text, std::int64_t index) const {
  const int n = recipe_.model.vocab_size;
  const auto other =
      std::ranges::find_if(text.tokens, [&](TokenId token) { return token < 0 || token >= n; });
  if (other == text.tokens.end()) return;
  throw Error(ErrorCode::BadInput,
              recipe_.name + ": text " + std::to_string(index) + ": found token " +
                  std::to_string(*other) + ", expected 0 to " + std::to_string(n - 1) +
                  ", the model's vocabulary; was the text made with another tokenizer?");
}

StepBatch Run::next_batch() {
  while (packer_.n_ready() < n_rows_) {
    const std::int64_t first = texts_.next;
    const std::vector<TokenText> texts = texts_.take();
    for (std::size_t i = 0; i < texts.size(); i++) {
      expect_tokens(texts[i], first + static_cast<std::int64_t>(i));
      packer_.add(texts[i]);
    }
  }
  std::vector<PackedRow> rows;
  rows.reserve(static_cast<std::size_t>(n_rows_));
  for (int i = 0; i < n_rows_; i++) {
    rows.push_back(packer_.take());
    if (shared_) shared_->to_rows(rows.back().target, rows.back().weight);
  }
  return lay_out(rows, recipe_.context);
}

TrainProgress Run::update(std::int64_t step, double lr) {
  const StepBatch batch = next_batch();
  if (!steps_->weights().on_cpu()) texts_.make_ahead();
  std::vector<float> loss(batch.token.size());
  TrainProgress progress;
  progress.gradient_norm = steps_->update(batch, step, lr, loss);

  double completion_sum = 0, answer_sum = 0;
  std::int64_t n_completion = 0, n_answer = 0;
  for (std::size_t i = 0; i < loss.size(); i++) {
    if (batch.weight[i] != 0)
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
  return progress;
}

void Run::save() {
  steps_->weights().fetch();
  Checkpoint c = loop_.checkpoint(to_json(recipe_), compute_, static_cast<std::size_t>(shards_),
                                  parameters_, optimizer_);
  c.next_text = texts_.next;
  c.packer = packer_.save();
  write_checkpoint(loop_.checkpoint_path(), c);
}

TrainResult Run::run(const TrainCallbacks& callbacks) {
  steps_ =
      std::make_unique<TrainSteps>(recipe_, TrainPlace{compute_, workers_, shards_, device_.get()},
                                   TrainState{parameters_, optimizer_}, shared_);
  if (callbacks.notice) callbacks.notice("computing in " + steps_->weights().name());
  std::function<NamedFigures()> measure;
  if (callbacks.probe) {
    measure = [&] {
      steps_->weights().fetch();
      return callbacks.probe(parameters_);
    };
  }
  const auto report_notes = [&] {
    for (const std::string& note : steps_->weights().take_notes())
      if (callbacks.notice) callbacks.notice(note);
  };
  const auto reported_update = [&](std::int64_t step, double lr) {
    TrainProgress progress = update(step, lr);
    report_notes();
    return progress;
  };
  loop_.run(
      reported_update, [&] { save(); }, probe_every(recipe_.probe_minutes, std::move(measure)));
  TrainResult result;
  result.finished = loop_.done() >= 1;
  result.n_skipped_steps = loop_.n_skipped();
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

}  // namespace

std::unique_ptr<kernels::Device> open_training_device(const std::string& name) {
  return name.empty() || kernels::is_cpu(name) ? nullptr : kernels::open_gpu(name);
}

TrainResult train(const TrainRecipe& recipe,
                  const TokenSource& texts,
                  const TrainOptions& options,
                  const TrainCallbacks& callbacks,
                  std::unique_ptr<kernels::Device> device) {
  if (!device) device = open_training_device(options.device);
  std::optional<Checkpoint> checkpoint = checkpoint_to_resume(to_json(recipe), options, callbacks);
  const std::string& named = checkpoint ? checkpoint->compute : recipe.compute;
  const Compute compute = device ? gpu_compute_named(named) : compute_named(named, recipe.model);
  const int shards = checkpoint          ? checkpoint->shards
                     : recipe.shards > 0 ? recipe.shards
                                         : usable_threads(options.n_threads);
  Run run(recipe, texts, options, callbacks, compute, shards, std::move(device));
  if (checkpoint) run.restore(std::move(*checkpoint));
  return run.run(callbacks);
}

}  // namespace engine
