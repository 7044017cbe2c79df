// What the files of training's kernels share: the groups of the table, types, products.
#pragma once

#include "kernels/cuda/math.cuh"
#include "kernels/cuda/train_kernels.h"
#include "kernels/error.h"

namespace kernels::DECOSCOPE_GPU {

// The groups of operations, one file each.
void add_train_norm_kernels(TrainKernels& kernels);
void add_train_row_kernels(TrainKernels& kernels);
void add_train_attention_kernels(TrainKernels& kernels);
void add_train_products(TrainKernels& kernels);

namespace {

constexpr int kTrainThreads = 256;  // of a block, of all but attention and products

/// Calls work(S()) with the storage of activations of this type.
template <class Work>
void for_train_type(DType type, const Work& work) {
  ensure(type == DType::F32 || type == DType::BF16, "training computes in f32 or bf16");
  if (type == DType::F32)
    work(StoreF32());
  else
    work(StoreBf16());
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU
