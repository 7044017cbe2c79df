// Rotary position embedding: the angles of every position, from doubles.
//   source  Su et al. 2021 (RoFormer); linear: Chen et al. 2023; dynamic: NTK-aware scaling; yarn:
//           Peng et al. 2023; llama3: the Llama 3.1 model card. Formulas agree with transformers'.
//   angle   position * frequency, both as doubles, rounded to f32 after cosine and sine
//   dynamic the base of a row is that of a text which ends at it, so a row depends on its position
//           alone. That is what transformers computes when it feeds token by token; a prompt longer
//           than the original length, fed at once, gets there the base of its last token instead.
#pragma once

#include <vector>

#include "engine/model/config.h"
#include "kernels/device.h"

namespace engine {

/// Turns per position of each pair of a head, [head_dim / 2], in radians.
/// @param seq_len  dynamic only: the length of the text whose last row asks
std::vector<double> rope_frequencies(const RopeConfig& rope, int head_dim, int seq_len);

/// What cosines and sines are multiplied by: 1 but for yarn.
double rope_attention_factor(const RopeConfig& rope);

/// Cosines and sines on a device, [n_positions, head_dim / 2, 2]; grows when longer texts come.
class RopeTable {
 public:
  /// @param original_max_seq_len  what rope.original_max_seq_len says, or the model's where that is
  /// 0
  RopeTable(kernels::Device& device,
            const RopeConfig& rope,
            int head_dim,
            int original_max_seq_len);

  /// Makes positions [0, n) present. Rows already there keep their bits.
  void reserve(int n);
  const float* data() const { return table_.f32(); }
  int n_positions() const { return n_positions_; }

 private:
  void fill(int pos, float* row) const;  // row: [head_dim / 2, 2]

  kernels::Device& device_;  // owned by the program, outlives every model
  RopeConfig rope_;
  int head_dim_;
  std::vector<double> frequencies_;  // of the original length
  double factor_;
  int n_positions_ = 0;
  std::vector<float> host_;
  kernels::DeviceBuffer table_;
};

}  // namespace engine
