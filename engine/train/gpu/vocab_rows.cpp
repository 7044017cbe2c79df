#include "engine/train/gpu/vocab_rows.h"

#include <algorithm>

namespace engine {

GpuVocabRows::GpuVocabRows(kernels::Device& device,
                           kernels::DType type,
                           int vocab_size,
                           int max_rows,
                           std::int64_t logit_bytes)
    : device_(device),
      kernels_(kernels::train_kernels(device)),
      linear_(device, type),
      type_(type),
      vocab_(vocab_size),
      rows_at_once_(
          static_cast<int>(std::clamp<std::int64_t>(logit_bytes / 4 / vocab_size, 1, max_rows))) {
  const std::int64_t n = std::int64_t{rows_at_once_} * vocab_size;
  logits_ = kernels::DeviceBuffer(device, 4 * n, "logits");
  d_logits_ = kernels::DeviceBuffer(device, kernels::bytes_of(type) * n, "the logits' gradient");
}

void GpuVocabRows::forward_backward(const GpuWeights& w,
                                    const GpuMatrix& m,
                                    const void* x,
                                    int n_rows,
                                    const float* known_logits,
                                    const Losses& losses,
                                    void* dx,
                                    float* gradient) {
  const std::int64_t row_bytes = std::int64_t{kernels::bytes_of(type_)} * m.n_in;
  for (int first = 0; first < n_rows; first += rows_at_once_) {
    const int n = std::min(rows_at_once_, n_rows - first);
    const void* from = static_cast<const char*>(x) + first * row_bytes;
    if (!known_logits) linear_.forward_f32(w, m, from, n, logits_.f32(), false);
    losses(first, n, known_logits ? known_logits + std::int64_t{first} * vocab_ : logits_.f32(),
           d_logits_.data());
    linear_.backward_input(w, m, d_logits_.data(), n, static_cast<char*>(dx) + first * row_bytes);
    linear_.backward_weight(m, d_logits_.data(), from, n, gradient);
  }
}

void GpuVocabRows::forward_backward(const GpuWeights& w,
                                    const GpuMatrix& m,
                                    const void* x,
                                    int n_rows,
                                    const std::int32_t* target,
                                    const float* weight,
                                    void* dx,
                                    float* gradient,
                                    float* loss) {
  const auto losses = [&](int first, int n, const float* logits, void* d_logits) {
    kernels_.cross_entropy(device_, type_, logits, target + first, weight + first, d_logits,
                           loss + first, n, vocab_);
  };
  forward_backward(w, m, x, n_rows, nullptr, losses, dx, gradient);
}

void GpuVocabRows::logits(const GpuWeights& w,
                          const GpuMatrix& m,
                          const void* x,
                          int n_rows,
                          const std::function<void(int first, int n, const float* logits)>& rows) {
  const std::int64_t row_bytes = std::int64_t{kernels::bytes_of(type_)} * m.n_in;
  for (int first = 0; first < n_rows; first += rows_at_once_) {
    const int n = std::min(rows_at_once_, n_rows - first);
    linear_.forward_f32(w, m, static_cast<const char*>(x) + first * row_bytes, n, logits_.f32(),
                        false);
    rows(first, n, logits_.f32());
  }
}

}  // namespace engine
