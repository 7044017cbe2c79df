#include "engine/train/gpu/block.h"

#include <algorithm>

#include "engine/base/types.h"

namespace engine {
namespace {

constexpr int kMinPositions = 512;  // of the table of rotations
constexpr const char* kKept = "what a layer's backward needs of its forward";
constexpr const char* kGradients = "gradients within a layer";
constexpr const char* kPlaces = "where a pass's rows stand";

int qkv_width_of(const ModelConfig& c) {
  return (c.n_heads + 2 * c.n_kv_heads) * c.head_dim;
}

}  // namespace

std::vector<kernels::TrainSight> sights_of(const BlockRows& rows) {
  std::vector<kernels::TrainSight> sights(rows.pos.size());
  for (std::int32_t row = 0; row < rows.n_rows(); row++)
    sights[static_cast<std::size_t>(row)] = {row, row, row + 1, row};
  for (const Segment& segment : rows.segments) {
    for (std::int32_t row = segment.begin; row < segment.end; row++) {
      const auto at = static_cast<std::size_t>(row);
      const RowView view = rows.views.empty() ? RowView{} : rows.views[at];
      sights[at] = {segment.begin, segment.begin + view.prefix_end, segment.begin + view.own_begin,
                    segment.end};
    }
  }
  return sights;
}

GpuKeptBlock::GpuKeptBlock(const GpuArrays& arrays, const ModelConfig& config)
    : x_attn(arrays.f32(config.dim, kKept)),
      x_mlp(arrays.f32(config.dim, kKept)),
      r_attn(arrays.f32(1, kKept)),
      r_mlp(arrays.f32(1, kKept)),
      h_attn(arrays.typed(config.dim, kKept)),
      h_mlp(arrays.typed(config.dim, kKept)),
      qkv(arrays.typed(qkv_width_of(config), kKept)),
      attended(arrays.typed(config.n_heads * config.head_dim, kKept)),
      lse(arrays.f32(config.n_heads, kKept)),
      gate_up(arrays.typed(2 * config.hidden_dim, kKept)) {}

GpuBlockPass::GpuBlockPass(const GpuArrays& arrays, const ModelConfig& config)
    : device_(arrays.device),
      kernels_(kernels::train_kernels(device_)),
      linear_(device_, arrays.type),
      config_(config),
      type_(arrays.type),
      max_rows_(arrays.rows),
      qkv_width_(qkv_width_of(config)),
      out_width_(config.n_heads * config.head_dim),
      pos_(arrays.f32(1, kPlaces)),
      sight_(arrays.f32(4, kPlaces)),
      act_(arrays.typed(config.hidden_dim, kGradients)),
      d_act_(arrays.typed(config.hidden_dim, kGradients)),
      d_gate_up_(arrays.typed(2 * config.hidden_dim, kGradients)),
      d_qkv_(arrays.typed(qkv_width_, kGradients)),
      d_attended_(arrays.typed(out_width_, kGradients)),
      d_h_(arrays.typed(config.dim, kGradients)) {}

void GpuBlockPass::prepare(const BlockRows& rows) {
  n_ = rows.n_rows();
  ensure(n_ > 0 && n_ <= max_rows_, "rows of a pass must fit it");
  const int n_positions = *std::max_element(rows.pos.begin(), rows.pos.end()) + 1;
  if (n_positions > n_positions_) {
    n_positions_ = std::max(n_positions, kMinPositions);
    const std::vector<float> table = rope_table(config_, n_positions_);
    rope_ = kernels::DeviceBuffer(device_, static_cast<std::int64_t>(4 * table.size()),
                                  "the table of positions");
    upload(device_, rope_, table);
  }
  upload(device_, pos_, rows.pos);
  upload(device_, sight_, sights_of(rows));
}

void GpuBlockPass::rope(void* x, float direction) {
  kernels_.rope(device_, type_, x, static_cast<const std::int32_t*>(pos_.data()), rope_.f32(), n_,
                qkv_width_, config_.n_heads + config_.n_kv_heads, config_.head_dim, direction);
}

// The norm copies its input to where the next product adds to it, so both are kept.
void GpuBlockPass::forward(const GpuWeights& w,
                           const LayerAt& at,
                           GpuKeptBlock& kept,
                           float* next) {
  const int dim = config_.dim, hidden = config_.hidden_dim;
  kernels_.rms_norm(device_, type_, kept.x_attn.f32(), w.masters + at.attn_norm, kept.h_attn.data(),
                    kept.r_attn.f32(), kept.x_mlp.f32(), n_, dim, config_.norm_eps);
  linear_.forward(w, {at.qkv, qkv_width_, dim}, kept.h_attn.data(), n_, kept.qkv.data());
  rope(kept.qkv.data(), 1.0f);
  kernels_.attention(device_, type_, {n_, config_.n_heads, config_.n_kv_heads, config_.head_dim},
                     kept.qkv.data(), static_cast<const kernels::TrainSight*>(sight_.data()),
                     kept.attended.data(), kept.lse.f32());
  linear_.forward_f32(w, {at.attn_out, dim, out_width_}, kept.attended.data(), n_, kept.x_mlp.f32(),
                      true);

  kernels_.rms_norm(device_, type_, kept.x_mlp.f32(), w.masters + at.mlp_norm, kept.h_mlp.data(),
                    kept.r_mlp.f32(), next, n_, dim, config_.norm_eps);
  linear_.forward(w, {at.gate_up, 2 * hidden, dim}, kept.h_mlp.data(), n_, kept.gate_up.data());
  kernels_.swiglu(device_, type_, kept.gate_up.data(), act_.data(), n_, hidden);
  linear_.forward_f32(w, {at.down, dim, hidden}, act_.data(), n_, next, true);
}

void GpuBlockPass::backward(const GpuWeights& w,
                            const LayerAt& at,
                            const GpuKeptBlock& kept,
                            float* dx,
                            void* dx_rounded,
                            float* gradient) {
  const int dim = config_.dim, hidden = config_.hidden_dim;
  const GpuMatrix down{at.down, dim, hidden}, gate_up{at.gate_up, 2 * hidden, dim},
      attn_out{at.attn_out, dim, out_width_}, qkv{at.qkv, qkv_width_, dim};
  linear_.backward_input(w, down, dx_rounded, n_, d_act_.data());
  kernels_.swiglu_backward(device_, type_, kept.gate_up.data(), d_act_.data(), d_gate_up_.data(),
                           act_.data(), n_, hidden);
  linear_.backward_weight(down, dx_rounded, act_.data(), n_, gradient);
  linear_.backward_input(w, gate_up, d_gate_up_.data(), n_, d_h_.data());
  linear_.backward_weight(gate_up, d_gate_up_.data(), kept.h_mlp.data(), n_, gradient);
  kernels_.rms_norm_backward(device_, type_, kept.x_mlp.f32(), w.masters + at.mlp_norm,
                             kept.r_mlp.f32(), d_h_.data(), dx, gradient + at.mlp_norm, dx_rounded,
                             n_, dim);

  linear_.backward_input(w, attn_out, dx_rounded, n_, d_attended_.data());
  linear_.backward_weight(attn_out, dx_rounded, kept.attended.data(), n_, gradient);
  kernels_.attention_backward(
      device_, type_, {n_, config_.n_heads, config_.n_kv_heads, config_.head_dim}, kept.qkv.data(),
      static_cast<const kernels::TrainSight*>(sight_.data()), kept.attended.data(),
      d_attended_.data(), kept.lse.f32(), d_qkv_.data());
  rope(d_qkv_.data(), -1.0f);
  linear_.backward_input(w, qkv, d_qkv_.data(), n_, d_h_.data());
  linear_.backward_weight(qkv, d_qkv_.data(), kept.h_attn.data(), n_, gradient);
  kernels_.rms_norm_backward(device_, type_, kept.x_attn.f32(), w.masters + at.attn_norm,
                             kept.r_attn.f32(), d_h_.data(), dx, gradient + at.attn_norm,
                             dx_rounded, n_, dim);
}

}  // namespace engine
