// y = x w^T for whole blocks of a prompt, by cuBLAS (train/products.h), if CUDA_PROMPTS=cublas.
//   weights  cuBLAS cannot read the packed layout: kernels unpack it slab by slab into at most 64 MiB, and each slab
//            serves all blocks of the forward
//   blocks   each block of 256 rows is a separate product, so its bits do not depend on the other
//            blocks
//   rows     rounded to the weights' type, to nearest even; sums in f32
#include <algorithm>
#include <limits>

#include "kernels/checks.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/packed.cuh"
#include "kernels/cuda/train/products.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kPromptThreads = 128;
constexpr int kPromptBlock = 256;  // rows

// Unpacks outputs of a slab into rows of n_chunks * 64 halves. Four lanes hold eight neighbours of each of two rows twice,
// one pair per lane; they exchange pairs, and each lane writes eight neighbours.
__global__ void __launch_bounds__(kPromptThreads)
    unpack_halves(const uint4* packed, int n_chunks, std::int64_t n_fragments, uint4* rows) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kPromptThreads + threadIdx.x;
  if (at >= n_fragments) return;  // whole warps: fragments come in tiles of 32
  const uint4 own = packed[at];
  const unsigned pairs[4] = {own.x, own.y, own.z, own.w};
  unsigned run[4];
  const int lane = static_cast<int>(at % 32), mine = lane % 4;
#pragma unroll
  for (int by = 0; by < 4; by++) {
    unsigned sent = 0;
    const int other = mine ^ by;
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (i == other) sent = pairs[i];
    const unsigned got = across(sent, by);
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (i == other) run[i] = got;
  }
  const std::int64_t tile = at / 32, chunk = tile / 16;
  const std::int64_t row =
      chunk / n_chunks * kBlockOutputs + tile / 4 % 4 * 16 + lane / 4 + mine % 2 * 8;
  const auto place = static_cast<int>(chunk % n_chunks);
  const auto column = chunk_at(place, n_chunks) * kChunk + tile % 4 * 16 + mine / 2 * 8;
  rows[(row * n_chunks * kChunk + column) / 8] = {run[0], run[1], run[2], run[3]};
}

// Unpacks a slab into columns: element (output i, j) at i + j ld.
__global__ void __launch_bounds__(kPromptThreads)
    unpack_f32(const float* packed, int k, std::int64_t n, int ld, float* columns) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kPromptThreads + threadIdx.x;
  if (at >= n) return;
  const std::int64_t line = at / kF32Outputs;
  columns[line / k * kF32Outputs + at % kF32Outputs + line % k * ld] = packed[at];
}

// Rounds x to `to` [n_rows, width], with zeros after its k columns.
template <class Store>
__global__ void __launch_bounds__(kPromptThreads) round_rows(
    const float* x, std::int64_t x_stride, int k, int width, std::int64_t n, std::uint16_t* to) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kPromptThreads + threadIdx.x;
  if (at >= n) return;
  const std::int64_t row = at / width, column = at % width;
  to[at] = Store::narrow(column < k ? x[row * x_stride + column] : 0.0f);
}

// y = bias, or y += bias, before the product is added to y.
__global__ void __launch_bounds__(kPromptThreads) lay_bias(
    const float* bias, int n, std::int64_t n_elements, int add, float* y, std::int64_t y_stride) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kPromptThreads + threadIdx.x;
  if (at >= n_elements) return;
  float& to = y[at / n * y_stride + at % n];
  to = add ? to + bias[at % n] : bias[at % n];
}

/// Number of outputs of a slab. It is the same for all slabs of a matrix and depends only on the
/// matrix's shape.
int outputs_of_slab(std::int64_t slab_bytes, DType dtype, int n, int k) {
  const std::int64_t output_bytes = padded_to(k, kChunk) * bytes_of(dtype);
  const std::int64_t most =
      std::max<std::int64_t>(1, slab_bytes / (output_bytes * kBlockOutputs)) * kBlockOutputs;
  const int n_slabs = blocks_for(n, static_cast<int>(std::min<std::int64_t>(most, 1 << 30)));
  return static_cast<int>(padded_to(blocks_for(n, n_slabs), kBlockOutputs));
}

/// Unpacks outputs [first, first + n) of a matrix for cuBLAS. The product's c, rows and b stay unset.
Gemm unpacked(CudaDevice& cuda, const PackedMatrix& w, int first, int n) {
  const std::int64_t bytes = cuda.ops().packed_bytes(w.dtype, n, w.k);
  const auto* packed =
      static_cast<const char*>(w.data) + cuda.ops().packed_bytes(w.dtype, first, w.k);
  Gemm gemm = {};
  gemm.m = n;
  gemm.in = w.dtype;
  gemm.out = DType::F32;
  gemm.a = cuda.scratch(Use::Unpacked, bytes);
  void* to = const_cast<void*>(gemm.a);
  if (w.dtype == DType::F32) {
    gemm.k = w.k;
    gemm.lda = static_cast<int>(padded_to(n, kF32Outputs));
    cuda.launch("unpack", unpack_f32, blocks_for(bytes / 4, kPromptThreads), kPromptThreads, 0,
                reinterpret_cast<const float*>(packed), w.k, bytes / 4, gemm.lda,
                static_cast<float*>(to));
  } else {
    gemm.a_transposed = true;
    gemm.k = gemm.lda = static_cast<int>(padded_to(w.k, kChunk));
    cuda.launch("unpack", unpack_halves, blocks_for(bytes / 16, kPromptThreads), kPromptThreads, 0,
                reinterpret_cast<const uint4*>(packed), chunks_of(w.k), bytes / 16,
                static_cast<uint4*>(to));
  }
  return gemm;
}

template <class Store>
const void* rounded(
    CudaDevice& cuda, const float* x, std::int64_t x_stride, int n_rows, int k, int width) {
  const std::int64_t n = std::int64_t{n_rows} * width;
  auto* rows = static_cast<std::uint16_t*>(cuda.scratch(Use::Rows, 2 * n));
  cuda.launch("round_rows", round_rows<Store>, blocks_for(n, kPromptThreads), kPromptThreads, 0, x,
              x_stride, k, width, n, rows);
  return rows;
}

void matmul_blocks(Device& device,
                   const PackedMatrix& w,
                   const float* x,
                   std::int64_t x_stride,
                   int n_rows,
                   float* y,
                   std::int64_t y_stride,
                   const float* bias,
                   bool add) {
  check_matmul(w, n_rows, x_stride, y_stride);
  CudaDevice& cuda = cuda_of(device);
  const int block = cuda.prompt_block();
  ensure(block > 0 && n_rows % block == 0,
         "matmul_blocks: the number of rows must be a multiple of the block size");
  ensure(std::max(x_stride, y_stride) <= std::numeric_limits<int>::max(),
         "matmul_blocks: a row is too wide");
  if (n_rows == 0) return;
  if (bias) {
    const std::int64_t n = std::int64_t{n_rows} * w.n;
    cuda.launch("bias", lay_bias, blocks_for(n, kPromptThreads), kPromptThreads, 0, bias, w.n, n,
                static_cast<int>(add), y, y_stride);
  }
  const bool halves = w.dtype != DType::F32;
  const void* rows = x;
  std::int64_t row_bytes = x_stride * 4;
  if (halves) {
    const auto width = static_cast<int>(padded_to(w.k, kChunk));
    row_bytes = std::int64_t{width} * 2;
    rows = w.dtype == DType::F16 ? rounded<StoreF16>(cuda, x, x_stride, n_rows, w.k, width)
                                 : rounded<StoreBf16>(cuda, x, x_stride, n_rows, w.k, width);
  }
  const int most = outputs_of_slab(cuda.slab_bytes(), w.dtype, w.n, w.k);
  for (int first = 0; first < w.n; first += most) {
    Gemm gemm = unpacked(cuda, w, first, std::min(most, w.n - first));
    gemm.n = block;
    gemm.ldb = static_cast<int>(row_bytes / bytes_of(w.dtype));
    gemm.ldc = static_cast<int>(y_stride);
    gemm.add = add || bias;
    for (int row = 0; row < n_rows; row += block) {
      gemm.b = static_cast<const char*>(rows) + row * row_bytes;
      gemm.c = y + row * y_stride + first;
      cuda.skip_graph_cache();
      cuda.products(ProductsOf::Prompts).multiply(cuda, gemm);
    }
  }
}

}  // namespace

Products& CudaDevice::products(ProductsOf whose) {
  if (!products_)
    products_ = {open_products(*this, whose).release(),
                 [](Products* products) { delete products; }};
  return *products_;
}

// If the library is missing, it is missing for every device of this program, so all devices compute
// prompts in the same way (as steps). Any other failure throws, because it may occur on one device
// only, and devices must not compute prompts in different ways.
int CudaDevice::prompt_block() {
  if (prompt_block_) return *prompt_block_;
  if (!prompts_by_products_) return *(prompt_block_ = 0);
  if (const std::string why = why_no_products(); !why.empty()) {
    note("CUDA_PROMPTS=cublas: cuBLAS is not available: " + why +
         "; prompts are computed by the same kernels as steps; install cuBLAS, or name its file in "
         "DECOSCOPE_CUBLAS");
    return *(prompt_block_ = 0);
  }
  products(ProductsOf::Prompts);
  return *(prompt_block_ = kPromptBlock);
}

std::string CudaDevice::prompt_products() const {
  return prompt_block_.value_or(0) > 0 ? products_->name() : "";
}

void add_prompt_ops(Ops& ops) {
  ops.matmul_blocks = matmul_blocks;
}

}  // namespace kernels::DECOSCOPE_GPU
