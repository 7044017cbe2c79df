#include "engine/train/gpu_pass.h"

#include <algorithm>

#include "engine/train/block.h"
#include "engine/types.h"

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::DType;

constexpr int kMinPositions = 512;  // of the table of rotations

template <typename T>
void upload(kernels::Device& device, const DeviceBuffer& to, const T& values) {
  device.ops().upload(device, to.data(), values.data(),
                      static_cast<std::int64_t>(values.size() * sizeof(values[0])));
}

}  // namespace

std::vector<kernels::TrainSight> sights_of(const TrainRows& rows) {
  std::vector<kernels::TrainSight> sights(rows.token.size());
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

TokenGroups token_groups_of(const TrainRows& rows) {
  TokenGroups groups;
  for (const Segment& segment : rows.segments)
    for (std::int32_t row = segment.begin; row < segment.end; row++) groups.row.push_back(row);
  const auto token = [&](std::int32_t row) { return rows.token[static_cast<std::size_t>(row)]; };
  std::stable_sort(groups.row.begin(), groups.row.end(),
                   [&](std::int32_t a, std::int32_t b) { return token(a) < token(b); });
  for (std::size_t i = 0; i < groups.row.size(); i++) {
    if (i == 0 || token(groups.row[i]) != token(groups.row[i - 1]))
      groups.begin.push_back(static_cast<std::int32_t>(i));
  }
  groups.begin.push_back(static_cast<std::int32_t>(groups.row.size()));
  return groups;
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
      qkv_width_((config.n_heads + 2 * config.n_kv_heads) * config.head_dim),
      out_width_(config.n_heads * config.head_dim),
      head_rows_(static_cast<int>(
          std::clamp<std::int64_t>(logit_bytes / 4 / config.vocab_size, 1, max_rows))) {
  ensure(max_rows > 0, "a pass has rows");
  const auto floats = [&](std::int64_t width) {
    return DeviceBuffer(device, 4 * width * max_rows);
  };
  const auto values = [&](std::int64_t width) {
    return DeviceBuffer(device, kernels::bytes_of(type) * width * max_rows);
  };
  const int dim = config.dim, hidden = config.hidden_dim;
  for (int layer = 0; layer < config.n_layers; layer++) {
    layers_.push_back({.x_attn = floats(dim),
                       .x_mlp = floats(dim),
                       .r_attn = floats(1),
                       .r_mlp = floats(1),
                       .h_attn = values(dim),
                       .h_mlp = values(dim),
                       .qkv = values(qkv_width_),
                       .attended = values(out_width_),
                       .lse = floats(config.n_heads),
                       .gate_up = values(2 * hidden)});
  }
  for (DeviceBuffer* one : {&token_, &target_, &weight_, &pos_, &group_row_}) *one = floats(1);
  group_begin_ = DeviceBuffer(device, 4 * (std::int64_t{max_rows} + 1));
  sight_ = floats(4);
  x_final_ = floats(dim);
  r_final_ = floats(1);
  h_final_ = values(dim);
  act_ = values(hidden);
  d_act_ = values(hidden);
  d_gate_up_ = values(2 * hidden);
  d_qkv_ = values(qkv_width_);
  d_attended_ = values(out_width_);
  d_h_ = values(dim);
  dx_ = floats(dim);
  dx_rounded_ = values(dim);
  const std::int64_t n_logits = std::int64_t{head_rows_} * config.vocab_size;
  logits_ = DeviceBuffer(device, 4 * n_logits);
  d_logits_ = DeviceBuffer(device, kernels::bytes_of(type) * n_logits);
}

void GpuTrainPass::take_rows(const TrainRows& rows) {
  n_ = rows.n_rows();
  ensure(n_ > 0 && n_ <= max_rows_, "rows of a pass must fit it");
  ensure(rows.target.size() == rows.token.size() && rows.weight.size() == rows.token.size() &&
             rows.pos.size() == rows.token.size(),
         "a target, a weight and a position for every row");
  ensure(rows.goals.empty(), "rows on a GPU have targets and no other goals");
  expect_tokens(rows, config_.vocab_size);
  const int n_positions = *std::max_element(rows.pos.begin(), rows.pos.end()) + 1;
  if (n_positions > n_positions_) {
    n_positions_ = std::max(n_positions, kMinPositions);
    const std::vector<float> table = rope_table(config_, n_positions_);
    rope_ = DeviceBuffer(device_, static_cast<std::int64_t>(4 * table.size()));
    upload(device_, rope_, table);
  }
  const TokenGroups groups = token_groups_of(rows);
  n_groups_ = static_cast<int>(groups.begin.size()) - 1;
  upload(device_, token_, rows.token);
  upload(device_, target_, rows.target);
  upload(device_, weight_, rows.weight);
  upload(device_, pos_, rows.pos);
  upload(device_, sight_, sights_of(rows));
  upload(device_, group_row_, groups.row);
  upload(device_, group_begin_, groups.begin);
}

const void* GpuTrainPass::rounded(const GpuWeights& w, std::int64_t at) const {
  return static_cast<const char*>(w.rounded) + at * kernels::bytes_of(type_);
}

void GpuTrainPass::forward(const GpuWeights& w, const Matrix& m, const void* x, int n, void* y) {
  kernels_.product(device_, {.a = x,
                             .b = rounded(w, m.at),
                             .c = y,
                             .b_turned = true,
                             .in = type_,
                             .out = type_,
                             .m = n,
                             .n = m.n_out,
                             .k = m.n_in});
}

void GpuTrainPass::forward_f32(
    const GpuWeights& w, const Matrix& m, const void* x, int n, float* y, bool add) {
  kernels_.product(device_, {.a = x,
                             .b = rounded(w, m.at),
                             .c = y,
                             .b_turned = true,
                             .in = type_,
                             .add = add,
                             .m = n,
                             .n = m.n_out,
                             .k = m.n_in});
}

void GpuTrainPass::backward_input(
    const GpuWeights& w, const Matrix& m, const void* dy, int n, void* dx) {
  kernels_.product(device_, {.a = dy,
                             .b = rounded(w, m.at),
                             .c = dx,
                             .in = type_,
                             .out = type_,
                             .m = n,
                             .n = m.n_in,
                             .k = m.n_out});
}

void GpuTrainPass::backward_weight(
    const Matrix& m, const void* dy, const void* x, int n, float* gradient) {
  kernels_.product(device_, {.a = dy,
                             .b = x,
                             .c = gradient + m.at,
                             .a_turned = true,
                             .in = type_,
                             .add = true,
                             .m = m.n_out,
                             .n = m.n_in,
                             .k = n});
}

void GpuTrainPass::rope(void* x, float direction) {
  kernels_.rope(device_, type_, x, static_cast<const std::int32_t*>(pos_.data()), rope_.f32(), n_,
                qkv_width_, config_.n_heads + config_.n_kv_heads, config_.head_dim, direction);
}

// The norm copies its input to where the next product adds to it, so both are kept.
void GpuTrainPass::block_forward(const GpuWeights& w, const LayerAt& at, Kept& kept, float* next) {
  const int dim = config_.dim, hidden = config_.hidden_dim;
  kernels_.rms_norm(device_, type_, kept.x_attn.f32(), w.masters + at.attn_norm, kept.h_attn.data(),
                    kept.r_attn.f32(), kept.x_mlp.f32(), n_, dim, config_.norm_eps);
  forward(w, {at.qkv, qkv_width_, dim}, kept.h_attn.data(), n_, kept.qkv.data());
  rope(kept.qkv.data(), 1.0f);
  kernels_.attention(device_, type_, {n_, config_.n_heads, config_.n_kv_heads, config_.head_dim},
                     kept.qkv.data(), static_cast<const kernels::TrainSight*>(sight_.data()),
                     kept.attended.data(), kept.lse.f32());
  forward_f32(w, {at.attn_out, dim, out_width_}, kept.attended.data(), n_, kept.x_mlp.f32(), true);

  kernels_.rms_norm(device_, type_, kept.x_mlp.f32(), w.masters + at.mlp_norm, kept.h_mlp.data(),
                    kept.r_mlp.f32(), next, n_, dim, config_.norm_eps);
  forward(w, {at.gate_up, 2 * hidden, dim}, kept.h_mlp.data(), n_, kept.gate_up.data());
  kernels_.swiglu(device_, type_, kept.gate_up.data(), act_.data(), n_, hidden);
  forward_f32(w, {at.down, dim, hidden}, act_.data(), n_, next, true);
}

// dx_ and dx_rounded_ hold the gradient of the block's output, afterwards of its input.
void GpuTrainPass::block_backward(const GpuWeights& w,
                                  const LayerAt& at,
                                  const Kept& kept,
                                  float* gradient) {
  const int dim = config_.dim, hidden = config_.hidden_dim;
  const Matrix down{at.down, dim, hidden}, gate_up{at.gate_up, 2 * hidden, dim},
      attn_out{at.attn_out, dim, out_width_}, qkv{at.qkv, qkv_width_, dim};
  backward_input(w, down, dx_rounded_.data(), n_, d_act_.data());
  kernels_.swiglu_backward(device_, type_, kept.gate_up.data(), d_act_.data(), d_gate_up_.data(),
                           act_.data(), n_, hidden);
  backward_weight(down, dx_rounded_.data(), act_.data(), n_, gradient);
  backward_input(w, gate_up, d_gate_up_.data(), n_, d_h_.data());
  backward_weight(gate_up, d_gate_up_.data(), kept.h_mlp.data(), n_, gradient);
  kernels_.rms_norm_backward(device_, type_, kept.x_mlp.f32(), w.masters + at.mlp_norm,
                             kept.r_mlp.f32(), d_h_.data(), dx_.f32(), gradient + at.mlp_norm,
                             dx_rounded_.data(), n_, dim);

  backward_input(w, attn_out, dx_rounded_.data(), n_, d_attended_.data());
  backward_weight(attn_out, dx_rounded_.data(), kept.attended.data(), n_, gradient);
  kernels_.attention_backward(
      device_, type_, {n_, config_.n_heads, config_.n_kv_heads, config_.head_dim}, kept.qkv.data(),
      static_cast<const kernels::TrainSight*>(sight_.data()), kept.attended.data(),
      d_attended_.data(), kept.lse.f32(), d_qkv_.data());
  rope(d_qkv_.data(), -1.0f);
  backward_input(w, qkv, d_qkv_.data(), n_, d_h_.data());
  backward_weight(qkv, d_qkv_.data(), kept.h_attn.data(), n_, gradient);
  kernels_.rms_norm_backward(device_, type_, kept.x_attn.f32(), w.masters + at.attn_norm,
                             kept.r_attn.f32(), d_h_.data(), dx_.f32(), gradient + at.attn_norm,
                             dx_rounded_.data(), n_, dim);
}

// Losses and their gradient; the logits of all rows live at once only where they are few.
void GpuTrainPass::backward_lm_head(const GpuWeights& w, float* gradient, float* loss) {
  const int dim = config_.dim, vocab = config_.vocab_size;
  const Matrix head{layout_.embedding, vocab, dim};
  const std::int64_t row_bytes = std::int64_t{kernels::bytes_of(type_)} * dim;
  for (int first = 0; first < n_; first += head_rows_) {
    const int n = std::min(head_rows_, n_ - first);
    const void* x = static_cast<const char*>(h_final_.data()) + first * row_bytes;
    forward_f32(w, head, x, n, logits_.f32(), false);
    kernels_.cross_entropy(device_, type_, logits_.f32(),
                           static_cast<const std::int32_t*>(target_.data()) + first,
                           weight_.f32() + first, d_logits_.data(), loss + first, n, vocab);
    backward_input(w, head, d_logits_.data(), n,
                   static_cast<char*>(d_h_.data()) + first * row_bytes);
    backward_weight(head, d_logits_.data(), x, n, gradient);
  }
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
    block_forward(w, layout_.layers[i], layers_[i], next);
  }
  kernels_.rms_norm(device_, type_, x_final_.f32(), w.masters + layout_.final_norm, h_final_.data(),
                    r_final_.f32(), nullptr, n_, dim, config_.norm_eps);
  backward_lm_head(w, gradient, loss);
  kernels_.clear(device_, dx_.data(), std::int64_t{4} * n_ * dim);
  kernels_.rms_norm_backward(device_, type_, x_final_.f32(), w.masters + layout_.final_norm,
                             r_final_.f32(), d_h_.data(), dx_.f32(), gradient + layout_.final_norm,
                             dx_rounded_.data(), n_, dim);
  for (std::size_t i = layers_.size(); i-- > 0;)
    block_backward(w, layout_.layers[i], layers_[i], gradient);
  kernels_.scatter_rows(device_, dx_.f32(), token,
                        static_cast<const std::int32_t*>(group_row_.data()),
                        static_cast<const std::int32_t*>(group_begin_.data()), n_groups_,
                        gradient + layout_.embedding, dim);
}

}  // namespace engine
