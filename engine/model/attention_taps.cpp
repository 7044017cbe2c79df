#include "engine/model/attention_taps.h"

#include <algorithm>

namespace engine {

AttentionTaps::AttentionTaps(kernels::Device& device, int n_layers)
    : device_(device), n_layers_(n_layers), n_tapped_(std::max(1, n_layers / 4)) {}

void AttentionTaps::begin(std::span<const BatchItem> items, const ForwardPlan& plan) {
  taps_.clear();
  std::int64_t n_floats = 0;
  for (std::size_t i = 0; i < items.size(); i++) {
    if (items[i].attention_of < 0 || !items[i].pick_rows) continue;
    const int row = plan.row_begin(i) + items[i].attention_of;
    const std::size_t n_chain = plan.chain(row).size();
    std::vector<float> of_layers(n_chain * static_cast<std::size_t>(n_tapped_));
    taps_.push_back({row, n_floats, n_chain, std::move(of_layers)});
    n_floats += static_cast<std::int64_t>(taps_.back().of_layers.size());
  }
  const std::int64_t bytes = n_floats * static_cast<std::int64_t>(sizeof(float));
  if (bytes <= on_device_.bytes()) return;
  on_device_ = kernels::DeviceBuffer();
  on_device_ = kernels::DeviceBuffer(device_, 2 * bytes, "recorded attention");
}

void AttentionTaps::record(int l,
                           const kernels::KvLayer& layer,
                           const kernels::RowsPlan& plan,
                           const float* q,
                           std::int64_t q_stride,
                           const void* staged_k,
                           int n_heads,
                           const kernels::Scores& scores) {
  const std::int64_t nth = l - (n_layers_ - n_tapped_);
  for (const Tap& tap : taps_)
    device_.ops().attention_weights(
        device_, layer, plan, tap.row, q + tap.row * q_stride, staged_k, n_heads, scores,
        on_device_.f32() + tap.begin + nth * static_cast<std::int64_t>(tap.n_chain));
}

void AttentionTaps::download() {
  for (Tap& tap : taps_) {
    row_to_.clear();
    for (std::size_t at = 0; at < tap.of_layers.size(); at += tap.n_chain)
      row_to_.push_back(&tap.of_layers[at]);
    const auto row_bytes = static_cast<std::int64_t>(tap.n_chain * sizeof(float));
    device_.ops().download_rows(device_, row_to_.data(), on_device_.f32() + tap.begin, row_bytes,
                                row_bytes, n_tapped_);
  }
}

std::vector<float> AttentionTaps::weights_of(std::size_t item_index,
                                             const BatchItem& item,
                                             const ForwardPlan& plan) const {
  std::vector<float> weights(item.tree->token.size());
  const int row_begin = plan.row_begin(item_index), row = row_begin + item.attention_of;
  const auto tap = std::ranges::find(taps_, row, &Tap::row);
  const auto chain = plan.chain(row);
  for (std::size_t at = 0; at < tap->of_layers.size(); at += chain.size())
    for (std::size_t j = 0; j < chain.size(); j++)
      weights[static_cast<std::size_t>(chain[j] - row_begin)] +=
          tap->of_layers[at + j] / static_cast<float>(n_tapped_);
  return weights;
}

}  // namespace engine
