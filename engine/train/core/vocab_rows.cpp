#include "engine/train/core/vocab_rows.h"

#include <algorithm>
#include <cstring>

namespace engine {
namespace {

// Rows whose logits are alive together, and rows whose gradients of logits are.
constexpr int kLogitRows = 64;
constexpr int kHeadRows = 512;

}  // namespace

template <typename T>
VocabRows<T>::VocabRows(LinearMath<T>& math, const TrainTable& table, int vocab_size)
    : math_(math), ops_(table.ops<T>()), vocab_(vocab_size) {
  logits_.resize(static_cast<std::size_t>(kLogitRows) * vocab_size);
  d_logits_.resize(static_cast<std::size_t>(kHeadRows) * vocab_size);
}

template <typename T>
void VocabRows<T>::forward_backward(const PackedLinear<T>& w,
                                    const T* x,
                                    int width,
                                    int n,
                                    const float* known_logits,
                                    const Losses& losses,
                                    T* dx,
                                    float* dw) {
  for (int chunk = 0; chunk < n; chunk += kHeadRows) {
    const int n_chunk = std::min(kHeadRows, n - chunk);
    const T* from = x + std::int64_t{chunk} * width;
    for (int first = 0; first < n_chunk; first += kLogitRows) {
      const int n_first = std::min(kLogitRows, n_chunk - first);
      if (known_logits) {
        std::memcpy(logits_.data(), known_logits + std::int64_t{chunk + first} * vocab_,
                    sizeof(float) * static_cast<std::size_t>(n_first) * vocab_);
      } else {
        math_.forward_f32(w, from + std::int64_t{first} * width, n_first, logits_.data(), false);
      }
      losses(chunk + first, n_first, logits_.data(),
             d_logits_.data() + std::int64_t{first} * vocab_);
    }
    math_.backward_input(w, d_logits_.data(), n_chunk, dx + std::int64_t{chunk} * width);
    math_.backward_weight(w, d_logits_.data(), from, n_chunk, dw);
  }
}

template <typename T>
void VocabRows<T>::forward_backward(const PackedLinear<T>& w,
                                    const T* x,
                                    int width,
                                    std::span<const TokenId> target,
                                    std::span<const float> weight,
                                    T* dx,
                                    float* dw,
                                    std::span<float> loss) {
  const auto losses = [&](int first, int n, float* logits, T* d_logits) {
    ops_.cross_entropy(logits, target.data() + first, weight.data() + first, d_logits,
                       loss.data() + first, n, vocab_);
  };
  forward_backward(w, x, width, static_cast<int>(target.size()), nullptr, losses, dx, dw);
}

template <typename T>
void VocabRows<T>::logits(const PackedLinear<T>& w,
                          const T* x,
                          int width,
                          int n,
                          const std::function<void(int, std::span<const float>)>& row) {
  for (int first = 0; first < n; first += kLogitRows) {
    const int n_first = std::min(kLogitRows, n - first);
    math_.forward_f32(w, x + std::int64_t{first} * width, padded_rows(n_first), logits_.data(),
                      false);
    for (int i = 0; i < n_first; i++) {
      row(first + i, std::span(logits_).subspan(static_cast<std::size_t>(i) * vocab_,
                                                static_cast<std::size_t>(vocab_)));
    }
  }
}

int rank_of(std::span<const float> logits, TokenId token) {
  const auto at = static_cast<std::size_t>(token);
  int better = 0;
  for (std::size_t i = 0; i < logits.size(); i++)
    better += logits[i] > logits[at] || (logits[i] == logits[at] && i < at);
  return better;
}

template class VocabRows<float>;
template class VocabRows<Bf16>;

}  // namespace engine
