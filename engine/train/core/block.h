// One LLaMA block for training: attention and feed-forward over the rows of a pass. The forward
// keeps every array that the backward needs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/train/core/parameters.h"
#include "engine/train/core/train_device.h"
#include "engine/train/ops/train_ops.h"

namespace engine {

/// Positions and attention spans of the rows of a pass. Rows outside every segment attend to
/// nothing.
struct BlockRows {
  std::span<const std::int32_t> pos;  // [n_rows]
  std::span<const Segment> segments;
  std::span<const RowView> views;  // [n_rows], or empty: causal within the segment
  /// Number of rows.
  int n_rows() const { return static_cast<int>(pos.size()); }
};
/// Attention span of each row, in rows of the pass.
std::vector<kernels::AttentionSpan> spans_of(const BlockRows& rows);

/// The shape of a model's attention for a pass of n rows.
kernels::AttentionRows attention_rows(const ModelConfig& config, int n_rows = 0);
/// The matrices of a block.
struct BlockMatrices {
  /// @param at  the block's weights
  BlockMatrices(const ModelConfig& config, const LayerAt& at);
  kernels::TrainMatrix qkv, attn_out, gate_up, down;
};

/// Arrays that the forward of one block keeps for its backward.
struct KeptBlock {
  /// Allocates all its memory.
  KeptBlock(const TrainDevice& on, const ModelConfig& config, int max_rows);
  kernels::DeviceBuffer x_attn, x_mlp;  // [rows, dim] f32 residual stream before either norm
  kernels::DeviceBuffer r_attn, r_mlp;  // [rows] f32 scales of the norms
  kernels::DeviceBuffer h_attn, h_mlp;  // [rows, dim] normed
  kernels::DeviceBuffer qkv;            // [rows, qkv_width], rotated
  kernels::DeviceBuffer attended;       // [rows, out_width]
  kernels::DeviceBuffer lse;            // [rows, n_heads] f32
  kernels::DeviceBuffer gate_up;        // [rows, 2 hidden_dim]
};

/// Forward and backward of blocks of one shape, with their scratch memory.
class BlockPass {
 public:
  /// @param on        its device outlives this
  /// @param max_rows  rows a pass may have
  BlockPass(const TrainDevice& on, const ModelConfig& config, int max_rows);

  /// Uploads the positions and attention spans of a pass's rows. Call it before the pass's blocks.
  void prepare(const BlockRows& rows);
  /// Forward of the rows that were passed to prepare().
  /// @param kept  x_attn holds the block's input
  /// @param next  [rows, dim] the block's output
  void forward(const kernels::TrainWeights& w, const LayerAt& at, KeptBlock& kept, float* next);
  /// Backward of the same rows.
  /// @param dx          [rows, dim] gradient of the output; receives the gradient of the input
  /// @param dx_rounded  [rows, dim] holds dx rounded to the type of activations, at the call and at
  ///                    the return
  /// @param gradient    gradient of all weights, to which this block's is added
  void backward(const kernels::TrainWeights& w,
                const LayerAt& at,
                const KeptBlock& kept,
                float* dx,
                void* dx_rounded,
                float* gradient);

 private:
  void rope(void* x, float direction);

  const TrainDevice on_;
  const ModelConfig config_;
  const int max_rows_;
  kernels::AttentionRows attention_;
  int n_positions_ = 0;  // positions in the table of rotations
  kernels::DeviceBuffer pos_, spans_, rope_;
  kernels::DeviceBuffer act_, d_act_, d_gate_up_, d_qkv_, d_attended_, d_h_;
};

/// The table of RoPE rotations, [max_pos, head_dim]. Each row holds the cosines, then the sines, of
/// its position times the frequencies theta^(-2 i / head_dim).
std::vector<float> rope_table(const ModelConfig& config, int max_pos);

}  // namespace engine
