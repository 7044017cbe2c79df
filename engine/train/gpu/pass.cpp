#include "engine/train/gpu/pass.h"

#include <algorithm>
#include <utility>

#include "engine/train/gpu/arrays.h"
#include "engine/base/types.h"

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::DType;

constexpr const char* kRowsOfPass = "the rows of a training's pass";

}  // namespace

TokenGroups token_groups_of(std::span<const TokenId> token, std::vector<std::int32_t> rows) {
  TokenGroups groups{.row = std::move(rows), .begin = {}};
  const auto of = [&](std::int32_t row) { return token[static_cast<std::size_t>(row)]; };
  std::stable_sort(groups.row.begin(), groups.row.end(),
                   [&](std::int32_t a, std::int32_t b) { return of(a) < of(b); });
  for (std::size_t i = 0; i < groups.row.size(); i++) {
    if (i == 0 || of(groups.row[i]) != of(groups.row[i - 1]))
      groups.begin.push_back(static_cast<std::int32_t>(i));
  }
  groups.begin.push_back(static_cast<std::int32_t>(groups.row.size()));
  return groups;
}

TokenGroups token_groups_of(const TrainRows& rows) {
  std::vector<std::int32_t> grouped;
  for (const Segment& segment : rows.segments)
    for (std::int32_t row = segment.begin; row < segment.end; row++) grouped.push_back(row);
  return token_groups_of(rows.token, std::move(grouped));
}

GpuTrainPass::GpuTrainPass(kernels::Device& device,
                           const ModelConfig& config,
                           const ParameterLayout& layout,
                           DType type,
                           int max_rows,
                           std::int64_t logit_bytes,
                           bool teaches)
    : device_(device),
      kernels_(kernels::train_kernels(device)),
      config_(config),
      layout_(layout),
      type_(type),
      max_rows_(max_rows),
      lm_head_{layout.embedding, config.vocab_size, config.dim},
      block_({device, type, max_rows}, config),
      vocab_(device, type, config.vocab_size, max_rows, logit_bytes) {
  ensure(max_rows > 0, "a pass has rows");
  const GpuArrays arrays{device, type, max_rows};
  for (int layer = 0; layer < config.n_layers; layer++) layers_.emplace_back(arrays, config);
  for (DeviceBuffer* one : {&token_, &target_, &weight_, &group_row_})
    *one = arrays.f32(1, kRowsOfPass);
  goal_ = DeviceBuffer(device, std::int64_t{sizeof(kernels::TrainGoal)} * max_rows, kRowsOfPass);
  group_begin_ = DeviceBuffer(device, 4 * (std::int64_t{max_rows} + 1), kRowsOfPass);
  if (teaches) teachers_ = arrays.f32(config.vocab_size, "the teachers' logits");
  x_final_ = arrays.f32(config.dim, kRowsOfPass);
  r_final_ = arrays.f32(1, kRowsOfPass);
  h_final_ = arrays.typed(config.dim, kRowsOfPass);
  d_h_ = arrays.typed(config.dim, kRowsOfPass);
  dx_ = arrays.f32(config.dim, kRowsOfPass);
  dx_rounded_ = arrays.typed(config.dim, kRowsOfPass);
}

void GpuTrainPass::take_rows(const TrainRows& rows) {
  n_ = rows.n_rows();
  ensure(n_ > 0 && n_ <= max_rows_, "rows of a pass must fit it");
  ensure(rows.target.size() == rows.token.size() && rows.weight.size() == rows.token.size() &&
             rows.pos.size() == rows.token.size(),
         "a target, a weight and a position for every row");
  ensure(rows.goals.empty() || rows.goals.size() == rows.token.size(), "a goal for every row");
  ensure(rows.teacher_logits.empty(), "teachers' logits are made on the GPU");
  expect_tokens(rows, config_.vocab_size);
  const TokenGroups groups = token_groups_of(rows);
  n_groups_ = groups.n_groups();
  upload(device_, token_, rows.token);
  upload(device_, target_, rows.target);
  upload(device_, weight_, rows.weight);
  upload(device_, group_row_, groups.row);
  upload(device_, group_begin_, groups.begin);
  take_goals(rows.goals);
  block_.prepare({rows.pos, rows.segments, rows.views});
}

void GpuTrainPass::take_goals(std::span<const RowGoal> goals) {
  using By = kernels::TrainGoal::By;
  std::vector<kernels::TrainGoal> there;
  has_goals_ = taught_ = false;
  for (const RowGoal& goal : goals) {
    ensure(goal.teacher >= 0 && goal.teacher < n_, "a teacher is a row of the pass");
    const bool is_target = goal.kind == RowGoal::Kind::Target;
    has_goals_ = has_goals_ || !is_target || goal.smoothing != 0;
    taught_ = taught_ || !is_target;
    there.push_back({is_target                             ? By::Target
                     : goal.kind == RowGoal::Kind::Forward ? By::Forward
                                                           : By::Reverse,
                     goal.smoothing, goal.teacher});
  }
  ensure(!taught_ || teachers_.data(), "a pass whose rows have teachers has room for their logits");
  if (has_goals_) upload(device_, goal_, there);
}

void GpuTrainPass::run_layers(const GpuWeights& w) {
  const int dim = config_.dim;
  const auto* token = static_cast<const std::int32_t*>(token_.data());
  kernels_.gather_rows(device_, w.masters + layout_.embedding, token, layers_[0].x_attn.f32(), n_,
                       dim);
  for (std::size_t i = 0; i < layers_.size(); i++) {
    float* next = i + 1 < layers_.size() ? layers_[i + 1].x_attn.f32() : x_final_.f32();
    block_.forward(w, layout_.layers[i], layers_[i], next);
  }
  kernels_.rms_norm(device_, type_, x_final_.f32(), w.masters + layout_.final_norm, h_final_.data(),
                    r_final_.f32(), nullptr, n_, dim, config_.norm_eps);
}

void GpuTrainPass::backward_lm_head(const GpuWeights& w,
                                    const float* known_logits,
                                    float* gradient,
                                    float* loss) {
  const auto losses = [&](int first, int n, const float* logits, void* d_logits) {
    const auto* target = static_cast<const std::int32_t*>(target_.data()) + first;
    const float* weight = weight_.f32() + first;
    if (has_goals_) {
      const auto* goals = static_cast<const kernels::TrainGoal*>(goal_.data()) + first;
      kernels_.goal_losses(device_, type_, logits, teachers_.f32(), goals, target, weight, d_logits,
                           loss + first, n, config_.vocab_size);
    } else {
      kernels_.cross_entropy(device_, type_, logits, target, weight, d_logits, loss + first, n,
                             config_.vocab_size);
    }
  };
  vocab_.forward_backward(w, lm_head_, h_final_.data(), n_, known_logits, losses, d_h_.data(),
                          gradient);
}

void GpuTrainPass::forward_backward(const GpuWeights& w,
                                    const TrainRows& rows,
                                    float* gradient,
                                    float* loss,
                                    const GpuWeights* teacher) {
  take_rows(rows);
  const int dim = config_.dim;
  const auto* token = static_cast<const std::int32_t*>(token_.data());
  const auto teach = [&](const GpuWeights& by) {
    GpuLinear(device_, type_)
        .forward_f32(by, lm_head_, h_final_.data(), n_, teachers_.f32(), false);
  };
  if (taught_ && teacher) {
    run_layers(*teacher);
    teach(*teacher);
  }
  run_layers(w);
  const bool teaches_itself = taught_ && !teacher;
  if (teaches_itself) teach(w);
  backward_lm_head(w, teaches_itself ? teachers_.f32() : nullptr, gradient, loss);
  kernels_.clear(device_, dx_.data(), std::int64_t{4} * n_ * dim);
  kernels_.rms_norm_backward(device_, type_, x_final_.f32(), w.masters + layout_.final_norm,
                             r_final_.f32(), d_h_.data(), dx_.f32(), gradient + layout_.final_norm,
                             dx_rounded_.data(), n_, dim);
  for (std::size_t i = layers_.size(); i-- > 0;)
    block_.backward(w, layout_.layers[i], layers_[i], dx_.f32(), dx_rounded_.data(), gradient);
  kernels_.scatter_rows(device_, dx_.f32(), token,
                        static_cast<const std::int32_t*>(group_row_.data()),
                        static_cast<const std::int32_t*>(group_begin_.data()), n_groups_,
                        gradient + layout_.embedding, dim);
}

std::vector<TokenId> GpuTrainPass::likeliest(const GpuWeights& w, const TrainRows& rows) {
  take_rows(rows);
  run_layers(w);
  std::vector<TokenId> tokens;
  const auto pick = [&](int, int n, const float* logits) {
    const std::vector<kernels::PickRow> greedy(static_cast<std::size_t>(n));
    std::vector<kernels::Picked> picked(greedy.size());
    device_.ops().pick(device_, logits, config_.vocab_size, n, config_.vocab_size,
                       config_.vocab_size, greedy.data(), picked.data());
    for (const kernels::Picked& one : picked) tokens.push_back(std::max(one.id, 0));
  };
  vocab_.logits(w, lm_head_, h_final_.data(), n_, pick);
  return tokens;
}

}  // namespace engine
