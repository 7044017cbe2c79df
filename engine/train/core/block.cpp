#include "engine/train/core/block.h"

#include <algorithm>
#include <cmath>

#include "engine/base/types.h"

namespace engine {
namespace {

int longest(std::span<const Segment> segments) {
  int rows = 0;
  for (const Segment& segment : segments) rows = std::max(rows, segment.end - segment.begin);
  return rows;
}

AttentionShape shape_of(const ModelConfig& c) {
  return {c.n_heads, c.n_kv_heads, c.head_dim};
}

}  // namespace

std::vector<float> rope_table(const ModelConfig& config, int max_pos) {
  const int half = config.head_dim / 2;
  std::vector<float> table(static_cast<std::size_t>(max_pos) * config.head_dim);
  for (int pos = 0; pos < max_pos; pos++) {
    float* row = table.data() + std::int64_t{pos} * config.head_dim;
    for (int i = 0; i < half; i++) {
      // The frequency in f32, as transformers computes it; the angle's sine and cosine in double.
      const auto frequency =
          static_cast<float>(1.0 / std::pow(config.rope.theta, 2.0 * i / config.head_dim));
      const double angle = static_cast<float>(pos) * frequency;
      row[i] = static_cast<float>(std::cos(angle));
      row[half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

template <typename T>
KeptBlock<T>::KeptBlock(const ModelConfig& config, int max_rows) {
  const auto wide = [&](int width) { return static_cast<std::size_t>(max_rows) * width; };
  x_attn.resize(wide(config.dim));
  x_mlp.resize(wide(config.dim));
  r_attn.resize(wide(1));
  r_mlp.resize(wide(1));
  h_attn.resize(wide(config.dim));
  h_mlp.resize(wide(config.dim));
  qkv.resize(wide(shape_of(config).qkv_width()));
  attended.resize(wide(shape_of(config).out_width()));
  lse.resize(wide(config.n_heads));
  gate_up.resize(wide(2 * config.hidden_dim));
}

template <typename T>
BlockPass<T>::BlockPass(const ModelConfig& config,
                        LinearMath<T>& math,
                        const TrainTable& table,
                        int max_rows)
    : config_(config), math_(math), ops_(table.ops<T>()), shape_(shape_of(config)) {
  const auto wide = [&](int width) { return static_cast<std::size_t>(max_rows) * width; };
  act_.resize(wide(config.hidden_dim));
  d_act_.resize(wide(config.hidden_dim));
  d_gate_up_.resize(wide(2 * config.hidden_dim));
  d_qkv_.resize(wide(shape_.qkv_width()));
  d_attended_.resize(wide(shape_.out_width()));
  d_h_.resize(wide(config.dim));
}

template <typename T>
void BlockPass<T>::prepare(const BlockRows& rows) {
  const int n = rows.n_rows();
  const int max_pos = n ? *std::max_element(rows.pos.begin(), rows.pos.end()) + 1 : 0;
  if (rope_.size() < static_cast<std::size_t>(max_pos) * config_.head_dim) {
    rope_ = rope_table(config_, std::max(max_pos, 512));
  }
  const std::int64_t scratch = attention_scratch(shape_, longest(rows.segments));
  if (static_cast<std::int64_t>(attention_.size()) < scratch) {
    attention_.resize(static_cast<std::size_t>(scratch));
  }
}

// The norm copies its input to where the next product adds to it, so both are kept.
template <typename T>
void BlockPass<T>::forward(const std::vector<float>& parameters,
                           const LayerAt& at,
                           const PackedBlock<T>& w,
                           const BlockRows& rows,
                           KeptBlock<T>& kept,
                           float* next) {
  const int n = rows.n_rows(), dim = config_.dim;
  const float* p = parameters.data();
  ops_.rms_norm(kept.x_attn.data(), p + at.attn_norm, kept.h_attn.data(), kept.r_attn.data(),
                kept.x_mlp.data(), n, dim, config_.norm_eps);
  math_.forward(*w.qkv, kept.h_attn.data(), n, kept.qkv.data());
  ops_.rope(kept.qkv.data(), rows.pos.data(), rope_.data(), n, shape_.qkv_width(),
            config_.n_heads + config_.n_kv_heads, config_.head_dim, 1.0f);
  std::fill_n(kept.attended.data(), static_cast<std::size_t>(n) * shape_.out_width(), T{});
  ops_.attention(kept.qkv.data(), rows.segments.data(), static_cast<int>(rows.segments.size()),
                 rows.views.empty() ? nullptr : rows.views.data(), kept.attended.data(),
                 kept.lse.data(), shape_, attention_.data());
  math_.forward_f32(*w.attn_out, kept.attended.data(), n, kept.x_mlp.data(), true);

  ops_.rms_norm(kept.x_mlp.data(), p + at.mlp_norm, kept.h_mlp.data(), kept.r_mlp.data(), next, n,
                dim, config_.norm_eps);
  math_.forward(*w.gate_up, kept.h_mlp.data(), n, kept.gate_up.data());
  ops_.swiglu(kept.gate_up.data(), act_.data(), n, config_.hidden_dim);
  math_.forward_f32(*w.down, act_.data(), n, next, true);
}

template <typename T>
void BlockPass<T>::backward(const std::vector<float>& parameters,
                            const LayerAt& at,
                            const PackedBlock<T>& w,
                            const BlockRows& rows,
                            const KeptBlock<T>& kept,
                            float* dx,
                            T* dx_rounded,
                            float* gradient) {
  const int n = rows.n_rows(), dim = config_.dim;
  const float* p = parameters.data();
  math_.backward_input(*w.down, dx_rounded, n, d_act_.data());
  ops_.swiglu_backward(kept.gate_up.data(), d_act_.data(), d_gate_up_.data(), act_.data(), n,
                       config_.hidden_dim);
  math_.backward_weight(*w.down, dx_rounded, act_.data(), n, gradient + at.down);
  math_.backward_input(*w.gate_up, d_gate_up_.data(), n, d_h_.data());
  math_.backward_weight(*w.gate_up, d_gate_up_.data(), kept.h_mlp.data(), n, gradient + at.gate_up);
  ops_.rms_norm_backward(kept.x_mlp.data(), p + at.mlp_norm, kept.r_mlp.data(), d_h_.data(), dx,
                         gradient + at.mlp_norm, dx_rounded, n, dim);

  math_.backward_input(*w.attn_out, dx_rounded, n, d_attended_.data());
  math_.backward_weight(*w.attn_out, dx_rounded, kept.attended.data(), n, gradient + at.attn_out);
  std::fill_n(d_qkv_.data(), static_cast<std::size_t>(n) * shape_.qkv_width(), T{});
  ops_.attention_backward(
      kept.qkv.data(), rows.segments.data(), static_cast<int>(rows.segments.size()),
      rows.views.empty() ? nullptr : rows.views.data(), kept.attended.data(), d_attended_.data(),
      kept.lse.data(), d_qkv_.data(), shape_, attention_.data());
  ops_.rope(d_qkv_.data(), rows.pos.data(), rope_.data(), n, shape_.qkv_width(),
            config_.n_heads + config_.n_kv_heads, config_.head_dim, -1.0f);
  math_.backward_input(*w.qkv, d_qkv_.data(), n, d_h_.data());
  math_.backward_weight(*w.qkv, d_qkv_.data(), kept.h_attn.data(), n, gradient + at.qkv);
  ops_.rms_norm_backward(kept.x_attn.data(), p + at.attn_norm, kept.r_attn.data(), d_h_.data(), dx,
                         gradient + at.attn_norm, dx_rounded, n, dim);
}

template struct KeptBlock<float>;
template struct KeptBlock<Bf16>;
template class BlockPass<float>;
template class BlockPass<Bf16>;

}  // namespace engine
