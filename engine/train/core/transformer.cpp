#include "engine/train/core/transformer.h"

#include <algorithm>
#include <cstring>

#include "engine/train/ops/aligned_vector.h"
#include "engine/base/types.h"

namespace engine {

void expect_tokens(std::span<const TokenId> tokens, int vocab_size) {
  for (const TokenId token : tokens)
    ensure(token >= 0 && token < vocab_size, "a row's token is none of the vocabulary's");
}

void expect_tokens(const TrainRows& rows, int vocab_size) {
  expect_tokens(rows.token, vocab_size);
  for (std::size_t i = 0; i < rows.target.size(); i++) {
    if (rows.weight[i] == 0) continue;
    if (rows.goals.empty() || rows.goals[i].kind == RowGoal::Kind::Target)
      ensure(rows.target[i] >= 0 && rows.target[i] < vocab_size,
             "a row's target is none of the vocabulary's");
  }
}

template <typename T>
PackedWeights<T>::PackedWeights(const ModelConfig& c,
                                const ParameterLayout& layout,
                                const std::vector<float>& parameters,
                                const LinearMath<T>& math) {
  const int q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  const auto make = [&](std::int64_t at, int n_out, int n_in) {
    auto packed = math.make(parameters.data() + at, n_out, n_in);
    all_.push_back(packed.get());
    return packed;
  };
  lm_head = make(layout.embedding, c.vocab_size, c.dim);
  for (const LayerAt& at : layout.layers) {
    PackedBlock<T> layer;
    layer.qkv = make(at.qkv, q + 2 * kv, c.dim);
    layer.attn_out = make(at.attn_out, c.dim, q);
    layer.gate_up = make(at.gate_up, 2 * c.hidden_dim, c.dim);
    layer.down = make(at.down, c.dim, c.hidden_dim);
    layers.push_back(std::move(layer));
  }
  for (int i = 0; i < n_matrices(); i++) repack(i, math);
}

template <typename T>
void PackedWeights<T>::repack(int i, const LinearMath<T>& math) {
  math.repack(*all_[static_cast<std::size_t>(i)]);
}

template <typename T>
struct TrainPass<T>::Buffers {
  int max_rows = 0;
  std::vector<KeptBlock<T>> layers;
  AlignedVector<float> x_final, r_final;
  AlignedVector<T> h_final;
  AlignedVector<T> d_h, dx_rounded;
  AlignedVector<float> dx;
  AlignedVector<float> all_logits;  // [rows, vocab_size], of passes with teachers alone
};

template <typename T>
TrainPass<T>::TrainPass(const ModelConfig& config,
                        const ParameterLayout& layout,
                        std::unique_ptr<LinearMath<T>> math,
                        const TrainTable& table,
                        int max_rows)
    : config_(config),
      layout_(layout),
      math_(std::move(math)),
      ops_(table.ops<T>()),
      parameter_ops_(table.parameters),
      block_(config, *math_, table, max_rows),
      vocab_(*math_, table, config.vocab_size),
      buffers_(std::make_unique<Buffers>()) {
  ensure(max_rows > 0 && max_rows % 32 == 0, "rows of a pass must be a multiple of 32");
  Buffers& b = *buffers_;
  b.max_rows = max_rows;
  const auto wide = [&](int width) { return static_cast<std::size_t>(max_rows) * width; };
  const int dim = config.dim;
  for (int layer = 0; layer < config.n_layers; layer++) b.layers.emplace_back(config, max_rows);
  b.x_final.resize(wide(dim));
  b.r_final.resize(wide(1));
  b.h_final.resize(wide(dim));
  b.d_h.resize(wide(dim));
  b.dx_rounded.resize(wide(dim));
  b.dx.resize(wide(dim));
}

template <typename T>
TrainPass<T>::~TrainPass() = default;

template <typename T>
void TrainPass<T>::run_layers(const std::vector<float>& parameters,
                              const PackedWeights<T>& weights,
                              const TrainRows& rows) {
  Buffers& b = *buffers_;
  const int n = rows.n_rows(), dim = config_.dim;
  ensure(n % 32 == 0 && n <= b.max_rows, "rows of a pass must be a multiple of 32 that fits");
  ensure(rows.pos.size() == rows.token.size(), "a position for every row");
  const BlockRows block_rows{rows.pos, rows.segments, rows.views};
  block_.prepare(block_rows);
  const float* embedding = parameters.data() + layout_.embedding;
  float* x = b.layers[0].x_attn.data();
  for (int row = 0; row < n; row++) {
    std::memcpy(x + std::int64_t{row} * dim,
                embedding + std::int64_t{rows.token[static_cast<std::size_t>(row)]} * dim,
                sizeof(float) * static_cast<std::size_t>(dim));
  }
  for (int layer = 0; layer < config_.n_layers; layer++) {
    const auto i = static_cast<std::size_t>(layer);
    const bool last = layer + 1 == config_.n_layers;
    block_.forward(parameters, layout_.layers[i], weights.layers[i], block_rows, b.layers[i],
                   last ? b.x_final.data() : b.layers[i + 1].x_attn.data());
  }
  ops_.rms_norm(b.x_final.data(), parameters.data() + layout_.final_norm, b.h_final.data(),
                b.r_final.data(), nullptr, n, dim, config_.norm_eps);
}

// Of rows [first, first + n) and their logits: losses, and their gradient.
template <typename T>
void TrainPass<T>::losses_of_rows(
    const TrainRows& rows, int first, int n, float* logits, T* d_logits, std::span<float> loss) {
  const int vocab = config_.vocab_size;
  const auto at = static_cast<std::size_t>(first);
  if (rows.goals.empty()) {
    ops_.cross_entropy(logits, rows.target.data() + at, rows.weight.data() + at, d_logits,
                       loss.data() + at, n, vocab);
    return;
  }
  const float* teachers =
      rows.teacher_logits.empty() ? buffers_->all_logits.data() : rows.teacher_logits.data();
  for (int i = 0; i < n; i++) {
    const std::size_t row = at + static_cast<std::size_t>(i);
    const RowGoal& goal = rows.goals[row];
    float* z = logits + std::int64_t{i} * vocab;
    T* d = d_logits + std::int64_t{i} * vocab;
    const float weight = rows.weight[row];
    if (weight == 0 || (goal.kind == RowGoal::Kind::Target && goal.smoothing == 0)) {
      ops_.cross_entropy(z, &rows.target[row], &weight, d, &loss[row], 1, vocab);
    } else if (goal.kind == RowGoal::Kind::Target) {
      loss[row] =
          ops_.smoothed_cross_entropy(z, rows.target[row], goal.smoothing, weight, d, vocab);
    } else {
      loss[row] = ops_.divergence(z, teachers + std::int64_t{goal.teacher} * vocab,
                                  goal.kind == RowGoal::Kind::Reverse, weight, d, vocab);
    }
  }
}

// Loss and its gradient: logits of all rows live at once only where rows of this forward are
// teachers of others.
template <typename T>
void TrainPass<T>::backward_lm_head(const PackedWeights<T>& weights,
                                    const TrainRows& rows,
                                    float* gradient,
                                    std::span<float> loss) {
  Buffers& b = *buffers_;
  const int n = rows.n_rows();
  const bool teaches_itself = rows.teacher_logits.empty() &&
                              std::any_of(rows.goals.begin(), rows.goals.end(),
                                          [](auto& g) { return g.kind != RowGoal::Kind::Target; });
  if (teaches_itself) {
    b.all_logits.resize(static_cast<std::size_t>(n) * config_.vocab_size);
    math_->forward_f32(*weights.lm_head, b.h_final.data(), n, b.all_logits.data(), false);
  }
  const auto losses = [&](int first, int n_first, float* logits, T* d_logits) {
    losses_of_rows(rows, first, n_first, logits, d_logits, loss);
  };
  vocab_.forward_backward(*weights.lm_head, b.h_final.data(), config_.dim, n,
                          teaches_itself ? b.all_logits.data() : nullptr, losses, b.d_h.data(),
                          gradient + layout_.embedding);
}

template <typename T>
void TrainPass<T>::forward_backward(const std::vector<float>& parameters,
                                    const PackedWeights<T>& weights,
                                    const TrainRows& rows,
                                    float* gradient,
                                    std::span<float> loss) {
  Buffers& b = *buffers_;
  const int n = rows.n_rows(), dim = config_.dim;
  ensure(rows.target.size() == rows.token.size() && rows.weight.size() == rows.token.size() &&
             loss.size() == rows.token.size(),
         "a target, a weight and a loss for every row");
  ensure(rows.goals.empty() || rows.goals.size() == rows.token.size(), "a goal for every row");
  ensure(rows.teacher_logits.empty() ||
             rows.teacher_logits.size() ==
                 rows.token.size() * static_cast<std::size_t>(config_.vocab_size),
         "a teacher's logits for every row");
  for (const RowGoal& goal : rows.goals)
    ensure(goal.teacher >= 0 && goal.teacher < n, "a teacher is a row of the pass");
  expect_tokens(rows, config_.vocab_size);
  run_layers(parameters, weights, rows);
  backward_lm_head(weights, rows, gradient, loss);
  std::fill_n(b.dx.data(), static_cast<std::size_t>(n) * dim, 0.0f);
  ops_.rms_norm_backward(b.x_final.data(), parameters.data() + layout_.final_norm, b.r_final.data(),
                         b.d_h.data(), b.dx.data(), gradient + layout_.final_norm,
                         b.dx_rounded.data(), n, dim);
  for (int layer = config_.n_layers - 1; layer >= 0; layer--) {
    const auto i = static_cast<std::size_t>(layer);
    block_.backward(parameters, layout_.layers[i], weights.layers[i],
                    {rows.pos, rows.segments, rows.views}, b.layers[i], b.dx.data(),
                    b.dx_rounded.data(), gradient);
  }
  for (int row = 0; row < n; row++) {
    parameter_ops_.add(gradient + layout_.embedding +
                           std::int64_t{rows.token[static_cast<std::size_t>(row)]} * dim,
                       b.dx.data() + std::int64_t{row} * dim, dim);
  }
}

template <typename T>
void TrainPass<T>::forward(const std::vector<float>& parameters,
                           const PackedWeights<T>& weights,
                           const TrainRows& rows,
                           std::span<float> logits) {
  expect_tokens(rows.token, config_.vocab_size);
  run_layers(parameters, weights, rows);
  ensure(logits.size() == rows.token.size() * static_cast<std::size_t>(config_.vocab_size),
         "room for the logits of every row");
  math_->forward_f32(*weights.lm_head, buffers_->h_final.data(), rows.n_rows(), logits.data(),
                     false);
}

template class PackedWeights<float>;
template class PackedWeights<Bf16>;
template class TrainPass<float>;
template class TrainPass<Bf16>;

}  // namespace engine
