// One LLaMA block for training on a CUDA device: BlockPass of block.h with everything but places
// and sights in the device's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/train/core/block.h"
#include "engine/train/gpu/arrays.h"
#include "engine/train/gpu/linear.h"
#include "kernels/cuda/train/kernels.h"
#include "kernels/device.h"

namespace engine {

/// What the forward of one block leaves for its backward; as KeptBlock.
struct GpuKeptBlock {
  GpuKeptBlock(const GpuArrays& arrays, const ModelConfig& config);
  kernels::DeviceBuffer x_attn, x_mlp, r_attn, r_mlp, h_attn, h_mlp, qkv, attended, lse, gate_up;
};

/// The arithmetic of blocks of one shape, with its scratch memory.
class GpuBlockPass {
 public:
  /// @param arrays  of as many rows as a pass may have; their device outlives this
  GpuBlockPass(const GpuArrays& arrays, const ModelConfig& config);

  /// To be called before a pass's blocks: takes up where its rows stand and whom they see, and
  /// makes room for its positions.
  void prepare(const BlockRows& rows);
  /// Of the rows that prepare() was told.
  /// @param kept  x_attn holds the block's input
  /// @param next  [rows, dim] its output
  void forward(const GpuWeights& w, const LayerAt& at, GpuKeptBlock& kept, float* next);
  /// @param dx          [rows, dim] the gradient of the output, afterwards of the input
  /// @param dx_rounded  [rows, dim] the same as the type, at both times
  /// @param gradient    of all weights, added to
  void backward(const GpuWeights& w,
                const LayerAt& at,
                const GpuKeptBlock& kept,
                float* dx,
                void* dx_rounded,
                float* gradient);

 private:
  void rope(void* x, float direction);

  kernels::Device& device_;
  const kernels::TrainKernels& kernels_;
  const GpuLinear linear_;
  const ModelConfig config_;
  const kernels::DType type_;
  const int max_rows_, qkv_width_, out_width_;
  int n_ = 0, n_positions_ = 0;  // rows of this pass; positions of the table
  kernels::DeviceBuffer pos_, sight_, rope_;
  kernels::DeviceBuffer act_, d_act_, d_gate_up_, d_qkv_, d_attended_, d_h_;
};

/// Whom each row sees. Rows outside every segment see nobody.
std::vector<kernels::TrainSight> sights_of(const BlockRows& rows);

}  // namespace engine
