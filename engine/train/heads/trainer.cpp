#include "engine/train/heads/trainer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "engine/base/types.h"
#include "engine/train/core/hidden_states.h"
#include "engine/train/core/optimizer.h"
#include "engine/train/core/shuffled_order.h"
#include "engine/train/core/workers.h"
#include "engine/train/heads/steps.h"
#include "engine/train/run/run_parts.h"
#include "engine/train/run/training_loop.h"

namespace engine {
namespace {

constexpr int kProbesInLog = 32;  // probe texts measured during the run, for the log
constexpr std::size_t kLosses = 100;

std::string head_name(int head) {
  return "head " + std::to_string(head + 1);
}

// Texts with at least one training target.
std::vector<OwnOutput> usable(const std::vector<OwnOutput>& texts) {
  std::vector<OwnOutput> kept;
  for (const OwnOutput& text : texts) {
    const HeadsText as_read{text.tokens, {}, text.n_prompt};
    if (as_read.n_places(0) > 0) kept.push_back(text);
  }
  return kept;
}

// The rows of each text's tokens, as HeadsText::rows.
std::vector<std::vector<std::int32_t>> output_rows_of(const std::vector<OwnOutput>& texts,
                                                      const HeadsConfig& config) {
  std::vector<std::vector<std::int32_t>> rows;
  for (const OwnOutput& text : texts) rows.push_back(output_rows_of(text.tokens, config));
  return rows;
}

// Number of training places in all epochs of the recipe.
std::int64_t tokens_of(const HeadsRecipe& recipe, const std::vector<OwnOutput>& texts) {
  std::int64_t places = 0;
  for (const OwnOutput& text : texts)
    places += HeadsText{text.tokens, {}, text.n_prompt}.n_places(0);
  return static_cast<std::int64_t>(recipe.epochs * static_cast<double>(places));
}

class HeadsRun {
 public:
  HeadsRun(const HeadsRecipe& recipe,
           const HeadsConfig& config,
           const HeadsData& data,
           const TrainOptions& options,
           const TrainCallbacks& callbacks,
           Compute compute,
           int shards);
  void restore(Checkpoint checkpoint);
  /// @param device  null: the CPU
  HeadsResult run(const TrainCallbacks& callbacks, std::unique_ptr<kernels::Device> device);

 private:
  HeadsRunShape shape() const;
  std::vector<int> next_texts();
  HeadsLoss loss_of(std::span<const HeadsText> texts) const;
  TrainProgress update(std::int64_t step, double lr);
  void report_losses(const HeadsSums& sums, TrainProgress& progress) const;
  MeasuredRanks ranks_of(int n_probes, bool self_fed = false);
  HeadsText read(const OwnOutput& text,
                 std::span<const Bf16> hidden,
                 std::span<const std::int32_t> rows = {}) const {
    return {text.tokens, hidden, text.n_prompt, rows};
  }
  void save();

  const HeadsRecipe& recipe_;
  const HeadsConfig& config_;
  const HeadsData& data_;
  const Compute compute_;
  const HeadsLayout layout_;
  const std::vector<OwnOutput> texts_, probes_;
  const std::vector<std::vector<std::int32_t>> rows_, probe_rows_;  // as HeadsText::rows, by text
  HiddenStates hidden_, probe_hidden_;
  ShuffledOrder order_;
  TrainingLoop loop_;
  Workers workers_;
  Optimizer optimizer_;
  int shards_;
  std::vector<float> parameters_;
  std::unique_ptr<kernels::Device> device_;  // null: the CPU
  std::unique_ptr<HeadsSteps> steps_;
  std::int64_t next_text_ = 0;
  std::deque<NamedFigures> recent_;  // losses of the last steps
};

HeadsRun::HeadsRun(const HeadsRecipe& recipe,
                   const HeadsConfig& config,
                   const HeadsData& data,
                   const TrainOptions& options,
                   const TrainCallbacks& callbacks,
                   Compute compute,
                   int shards)
    : recipe_(recipe),
      config_(config),
      data_(data),
      compute_(compute),
      layout_(config),
      texts_(usable(data.texts)),
      probes_(usable(data.probes)),
      rows_(output_rows_of(texts_, config)),
      probe_rows_(output_rows_of(probes_, config)),
      hidden_(data.target, texts_, static_cast<std::int64_t>(recipe.hidden_megabytes * 1e6)),
      probe_hidden_(data.target, probes_, static_cast<std::int64_t>(recipe.hidden_megabytes * 1e6)),
      order_(texts_.size(), recipe.seed),
      loop_(loop_settings(recipe, tokens_of(recipe, texts_)), options, callbacks),
      workers_(std::min(usable_threads(options.n_threads), std::max(shards, 1))),
      optimizer_({recipe.beta1, recipe.beta2, recipe.weight_decay, recipe.clip},
                 runs_of(layout_.parts, layout_.n),
                 train_table()),
      shards_(std::min(shards, recipe.batch_texts)),
      parameters_(initial_heads(config,
                                data.output,
                                data.embedding,
                                static_cast<float>(recipe.init_deviation),
                                recipe.seed)) {
  if (texts_.empty())
    throw Error(ErrorCode::BadInput, recipe.name +
                                         ": own_outputs: no text is long enough to "
                                         "learn from; raise count or max_tokens");
}

HeadsRunShape HeadsRun::shape() const {
  HeadsRunShape shape{.config = config_,
                      .embedding = data_.embedding,
                      .output = data_.output,
                      .first_layer = data_.first_layer.get()};
  shape.batch_texts = recipe_.batch_texts;
  for (const auto* texts : {&texts_, &probes_}) {
    for (const OwnOutput& text : *texts) {
      const HeadsText as_read = read(text, {});
      shape.longest_rows = std::max(shape.longest_rows, rows_of(as_read, config_));
      shape.longest_places = std::max(shape.longest_places, as_read.n_places(0));
    }
  }
  return shape;
}

void HeadsRun::restore(Checkpoint c) {
  loop_.restore(c, layout_.n, "heads of another shape than the recipe's", parameters_, optimizer_);
  next_text_ = c.next_text;
}

void HeadsRun::save() {
  steps_->weights().fetch();
  Checkpoint c = loop_.checkpoint(to_json(recipe_), compute_, static_cast<std::size_t>(shards_),
                                  parameters_, optimizer_);
  c.next_text = next_text_;
  write_checkpoint(loop_.checkpoint_path(), c);
}

std::vector<int> HeadsRun::next_texts() {
  std::vector<int> texts;
  for (int i = 0; i < recipe_.batch_texts; i++)
    texts.push_back(static_cast<int>(order_.at(next_text_++)));
  return texts;
}

// The weights of the losses: the loss of a head is the mean over its targets in the step.
HeadsLoss HeadsRun::loss_of(std::span<const HeadsText> texts) const {
  HeadsLoss loss;
  std::int64_t n_rows = 0;
  for (int head = 0; head < config_.n_heads; head++) {
    std::int64_t n = 0;
    for (const HeadsText& text : texts) {
      n += text.n_targets(head);
      n_rows += text.n_places(head);
    }
    const double counts = std::pow(recipe_.head_decay, head);
    loss.of_head.push_back(n ? static_cast<float>(counts / static_cast<double>(n)) : 0.0f);
  }
  if (n_rows > 0)
    loss.of_feature =
        static_cast<float>(recipe_.feature_weight / (static_cast<double>(n_rows) * config_.dim));
  loss.self_fed = recipe_.self_fed;
  return loss;
}

void HeadsRun::report_losses(const HeadsSums& sums, TrainProgress& progress) const {
  double mean = 0;
  for (int head = 0; head < config_.n_heads; head++) {
    const auto k = static_cast<std::size_t>(head);
    const double loss = sums.n[k] ? sums.loss[k] / static_cast<double>(sums.n[k]) : 0;
    progress.losses.emplace_back(head_name(head), loss);
    progress.loss += std::pow(recipe_.head_decay, head) * loss;
    mean += loss / config_.n_heads;
  }
  progress.completion_loss = mean;
  if (sums.n_feature == 0) return;
  const double feature = sums.feature / static_cast<double>(sums.n_feature);
  progress.losses.emplace_back("features, mean square", feature);
  progress.loss += recipe_.feature_weight * feature;
}

TrainProgress HeadsRun::update(std::int64_t step, double lr) {
  const std::vector<int> chosen = next_texts();
  hidden_.load(chosen);
  std::vector<HeadsText> texts;
  TrainProgress progress;
  for (const int text : chosen) {
    const auto i = static_cast<std::size_t>(text);
    texts.push_back(read(texts_[i], hidden_.of(text), rows_[i]));
    progress.tokens += texts.back().n_places(0);
  }
  HeadsSums sums(config_.n_heads);
  progress.gradient_norm = steps_->update(texts, loss_of(texts), step, lr, sums);
  report_losses(sums, progress);
  if (!std::isfinite(progress.gradient_norm)) return progress;
  recent_.push_back(progress.losses);
  if (recent_.size() > kLosses) recent_.pop_front();
  if (recipe_.probe_steps > 0 && step % recipe_.probe_steps == 0) {
    const HeadsRanks ranks = ranks_of(kProbesInLog).all;
    for (int head = 0; head < config_.n_heads; head++)
      progress.probes.emplace_back(head_name(head) + " top-1", ranks.top(head, 1));
  }
  return progress;
}

MeasuredRanks HeadsRun::ranks_of(int n_probes, bool self_fed) {
  std::vector<int> chosen;
  for (int i = 0; i < std::min<int>(n_probes, static_cast<int>(probes_.size())); i++)
    chosen.push_back(i);
  probe_hidden_.load(chosen);
  std::vector<HeadsText> texts;
  for (const int text : chosen) {
    const auto i = static_cast<std::size_t>(text);
    texts.push_back(read(probes_[i], probe_hidden_.of(text), probe_rows_[i]));
  }
  MeasuredRanks ranks(config_.n_heads);
  steps_->rank(texts, data_.target.vocab_size(), self_fed, ranks);
  return ranks;
}

HeadsResult HeadsRun::run(const TrainCallbacks& callbacks,
                          std::unique_ptr<kernels::Device> device) {
  device_ = std::move(device);
  steps_ =
      std::make_unique<HeadsSteps>(shape(), TrainPlace{compute_, workers_, shards_, device_.get()},
                                   TrainState{parameters_, optimizer_});
  if (callbacks.notice) {
    callbacks.notice("computing in " + steps_->weights().name());
    callbacks.notice(std::to_string(texts_.size()) + " texts, hidden states of " +
                     std::to_string(hidden_.n_bytes() / 1'000'000) + " MB, " +
                     (hidden_.kept() ? "kept in memory" : "recomputed in every step"));
  }
  const auto reported_update = [&](std::int64_t step, double lr) {
    TrainProgress progress = update(step, lr);
    for (const std::string& note : steps_->weights().take_notes())
      if (callbacks.notice) callbacks.notice(note);
    return progress;
  };
  loop_.run(reported_update, [&] { save(); });
  HeadsResult result;
  result.finished = loop_.done() >= 1;
  result.step = loop_.step;
  result.steps_done = loop_.steps_done();
  result.tokens = loop_.tokens;
  result.seconds = loop_.seconds;
  result.compute = name_of(compute_);
  result.hidden_bytes = hidden_.n_bytes();
  result.hidden_kept = hidden_.kept();
  for (const NamedFigures& losses : recent_) {
    result.losses.resize(losses.size());
    for (std::size_t i = 0; i < losses.size(); i++) {
      result.losses[i].first = losses[i].first;
      result.losses[i].second += losses[i].second / static_cast<double>(recent_.size());
    }
  }
  if (result.finished) {
    result.ranks = ranks_of(static_cast<int>(probes_.size()));
    if (config_.kind == HeadsKind::Chimera)
      result.self_fed = ranks_of(static_cast<int>(probes_.size()), true).all;
  }
  result.parameters = std::move(parameters_);
  return result;
}

}  // namespace

HeadsResult train_heads(const HeadsRecipe& recipe,
                        const HeadsConfig& config,
                        const HeadsData& data,
                        const TrainOptions& options,
                        const TrainCallbacks& callbacks,
                        std::unique_ptr<kernels::Device> device) {
  if (!device) device = open_training_device(options.device);
  std::optional<Checkpoint> checkpoint = checkpoint_to_resume(to_json(recipe), options, callbacks);
  const std::string& named = checkpoint ? checkpoint->compute : recipe.compute;
  const Compute compute =
      device ? gpu_compute_named(named) : compute_named(named, encoder_of(config));
  const int shards = checkpoint          ? checkpoint->shards
                     : recipe.shards > 0 ? recipe.shards
                                         : usable_threads(options.n_threads);
  HeadsRun run(recipe, config, data, options, callbacks, compute, shards);
  if (checkpoint) run.restore(std::move(*checkpoint));
  return run.run(callbacks, std::move(device));
}

}  // namespace engine
