// One LLaMA block for training: attention and feed-forward over the rows of a pass, its forward
// with everything kept that the backward reads again, and its backward.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/train/ops/aligned_vector.h"
#include "engine/train/ops/linear.h"
#include "engine/train/ops/train_ops.h"
#include "engine/train/core/parameters.h"

namespace engine {

/// A block's matrices as the products read them.
template <typename T>
struct PackedBlock {
  std::unique_ptr<PackedLinear<T>> qkv, attn_out, gate_up, down;
};

/// Where rows stand and whom they see. Rows outside every segment attend to nothing.
struct BlockRows {
  std::span<const std::int32_t> pos;  // [n_rows]
  std::span<const Segment> segments;
  std::span<const RowView> views;  // [n_rows], or empty: causal within the segment
  int n_rows() const { return static_cast<int>(pos.size()); }
};

/// What the forward of one block leaves for its backward.
template <typename T>
struct KeptBlock {
  KeptBlock(const ModelConfig& config, int max_rows);
  AlignedVector<float> x_attn, x_mlp;  // [rows, dim] residual stream before either norm
  AlignedVector<float> r_attn, r_mlp;  // [rows] scales of the norms
  AlignedVector<T> h_attn, h_mlp;      // [rows, dim] normed
  AlignedVector<T> qkv;                // [rows, qkv_width], rotated
  AlignedVector<T> attended;           // [rows, out_width]
  AlignedVector<float> lse;            // [rows, n_heads]
  AlignedVector<T> gate_up;            // [rows, 2 hidden_dim]
};

/// One thread's arithmetic of blocks of one shape, with its scratch memory.
template <typename T>
class BlockPass {
 public:
  /// @param math  of the same thread; outlives this
  BlockPass(const ModelConfig& config, LinearMath<T>& math, const TrainTable& table, int max_rows);

  /// To be called before a pass's blocks: makes room for its positions and its longest segment.
  void prepare(const BlockRows& rows);
  /// @param kept  x_attn holds the block's input
  /// @param next  [rows, dim] its output
  void forward(const std::vector<float>& parameters,
               const LayerAt& at,
               const PackedBlock<T>& w,
               const BlockRows& rows,
               KeptBlock<T>& kept,
               float* next);
  /// @param dx          [rows, dim] the gradient of the output, afterwards of the input
  /// @param dx_rounded  [rows, dim] the same as T, at both times
  /// @param gradient    of all parameters, added to
  void backward(const std::vector<float>& parameters,
                const LayerAt& at,
                const PackedBlock<T>& w,
                const BlockRows& rows,
                const KeptBlock<T>& kept,
                float* dx,
                T* dx_rounded,
                float* gradient);

 private:
  const ModelConfig config_;
  LinearMath<T>& math_;
  const TrainOps<T>& ops_;
  AttentionShape shape_;
  AlignedVector<T> act_, d_act_, d_gate_up_;  // act: forward scratch, made again in the backward
  AlignedVector<T> d_qkv_, d_attended_, d_h_;
  std::vector<float> rope_;
  AlignedVector<float> attention_;
};

/// [max_pos, head_dim]: cosines of a position, then its sines, of the frequencies
/// theta^(-2 i / head_dim).
std::vector<float> rope_table(const ModelConfig& config, int max_pos);

}  // namespace engine
