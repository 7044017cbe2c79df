#include "engine/train/gpu_pass.h"

#include <algorithm>
#include <utility>

#include "engine/train/gpu_arrays.h"
#include "engine/types.h"

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::DType;

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
                           std::int64_t logit_bytes)
    : device_(device),
      kernels_(kernels::train_kernels(device)),
      config_(config),
      layout_(layout),
      type_(type),
      max_rows_(max_rows),
      block_({device, type, max_rows}, config),
      vocab_(device, type, config.vocab_size, max_rows, logit_bytes) {
  ensure(max_rows > 0, "a pass has rows");
  const GpuArrays arrays{device, type, max_rows};
  for (int layer = 0; layer < config.n_layers; layer++) layers_.emplace_back(arrays, config);
  for (DeviceBuffer* one : {&token_, &target_, &weight_, &group_row_}) *one = arrays.f32(1);
  group_begin_ = DeviceBuffer(device, 4 * (std::int64_t{max_rows} + 1));
  x_final_ = arrays.f32(config.dim);
  r_final_ = arrays.f32(1);
  h_final_ = arrays.typed(config.dim);
  d_h_ = arrays.typed(config.dim);
  dx_ = arrays.f32(config.dim);
  dx_rounded_ = arrays.typed(config.dim);
}

void GpuTrainPass::take_rows(const TrainRows& rows) {
  n_ = rows.n_rows();
  ensure(n_ > 0 && n_ <= max_rows_, "rows of a pass must fit it");
  ensure(rows.target.size() == rows.token.size() && rows.weight.size() == rows.token.size() &&
             rows.pos.size() == rows.token.size(),
         "a target, a weight and a position for every row");
  ensure(rows.goals.empty(), "rows on a GPU have targets and no other goals");
  expect_tokens(rows, config_.vocab_size);
  const TokenGroups groups = token_groups_of(rows);
  n_groups_ = groups.n_groups();
  upload(device_, token_, rows.token);
  upload(device_, target_, rows.target);
  upload(device_, weight_, rows.weight);
  upload(device_, group_row_, groups.row);
  upload(device_, group_begin_, groups.begin);
  block_.prepare({rows.pos, rows.segments, rows.views});
}

void GpuTrainPass::backward_lm_head(const GpuWeights& w, float* gradient, float* loss) {
  vocab_.forward_backward(w, {layout_.embedding, config_.vocab_size, config_.dim}, h_final_.data(),
                          n_, static_cast<const std::int32_t*>(target_.data()), weight_.f32(),
                          d_h_.data(), gradient, loss);
}

void GpuTrainPass::forward_backward(const GpuWeights& w,
                                    const TrainRows& rows,
                                    float* gradient,
                                    float* loss) {
  take_rows(rows);
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
  backward_lm_head(w, gradient, loss);
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

}  // namespace engine
