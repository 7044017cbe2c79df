#include "engine/train/core/vocab_rows.h"

#include <algorithm>

namespace engine {
namespace {

using kernels::TrainMatrix;
using kernels::TrainWeights;

int rows_in(std::int64_t logit_bytes, int vocab_size, int max_rows) {
  return static_cast<int>(std::clamp<std::int64_t>(logit_bytes / 4 / vocab_size, 1, max_rows));
}

}  // namespace

VocabRows::VocabRows(const TrainDevice& on, int vocab_size, int max_rows, std::int64_t logit_bytes)
    : on_(on),
      vocab_(vocab_size),
      logit_rows_(on.ops.logit_rows ? on.ops.logit_rows
                                    : rows_in(logit_bytes, vocab_size, max_rows)),
      gradient_rows_(on.ops.gradient_rows ? on.ops.gradient_rows : logit_rows_),
      logits_(on.f32(std::int64_t{logit_rows_} * vocab_size, "logits")),
      d_logits_(on.typed(std::int64_t{gradient_rows_} * vocab_size, "the logits' gradient")) {}

void VocabRows::forward_backward(const TrainWeights& w,
                                 const TrainMatrix& m,
                                 const void* x,
                                 int n_rows,
                                 float* known_logits,
                                 const Losses& losses,
                                 void* dx,
                                 float* gradient) {
  const auto& [device, ops, type] = on_;
  const std::int64_t element = kernels::bytes_of(type), row_bytes = element * m.n_in;
  for (int chunk = 0; chunk < n_rows; chunk += gradient_rows_) {
    const int n_chunk = std::min(gradient_rows_, n_rows - chunk);
    const char* from = static_cast<const char*>(x) + chunk * row_bytes;
    for (int first = 0; first < n_chunk; first += logit_rows_) {
      const int n = std::min(logit_rows_, n_chunk - first);
      float* logits = logits_.f32();
      if (known_logits)
        logits = known_logits + std::int64_t{chunk + first} * vocab_;
      else
        ops.forward_f32(device, type, w, m, from + first * row_bytes, n, logits, false);
      losses(chunk + first, n, logits,
             static_cast<char*>(d_logits_.data()) + element * first * vocab_);
    }
    ops.backward_input(device, type, w, m, d_logits_.data(), n_chunk,
                       static_cast<char*>(dx) + chunk * row_bytes);
    if (gradient)
      ops.backward_weight(device, type, w, m, d_logits_.data(), from, n_chunk, gradient);
  }
}

void VocabRows::forward_backward(const TrainWeights& w,
                                 const TrainMatrix& m,
                                 const void* x,
                                 int n_rows,
                                 const std::int32_t* target,
                                 const float* weight,
                                 void* dx,
                                 float* gradient,
                                 float* loss) {
  const auto losses = [&](int first, int n, float* logits, void* d_logits) {
    on_.ops.cross_entropy(on_.device, on_.type, logits, target + first, weight + first, d_logits,
                          loss + first, n, vocab_);
  };
  forward_backward(w, m, x, n_rows, nullptr, losses, dx, gradient);
}

void VocabRows::logits(const TrainWeights& w,
                       const TrainMatrix& m,
                       const void* x,
                       int n_rows,
                       const std::function<void(int first, int n, const float* logits)>& rows) {
  const std::int64_t row_bytes = std::int64_t{kernels::bytes_of(on_.type)} * m.n_in;
  for (int first = 0; first < n_rows; first += logit_rows_) {
    const int n = std::min(logit_rows_, n_rows - first);
    on_.ops.forward_f32(on_.device, on_.type, w, m, static_cast<const char*>(x) + first * row_bytes,
                        on_.padded(n), logits_.f32(), false);
    rows(first, n, logits_.f32());
  }
}

}  // namespace engine
