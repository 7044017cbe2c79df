#include "engine/train/cllm/steps.h"

#include <algorithm>

#include "engine/train/draft/shared_embedding.h"
#include "engine/train/lora/low_rank_weights.h"

namespace engine {
namespace {

// The approximate number of rows of a pass, and the maximum bytes of teachers' logits in memory.
// They are constants, not derived from the free memory, because the order of sums, and so the bits
// of a gradient, depend on them.
constexpr std::int64_t kCpuRows = 1024, kDeviceRows = 8192, kTeacherBytes = 512 << 20;

bool has_teachers(const CllmRecipe& recipe) {
  return recipe.consistency_weight > 0 && recipe.loss.by != ConsistencyLoss::By::HardLabels;
}

// The maximum number of rows of a step: texts with chains, true answers, and replayed texts.
std::int64_t most_rows(const CllmRecipe& recipe) {
  return (2 * std::int64_t{recipe.batch_texts} + recipe.replay_texts) * recipe.context;
}

int rows_of_pass(const CllmRecipe& recipe, int vocab_size, bool on_cpu) {
  std::int64_t rows = on_cpu ? kCpuRows : std::min(kDeviceRows, most_rows(recipe));
  if (!on_cpu && has_teachers(recipe)) rows = std::min(rows, kTeacherBytes / 4 / vocab_size);
  return static_cast<int>(std::max<std::int64_t>(rows, recipe.context));
}

std::unique_ptr<TrainableWeights> weights_of(const CllmStart& start, const TrainPlace& place) {
  const ParameterLayout layout(start.model);
  const auto matrices = matrices_of(start.model, layout);
  if (start.recipe.lora.rank > 0)
    return low_rank_weights(place, LowRankLayout(start.model, start.recipe.lora),
                            {start.target, matrices}, start.state, most_rows(start.recipe));
  return trainable_weights(place, {.state = start.state,
                                   .runs = runs_of(layout, start.model),
                                   .matrices = matrices,
                                   .n_losses = most_rows(start.recipe)});
}

}  // namespace

void PassRows::add(const GuidedRows& rows) {
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

void PassRows::pad(int rows) {
  while (n_rows() % rows) {
    token.push_back(0);
    target.push_back(0);
    weight.push_back(0);
    pos.push_back(0);
    views.push_back({});
    goals.push_back({});
    part.push_back(LossPart::Autoregressive);
  }
}

void PassRows::scale(const std::array<float, kLossParts>& row_scale) {
  for (std::size_t i = 0; i < weight.size(); i++)
    weight[i] *= row_scale[static_cast<std::size_t>(part[i])];
}

bool has_rows(const GuidedRows& rows) {
  return rows.n_rows() > 0;
}

void for_each_pass(const std::vector<GuidedRows>& segments,
                   int first,
                   int stride,
                   int most,
                   bool (*wanted)(const GuidedRows&),
                   const std::function<void(PassRows&, const std::vector<std::size_t>&)>& send) {
  PassRows pass;
  std::vector<std::size_t> in_pass;
  const auto send_off = [&] {
    if (in_pass.empty()) return;
    send(pass, in_pass);
    pass = {};
    in_pass.clear();
  };
  for (auto i = static_cast<std::size_t>(first); i < segments.size();
       i += static_cast<std::size_t>(stride)) {
    if (!wanted(segments[i])) continue;
    if (pass.n_rows() + segments[i].n_rows() > most) send_off();
    pass.add(segments[i]);
    in_pass.push_back(i);
  }
  send_off();
}

void refine_segments(std::vector<GuidedRows>& segments,
                     const std::vector<std::size_t>& in_pass,
                     std::span<const TokenId> picks,
                     const ConsistencyLoss& loss) {
  for (const std::size_t i : in_pass) {
    const auto n = static_cast<std::size_t>(segments[i].n_rows());
    refine_chains(segments[i], picks.first(n), loss);
    picks = picks.subspan(n);
  }
}

CllmSteps::CllmSteps(const CllmStart& start, const TrainPlace& place)
    : recipe_(start.recipe),
      weights_(weights_of(start, place)),
      rows_a_pass_(rows_of_pass(recipe_, start.model.vocab_size, weights_->on_cpu())) {
  const bool predicts = weights_->on_cpu() && recipe_.fresh_iterations > 0;
  PassOptions options{.keeps_logits = has_teachers(recipe_) || predicts};
  if (start.shared) options.frozen = frozen_embedding(*start.shared, start.model, *weights_);
  for (int shard = 0; shard < weights_->n_shards(); shard++)
    passes_.emplace_back(weights_->device(shard), start.model, ParameterLayout(start.model),
                         rows_a_pass_, options);
  has_frozen_teacher_ = recipe_.frozen_teacher && has_teachers(recipe_);
  if (has_frozen_teacher_) teacher_ = weights_->frozen(start.target);
}

void CllmSteps::refine(std::vector<GuidedRows>& segments) {
  for (int iteration = 0; iteration < recipe_.fresh_iterations; iteration++) {
    weights_->for_shards([&](int shard) {
      const auto send = [&](PassRows& pass, const std::vector<std::size_t>& in_pass) {
        pass.pad(weights_->device(shard).ops.row_multiple);
        const std::vector<TokenId> picks =
            passes_[static_cast<std::size_t>(shard)].likeliest(weights_->weights(), pass.rows());
        refine_segments(segments, in_pass, picks, recipe_.loss);
      };
      for_each_pass(segments, shard, weights_->n_shards(), rows_a_pass_, has_chains_to_refine,
                    send);
    });
  }
}

// Shard i computes the segments i, i + n_shards, .., in one or several passes.
std::vector<std::vector<CllmSteps::Pass>> CllmSteps::passes_of(const GuidedBatch& batch) const {
  std::vector<std::vector<Pass>> of_shards(static_cast<std::size_t>(weights_->n_shards()));
  std::int64_t first = 0;
  for (int shard = 0; shard < weights_->n_shards(); shard++) {
    const auto send = [&](PassRows& rows, const auto&) {
      rows.pad(weights_->device(shard).ops.row_multiple);
      Pass pass{.rows = std::move(rows), .counted = {}, .first = first};
      pass.counted = pass.rows.weight;
      pass.rows.scale(batch.row_scale);
      first += pass.rows.n_rows();
      of_shards[static_cast<std::size_t>(shard)].push_back(std::move(pass));
    };
    for_each_pass(batch.segments, shard, weights_->n_shards(), rows_a_pass_, has_rows, send);
  }
  return of_shards;
}

double CllmSteps::update(const GuidedBatch& batch, std::int64_t step, double lr, PartSums& losses) {
  const std::vector<std::vector<Pass>> passes = passes_of(batch);
  std::int64_t n_rows = 0;
  for (const auto& of_shard : passes)
    for (const Pass& pass : of_shard) n_rows += pass.rows.n_rows();
  float* device_losses = weights_->losses(n_rows);
  weights_->for_shards([&](int shard) {
    const auto own = static_cast<std::size_t>(shard);
    for (const Pass& pass : passes[own])
      passes_[own].forward_backward(weights_->weights(), pass.rows.rows(),
                                    weights_->gradient(shard), device_losses + pass.first,
                                    has_frozen_teacher_ ? &teacher_ : nullptr);
  });
  std::vector<float> loss(static_cast<std::size_t>(n_rows));
  const double norm = weights_->update(step, lr, loss);
  losses = {};
  for (const auto& of_shard : passes) {
    PartSums sums{};
    for (const Pass& pass : of_shard)
      for (std::size_t i = 0; i < pass.counted.size(); i++)
        sums[static_cast<std::size_t>(pass.rows.part[i])] +=
            static_cast<double>(pass.counted[i]) * loss[static_cast<std::size_t>(pass.first) + i];
    for (std::size_t p = 0; p < kLossParts; p++) losses[p] += sums[p];
  }
  return norm;
}

}  // namespace engine
