// Rows of draft heads: upload, download, ranking and SiLU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/ranked.h"
#include "kernels/device.h"

namespace engine {

/// A copy of `values` on the device.
kernels::DeviceBuffer on_device(kernels::Device& device, std::span<const float> values);

/// Downloads the first `n` elements of each row, with one wait.
/// @param rows  [n_rows, stride] on the device
/// @return      [n_rows, n]
std::vector<float> download_rows(
    kernels::Device& device, const float* rows, std::int64_t stride, int n_rows, int n);

/// The k most likely tokens of each row. The device ranks them and only they are downloaded.
/// @param logits   [n_rows, n_vocab] on the device
/// @param n_valid  only tokens below n_valid are ranked
/// @return         [n_rows] at most k tokens each; none for a row with a logit that is NaN or +inf
std::vector<RankedTokens> ranked_rows(
    kernels::Device& device, const float* logits, int n_rows, int n_vocab, int n_valid, int k);

/// SiLU of rows, computed as SwiGLU with a second factor of 1.
class SiluRows {
 public:
  /// @param device  outlives the rows
  SiluRows(kernels::Device& device, int n_rows, int dim);
  /// Input row r, [dim]; write it before apply().
  float* row(int r) { return in_.f32() + r * stride(); }
  /// Elements between input rows.
  std::int64_t stride() const { return 2 * std::int64_t{dim_}; }
  /// SiLU of the first n rows on the device, [n, dim].
  const float* apply(int n);
  /// Applies SiLU to the first n rows and multiplies them by a matrix with `dim` inputs, in one
  /// fused operation.
  void apply_and_multiply(int n, const kernels::Projection& to);

 private:
  kernels::Device& device_;
  int dim_;
  kernels::DeviceBuffer in_;   // [n_rows, 2 dim] the right half is ones
  kernels::DeviceBuffer out_;  // [n_rows, dim]
};

}  // namespace engine
