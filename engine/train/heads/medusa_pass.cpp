// Medusa's heads: x + SiLU(W x + b) for each residual layer, then an output matrix of its own. A
// head's rows do not depend on another head's.
#include "engine/train/heads/medusa_pass.h"

#include <algorithm>
#include <string>

#include "engine/train/heads/rows.h"
#include "engine/train/ops/aligned_vector.h"
#include "engine/train/core/vocab_rows.h"

namespace engine {
namespace {

template <typename T>
class MedusaPass final : public HeadsPass<T> {
 public:
  MedusaPass(const HeadsConfig& config,
             std::unique_ptr<LinearMath<T>> math,
             const TrainTable& table)
      : c_(config),
        layout_(config),
        math_(std::move(math)),
        ops_(table.ops<T>()),
        vocab_(*math_, table, config.vocab_size),
        z_(static_cast<std::size_t>(config.n_layers)),
        y_(static_cast<std::size_t>(config.n_layers) + 1) {}

  void forward_backward(const std::vector<float>& parameters,
                        const PackedHeads<T>& weights,
                        std::span<const HeadsText> texts,
                        const HeadsLoss& loss,
                        float* gradient,
                        HeadsSums& sums) override;
  void rank(const std::vector<float>& parameters,
            const PackedHeads<T>& weights,
            std::span<const HeadsText> texts,
            int n_valid,
            HeadsRanks& ranks) override;

 private:
  void read(std::span<const HeadsText> texts);
  void ask_for(int head, std::span<const HeadsText> texts, float weight);
  void forward(int head, const std::vector<float>& parameters, const PackedHeads<T>& weights);
  void backward(int head, const PackedHeads<T>& weights, float* gradient);
  std::int64_t bias_at(int head, int layer) const {
    return layout_.at(std::to_string(head) + "." + std::to_string(layer) + ".linear.bias");
  }
  std::int64_t matrix_at(int head, int layer) const {
    return layout_.at(std::to_string(head) + "." + std::to_string(layer) + ".linear.weight");
  }
  std::int64_t output_at(int head) const {
    return layout_.at(std::to_string(head) + "." + std::to_string(c_.n_layers) + ".weight");
  }

  const HeadsConfig c_;
  const HeadsLayout layout_;
  std::unique_ptr<LinearMath<T>> math_;
  const TrainOps<T>& ops_;
  VocabRows<T> vocab_;
  int n_ = 0, n_padded_ = 0;             // rows: places of the texts, one after the other
  std::vector<TokenId> target_;          // [n_padded] of the head under way
  std::vector<float> weight_, loss_;     // [n_padded]
  std::vector<AlignedVector<float>> z_;  // [layer][rows, dim] before the SiLU
  std::vector<AlignedVector<T>> y_;      // [layer + 1][rows, dim]; [0] the hidden states
  AlignedVector<T> dy_, dz_, dx_;        // [rows, dim]
};

template <typename T>
void MedusaPass<T>::read(std::span<const HeadsText> texts) {
  n_ = 0;
  for (const HeadsText& text : texts) n_ += text.n_places(0);
  n_padded_ = padded_rows(n_);
  const std::size_t size = static_cast<std::size_t>(n_padded_) * c_.dim;
  for (auto& y : y_) y.resize(size);
  for (auto& z : z_) z.resize(size);
  for (auto* d : {&dy_, &dz_, &dx_}) d->resize(size);
  target_.resize(static_cast<std::size_t>(n_padded_));
  weight_.resize(target_.size());
  loss_.resize(target_.size());
  T* to = y_[0].data();
  for (const HeadsText& text : texts) {
    for (int i = 0; i < text.n_places(0); i++, to += c_.dim)
      copy_row(text.hidden.data() + std::int64_t{text.n_prompt - 1 + i} * c_.dim, c_.dim, to);
  }
  std::fill(to, y_[0].data() + size, T{});
}

template <typename T>
void MedusaPass<T>::ask_for(int head, std::span<const HeadsText> texts, float weight) {
  std::fill(target_.begin(), target_.end(), 0);
  std::fill(weight_.begin(), weight_.end(), 0.0f);
  std::size_t row = 0;
  for (const HeadsText& text : texts) {
    for (int i = 0; i < text.n_places(0); i++, row++) {
      if (i >= text.n_places(head)) continue;
      target_[row] = text.tokens[static_cast<std::size_t>(text.n_prompt + 1 + i + head)];
      weight_[row] = weight;
    }
  }
}

template <typename T>
void MedusaPass<T>::forward(int head,
                            const std::vector<float>& parameters,
                            const PackedHeads<T>& weights) {
  for (int layer = 0; layer < c_.n_layers; layer++) {
    const auto j = static_cast<std::size_t>(layer);
    const float* bias = parameters.data() + bias_at(head, layer);
    for (int row = 0; row < n_padded_; row++)
      std::copy_n(bias, c_.dim, z_[j].data() + std::int64_t{row} * c_.dim);
    math_->forward_f32(*weights.residual[static_cast<std::size_t>(head)][j], y_[j].data(),
                       n_padded_, z_[j].data(), true);
    ops_.silu(z_[j].data(), y_[j].data(), y_[j + 1].data(), std::int64_t{n_padded_} * c_.dim);
  }
}

// dy_ holds the gradient of the last layer's output.
template <typename T>
void MedusaPass<T>::backward(int head, const PackedHeads<T>& weights, float* gradient) {
  const std::int64_t n = std::int64_t{n_padded_} * c_.dim;
  for (int layer = c_.n_layers - 1; layer >= 0; layer--) {
    const auto j = static_cast<std::size_t>(layer);
    const auto& w = *weights.residual[static_cast<std::size_t>(head)][j];
    ops_.silu_backward(z_[j].data(), dy_.data(), dz_.data(), n);
    math_->backward_weight(w, dz_.data(), y_[j].data(), n_padded_,
                           gradient + matrix_at(head, layer));
    ops_.column_sums(dz_.data(), gradient + bias_at(head, layer), n_padded_, c_.dim);
    if (layer == 0) return;
    math_->backward_input(w, dz_.data(), n_padded_, dx_.data());
    add_row(dx_.data(), static_cast<int>(n), dy_.data());
  }
}

template <typename T>
void MedusaPass<T>::forward_backward(const std::vector<float>& parameters,
                                     const PackedHeads<T>& weights,
                                     std::span<const HeadsText> texts,
                                     const HeadsLoss& loss,
                                     float* gradient,
                                     HeadsSums& sums) {
  read(texts);
  if (n_ == 0) return;
  for (int head = 0; head < c_.n_heads; head++) {
    const auto k = static_cast<std::size_t>(head);
    ask_for(head, texts, loss.of_head[k]);
    forward(head, parameters, weights);
    vocab_.forward_backward(*weights.output[k], y_.back().data(), c_.dim, target_, weight_,
                            dy_.data(), gradient + output_at(head), loss_);
    backward(head, weights, gradient);
    for (const float l : loss_) sums.loss[k] += l;
    for (const HeadsText& text : texts) sums.n[k] += text.n_places(head);
  }
}

template <typename T>
void MedusaPass<T>::rank(const std::vector<float>& parameters,
                         const PackedHeads<T>& weights,
                         std::span<const HeadsText> texts,
                         int n_valid,
                         HeadsRanks& ranks) {
  read(texts);
  for (int head = 0; n_ > 0 && head < c_.n_heads; head++) {
    const auto k = static_cast<std::size_t>(head);
    ask_for(head, texts, 1);
    forward(head, parameters, weights);
    vocab_.logits(*weights.output[k], y_.back().data(), c_.dim, n_,
                  [&](int row, std::span<const float> logits) {
                    if (weight_[static_cast<std::size_t>(row)] == 0) return;
                    ranks.add(head, rank_of(logits.first(static_cast<std::size_t>(n_valid)),
                                            target_[static_cast<std::size_t>(row)]));
                  });
  }
}

}  // namespace

template <typename T>
std::unique_ptr<HeadsPass<T>> make_medusa_pass(const HeadsConfig& config,
                                               std::unique_ptr<LinearMath<T>> math,
                                               const TrainTable& table) {
  return std::make_unique<MedusaPass<T>>(config, std::move(math), table);
}

template std::unique_ptr<HeadsPass<float>> make_medusa_pass(const HeadsConfig&,
                                                            std::unique_ptr<LinearMath<float>>,
                                                            const TrainTable&);
template std::unique_ptr<HeadsPass<Bf16>> make_medusa_pass(const HeadsConfig&,
                                                           std::unique_ptr<LinearMath<Bf16>>,
                                                           const TrainTable&);

}  // namespace engine
