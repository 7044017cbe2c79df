// Device memory for the activations of one forward. The buffers grow to the size of the largest
// forward and keep it.
#pragma once

#include <algorithm>

#include "engine/checkpoint/config.h"
#include "kernels/device.h"

namespace engine {

/// Buffers of a forward, [rows, width] row-major, f32 unless noted.
class Activations {
 public:
  kernels::DeviceBuffer x;         // [rows, dim] the residual stream
  kernels::DeviceBuffer normed;    // [rows, dim]
  kernels::DeviceBuffer qkv;       // [rows, (n_heads + 2 n_kv_heads) head_dim]
  kernels::DeviceBuffer attended;  // [rows, n_heads head_dim]
  kernels::DeviceBuffer gate_up;   // [rows, 2 hidden_dim]
  kernels::DeviceBuffer gated;     // [rows, hidden_dim]
  kernels::DeviceBuffer logits;    // [rows with logits, n_outputs]

  /// Makes room for n_rows rows, of which n_logit_rows have logits. Does not keep the contents.
  /// @throws Error(Resources)  if the device has no room
  void reserve(kernels::Device& device, const ModelConfig& config, int n_rows, int n_logit_rows);
  /// [rows] int: for each row, its row in the rotation table.
  int* rope_rows() const { return static_cast<int*>(rope_rows_.data()); }
  /// [rows] int: the position of each row, if local layers have a rotation table of their own.
  int* positions() const { return static_cast<int*>(positions_.data()); }

 private:
  kernels::DeviceBuffer rope_rows_, positions_;
  int n_rows_ = 0, n_logit_rows_ = 0;  // capacity
};

inline void Activations::reserve(kernels::Device& device,
                                 const ModelConfig& config,
                                 int n_rows,
                                 int n_logit_rows) {
  const auto grown = [](int wanted, int had) { return std::max({wanted, 2 * had, 16}); };
  const auto make = [&device](kernels::DeviceBuffer& buffer, std::int64_t n_floats,
                              const char* what = "a step's rows") {
    buffer = kernels::DeviceBuffer();
    buffer =
        kernels::DeviceBuffer(device, n_floats * static_cast<std::int64_t>(sizeof(float)), what);
  };
  if (n_rows > n_rows_) {
    const std::int64_t n = grown(n_rows, n_rows_);
    n_rows_ = 0;
    make(x, n * config.dim);
    make(normed, n * config.dim);
    make(qkv, n * (config.n_heads + 2 * config.n_kv_heads) * config.head_dim);
    make(attended, n * config.n_heads * config.head_dim);
    make(gate_up, n * 2 * config.hidden_dim);
    make(gated, n * config.hidden_dim);
    make(rope_rows_, n);
    if (config.local_rope) make(positions_, n);
    n_rows_ = static_cast<int>(n);
  }
  if (n_logit_rows > n_logit_rows_) {
    const std::int64_t n = grown(n_logit_rows, n_logit_rows_);
    n_logit_rows_ = 0;
    make(logits, n * config.n_outputs(), "a step's logits");
    n_logit_rows_ = static_cast<int>(n);
  }
}

}  // namespace engine
