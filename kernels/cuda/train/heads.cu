// Training operations of draft heads: residual layers, copies of scattered rows, the loss of
// features, the rank of a target, the likeliest token.
#include <vector>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/train/parts.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

// ---- Activation and sums; one thread per element

template <class S>
__global__ void __launch_bounds__(kTrainThreads) train_silu_elements(float* z,
                                                                     const float* bias,
                                                                     const typename S::Element* x,
                                                                     typename S::Element* y,
                                                                     std::int64_t n,
                                                                     int dim) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kTrainThreads + threadIdx.x;
  if (at >= n) return;
  float own = z[at];
  if (bias) {
    own += bias[at % dim];
    z[at] = own;
  }
  const float silu = own * logistic(own);
  y[at] = S::narrow(x ? silu + S::widen(x[at]) : silu);
}

// silu'(z) = s (1 + z (1 - s)) with s the logistic function of z.
template <class S>
__global__ void __launch_bounds__(kTrainThreads) train_silu_backward_elements(
    const float* z, const typename S::Element* dy, typename S::Element* dz, std::int64_t n) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kTrainThreads + threadIdx.x;
  if (at >= n) return;
  const float own = z[at], s = logistic(own);
  dz[at] = S::narrow(S::widen(dy[at]) * s * (1.0f + own * (1.0f - s)));
}

template <class S>
__global__ void __launch_bounds__(kTrainThreads)
    train_add_elements(const typename S::Element* x, typename S::Element* y, std::int64_t n) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kTrainThreads + threadIdx.x;
  if (at < n) y[at] = S::narrow(S::widen(y[at]) + S::widen(x[at]));
}

// ---- rows. grid: one block per row

template <class From, class To>
__global__ void __launch_bounds__(kTrainThreads) train_copy_rows(const typename From::Element* from,
                                                                 const std::int32_t* from_row,
                                                                 typename To::Element* to,
                                                                 const std::int32_t* to_row,
                                                                 int to_stride,
                                                                 int dim) {
  const std::int64_t source = from_row ? from_row[blockIdx.x] : static_cast<int>(blockIdx.x);
  const std::int64_t place = to_row ? to_row[blockIdx.x] : static_cast<int>(blockIdx.x);
  for (int i = threadIdx.x; i < dim; i += kTrainThreads)
    to[place * to_stride + i] = To::narrow(source < 0 ? 0.0f : From::widen(from[source * dim + i]));
}

template <class S>
__global__ void __launch_bounds__(kTrainThreads)
    train_feature_rows(const float* f,
                       const std::int32_t* row,
                       const StoreBf16::Element* wanted,
                       const std::int32_t* wanted_row,
                       const typename S::Element* d_read,
                       int d_stride,
                       float weight,
                       float* dx,
                       float* squares,
                       int dim) {
  const std::int64_t own = std::int64_t{row[blockIdx.x]} * dim;
  const std::int64_t goal = std::int64_t{wanted_row[blockIdx.x]} * dim;
  const std::int64_t read = std::int64_t{blockIdx.x} * d_stride;
  float sum = 0;
  for (int i = threadIdx.x; i < dim; i += kTrainThreads) {
    const float off = f[own + i] - StoreBf16::widen(wanted[goal + i]);
    sum = fmaf(off, off, sum);
    dx[own + i] = 2.0f * weight * off + S::widen(d_read[read + i]);
  }
  sum = over_block<kTrainThreads>(sum, Plus());
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kTrainThreads) train_target_ranks(
    const float* logits, const std::int32_t* target, std::int32_t* rank, int vocab, int n_valid) {
  const float* z = logits + std::int64_t{blockIdx.x} * vocab;
  const int own = target[blockIdx.x];
  if (own < 0) {
    if (threadIdx.x == 0) rank[blockIdx.x] = 0;
    return;
  }
  int better = 0;
  for (int i = threadIdx.x; i < n_valid; i += kTrainThreads)
    better += z[i] > z[own] || (z[i] == z[own] && i < own);
  better = over_block<kTrainThreads>(better, Plus());
  if (threadIdx.x == 0) rank[blockIdx.x] = 1 + better;
}

template <class From, class To>
void copy_rows(Device& device,
               const void* from,
               const std::int32_t* from_row,
               void* to,
               const std::int32_t* to_row,
               int to_stride,
               int n_rows,
               int dim) {
  cuda_of(device).launch("train_copy_rows", train_copy_rows<From, To>, n_rows, kTrainThreads, 0,
                         static_cast<const typename From::Element*>(from), from_row,
                         static_cast<typename To::Element*>(to), to_row, to_stride, dim);
}

}  // namespace

void add_train_head_kernels(TrainKernels& kernels) {
  kernels.silu = [](Device& device, DType type, float* z, const float* bias, const void* x, void* y,
                    int n_rows, int dim) {
    if (n_rows == 0) return;
    const std::int64_t n = std::int64_t{n_rows} * dim;
    for_train_type(type, [&]<class S>(S) {
      using Element = typename S::Element;
      cuda_of(device).launch("train_silu", train_silu_elements<S>, blocks_for(n, kTrainThreads),
                             kTrainThreads, 0, z, bias, static_cast<const Element*>(x),
                             static_cast<Element*>(y), n, dim);
    });
  };
  kernels.silu_backward = [](Device& device, DType type, const float* z, const void* dy, void* dz,
                             std::int64_t n) {
    if (n == 0) return;
    for_train_type(type, [&]<class S>(S) {
      using Element = typename S::Element;
      cuda_of(device).launch("train_silu_backward", train_silu_backward_elements<S>,
                             blocks_for(n, kTrainThreads), kTrainThreads, 0, z,
                             static_cast<const Element*>(dy), static_cast<Element*>(dz), n);
    });
  };
  kernels.add = [](Device& device, DType type, const void* x, void* y, std::int64_t n) {
    if (n == 0) return;
    for_train_type(type, [&]<class S>(S) {
      using Element = typename S::Element;
      cuda_of(device).launch("train_add", train_add_elements<S>, blocks_for(n, kTrainThreads),
                             kTrainThreads, 0, static_cast<const Element*>(x),
                             static_cast<Element*>(y), n);
    });
  };
  kernels.copy_rows = [](Device& device, DType from_type, const void* from,
                         const std::int32_t* from_row, DType to_type, void* to,
                         const std::int32_t* to_row, int to_stride, int n_rows, int dim) {
    ensure(dim <= to_stride, "copy_rows: a stride is smaller than a row");
    if (n_rows == 0) return;
    for_train_type(from_type, [&]<class From>(From) {
      for_train_type(to_type, [&]<class To>(To) {
        copy_rows<From, To>(device, from, from_row, to, to_row, to_stride, n_rows, dim);
      });
    });
  };
  kernels.feature_loss = [](Device& device, DType type, const float* f, const std::int32_t* row,
                            const void* wanted, const std::int32_t* wanted_row, const void* d_read,
                            int d_stride, float weight, float* dx, float* squares, int n_rows,
                            int dim) {
    if (n_rows == 0) return;
    for_train_type(type, [&]<class S>(S) {
      cuda_of(device).launch("train_features", train_feature_rows<S>, n_rows, kTrainThreads, 0, f,
                             row, static_cast<const StoreBf16::Element*>(wanted), wanted_row,
                             static_cast<const typename S::Element*>(d_read), d_stride, weight, dx,
                             squares, dim);
    });
  };
  kernels.target_ranks = [](Device& device, const float* logits, const std::int32_t* target,
                            std::int32_t* rank, int n_rows, int vocab, int n_valid) {
    ensure(n_valid <= vocab, "target_ranks: more tokens than logits");
    if (n_rows == 0) return;
    cuda_of(device).launch("train_target_ranks", train_target_ranks, n_rows, kTrainThreads, 0,
                           logits, target, rank, vocab, n_valid);
  };
  kernels.argmax = [](Device& device, const float* logits, int n_rows, int vocab,
                      std::int32_t* token_to_host) {
    const std::vector<PickRow> greedy(static_cast<std::size_t>(n_rows));
    std::vector<Picked> picked(greedy.size());
    device.ops().pick(device, logits, vocab, n_rows, vocab, vocab, greedy.data(), picked.data());
    for (const Picked& one : picked) *token_to_host++ = one.id;
  };
}

}  // namespace kernels::DECOSCOPE_GPU
