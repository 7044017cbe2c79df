// Rows that go between the host and a device, as draft heads need them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/ranked.h"
#include "kernels/device.h"

namespace engine {

/// A copy of `values` on the device.
kernels::DeviceBuffer on_device(kernels::Device& device, std::span<const float> values);

/// The first `n` of each row, with one wait for all of them.
/// @param rows  [n_rows, stride] on the device
/// @return      [n_rows, n]
std::vector<float> download_rows(
    kernels::Device& device, const float* rows, std::int64_t stride, int n_rows, int n);

/// The k largest logits of each row, ranked on the device: nothing else comes over.
/// @param logits   [n_rows, n_vocab] on the device
/// @param n_valid  tokens that may be ranked
/// @return         [n_rows] fewer than k tokens where there are no more, none where one of the
///                 logits is NaN or +inf
std::vector<RankedTokens> ranked_rows(
    kernels::Device& device, const float* logits, int n_rows, int n_vocab, int n_valid, int k);

/// SiLU of rows: the gated product of a feed-forward layer, silu(x) * y, whose y is one.
class SiluRows {
 public:
  SiluRows(kernels::Device& device, int n_rows, int dim);
  /// Where row r is to be written, [dim]; rows lie stride() apart.
  float* row(int r) { return in_.f32() + r * stride(); }
  std::int64_t stride() const { return 2 * std::int64_t{dim_}; }
  /// SiLU of the first n rows on the device, [n, dim].
  const float* apply(int n);

 private:
  kernels::Device& device_;
  int dim_;
  kernels::DeviceBuffer in_;   // [n_rows, 2 dim] the right half is ones
  kernels::DeviceBuffer out_;  // [n_rows, dim]
};

}  // namespace engine
