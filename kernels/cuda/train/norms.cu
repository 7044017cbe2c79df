// RMSNorm for training and its backward, and sums over rows: the gradients of norm weights and biases.
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/train/parts.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

// Sums over rows: rows, columns and lanes of a block.
constexpr int kWeightRows = 128, kWeightColumns = 32, kWeightLanes = 8;

// grid: one block per row

template <class S>
__global__ void __launch_bounds__(kTrainThreads) train_norm_rows(const float* x,
                                                                 const float* w,
                                                                 typename S::Element* h,
                                                                 float* r,
                                                                 float* x_copy,
                                                                 int dim,
                                                                 float eps) {
  const std::int64_t row = std::int64_t{blockIdx.x} * dim;
  float sum = 0;
  for (int i = threadIdx.x; i < dim; i += kTrainThreads) {
    const float v = x[row + i];
    sum = fmaf(v, v, sum);
    if (x_copy) x_copy[row + i] = v;
  }
  sum = over_block<kTrainThreads>(sum, Plus());
  const float scale = 1.0f / sqrtf(sum / static_cast<float>(dim) + eps);
  if (threadIdx.x == 0) r[blockIdx.x] = scale;
  for (int i = threadIdx.x; i < dim; i += kTrainThreads)
    h[row + i] = S::narrow(x[row + i] * scale * w[i]);
}

// dr/dx_j = -r^3 x_j / dim, so dx_j = r w_j dh_j - x_j r^3 mean(dh w x).
template <class S>
__global__ void __launch_bounds__(kTrainThreads)
    train_norm_backward_rows(const float* x,
                             const float* w,
                             const float* r,
                             const typename S::Element* dh,
                             float* dx,
                             typename S::Element* dx_copy,
                             int dim) {
  const std::int64_t row = std::int64_t{blockIdx.x} * dim;
  const float scale = r[blockIdx.x];
  float dot = 0;
  for (int i = threadIdx.x; i < dim; i += kTrainThreads)
    dot = fmaf(S::widen(dh[row + i]) * x[row + i], w[i], dot);
  dot = over_block<kTrainThreads>(dot, Plus());
  const float back = scale * scale * scale * dot / static_cast<float>(dim);
  for (int i = threadIdx.x; i < dim; i += kTrainThreads) {
    const float d = dx[row + i] + S::widen(dh[row + i]) * w[i] * scale - x[row + i] * back;
    dx[row + i] = d;
    dx_copy[row + i] = S::narrow(d);
  }
}

struct WeightSums {
  float of[kWeightLanes][kWeightColumns];
};
// partial[chunk, i] = the sum over the chunk's rows of dh x r, or of dh alone where x is null.
// grid: blocks of columns, chunks of rows; a block's lane takes every eighth row
template <class S>
__global__ void __launch_bounds__(kWeightColumns* kWeightLanes)
    train_column_sums(const float* x,
                      const float* r,
                      const typename S::Element* dh,
                      float* partial,
                      int n_rows,
                      int dim) {
  auto& sums = static_shared<WeightSums>();
  const int column = threadIdx.x % kWeightColumns, lane = threadIdx.x / kWeightColumns;
  const int i = blockIdx.x * kWeightColumns + column, first = blockIdx.y * kWeightRows;
  const int last = first + kWeightRows < n_rows ? first + kWeightRows : n_rows;
  float sum = 0;
  for (int row = first + lane; i < dim && row < last; row += kWeightLanes) {
    const std::int64_t at = std::int64_t{row} * dim + i;
    sum = x ? fmaf(S::widen(dh[at]) * x[at], r[row], sum) : sum + S::widen(dh[at]);
  }
  sums.of[lane][column] = sum;
  __syncthreads();
  if (lane != 0 || i >= dim) return;
  for (int other = 1; other < kWeightLanes; other++) sum += sums.of[other][column];
  partial[std::int64_t{blockIdx.y} * dim + i] = sum;
}

__global__ void __launch_bounds__(kTrainThreads)
    train_add_partials(const float* partial, float* sums, int n_chunks, int width) {
  const int i = static_cast<int>(blockIdx.x) * kTrainThreads + static_cast<int>(threadIdx.x);
  if (i >= width) return;
  float sum = 0;
  for (int chunk = 0; chunk < n_chunks; chunk++) sum += partial[std::int64_t{chunk} * width + i];
  sums[i] += sum;
}

/// sums += over the rows: dh x r, or dh alone where x is null.
template <class S>
void add_column_sums(CudaDevice& cuda,
                     const float* x,
                     const float* r,
                     const typename S::Element* dh,
                     float* sums,
                     int n_rows,
                     int dim) {
  const int n_chunks = blocks_for(n_rows, kWeightRows);
  auto* partial =
      static_cast<float*>(cuda.scratch(Use::Partials, std::int64_t{n_chunks} * dim * 4));
  cuda.launch(
      "train_column_sums", train_column_sums<S>,
      dim3(static_cast<unsigned>(blocks_for(dim, kWeightColumns)), static_cast<unsigned>(n_chunks)),
      kWeightColumns * kWeightLanes, 0, x, r, dh, partial, n_rows, dim);
  cuda.launch("train_add_partials", train_add_partials, blocks_for(dim, kTrainThreads),
              kTrainThreads, 0, partial, sums, n_chunks, dim);
}

template <class S>
void norm(Device& device,
          const float* x,
          const float* w,
          void* h,
          float* r,
          float* x_copy,
          int n_rows,
          int dim,
          float eps) {
  cuda_of(device).launch("train_norm", train_norm_rows<S>, n_rows, kTrainThreads, 0, x, w,
                         static_cast<typename S::Element*>(h), r, x_copy, dim, eps);
}

template <class S>
void norm_backward(Device& device,
                   const float* x,
                   const float* w,
                   const float* r,
                   const void* dh,
                   float* dx,
                   float* dw,
                   void* dx_copy,
                   int n_rows,
                   int dim) {
  CudaDevice& cuda = cuda_of(device);
  const auto* gradient = static_cast<const typename S::Element*>(dh);
  cuda.launch("train_norm_backward", train_norm_backward_rows<S>, n_rows, kTrainThreads, 0, x, w, r,
              gradient, dx, static_cast<typename S::Element*>(dx_copy), dim);
  add_column_sums<S>(cuda, x, r, gradient, dw, n_rows, dim);
}

}  // namespace

void add_train_norm_kernels(TrainKernels& kernels) {
  kernels.rms_norm = [](Device& device, DType type, const float* x, const float* w, void* h,
                        float* r, float* x_copy, int n_rows, int dim, float eps) {
    if (n_rows == 0) return;
    for_train_type(type,
                   [&]<class S>(S) { norm<S>(device, x, w, h, r, x_copy, n_rows, dim, eps); });
  };
  kernels.rms_norm_backward = [](Device& device, DType type, const float* x, const float* w,
                                 const float* r, const void* dh, float* dx, float* dw,
                                 void* dx_copy, int n_rows, int dim) {
    if (n_rows == 0) return;
    for_train_type(type, [&]<class S>(S) {
      norm_backward<S>(device, x, w, r, dh, dx, dw, dx_copy, n_rows, dim);
    });
  };
  kernels.column_sums = [](Device& device, DType type, const void* x, float* sums, int n_rows,
                           int width) {
    if (n_rows == 0) return;
    for_train_type(type, [&]<class S>(S) {
      add_column_sums<S>(cuda_of(device), nullptr, nullptr,
                         static_cast<const typename S::Element*>(x), sums, n_rows, width);
    });
  };
}

}  // namespace kernels::DECOSCOPE_GPU
