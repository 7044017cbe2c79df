#include "engine/train/core/transformer.h"

#include <algorithm>
#include <utility>

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::TrainWeights;

constexpr const char* kRowsOfPass = "the rows of a training pass";

}  // namespace

void expect_tokens(std::span<const TokenId> tokens, int vocab_size) {
  for (const TokenId token : tokens)
    ensure(token >= 0 && token < vocab_size, "a row's token is outside the vocabulary");
}

void expect_tokens(const TrainRows& rows, int vocab_size, int n_outputs) {
  expect_tokens(rows.token, vocab_size);
  const int n_targets = n_outputs > 0 ? n_outputs : vocab_size;
  for (std::size_t i = 0; i < rows.target.size(); i++) {
    if (rows.weight[i] == 0) continue;
    if (rows.goals.empty() || rows.goals[i].kind == RowGoal::Kind::Target)
      ensure(rows.target[i] >= 0 && rows.target[i] < n_targets,
             "a row's target is outside the vocabulary");
  }
}

std::vector<kernels::TrainMatrix> matrices_of(const ModelConfig& config,
                                              const ParameterLayout& layout) {
  std::vector<kernels::TrainMatrix> all;
  if (layout.embedding >= 0) all.push_back({layout.embedding, config.vocab_size, config.dim});
  for (const LayerAt& at : layout.layers) {
    const BlockMatrices m(config, at);
    all.insert(all.end(), {m.qkv, m.attn_out, m.gate_up, m.down});
  }
  return all;
}

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

TrainPass::TrainPass(const TrainDevice& on,
                     const ModelConfig& config,
                     const ParameterLayout& layout,
                     int max_rows,
                     const PassOptions& options)
    : on_(on),
      config_(config),
      layout_(layout),
      max_rows_(max_rows),
      frozen_(options.frozen),
      lm_head_{frozen_ ? 0 : layout.embedding, config.n_outputs(), config.dim},
      block_(on, config, max_rows),
      vocab_(on, config.n_outputs(), max_rows, options.logit_bytes) {
  ensure(frozen_.has_value() == (layout.embedding < 0),
         "a model needs the frozen embedding if it shares that of its target");
  ensure(max_rows > 0 && on.padded(max_rows) == max_rows,
         "the number of rows of a pass must be a multiple of row_multiple");
  const std::int64_t n = max_rows, wide = n * config.dim;
  for (int layer = 0; layer < config.n_layers; layer++) layers_.emplace_back(on, config, max_rows);
  for (DeviceBuffer* one : {&token_, &target_, &weight_, &group_row_})
    *one = on.f32(n, kRowsOfPass);
  goal_ = DeviceBuffer(on.device, std::int64_t{sizeof(RowGoal)} * n, kRowsOfPass);
  group_begin_ = on.f32(n + 1, kRowsOfPass);
  if (options.keeps_logits) kept_logits_ = on.f32(n * config.n_outputs(), "the teachers' logits");
  r_final_ = on.f32(n, kRowsOfPass);
  for (DeviceBuffer* one : {&x_final_, &dx_}) *one = on.f32(wide, kRowsOfPass);
  for (DeviceBuffer* one : {&h_final_, &d_h_, &dx_rounded_}) *one = on.typed(wide, kRowsOfPass);
}

void TrainPass::take_rows(const TrainRows& rows) {
  n_ = rows.n_rows();
  ensure(n_ > 0 && n_ <= max_rows_ && on_.padded(n_) == n_,
         "the number of rows must fit into the pass and be a multiple of row_multiple");
  ensure(rows.target.size() == rows.token.size() && rows.weight.size() == rows.token.size() &&
             rows.pos.size() == rows.token.size(),
         "every row must have a target, a weight and a position");
  ensure(rows.goals.empty() || rows.goals.size() == rows.token.size(),
         "every row must have a goal");
  expect_tokens(rows, config_.vocab_size, config_.n_outputs());
  const TokenGroups groups = token_groups_of(rows);
  n_groups_ = groups.n_groups();
  on_.upload(token_, rows.token);
  on_.upload(target_, rows.target);
  on_.upload(weight_, rows.weight);
  on_.upload(group_row_, groups.row);
  on_.upload(group_begin_, groups.begin);
  take_goals(rows.goals);
  block_.prepare({rows.pos, rows.segments, rows.views});
}

void TrainPass::take_goals(std::span<const RowGoal> goals) {
  has_goals_ = taught_ = false;
  for (const RowGoal& goal : goals) {
    ensure(goal.teacher >= 0 && goal.teacher < n_, "a teacher must be a row of the pass");
    const bool is_target = goal.kind == RowGoal::Kind::Target;
    has_goals_ = has_goals_ || !is_target || goal.smoothing != 0;
    taught_ = taught_ || !is_target;
  }
  ensure(!taught_ || kept_logits_.data(), "a pass with teachers must keep the logits of all rows");
  if (has_goals_) on_.upload(goal_, goals);
}

void TrainPass::run_layers(const TrainWeights& w) {
  const auto& [device, ops, type] = on_;
  const float* embedding = frozen_ ? frozen_->embedding : w.masters + layout_.embedding;
  ops.gather_rows(device, embedding, ids(token_), layers_[0].x_attn.f32(), n_, config_.dim);
  for (std::size_t i = 0; i < layers_.size(); i++) {
    float* next = i + 1 < layers_.size() ? layers_[i + 1].x_attn.f32() : x_final_.f32();
    block_.forward(w, layout_.layers[i], layers_[i], next);
  }
  ops.rms_norm(device, type, x_final_.f32(), w.masters + layout_.final_norm, h_final_.data(),
               r_final_.f32(), nullptr, n_, config_.dim, config_.norm_eps);
}

void TrainPass::keep_logits(const TrainWeights& w) {
  run_layers(w);
  on_.ops.forward_f32(on_.device, on_.type, head_of(w), lm_head_, h_final_.data(), n_,
                      kept_logits_.f32(), false);
}

void TrainPass::backward_lm_head(const TrainWeights& w,
                                 float* known_logits,
                                 float* gradient,
                                 float* loss) {
  float* const head_gradient = frozen_ ? nullptr : gradient;
  if (!has_goals_) {
    vocab_.forward_backward(head_of(w), lm_head_, h_final_.data(), n_, ids(target_), weight_.f32(),
                            d_h_.data(), head_gradient, loss);
    return;
  }
  const auto losses = [&](int first, int n, const float* logits, void* d_logits) {
    on_.ops.goal_losses(on_.device, on_.type, logits, kept_logits_.f32(),
                        static_cast<const RowGoal*>(goal_.data()) + first, ids(target_) + first,
                        weight_.f32() + first, d_logits, loss + first, n, config_.n_outputs());
  };
  vocab_.forward_backward(head_of(w), lm_head_, h_final_.data(), n_, known_logits, losses,
                          d_h_.data(), head_gradient);
}

void TrainPass::forward_backward(const TrainWeights& w,
                                 const TrainRows& rows,
                                 float* gradient,
                                 float* loss,
                                 const TrainWeights* teacher) {
  take_rows(rows);
  const auto& [device, ops, type] = on_;
  const int dim = config_.dim;
  const bool teaches_itself = taught_ && !teacher;
  if (taught_ && teacher) keep_logits(*teacher);
  if (teaches_itself)
    keep_logits(w);
  else
    run_layers(w);
  backward_lm_head(w, teaches_itself ? kept_logits_.f32() : nullptr, gradient, loss);
  ops.clear(device, dx_.data(), std::int64_t{4} * n_ * dim);
  ops.rms_norm_backward(device, type, x_final_.f32(), w.masters + layout_.final_norm,
                        r_final_.f32(), d_h_.data(), dx_.f32(), gradient + layout_.final_norm,
                        dx_rounded_.data(), n_, dim);
  for (std::size_t i = layers_.size(); i-- > 0;)
    block_.backward(w, layout_.layers[i], layers_[i], dx_.f32(), dx_rounded_.data(), gradient);
  if (frozen_) return;
  ops.scatter_rows(device, dx_.f32(), ids(token_), ids(group_row_), ids(group_begin_), n_groups_,
                   gradient + layout_.embedding, dim);
}

std::vector<TokenId> TrainPass::likeliest(const TrainWeights& w, const TrainRows& rows) {
  take_rows(rows);
  std::vector<TokenId> tokens(rows.token.size());
  const auto pick = [&](int first, int n, const float* logits) {
    on_.ops.argmax(on_.device, logits, n, config_.n_outputs(), tokens.data() + first);
  };
  // On the CPU, a product's bits depend on the number of rows. So one product computes the logits
  // of all rows, as for a teacher.
  if (on_.ops.logit_rows > 0) {
    keep_logits(w);
    pick(0, n_, kept_logits_.f32());
  } else {
    run_layers(w);
    vocab_.logits(head_of(w), lm_head_, h_final_.data(), n_, pick);
  }
  for (TokenId& token : tokens) token = std::max(token, 0);
  return tokens;
}

std::vector<float> TrainPass::logits(const TrainWeights& w, const TrainRows& rows) {
  take_rows(rows);
  ensure(kept_logits_.data(), "logits() needs a pass that keeps logits");
  keep_logits(w);
  std::vector<float> all(rows.token.size() * static_cast<std::size_t>(config_.n_outputs()));
  on_.device.ops().download(on_.device, all.data(), kept_logits_.data(),
                            static_cast<std::int64_t>(4 * all.size()));
  return all;
}

}  // namespace engine
