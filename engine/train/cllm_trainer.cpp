#include "engine/train/cllm_trainer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <optional>

#include <nlohmann/json.hpp>

#include "engine/train/optimizer.h"
#include "engine/train/run_parts.h"
#include "engine/train/training_loop.h"
#include "engine/train/transformer.h"
#include "engine/train/workers.h"
#include "engine/types.h"

namespace engine {
namespace {

constexpr std::size_t kRecent = 100;  // steps whose mean is told
constexpr int kPassRows = 1024;       // rows a shard carries through the layers at once, about

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

std::string kept_counts(const RoomCounts& room) {
  return nlohmann::json{room.n_points, room.n_left_out, room.n_texts, room.n_texts_cut}.dump();
}

RoomCounts counts_kept(const std::string& text) {
  const auto kept = nlohmann::json::parse(text, nullptr, false);
  if (!kept.is_array() || kept.size() != 4) return {};
  return {true, kept[0].get<std::int64_t>(), kept[1].get<std::int64_t>(),
          kept[2].get<std::int64_t>(), kept[3].get<std::int64_t>()};
}

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
        callbacks_(callbacks),
        loop_options_{.n_threads = options.n_threads,
                      .resume = options.resume,
                      .directory = options.directory,
                      .start_from = {},
                      .stop_after_step = options.stop_after_step},
        loop_callbacks_{.progress = [this](const TrainProgress& p) { tell(p); },
                        .notice = callbacks.notice,
                        .stop = callbacks.stop,
                        .unstoppable = {},
                        .probe = {}},
        loop_(loop_settings(recipe, 0, n_steps()), loop_options_, loop_callbacks_),
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
  GuidedRows guided_rows(const Trajectory& trajectory, std::int64_t slot, RoomCounts& room) const;
  GuidedRows text_rows(const TokenText& text,
                       double smoothing,
                       LossPart part,
                       RoomCounts& room) const;
  std::vector<GuidedRows> next_segments();
  void refine(std::vector<GuidedRows>& segments);
  void refine_pass(int shard, PassRows& pass, std::vector<GuidedRows*>& segments);
  void shard_gradient(int shard, const std::vector<GuidedRows>& segments, PartSums& losses);
  void pass_gradient(int shard, PassRows& pass, PartSums& losses);
  TrainProgress update(std::int64_t step, double lr);
  void tell(const TrainProgress& progress) const;
  std::int64_t n_steps() const;
  void save() const;

  const CllmRecipe& recipe_;
  CllmTraining training_;
  const CllmCallbacks& callbacks_;
  const TrainOptions loop_options_;
  const TrainCallbacks loop_callbacks_;
  TrainingLoop loop_;
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
  std::deque<PartSums> recent_;  // losses of the last steps
  RoomCounts room_{.known = true};
};

template <typename T>
void CllmRun<T>::restore(Checkpoint c) {
  room_ = counts_kept(c.packer);
  loop_.restore(c, layout_.n, "a model of another shape than the target", parameters_, optimizer_);
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
GuidedRows CllmRun<T>::guided_rows(const Trajectory& trajectory,
                                   std::int64_t slot,
                                   RoomCounts& room) const {
  GuidedRows rows = rows_of(trajectory, recipe_.loss);
  if (recipe_.consistency_weight == 0) return rows;
  std::vector<PointPlace> places = points_to_learn(trajectory);
  Random rng(fnv1a("points/" + std::to_string(recipe_.seed) + "/" + std::to_string(slot)));
  rng.shuffle(places);
  if (places.size() > static_cast<std::size_t>(recipe_.points))
    places.resize(static_cast<std::size_t>(recipe_.points));
  room.n_points += std::ssize(places);
  room.n_left_out +=
      std::ssize(places) - add_chains(rows, trajectory, places, recipe_.loss, recipe_.context);
  FreshChains fresh{.n = recipe_.fresh_points,
                    .block = recipe_.fresh_block > 0 ? recipe_.fresh_block : recipe_.block};
  if (recipe_.fresh_iterations > 0) fresh.iterations = rng.below(recipe_.fresh_iterations + 1);
  add_fresh_chains(rows, trajectory, fresh, recipe_.loss, recipe_.context, rng);
  return rows;
}

template <typename T>
GuidedRows CllmRun<T>::text_rows(const TokenText& text,
                                 double smoothing,
                                 LossPart part,
                                 RoomCounts& room) const {
  GuidedRows rows = plain_rows(text, recipe_.loss.prompt_weight, smoothing, part, recipe_.context);
  room.n_texts++;
  room.n_texts_cut += rows.n_rows() + 1 < std::ssize(text.tokens);
  return rows;
}

template <typename T>
std::vector<GuidedRows> CllmRun<T>::next_segments() {
  const int n_texts = recipe_.batch_texts;
  const int n_replay = recipe_.replay_weight > 0 ? recipe_.replay_texts : 0;
  const bool truths = !recipe_.loss.own_labels && recipe_.ar_weight > 0;
  std::vector<std::size_t> texts;
  for (int i = 0; i < n_texts; i++) texts.push_back(text_of_slot(loop_.step * n_texts + i));
  const int n_own = truths ? 2 * n_texts : n_texts;
  std::vector<GuidedRows> segments(static_cast<std::size_t>(n_own + n_replay));
  std::vector<RoomCounts> rooms(segments.size());
  workers_.run(n_own + n_replay, [&](int i) {
    GuidedRows& segment = segments[static_cast<std::size_t>(i)];
    RoomCounts& room = rooms[static_cast<std::size_t>(i)];
    if (i >= n_own) {
      segment =
          text_rows(training_.replay(loop_.step * n_replay + i - n_own), 0, LossPart::Replay, room);
      return;
    }
    const Trajectory& trajectory =
        training_.trajectories[texts[static_cast<std::size_t>(i % n_texts)]];
    segment = i < n_texts ? guided_rows(trajectory, loop_.step * n_texts + i, room)
                          : text_rows(truth_of(trajectory), recipe_.loss.smoothing,
                                      LossPart::Autoregressive, room);
  });
  for (const RoomCounts& room : rooms) {
    room_.n_points += room.n_points;
    room_.n_left_out += room.n_left_out;
    room_.n_texts += room.n_texts;
    room_.n_texts_cut += room.n_texts_cut;
  }
  return segments;
}

// One Jacobi iteration of chains, by the weights as they stand.
template <typename T>
void CllmRun<T>::refine_pass(int shard, PassRows& pass, std::vector<GuidedRows*>& segments) {
  if (segments.empty()) return;
  pass.pad();
  const auto n_vocab = static_cast<std::size_t>(training_.model.vocab_size);
  std::vector<float> logits(pass.token.size() * n_vocab);
  passes_[static_cast<std::size_t>(shard)]->forward(parameters_, *weights_, pass.rows(), logits);
  std::size_t row = 0;
  for (GuidedRows* segment : segments) {
    std::vector<TokenId> picks;
    for (std::size_t i = 0; i < segment->token.size(); i++, row++) {
      const auto of_row = std::span(logits).subspan(row * n_vocab, n_vocab);
      const bool asked = segment->iterations[i] > 0;
      picks.push_back(asked
                          ? static_cast<TokenId>(std::ranges::max_element(of_row) - of_row.begin())
                          : TokenId{0});
    }
    refine_chains(*segment, picks, recipe_.loss);
  }
  pass.clear();
  segments.clear();
}

template <typename T>
void CllmRun<T>::refine(std::vector<GuidedRows>& segments) {
  const int most = std::max(kPassRows, recipe_.context);
  for (int iteration = 0; iteration < recipe_.fresh_iterations; iteration++) {
    workers_.run(static_cast<int>(passes_.size()), [&](int shard) {
      PassRows pass;
      std::vector<GuidedRows*> in_pass;
      for (std::size_t i = static_cast<std::size_t>(shard); i < segments.size();
           i += passes_.size()) {
        if (!has_chains_to_refine(segments[i])) continue;
        if (pass.n_rows() + segments[i].n_rows() > most) refine_pass(shard, pass, in_pass);
        pass.add(segments[i]);
        in_pass.push_back(&segments[i]);
      }
      refine_pass(shard, pass, in_pass);
    });
  }
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
TrainProgress CllmRun<T>::update(std::int64_t step, double lr) {
  if (recipe_.final_consistency_weight >= 0)
    part_weights_[static_cast<std::size_t>(LossPart::Consistency)] = std::lerp(
        recipe_.consistency_weight, recipe_.final_consistency_weight, std::min(1.0, loop_.done()));
  std::vector<GuidedRows> segments = next_segments();
  refine(segments);
  TrainProgress progress;
  PartSums counted{};
  for (const GuidedRows& segment : segments) {
    progress.tokens += segment.n_rows();
    for (std::size_t i = 0; i < segment.weight.size(); i++)
      counted[static_cast<std::size_t>(segment.part[i])] += segment.weight[i];
  }
  for (std::size_t p = 0; p < kLossParts; p++)
    row_scale_[p] = counted[p] > 0 ? static_cast<float>(part_weights_[p] / counted[p]) : 0.0f;

  std::vector<PartSums> losses(passes_.size());
  workers_.run(static_cast<int>(passes_.size()), [&](int shard) {
    shard_gradient(shard, segments, losses[static_cast<std::size_t>(shard)]);
  });
  PartSums parts{};
  for (std::size_t p = 0; p < kLossParts; p++) {
    for (const PartSums& sums : losses) parts[p] += sums[p];
    if (counted[p] > 0) parts[p] /= counted[p];
    progress.loss += part_weights_[p] * parts[p];
    if (part_weights_[p] > 0)
      progress.losses.emplace_back(name_of(static_cast<LossPart>(p)), parts[p]);
  }
  progress.gradient_norm = std::isfinite(progress.loss)
                               ? optimizer_.update(parameters_, gradients_, step, lr, workers_)
                               : optimizer_.leave_out(gradients_, workers_);
  if (!std::isfinite(progress.gradient_norm)) return progress;
  workers_.run(weights_->n_matrices(), [&](int i) { weights_->repack(i, *math_); });
  recent_.push_back(parts);
  if (recent_.size() > kRecent) recent_.pop_front();
  return progress;
}

template <typename T>
void CllmRun<T>::tell(const TrainProgress& p) const {
  if (!callbacks_.progress) return;
  callbacks_.progress({.step = p.step,
                       .n_steps = n_steps(),
                       .rows = p.tokens,
                       .loss = p.loss,
                       .parts = recent_.back(),
                       .lr = p.lr,
                       .gradient_norm = p.gradient_norm,
                       .rows_per_second = p.tokens_per_second,
                       .done = p.done,
                       .seconds = p.seconds,
                       .seconds_left = p.seconds_left});
}

template <typename T>
std::int64_t CllmRun<T>::n_steps() const {
  if (recipe_.epochs == 0) return 0;
  const double texts = recipe_.epochs * static_cast<double>(training_.trajectories.size());
  return std::max<std::int64_t>(1, std::llround(std::ceil(texts / recipe_.batch_texts)));
}

template <typename T>
void CllmRun<T>::save() const {
  Checkpoint c =
      loop_.checkpoint(training_part(recipe_), compute_, passes_.size(), parameters_, optimizer_);
  if (room_.known) c.packer = kept_counts(room_);
  write_checkpoint(loop_.checkpoint_path(), c);
}

template <typename T>
CllmResult CllmRun<T>::run() {
  weights_ = std::make_unique<PackedWeights<T>>(training_.model, layout_, parameters_, *math_);
  std::function<NamedFigures()> measure;
  if (callbacks_.probe) measure = [&] { return callbacks_.probe(loop_.step, parameters_); };
  loop_.run([&](std::int64_t step, double lr) { return update(step, lr); }, [&] { save(); },
            probe_every(recipe_.probe_minutes, std::move(measure)));
  CllmResult result;
  result.finished = loop_.done() >= 1;
  result.step = loop_.step;
  result.steps_done = loop_.steps_done();
  result.rows = loop_.tokens;
  result.seconds = loop_.seconds;
  result.n_losses = static_cast<int>(recent_.size());
  for (const PartSums& parts : recent_) {
    for (std::size_t p = 0; p < kLossParts; p++)
      result.parts[p] += parts[p] / static_cast<double>(recent_.size());
  }
  result.room = room_;
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
  std::optional<Checkpoint> checkpoint =
      checkpoint_found(training_part(recipe), options.directory, options.resume, callbacks.notice);
  const Compute compute =
      compute_named(checkpoint ? checkpoint->compute : recipe.compute, training.model);
  const int shards = checkpoint          ? checkpoint->shards
                     : recipe.shards > 0 ? recipe.shards
                                         : usable_threads(options.n_threads);
  if (callbacks.notice) {
    callbacks.notice("training on " + std::to_string(training.trajectories.size()) +
                     " trajectories in " + std::string(name_of(compute)) + " with " +
                     std::to_string(shards) + " shards, elementwise " + train_table().name);
  }
  Checkpoint* from = checkpoint ? &*checkpoint : nullptr;
  return compute == Compute::F32
             ? start<float>(recipe, std::move(training), options, callbacks, compute, shards, from)
             : start<Bf16>(recipe, std::move(training), options, callbacks, compute, shards, from);
}

}  // namespace engine
