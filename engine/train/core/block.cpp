#include "engine/train/core/block.h"

#include <algorithm>
#include <cmath>

#include "engine/base/types.h"

namespace engine {
namespace {

using kernels::TrainWeights;

constexpr int kMinPositions = 512;  // minimum size of the table of rotations
constexpr const char* kKept = "activations kept for a layer's backward";
constexpr const char* kGradients = "gradients within a layer";
constexpr const char* kPlaces = "positions and attention spans of a pass";

}  // namespace

std::vector<float> rope_table(const ModelConfig& config, int max_pos) {
  const int half = config.head_dim / 2;
  std::vector<float> table(static_cast<std::size_t>(max_pos) * config.head_dim);
  for (int pos = 0; pos < max_pos; pos++) {
    float* row = table.data() + std::int64_t{pos} * config.head_dim;
    for (int i = 0; i < half; i++) {
      // Computes the frequency in f32, as transformers does, but sine and cosine in double.
      const auto frequency =
          static_cast<float>(1.0 / std::pow(config.rope.theta, 2.0 * i / config.head_dim));
      const double angle = static_cast<float>(pos) * frequency;
      row[i] = static_cast<float>(std::cos(angle));
      row[half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

std::vector<kernels::AttentionSpan> spans_of(const BlockRows& rows) {
  std::vector<kernels::AttentionSpan> spans(rows.pos.size());
  for (std::int32_t row = 0; row < rows.n_rows(); row++)
    spans[static_cast<std::size_t>(row)] = {row, row, row + 1, row};
  for (const Segment& segment : rows.segments) {
    for (std::int32_t row = segment.begin; row < segment.end; row++) {
      const auto at = static_cast<std::size_t>(row);
      const RowView view = rows.views.empty() ? RowView{} : rows.views[at];
      spans[at] = {segment.begin, segment.begin + view.prefix_end, segment.begin + view.own_begin,
                   segment.end};
    }
  }
  return spans;
}

kernels::AttentionRows attention_rows(const ModelConfig& c, int n_rows) {
  return {n_rows, c.n_heads, c.n_kv_heads, c.head_dim};
}

BlockMatrices::BlockMatrices(const ModelConfig& c, const LayerAt& at)
    : qkv{at.qkv, attention_rows(c).qkv_width(), c.dim},
      attn_out{at.attn_out, c.dim, attention_rows(c).out_width()},
      gate_up{at.gate_up, 2 * c.hidden_dim, c.dim},
      down{at.down, c.dim, c.hidden_dim} {}

KeptBlock::KeptBlock(const TrainDevice& on, const ModelConfig& c, int max_rows) {
  const std::int64_t n = max_rows;
  const kernels::AttentionRows attention = attention_rows(c);
  for (kernels::DeviceBuffer* x : {&x_attn, &x_mlp}) *x = on.f32(n * c.dim, kKept);
  for (kernels::DeviceBuffer* r : {&r_attn, &r_mlp}) *r = on.f32(n, kKept);
  for (kernels::DeviceBuffer* h : {&h_attn, &h_mlp}) *h = on.typed(n * c.dim, kKept);
  qkv = on.typed(n * attention.qkv_width(), kKept);
  attended = on.typed(n * attention.out_width(), kKept);
  lse = on.f32(n * c.n_heads, kKept);
  gate_up = on.typed(n * 2 * c.hidden_dim, kKept);
}

BlockPass::BlockPass(const TrainDevice& on, const ModelConfig& config, int max_rows)
    : on_(on), config_(config), max_rows_(max_rows), attention_(attention_rows(config)) {
  const std::int64_t n = max_rows;
  pos_ = on.f32(n, kPlaces);
  spans_ = on.f32(4 * n, kPlaces);
  act_ = on.typed(n * config.hidden_dim, kGradients);
  d_act_ = on.typed(n * config.hidden_dim, kGradients);
  d_gate_up_ = on.typed(n * 2 * config.hidden_dim, kGradients);
  d_qkv_ = on.typed(n * attention_.qkv_width(), kGradients);
  d_attended_ = on.typed(n * attention_.out_width(), kGradients);
  d_h_ = on.typed(n * config.dim, kGradients);
}

void BlockPass::prepare(const BlockRows& rows) {
  attention_.n_rows = rows.n_rows();
  ensure(attention_.n_rows > 0 && attention_.n_rows <= max_rows_,
         "the rows must fit into the pass");
  const int n_positions = *std::max_element(rows.pos.begin(), rows.pos.end()) + 1;
  if (n_positions > n_positions_) {
    n_positions_ = std::max(n_positions, kMinPositions);
    const std::vector<float> table = rope_table(config_, n_positions_);
    rope_ = on_.f32(std::ssize(table), "the table of positions");
    on_.upload(rope_, table);
  }
  on_.upload(pos_, rows.pos);
  on_.upload(spans_, spans_of(rows));
}

void BlockPass::rope(void* x, float direction) {
  on_.ops.rope(on_.device, on_.type, x, ids(pos_), rope_.f32(), attention_.n_rows,
               attention_.qkv_width(), config_.n_heads + config_.n_kv_heads, config_.head_dim,
               direction);
}

// Each norm also copies its input to another buffer, to which the next product adds. So the
// residual stream is kept both before and after the product.
void BlockPass::forward(const TrainWeights& w, const LayerAt& at, KeptBlock& kept, float* next) {
  const auto& [device, ops, type] = on_;
  const BlockMatrices m(config_, at);
  const int n = attention_.n_rows, dim = config_.dim;
  ops.rms_norm(device, type, kept.x_attn.f32(), w.masters + at.attn_norm, kept.h_attn.data(),
               kept.r_attn.f32(), kept.x_mlp.f32(), n, dim, config_.norm_eps);
  ops.forward(device, type, w, m.qkv, kept.h_attn.data(), n, kept.qkv.data());
  rope(kept.qkv.data(), 1.0f);
  ops.attention(device, type, attention_, kept.qkv.data(),
                static_cast<const kernels::AttentionSpan*>(spans_.data()), kept.attended.data(),
                kept.lse.f32());
  ops.forward_f32(device, type, w, m.attn_out, kept.attended.data(), n, kept.x_mlp.f32(), true);

  ops.rms_norm(device, type, kept.x_mlp.f32(), w.masters + at.mlp_norm, kept.h_mlp.data(),
               kept.r_mlp.f32(), next, n, dim, config_.norm_eps);
  ops.forward(device, type, w, m.gate_up, kept.h_mlp.data(), n, kept.gate_up.data());
  ops.swiglu(device, type, kept.gate_up.data(), act_.data(), n, config_.hidden_dim);
  ops.forward_f32(device, type, w, m.down, act_.data(), n, next, true);
}

void BlockPass::backward(const TrainWeights& w,
                         const LayerAt& at,
                         const KeptBlock& kept,
                         float* dx,
                         void* dx_rounded,
                         float* gradient) {
  const auto& [device, ops, type] = on_;
  const BlockMatrices m(config_, at);
  const int n = attention_.n_rows, dim = config_.dim;
  ops.backward_input(device, type, w, m.down, dx_rounded, n, d_act_.data());
  ops.swiglu_backward(device, type, kept.gate_up.data(), d_act_.data(), d_gate_up_.data(),
                      act_.data(), n, config_.hidden_dim);
  ops.backward_weight(device, type, w, m.down, dx_rounded, act_.data(), n, gradient);
  ops.backward_input(device, type, w, m.gate_up, d_gate_up_.data(), n, d_h_.data());
  ops.backward_weight(device, type, w, m.gate_up, d_gate_up_.data(), kept.h_mlp.data(), n,
                      gradient);
  ops.rms_norm_backward(device, type, kept.x_mlp.f32(), w.masters + at.mlp_norm, kept.r_mlp.f32(),
                        d_h_.data(), dx, gradient + at.mlp_norm, dx_rounded, n, dim);

  ops.backward_input(device, type, w, m.attn_out, dx_rounded, n, d_attended_.data());
  ops.backward_weight(device, type, w, m.attn_out, dx_rounded, kept.attended.data(), n, gradient);
  ops.attention_backward(device, type, attention_, kept.qkv.data(),
                         static_cast<const kernels::AttentionSpan*>(spans_.data()),
                         kept.attended.data(), d_attended_.data(), kept.lse.f32(), d_qkv_.data());
  rope(d_qkv_.data(), -1.0f);
  ops.backward_input(device, type, w, m.qkv, d_qkv_.data(), n, d_h_.data());
  ops.backward_weight(device, type, w, m.qkv, d_qkv_.data(), kept.h_attn.data(), n, gradient);
  ops.rms_norm_backward(device, type, kept.x_attn.f32(), w.masters + at.attn_norm,
                        kept.r_attn.f32(), d_h_.data(), dx, gradient + at.attn_norm, dx_rounded, n,
                        dim);
}

}  // namespace engine
