// Shared parts of the training kernels: the functions that fill the table, dispatch by type.
#pragma once

#include "kernels/cuda/math.cuh"
#include "kernels/error.h"
#include "kernels/train_ops.h"

namespace kernels::DECOSCOPE_GPU {

/// Adds the operations of norms.cu to the table.
void add_train_norm_kernels(TrainKernels& kernels);
/// Adds the operations of rows.cu.
void add_train_row_kernels(TrainKernels& kernels);
/// Adds the operations of heads.cu.
void add_train_head_kernels(TrainKernels& kernels);
/// Adds the operations of attention.cu.
void add_train_attention_kernels(TrainKernels& kernels);
/// Adds the operations of products.cu.
void add_train_products(TrainKernels& kernels);

namespace {

constexpr int kTrainThreads = 256;  // threads of a block, except in attention and products

/// Calls work(S()) with the storage of activations of this type.
template <class Work>
void for_train_type(DType type, const Work& work) {
  ensure(type == DType::F32 || type == DType::BF16, "training must compute in f32 or bf16");
  if (type == DType::F32)
    work(StoreF32());
  else
    work(StoreBf16());
}

// 1 / (1 + e^-x); the exponent is clamped where the result is 0 in f32.
__device__ inline float logistic(float x) {
  const float exponent = 0 - x > 88.0f ? 88.0f : 0 - x;  // a NaN passes
  return 1.0f / (1.0f + exp_f32(exponent));
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU
