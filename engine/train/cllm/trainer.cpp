#include "engine/train/cllm/trainer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <optional>

#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "engine/train/cllm/steps.h"
#include "engine/train/core/optimizer.h"
#include "engine/train/core/workers.h"
#include "engine/train/lora/low_rank.h"
#include "engine/train/run/run_parts.h"
#include "engine/train/run/training_loop.h"

namespace engine {
namespace {

/// The layout of the updates; nullopt: all weights are trained.
std::optional<LowRankLayout> low_rank_of(const CllmRecipe& recipe, const ModelConfig& model) {
  if (recipe.lora.rank == 0) return std::nullopt;
  return LowRankLayout(model, recipe.lora);
}

constexpr std::size_t kRecent = 100;  // the reported loss is the mean over this many last steps

std::string kept_counts(const RoomCounts& room) {
  return nlohmann::json{room.n_points, room.n_left_out, room.n_texts, room.n_texts_cut}.dump();
}

RoomCounts counts_kept(const std::string& text) {
  const auto kept = nlohmann::json::parse(text, nullptr, false);
  if (!kept.is_array() || kept.size() != 4) return {};
  return {true, kept[0].get<std::int64_t>(), kept[1].get<std::int64_t>(),
          kept[2].get<std::int64_t>(), kept[3].get<std::int64_t>()};
}

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
                      .device = {},
                      .stop_after_step = options.stop_after_step},
        loop_callbacks_{.progress = [this](const TrainProgress& p) { report(p); },
                        .notice = callbacks.notice,
                        .stop = callbacks.stop,
                        .unstoppable = {},
                        .probe = {}},
        loop_(loop_settings(recipe, 0, n_steps()), loop_options_, loop_callbacks_),
        compute_(compute),
        shards_(shards),
        low_rank_(low_rank_of(recipe, training_.model)),
        workers_(std::min(usable_threads(options.n_threads), std::max(shards, 1))),
        optimizer_({recipe.beta1, recipe.beta2, recipe.weight_decay, recipe.clip},
                   low_rank_ ? low_rank_->runs()
                             : runs_of(ParameterLayout(training_.model), training_.model),
                   train_table()),
        part_weights_{recipe.ar_weight, recipe.consistency_weight, recipe.replay_weight},
        parameters_(low_rank_ ? low_rank_->initial(recipe.seed) : training_.parameters) {}

  /// @param device  null: the CPU
  CllmResult run(kernels::Device* device);
  void restore(Checkpoint checkpoint);

 private:
  void begin(kernels::Device* device);
  std::size_t text_of_slot(std::int64_t slot);
  GuidedRows guided_rows(const Trajectory& trajectory, std::int64_t slot, RoomCounts& room) const;
  GuidedRows text_rows(const TokenText& text,
                       double smoothing,
                       LossPart part,
                       RoomCounts& room) const;
  std::vector<GuidedRows> next_segments();
  TrainProgress update(std::int64_t step, double lr);
  void report(const TrainProgress& progress) const;
  void report_notes();
  std::int64_t n_steps() const;
  void save();

  const CllmRecipe& recipe_;
  CllmTraining training_;
  const CllmCallbacks& callbacks_;
  const TrainOptions loop_options_;
  const TrainCallbacks loop_callbacks_;
  TrainingLoop loop_;
  Compute compute_;
  int shards_;
  std::optional<LowRankLayout> low_rank_;
  Workers workers_;
  Optimizer optimizer_;
  PartSums part_weights_;
  std::vector<float> parameters_;  // in training: all weights, or the updates
  std::unique_ptr<CllmSteps> steps_;
  std::vector<std::size_t> order_;  // of the current epoch
  std::int64_t epoch_ = -1;
  std::deque<PartSums> recent_;  // losses of the last steps
  RoomCounts room_{.known = true};
};

void CllmRun::restore(Checkpoint c) {
  room_ = counts_kept(c.packer);
  loop_.restore(c, std::ssize(parameters_), "a model of another shape than the target", parameters_,
                optimizer_);
}

// The trajectory in a place of the run's sequence of trajectories. Every epoch has all
// trajectories, in a new order.
std::size_t CllmRun::text_of_slot(std::int64_t slot) {
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

GuidedRows CllmRun::guided_rows(const Trajectory& trajectory,
                                std::int64_t slot,
                                RoomCounts& room) const {
  GuidedRows rows = rows_of(trajectory, recipe_.loss);
  if (recipe_.consistency_weight == 0) return rows;
  std::vector<PointPlace> places = points_with_targets(trajectory);
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

GuidedRows CllmRun::text_rows(const TokenText& text,
                              double smoothing,
                              LossPart part,
                              RoomCounts& room) const {
  GuidedRows rows = plain_rows(text, recipe_.loss.prompt_weight, smoothing, part, recipe_.context);
  room.n_texts++;
  room.n_texts_cut += rows.n_rows() + 1 < std::ssize(text.tokens);
  return rows;
}

std::vector<GuidedRows> CllmRun::next_segments() {
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

TrainProgress CllmRun::update(std::int64_t step, double lr) {
  if (recipe_.final_consistency_weight >= 0)
    part_weights_[static_cast<std::size_t>(LossPart::Consistency)] = std::lerp(
        recipe_.consistency_weight, recipe_.final_consistency_weight, std::min(1.0, loop_.done()));
  GuidedBatch batch{.segments = next_segments()};
  steps_->refine(batch.segments);
  TrainProgress progress;
  PartSums counted{};
  for (const GuidedRows& segment : batch.segments) {
    progress.tokens += segment.n_rows();
    for (std::size_t i = 0; i < segment.weight.size(); i++)
      counted[static_cast<std::size_t>(segment.part[i])] += segment.weight[i];
  }
  for (std::size_t p = 0; p < kLossParts; p++)
    batch.row_scale[p] = counted[p] > 0 ? static_cast<float>(part_weights_[p] / counted[p]) : 0.0f;

  PartSums parts{};
  progress.gradient_norm = steps_->update(batch, step, lr, parts);
  for (std::size_t p = 0; p < kLossParts; p++) {
    if (counted[p] > 0) parts[p] /= counted[p];
    progress.loss += part_weights_[p] * parts[p];
    if (part_weights_[p] > 0)
      progress.losses.emplace_back(name_of(static_cast<LossPart>(p)), parts[p]);
  }
  report_notes();
  if (!std::isfinite(progress.gradient_norm)) return progress;
  recent_.push_back(parts);
  if (recent_.size() > kRecent) recent_.pop_front();
  return progress;
}

void CllmRun::report_notes() {
  for (const std::string& note : steps_->weights().take_notes())
    if (callbacks_.notice) callbacks_.notice(note);
}

void CllmRun::report(const TrainProgress& p) const {
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

std::int64_t CllmRun::n_steps() const {
  if (recipe_.epochs == 0) return 0;
  const double texts = recipe_.epochs * static_cast<double>(training_.trajectories.size());
  return std::max<std::int64_t>(1, std::llround(std::ceil(texts / recipe_.batch_texts)));
}

void CllmRun::save() {
  steps_->weights().fetch();
  Checkpoint c = loop_.checkpoint(training_part(recipe_), compute_,
                                  static_cast<std::size_t>(shards_), parameters_, optimizer_);
  if (room_.known) c.packer = kept_counts(room_);
  write_checkpoint(loop_.checkpoint_path(), c);
}

void CllmRun::begin(kernels::Device* device) {
  steps_ = std::make_unique<CllmSteps>(CllmStart{.recipe = recipe_,
                                                 .model = training_.model,
                                                 .target = training_.parameters,
                                                 .state = {parameters_, optimizer_},
                                                 .shared = training_.shared},
                                       TrainPlace{compute_, workers_, shards_, device});
  if (callbacks_.notice) {
    callbacks_.notice("training on " + std::to_string(training_.trajectories.size()) +
                      " trajectories in " + steps_->weights().name());
  }
}

CllmResult CllmRun::run(kernels::Device* device) {
  begin(device);
  std::function<NamedFigures()> measure;
  if (callbacks_.probe) {
    measure = [&] {
      steps_->weights().fetch();
      return callbacks_.probe(loop_.step, parameters_);
    };
  }
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

}  // namespace

CllmResult train_consistency(const CllmRecipe& recipe,
                             CllmTraining training,
                             const CllmOptions& options,
                             const CllmCallbacks& callbacks,
                             kernels::Device* device) {
  ensure(!training.trajectories.empty(), "consistency training needs trajectories");
  ensure(recipe.replay_texts == 0 || recipe.replay_weight == 0 || training.replay,
         "replay needs texts");
  std::optional<Checkpoint> checkpoint =
      checkpoint_found(training_part(recipe), options.directory, options.resume, callbacks.notice);
  const std::string& named = checkpoint ? checkpoint->compute : recipe.compute;
  const Compute compute = device ? gpu_compute_named(named) : compute_named(named, training.model);
  const int shards = checkpoint          ? checkpoint->shards
                     : recipe.shards > 0 ? recipe.shards
                                         : usable_threads(options.n_threads);
  CllmRun run(recipe, std::move(training), options, callbacks, compute, shards);
  if (checkpoint) run.restore(std::move(*checkpoint));
  return run.run(device);
}

}  // namespace engine
