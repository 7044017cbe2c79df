// Medusa's heads: y = x + SiLU(W x + b) for each residual layer, then an output matrix for each
// head, or the target's. Rows are the places of the texts, concatenated; the heads do not depend on each other.
#include <string>

#include "engine/train/core/vocab_rows.h"
#include "engine/train/heads/pass.h"

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::DType;
using kernels::TrainWeights;

class MedusaPass final : public HeadsPass {
 public:
  MedusaPass(const TrainDevice& on,
             const HeadsConfig& config,
             const TargetMatrices& target,
             int max_rows)
      : on_(on),
        of_target_(target),
        vocab_(on, config.n_outputs(), on.padded(max_rows)),
        c_(config),
        layout_(config),
        m_(config, layout_),
        max_rows_(on.padded(max_rows)) {
    const std::int64_t n = max_rows_, wide = n * c_.dim;
    states_ = DeviceBuffer(on.device, 2 * wide, kStatesOfTarget);
    for (DeviceBuffer* one : {&target_, &weight_, &rank_})
      *one = on.f32(c_.n_heads * n, kRowsOfHeads);
    for (DeviceBuffer* one : {&dy_, &dz_, &dx_}) *one = on.typed(wide, kRowsOfHeads);
    for (int layer = 0; layer < c_.n_layers; layer++) z_.push_back(on.f32(wide, kRowsOfHeads));
    for (int layer = 0; layer <= c_.n_layers; layer++) y_.push_back(on.typed(wide, kRowsOfHeads));
  }

  void forward_backward(const TrainWeights& w,
                        std::span<const HeadsText> texts,
                        const HeadsLoss& loss,
                        float* gradient,
                        const HeadsLosses& losses) override;
  void rank(const TrainWeights& w,
            std::span<const HeadsText> texts,
            int n_valid,
            bool self_fed,
            MeasuredRanks& ranks) override;

 private:
  void read(std::span<const HeadsText> texts);
  void forward(const TrainWeights& w, int head);
  void backward(const TrainWeights& w, int head, float* gradient);
  std::int64_t bias_at(int head, int layer) const {
    return layout_.at(std::to_string(head) + "." + std::to_string(layer) + ".linear.bias");
  }
  const kernels::TrainMatrix& residual(int head, int layer) const {
    return m_.residual[static_cast<std::size_t>(head)][static_cast<std::size_t>(layer)];
  }
  /// The index of a head's first row in [n_heads, n_padded].
  std::int64_t first_of(int head) const { return std::int64_t{head} * n_padded_; }

  const TrainDevice on_;
  const TargetMatrices of_target_;
  VocabRows vocab_;
  const HeadsConfig c_;
  const HeadsLayout layout_;
  const HeadsMatrices m_;
  const int max_rows_;
  int n_ = 0, n_padded_ = 0;             // number of places of the texts; the same, padded
  std::vector<Bf16> hidden_;             // [n, dim] hidden states to upload
  std::vector<std::int32_t> targets_;    // [n_heads, n_padded] rows of the output; -1: none
  DeviceBuffer states_;                  // [n, dim] bf16
  DeviceBuffer target_, weight_, rank_;  // [n_heads, n_padded]
  std::vector<DeviceBuffer> z_;          // [layer][n_padded, dim] f32 before the SiLU
  std::vector<DeviceBuffer> y_;          // [layer + 1][n_padded, dim]; [0] the hidden states
  DeviceBuffer dy_, dz_, dx_;            // [n_padded, dim]
};

/// Uploads the hidden states and each head's targets.
void MedusaPass::read(std::span<const HeadsText> texts) {
  n_ = 0;
  for (const HeadsText& text : texts) n_ += text.n_places(0);
  n_padded_ = on_.padded(n_);
  ensure(n_padded_ <= max_rows_, "the rows must fit into the pass");
  if (n_ == 0) return;
  hidden_.clear();
  for (const HeadsText& text : texts) {
    const auto from = text.hidden.begin() + std::int64_t{text.n_prompt - 1} * c_.dim;
    hidden_.insert(hidden_.end(), from, from + std::int64_t{text.n_places(0)} * c_.dim);
  }
  targets_.clear();
  for (int head = 0; head < c_.n_heads; head++) {
    for (const HeadsText& text : texts)
      for (int i = 0; i < text.n_places(0); i++)
        targets_.push_back(i < text.n_places(head) ? text.row_of(text.n_prompt + 1 + i + head)
                                                   : -1);
    targets_.resize(static_cast<std::size_t>(first_of(head + 1)), -1);
  }
  on_.upload(states_, hidden_);
  on_.upload(target_, targets_);
  on_.ops.copy_rows(on_.device, DType::BF16, states_.data(), nullptr, on_.type, y_[0].data(),
                    nullptr, c_.dim, n_, c_.dim);
  on_.clear_rows(y_[0], n_, n_padded_, c_.dim);
}

void MedusaPass::forward(const TrainWeights& w, int head) {
  for (int layer = 0; layer < c_.n_layers; layer++) {
    const auto j = static_cast<std::size_t>(layer);
    on_.ops.forward_silu(on_.device, on_.type, w, residual(head, layer), y_[j].data(),
                         w.masters + bias_at(head, layer), y_[j].data(), n_padded_, z_[j].f32(),
                         y_[j + 1].data());
  }
}

// dy_ holds the gradient of the last layer's output.
void MedusaPass::backward(const TrainWeights& w, int head, float* gradient) {
  const auto& [device, ops, type] = on_;
  const std::int64_t n = std::int64_t{n_padded_} * c_.dim;
  for (int layer = c_.n_layers - 1; layer >= 0; layer--) {
    const auto j = static_cast<std::size_t>(layer);
    ops.silu_backward(device, type, z_[j].f32(), dy_.data(), dz_.data(), n);
    ops.backward_weight(device, type, w, residual(head, layer), dz_.data(), y_[j].data(), n_padded_,
                        gradient);
    ops.column_sums(device, type, dz_.data(), gradient + bias_at(head, layer), n_padded_, c_.dim);
    if (layer == 0) return;
    ops.backward_input(device, type, w, residual(head, layer), dz_.data(), n_padded_, dx_.data());
    ops.add(device, type, dx_.data(), dy_.data(), n);
  }
}

void MedusaPass::forward_backward(const TrainWeights& w,
                                  std::span<const HeadsText> texts,
                                  const HeadsLoss& loss,
                                  float* gradient,
                                  const HeadsLosses& losses) {
  read(texts);
  if (n_ == 0) return;
  std::vector<float> weights;
  for (int head = 0; head < c_.n_heads; head++)
    for (std::int64_t i = first_of(head); i < first_of(head + 1); i++)
      weights.push_back(targets_[static_cast<std::size_t>(i)] < 0
                            ? 0.0f
                            : loss.of_head[static_cast<std::size_t>(head)]);
  on_.upload(weight_, weights);
  for (int head = 0; head < c_.n_heads; head++) {
    forward(w, head);
    vocab_.forward_backward(m_.output_weights(w, of_target_.output), m_.output_of(head),
                            y_.back().data(), n_padded_, ids(target_) + first_of(head),
                            weight_.f32() + first_of(head), dy_.data(),
                            c_.target_output ? nullptr : gradient, losses.loss_of(head));
    backward(w, head, gradient);
  }
}

void MedusaPass::rank(const TrainWeights& w,
                      std::span<const HeadsText> texts,
                      int n_valid,
                      bool /*self_fed*/,
                      MeasuredRanks& ranks) {
  read(texts);
  if (n_ == 0) return;
  auto* device_ranks = static_cast<std::int32_t*>(rank_.data());
  for (int head = 0; head < c_.n_heads; head++) {
    forward(w, head);
    vocab_.logits(m_.output_weights(w, of_target_.output), m_.output_of(head), y_.back().data(), n_,
                  [&](int first, int n, const float* logits) {
                    const std::int64_t at = first_of(head) + first;
                    on_.ops.target_ranks(on_.device, logits, ids(target_) + at, device_ranks + at,
                                         n, c_.n_outputs(), valid_outputs(c_, n_valid));
                  });
  }
  std::vector<std::int32_t> found(targets_.size());
  on_.device.ops().download(on_.device, found.data(), device_ranks, 4 * std::ssize(found));
  std::vector<int> of_place;
  for (int row = 0; row < n_; row++) {
    of_place.clear();
    for (int head = 0; head < c_.n_heads; head++) {
      const auto i = static_cast<std::size_t>(first_of(head) + row);
      if (targets_[i] == -1) break;  // the text has ended
      of_place.push_back(found[i] > 0 ? found[i] - 1 : kRanks);
    }
    ranks.add_place(of_place);
  }
}

}  // namespace

std::unique_ptr<HeadsPass> make_medusa_pass(const TrainDevice& on,
                                            const HeadsConfig& config,
                                            const TargetMatrices& target,
                                            int max_rows) {
  return std::make_unique<MedusaPass>(on, config, target, max_rows);
}

}  // namespace engine
