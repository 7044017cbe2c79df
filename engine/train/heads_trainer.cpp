#include "engine/train/heads_trainer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "engine/train/hidden_states.h"
#include "engine/train/optimizer.h"
#include "engine/train/run_parts.h"
#include "engine/train/shuffled_order.h"
#include "engine/train/training_loop.h"
#include "engine/train/workers.h"
#include "engine/types.h"

namespace engine {
namespace {

constexpr int kPassRows = 1024;   // of a pass, or those of the longest text
constexpr int kProbesInLog = 32;  // texts
constexpr std::size_t kLosses = 100;

std::string head_name(int head) {
  return "head " + std::to_string(head + 1);
}

// Texts of which something can be learnt.
std::vector<OwnOutput> usable(const std::vector<OwnOutput>& texts) {
  std::vector<OwnOutput> kept;
  for (const OwnOutput& text : texts) {
    const HeadsText as_read{text.tokens, {}, text.n_prompt};
    if (as_read.n_places(0) > 0) kept.push_back(text);
  }
  return kept;
}

// Places to learn from until the recipe's epochs are over.
std::int64_t tokens_of(const HeadsRecipe& recipe, const std::vector<OwnOutput>& texts) {
  std::int64_t places = 0;
  for (const OwnOutput& text : texts)
    places += HeadsText{text.tokens, {}, text.n_prompt}.n_places(0);
  return static_cast<std::int64_t>(recipe.epochs * static_cast<double>(places));
}

int longest_of(const std::vector<OwnOutput>& texts, const HeadsConfig& config) {
  int rows = 0;
  for (const OwnOutput& text : texts)
    rows = std::max(rows, rows_of({text.tokens, {}, text.n_prompt}, config));
  return rows;
}

template <typename T>
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
  HeadsResult run(const TrainCallbacks& callbacks);

 private:
  std::vector<int> next_texts();
  HeadsLoss loss_of(std::span<const HeadsText> texts) const;
  std::vector<std::span<const HeadsText>> passes_of(std::span<const HeadsText> texts) const;
  HeadsSums gradient_of(std::span<const HeadsText> texts, const HeadsLoss& loss);
  TrainProgress update(std::int64_t step, double lr);
  void tell_losses(const HeadsSums& sums, TrainProgress& progress) const;
  HeadsRanks ranks_of(int n_probes);
  HeadsText read(const OwnOutput& text, std::span<const Bf16> hidden) const {
    return {text.tokens, hidden, text.n_prompt};
  }
  void save() const;

  const HeadsRecipe& recipe_;
  const HeadsConfig& config_;
  const HeadsData& data_;
  const Compute compute_;
  const HeadsLayout layout_;
  const std::vector<OwnOutput> texts_, probes_;
  HiddenStates hidden_, probe_hidden_;
  ShuffledOrder order_;
  TrainingLoop loop_;
  Workers workers_;
  Optimizer optimizer_;
  int pass_rows_;
  std::unique_ptr<LinearMath<T>> math_;
  std::vector<float> parameters_;
  std::unique_ptr<PackedHeads<T>> weights_;
  std::vector<std::unique_ptr<HeadsPass<T>>> passes_;
  std::vector<std::vector<float>> gradients_;
  std::int64_t next_text_ = 0;
  std::deque<NamedFigures> recent_;  // losses of the last steps
};

template <typename T>
HeadsRun<T>::HeadsRun(const HeadsRecipe& recipe,
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
      hidden_(data.target, texts_, static_cast<std::int64_t>(recipe.hidden_megabytes * 1e6)),
      probe_hidden_(data.target, probes_, static_cast<std::int64_t>(recipe.hidden_megabytes * 1e6)),
      order_(texts_.size(), recipe.seed),
      loop_(loop_settings(recipe, tokens_of(recipe, texts_)), options, callbacks),
      workers_(std::min(usable_threads(options.n_threads), std::max(shards, 1))),
      optimizer_({recipe.beta1, recipe.beta2, recipe.weight_decay, recipe.clip},
                 runs_of(layout_.parts, layout_.n),
                 train_table()),
      pass_rows_(std::max({kPassRows, longest_of(texts_, config), longest_of(probes_, config)})),
      math_(math_for<T>(compute)),
      parameters_(initial_heads(config,
                                data.output,
                                data.embedding,
                                static_cast<float>(recipe.init_deviation),
                                recipe.seed)) {
  if (texts_.empty())
    throw Error(ErrorCode::BadInput, recipe.name +
                                         ": own_outputs: no text is long enough to "
                                         "learn from; raise count or max_tokens");
  shards = std::min(shards, recipe.batch_texts);
  for (int i = 0; i < shards; i++) {
    passes_.push_back(make_heads_pass<T>(config, data.embedding, math_for<T>(compute),
                                         train_table(), pass_rows_));
    gradients_.emplace_back(static_cast<std::size_t>(layout_.n), 0.0f);
  }
}

template <typename T>
void HeadsRun<T>::restore(Checkpoint c) {
  loop_.restore(c, layout_.n, "heads of another shape than the recipe's", parameters_, optimizer_);
  next_text_ = c.next_text;
}

template <typename T>
void HeadsRun<T>::save() const {
  Checkpoint c =
      loop_.checkpoint(to_json(recipe_), compute_, passes_.size(), parameters_, optimizer_);
  c.next_text = next_text_;
  write_checkpoint(loop_.checkpoint_path(), c);
}

template <typename T>
std::vector<int> HeadsRun<T>::next_texts() {
  std::vector<int> texts;
  for (int i = 0; i < recipe_.batch_texts; i++)
    texts.push_back(static_cast<int>(order_.at(next_text_++)));
  return texts;
}

// A head's loss is the mean over its rows of the step.
template <typename T>
HeadsLoss HeadsRun<T>::loss_of(std::span<const HeadsText> texts) const {
  HeadsLoss loss;
  std::int64_t n_rows = 0;
  for (int head = 0; head < config_.n_heads; head++) {
    std::int64_t n = 0;
    for (const HeadsText& text : texts) n += text.n_places(head);
    n_rows += n;
    const double counts = std::pow(recipe_.head_decay, head);
    loss.of_head.push_back(n ? static_cast<float>(counts / static_cast<double>(n)) : 0.0f);
  }
  if (n_rows > 0)
    loss.of_feature =
        static_cast<float>(recipe_.feature_weight / (static_cast<double>(n_rows) * config_.dim));
  loss.self_fed = recipe_.self_fed;
  return loss;
}

// In their order, as many to a pass as fit.
template <typename T>
std::vector<std::span<const HeadsText>> HeadsRun<T>::passes_of(
    std::span<const HeadsText> texts) const {
  std::vector<std::span<const HeadsText>> passes;
  std::size_t first = 0;
  int rows = 0;
  for (std::size_t i = 0; i < texts.size(); i++) {
    const int more = rows_of(texts[i], config_);
    if (i > first && rows + more > pass_rows_) {
      passes.push_back(texts.subspan(first, i - first));
      first = i;
      rows = 0;
    }
    rows += more;
  }
  if (first < texts.size()) passes.push_back(texts.subspan(first));
  return passes;
}

// Texts are dealt to shards in runs; a shard's gradient is the sum of its passes in their order.
template <typename T>
HeadsSums HeadsRun<T>::gradient_of(std::span<const HeadsText> texts, const HeadsLoss& loss) {
  const auto n_shards = passes_.size();
  std::vector<HeadsSums> sums(n_shards, HeadsSums(config_.n_heads));
  workers_.run(static_cast<int>(n_shards), [&](int i) {
    const auto shard = static_cast<std::size_t>(i);
    const std::size_t begin = texts.size() * shard / n_shards;
    const std::size_t end = texts.size() * (shard + 1) / n_shards;
    for (const auto pass : passes_of(texts.subspan(begin, end - begin)))
      passes_[shard]->forward_backward(parameters_, *weights_, pass, loss, gradients_[shard].data(),
                                       sums[shard]);
  });
  HeadsSums all(config_.n_heads);
  for (const HeadsSums& shard : sums) all += shard;
  return all;
}

template <typename T>
void HeadsRun<T>::tell_losses(const HeadsSums& sums, TrainProgress& progress) const {
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

template <typename T>
TrainProgress HeadsRun<T>::update(std::int64_t step, double lr) {
  const std::vector<int> chosen = next_texts();
  hidden_.load(chosen);
  std::vector<HeadsText> texts;
  TrainProgress progress;
  for (const int text : chosen) {
    texts.push_back(read(texts_[static_cast<std::size_t>(text)], hidden_.of(text)));
    progress.tokens += texts.back().n_places(0);
  }
  tell_losses(gradient_of(texts, loss_of(texts)), progress);
  progress.gradient_norm = std::isfinite(progress.loss)
                               ? optimizer_.update(parameters_, gradients_, step, lr, workers_)
                               : optimizer_.leave_out(gradients_, workers_);
  if (!std::isfinite(progress.gradient_norm)) return progress;
  workers_.run(weights_->n_matrices(), [&](int i) { weights_->repack(i, *math_); });
  recent_.push_back(progress.losses);
  if (recent_.size() > kLosses) recent_.pop_front();
  if (recipe_.probe_steps > 0 && step % recipe_.probe_steps == 0) {
    const HeadsRanks ranks = ranks_of(kProbesInLog);
    for (int head = 0; head < config_.n_heads; head++)
      progress.probes.emplace_back(head_name(head) + " top-1", ranks.top(head, 1));
  }
  return progress;
}

template <typename T>
HeadsRanks HeadsRun<T>::ranks_of(int n_probes) {
  std::vector<int> chosen;
  for (int i = 0; i < std::min<int>(n_probes, static_cast<int>(probes_.size())); i++)
    chosen.push_back(i);
  probe_hidden_.load(chosen);
  std::vector<HeadsText> texts;
  for (const int i : chosen)
    texts.push_back(read(probes_[static_cast<std::size_t>(i)], probe_hidden_.of(i)));
  HeadsRanks ranks(config_.n_heads);
  const int n_valid = data_.target.vocab_size();
  for (const auto pass : passes_of(texts))
    passes_[0]->rank(parameters_, *weights_, pass, n_valid, ranks);
  return ranks;
}

template <typename T>
HeadsResult HeadsRun<T>::run(const TrainCallbacks& callbacks) {
  weights_ = std::make_unique<PackedHeads<T>>(config_, layout_, parameters_, *math_);
  if (callbacks.notice) {
    callbacks.notice(std::to_string(texts_.size()) + " texts, hidden states of " +
                     std::to_string(hidden_.n_bytes() / 1'000'000) + " MB, " +
                     (hidden_.kept() ? "kept in memory" : "made again for every step"));
  }
  loop_.run([&](std::int64_t step, double lr) { return update(step, lr); }, [&] { save(); });
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
  if (result.finished) result.ranks = ranks_of(static_cast<int>(probes_.size()));
  result.parameters = std::move(parameters_);
  return result;
}

template <typename T>
HeadsResult start(const HeadsRecipe& recipe,
                  const HeadsConfig& config,
                  const HeadsData& data,
                  const TrainOptions& options,
                  const TrainCallbacks& callbacks,
                  Compute compute,
                  int shards,
                  std::optional<Checkpoint> checkpoint) {
  HeadsRun<T> run(recipe, config, data, options, callbacks, compute, shards);
  if (checkpoint) run.restore(std::move(*checkpoint));
  return run.run(callbacks);
}

}  // namespace

HeadsResult train_heads(const HeadsRecipe& recipe,
                        const HeadsConfig& config,
                        const HeadsData& data,
                        const TrainOptions& options,
                        const TrainCallbacks& callbacks) {
  std::optional<Checkpoint> checkpoint = checkpoint_to_resume(to_json(recipe), options, callbacks);
  const Compute compute =
      compute_named(checkpoint ? checkpoint->compute : recipe.compute, encoder_of(config));
  const int shards = checkpoint          ? checkpoint->shards
                     : recipe.shards > 0 ? recipe.shards
                                         : usable_threads(options.n_threads);
  if (callbacks.notice) {
    callbacks.notice("computing in " + std::string(name_of(compute)) + " with " +
                     std::to_string(shards) + " shards, elementwise " + train_table().name);
  }
  return compute == Compute::F32 ? start<float>(recipe, config, data, options, callbacks, compute,
                                                shards, std::move(checkpoint))
                                 : start<Bf16>(recipe, config, data, options, callbacks, compute,
                                               shards, std::move(checkpoint));
}

}  // namespace engine
