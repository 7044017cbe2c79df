// Rows of draft heads: upload, download, ranking and SiLU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/checkpoint/heads_files.h"
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

/// Maps the rows of an output matrix to tokens.
class OutputTokens {
 public:
  /// @param n_tokens  tokens that may be proposed: ids below it
  OutputTokens(const HeadsConfig& config, int n_tokens);
  /// Number of tokens that may be proposed.
  int n_tokens() const { return n_tokens_; }
  /// Rows of the output matrix.
  int n_rows() const { return n_rows_; }
  /// Downloads logits; those of tokens without a row are -inf.
  /// @param logits  [n, n_rows()] on the device
  /// @return        [n, n_tokens()]
  std::vector<float> download(kernels::Device& device, const float* logits, int n) const;
  /// The k most likely tokens of each row. The device ranks them and only they are downloaded.
  /// @param logits  [n, n_rows()] on the device
  /// @return        [n] at most k tokens each; none for a row with a logit that is NaN or +inf
  std::vector<RankedTokens> ranked(kernels::Device& device,
                                   const float* logits,
                                   int n,
                                   int k) const;

 private:
  int n_tokens_, n_rows_;
  int n_valid_;                  // rows of tokens that may be proposed; they precede the others
  std::vector<TokenId> tokens_;  // [n_rows] ascending; empty: row i is token i
};

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
