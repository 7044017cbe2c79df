// Medusa's heads on a CUDA device: MedusaPass of medusa_pass.cpp. Rows are the places of the texts,
// one after the other; a head's rows do not depend on another head's.
#include <string>

#include "engine/train/gpu/heads_pass.h"
#include "engine/train/gpu/linear.h"
#include "engine/train/gpu/vocab_rows.h"
#include "engine/base/types.h"

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::DType;

class GpuMedusaPass final : public GpuHeadsPass {
 public:
  GpuMedusaPass(const GpuArrays& arrays, const HeadsConfig& config)
      : device_(arrays.device),
        kernels_(kernels::train_kernels(device_)),
        linear_(device_, arrays.type),
        vocab_(device_, arrays.type, config.vocab_size, arrays.rows),
        c_(config),
        layout_(config),
        type_(arrays.type),
        max_rows_(arrays.rows),
        states_(GpuArrays{device_, DType::BF16, max_rows_}.typed(c_.dim, kStatesOfTarget)),
        target_(arrays.f32(c_.n_heads, kRowsOfHeads)),
        weight_(arrays.f32(c_.n_heads, kRowsOfHeads)),
        rank_(arrays.f32(c_.n_heads, kRowsOfHeads)),
        dy_(arrays.typed(c_.dim, kRowsOfHeads)),
        dz_(arrays.typed(c_.dim, kRowsOfHeads)),
        dx_(arrays.typed(c_.dim, kRowsOfHeads)) {
    for (int layer = 0; layer < c_.n_layers; layer++)
      z_.push_back(arrays.f32(c_.dim, kRowsOfHeads));
    for (int layer = 0; layer <= c_.n_layers; layer++)
      y_.push_back(arrays.typed(c_.dim, kRowsOfHeads));
  }

  void forward_backward(const GpuWeights& w,
                        std::span<const HeadsText> texts,
                        const HeadsLoss& loss,
                        float* gradient,
                        const GpuHeadsLosses& losses) override {
    read(texts);
    if (n_ == 0) return;
    std::vector<float> weights;
    for (int head = 0; head < c_.n_heads; head++)
      for (int row = 0; row < n_; row++)
        weights.push_back(target(head, row) < 0 ? 0.0f
                                                : loss.of_head[static_cast<std::size_t>(head)]);
    upload(device_, weight_, weights);
    for (int head = 0; head < c_.n_heads; head++) {
      forward(w, head);
      vocab_.forward_backward(w, output(head), y_.back().data(), n_, target_there(head),
                              weight_.f32() + std::int64_t{head} * n_, dy_.data(), gradient,
                              losses.loss_of(head));
      backward(w, head, gradient);
    }
  }

  void rank(const GpuWeights& w,
            std::span<const HeadsText> texts,
            int n_valid,
            HeadsRanks& ranks) override {
    read(texts);
    if (n_ == 0) return;
    auto* there = static_cast<std::int32_t*>(rank_.data());
    for (int head = 0; head < c_.n_heads; head++) {
      forward(w, head);
      vocab_.logits(w, output(head), y_.back().data(), n_,
                    [&](int first, int n, const float* logits) {
                      kernels_.target_ranks(device_, logits, target_there(head) + first,
                                            there + std::int64_t{head} * n_ + first, n,
                                            c_.vocab_size, n_valid);
                    });
    }
    std::vector<std::int32_t> found(targets_.size());
    device_.ops().download(device_, found.data(), there, 4 * std::ssize(found));
    for (std::size_t i = 0; i < found.size(); i++)
      if (found[i] > 0) ranks.add(static_cast<int>(i) / n_, found[i] - 1);
  }

 private:
  // Hidden states and what each head is asked for: -1 where there is no such token.
  void read(std::span<const HeadsText> texts) {
    n_ = 0;
    for (const HeadsText& text : texts) n_ += text.n_places(0);
    ensure(n_ <= max_rows_, "rows of a pass fit");
    hidden_.clear();
    for (const HeadsText& text : texts) {
      const auto from = text.hidden.begin() + std::int64_t{text.n_prompt - 1} * c_.dim;
      hidden_.insert(hidden_.end(), from, from + std::int64_t{text.n_places(0)} * c_.dim);
    }
    targets_.clear();
    for (int head = 0; head < c_.n_heads; head++)
      for (const HeadsText& text : texts)
        for (int i = 0; i < text.n_places(0); i++)
          targets_.push_back(
              i < text.n_places(head)
                  ? text.tokens[static_cast<std::size_t>(text.n_prompt + 1 + i + head)]
                  : -1);
    if (n_ == 0) return;
    upload(device_, states_, hidden_);
    upload(device_, target_, targets_);
    kernels_.copy_rows(device_, DType::BF16, states_.data(), nullptr, type_, y_[0].data(), nullptr,
                       c_.dim, n_, c_.dim);
  }

  void forward(const GpuWeights& w, int head) {
    for (int layer = 0; layer < c_.n_layers; layer++) {
      const auto j = static_cast<std::size_t>(layer);
      linear_.forward_f32(w, residual(head, layer), y_[j].data(), n_, z_[j].f32(), false);
      kernels_.silu(device_, type_, z_[j].f32(), w.masters + bias_at(head, layer), y_[j].data(),
                    y_[j + 1].data(), n_, c_.dim);
    }
  }

  // dy_ holds the gradient of the last layer's output.
  void backward(const GpuWeights& w, int head, float* gradient) {
    const std::int64_t n = std::int64_t{n_} * c_.dim;
    for (int layer = c_.n_layers - 1; layer >= 0; layer--) {
      const auto j = static_cast<std::size_t>(layer);
      const GpuMatrix m = residual(head, layer);
      kernels_.silu_backward(device_, type_, z_[j].f32(), dy_.data(), dz_.data(), n);
      linear_.backward_weight(m, dz_.data(), y_[j].data(), n_, gradient);
      kernels_.column_sums(device_, type_, dz_.data(), gradient + bias_at(head, layer), n_, c_.dim);
      if (layer == 0) return;
      linear_.backward_input(w, m, dz_.data(), n_, dx_.data());
      kernels_.add(device_, type_, dx_.data(), dy_.data(), n);
    }
  }

  TokenId target(int head, int row) const {
    return targets_[static_cast<std::size_t>(head) * static_cast<std::size_t>(n_) +
                    static_cast<std::size_t>(row)];
  }
  const std::int32_t* target_there(int head) const {
    return static_cast<const std::int32_t*>(target_.data()) + std::int64_t{head} * n_;
  }
  std::string name(int head, int layer) const {
    return std::to_string(head) + "." + std::to_string(layer);
  }
  std::int64_t bias_at(int head, int layer) const {
    return layout_.at(name(head, layer) + ".linear.bias");
  }
  GpuMatrix residual(int head, int layer) const {
    return {layout_.at(name(head, layer) + ".linear.weight"), c_.dim, c_.dim};
  }
  GpuMatrix output(int head) const {
    return {layout_.at(name(head, c_.n_layers) + ".weight"), c_.vocab_size, c_.dim};
  }

  kernels::Device& device_;
  const kernels::TrainKernels& kernels_;
  const GpuLinear linear_;
  GpuVocabRows vocab_;
  const HeadsConfig c_;
  const HeadsLayout layout_;
  const DType type_;
  const int max_rows_;
  int n_ = 0;                            // rows
  std::vector<Bf16> hidden_;             // [n, dim], on their way up
  std::vector<TokenId> targets_;         // [n_heads, n]
  DeviceBuffer states_;                  // [n, dim] bf16
  DeviceBuffer target_, weight_, rank_;  // [n_heads, n]
  std::vector<DeviceBuffer> z_;          // [layer][n, dim] before the SiLU
  std::vector<DeviceBuffer> y_;          // [layer + 1][n, dim]; [0] the hidden states
  DeviceBuffer dy_, dz_, dx_;            // [n, dim]
};

}  // namespace

std::unique_ptr<GpuHeadsPass> make_gpu_medusa_pass(const GpuArrays& arrays,
                                                   const HeadsConfig& config) {
  return std::make_unique<GpuMedusaPass>(arrays, config);
}

}  // namespace engine
