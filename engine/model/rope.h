// Rotary position embedding: the angles of every position, computed in doubles.
//   source  Su et al. 2021 (RoFormer); linear: Chen et al. 2023; dynamic: NTK-aware scaling; yarn:
//           Peng et al. 2023; llama3: the Llama 3.1 model card. Formulas agree with transformers'.
//   angle   position * frequency, both as doubles, rounded to f32 after cosine and sine
//   length  dynamic and longrope choose frequencies by the length of the sequence. All positions of
//           a prompt of L tokens use the frequencies of length L. A later token at position p uses
//           those of length p + 1. Cached keys keep their angles, as in a greedy generation of
//           transformers. The angles of a position therefore depend only on the position and the
//           length of the prompt, not on the decoder
#pragma once

#include <span>
#include <vector>

#include "engine/checkpoint/config.h"
#include "kernels/device.h"

namespace engine {

/// [head_dim / 2] the angle per position of each pair of a head, in radians. The pairs of rotary_dim come first; the
/// others have 0.
/// @param seq_len  length of the sequence; only dynamic and longrope use it
std::vector<double> rope_frequencies(const RopeConfig& rope, int head_dim, int seq_len);

/// The factor of cosines and sines: 1 except for yarn and longrope.
double rope_attention_factor(const RopeConfig& rope);

/// A table of cosines and sines on a device, [n_positions, head_dim / 2, 2], followed by additional
/// rows for the prompts of a forward. The table grows with the longest sequence.
class RopeTable {
 public:
  /// @param device                outlives the table
  /// @param original_max_seq_len  used if rope.original_max_seq_len is 0
  RopeTable(kernels::Device& device,
            const RopeConfig& rope,
            int head_dim,
            int original_max_seq_len);

  /// Adds positions up to n. Existing rows keep their bits.
  void reserve(int n);
  /// Returns the table row for each row of a forward. This is row pos[i], except for tokens of a
  /// prompt that is longer than the original length: for these the call adds rows, which are valid
  /// until the next call.
  /// @param pos       [n] below n_positions()
  /// @param n_prompt  [n] length of the prompt that the position may belong to; 0: none
  std::span<const int> rows_of(std::span<const int> pos, std::span<const int> n_prompt);
  /// RopeConfig::rotation_key().
  int rotation_key(int n_prompt) const { return rope_.rotation_key(n_prompt); }
  /// The table on the device.
  const float* data() const { return table_.f32(); }
  /// Positions in the table.
  int n_positions() const { return n_positions_; }

 private:
  void fill(int pos, int seq_len, float* row) const;  // row: [head_dim / 2, 2]
  void make_buffer(int n_positions, int n_extra);

  kernels::Device& device_;  // owned by the program, outlives every model
  RopeConfig rope_;
  int head_dim_;
  std::vector<double> frequencies_;  // of the original length
  double factor_;
  int n_positions_ = 0;
  std::vector<float> host_;   // rows of the positions
  int n_extra_ = 0;           // number of additional rows that the table has room for
  std::vector<float> extra_;  // the rows that the last call of rows_of() added
  std::vector<int> rows_;
  kernels::DeviceBuffer table_;
};

}  // namespace engine
