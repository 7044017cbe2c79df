#include "kernels/cuda/train/products.h"

#include <cstdlib>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/train/parts.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

// A block computes 64 by 64 elements, a thread 4 by 4 of them, k in steps of 16.

constexpr int kGemmTile = 64, kGemmDepth = 16, kGemmThreads = 256, kGemmOwn = 4;

struct GemmTiles {
  float a[kGemmDepth][kGemmTile + 1];
  float b[kGemmDepth][kGemmTile + 1];
};

/// tile[p][i] = element (first + i, depth + p) of op(X), which is [n, k]; zeros outside.
/// @param across  true if p runs along X's columns in memory
template <class S>
__device__ void load_gemm_tile(const typename S::Element* x,
                               bool across,
                               int ld,
                               int first,
                               int n,
                               int depth,
                               int k,
                               float (&tile)[kGemmDepth][kGemmTile + 1]) {
  for (int at = threadIdx.x; at < kGemmTile * kGemmDepth; at += kGemmThreads) {
    // Adjacent threads of a warp read adjacent elements.
    const int i = across ? at / kGemmDepth : at % kGemmTile;
    const int p = across ? at % kGemmDepth : at / kGemmTile;
    const std::int64_t row = first + i, column = depth + p;
    float value = 0;
    if (row < n && column < k)
      value = S::widen(across ? x[column + row * ld] : x[row + column * ld]);
    tile[p][i] = value;
  }
}

// Each element's sum runs in the order of k. grid: tiles of m, tiles of n
template <class In, class Out>
__global__ void __launch_bounds__(kGemmThreads) gemm_tiles(Gemm g) {
  auto& tiles = static_shared<GemmTiles>();
  const int first_m = blockIdx.x * kGemmTile, first_n = blockIdx.y * kGemmTile;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float sums[kGemmOwn][kGemmOwn] = {};
  for (int depth = 0; depth < g.k; depth += kGemmDepth) {
    load_gemm_tile<In>(static_cast<const typename In::Element*>(g.a), g.a_transposed, g.lda,
                       first_m, g.m, depth, g.k, tiles.a);
    load_gemm_tile<In>(static_cast<const typename In::Element*>(g.b), !g.b_transposed, g.ldb,
                       first_n, g.n, depth, g.k, tiles.b);
    __syncthreads();
    for (int p = 0; p < kGemmDepth; p++) {
#pragma unroll
      for (int i = 0; i < kGemmOwn; i++) {
#pragma unroll
        for (int j = 0; j < kGemmOwn; j++)
          sums[i][j] = fmaf(tiles.a[p][x + 16 * i], tiles.b[p][y + 16 * j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  auto* c = static_cast<typename Out::Element*>(g.c);
  for (int i = 0; i < kGemmOwn; i++) {
    for (int j = 0; j < kGemmOwn; j++) {
      const int m = first_m + x + 16 * i, n = first_n + y + 16 * j;
      if (m >= g.m || n >= g.n) continue;
      auto& to = c[m + std::int64_t{n} * g.ldc];
      to = Out::narrow(g.add ? Out::widen(to) + sums[i][j] : sums[i][j]);
    }
  }
}

std::string products_named() {
  const char* named = std::getenv("DECOSCOPE_CUBLAS");
  return named ? named : "";
}

class OwnProducts : public Products {
 public:
  std::string name() const override { return "own products"; }
  void multiply(CudaDevice& device, const Gemm& g) override {
    const dim3 grid(static_cast<unsigned>(blocks_for(g.m, kGemmTile)),
                    static_cast<unsigned>(blocks_for(g.n, kGemmTile)));
    const auto run = [&](void (*kernel)(Gemm)) {
      device.launch("gemm", kernel, grid, kGemmThreads, 0, g);
    };
    if (g.in == DType::F32)
      run(gemm_tiles<StoreF32, StoreF32>);
    else if (g.in == DType::F16)
      run(gemm_tiles<StoreF16, StoreF32>);
    else if (g.out == DType::F32)
      run(gemm_tiles<StoreBf16, StoreF32>);
    else
      run(gemm_tiles<StoreBf16, StoreBf16>);
  }
};

}  // namespace

Gemm gemm_of(const TrainProduct& p) {
  return {.a = p.b,
          .b = p.a,
          .c = p.c,
          .m = p.n,
          .n = p.m,
          .k = p.k,
          .lda = p.b_transposed ? p.k : p.n,
          .ldb = p.a_transposed ? p.m : p.k,
          .ldc = p.n,
          .a_transposed = p.b_transposed,
          .b_transposed = p.a_transposed,
          .in = p.in,
          .out = p.out,
          .add = p.add};
}

std::unique_ptr<Products> open_products(CudaDevice& device, ProductsOf whose) {
  const std::string named = products_named();
  if (kEmulated || named == "own") return std::make_unique<OwnProducts>();
  return open_cublas(device, named, whose);
}

std::string why_no_products() {
  const std::string named = products_named();
  if (named == "own") return {};
  if (kEmulated)
    return named.empty() ? "" : "the emulation opens no library, " + named + " neither";
  return why_no_cublas(named);
}

namespace {

/// W as the right operand of a product: its place in the array of the type.
const void* matrix_in(const TrainWeights& w, const TrainMatrix& m, DType type) {
  return static_cast<const char*>(w.packed) + m.at * bytes_of(type);
}

/// y = x W^T
TrainProduct product_with_transposed(
    DType type, const TrainWeights& w, const TrainMatrix& m, const void* x, int rows, void* y) {
  return {.a = x,
          .b = matrix_in(w, m, type),
          .c = y,
          .b_transposed = true,
          .in = type,
          .out = type,
          .m = rows,
          .n = m.n_out,
          .k = m.n_in};
}

/// dx = dy W
TrainProduct product_with(
    DType type, const TrainWeights& w, const TrainMatrix& m, const void* dy, int rows, void* dx) {
  return {.a = dy,
          .b = matrix_in(w, m, type),
          .c = dx,
          .in = type,
          .out = type,
          .m = rows,
          .n = m.n_in,
          .k = m.n_out};
}

void multiply_for_training(Device& device, const TrainProduct& p) {
  ensure(p.m >= 0 && p.n > 0 && p.k > 0, "product: sizes must be positive");
  ensure(p.in != DType::F16 && (p.out == p.in || p.out == DType::F32),
         "product: the type must be f32 or bf16, and the output the same type or f32");
  ensure(!p.add || p.out == DType::F32, "product: sums must be f32");
  CudaDevice& cuda = cuda_of(device);
  if (p.m > 0) cuda.products(ProductsOf::Training).multiply(cuda, gemm_of(p));
}

void multiply_into_f32(Device& device, TrainProduct p, bool add) {
  p.out = DType::F32;
  p.add = add;
  multiply_for_training(device, p);
}

}  // namespace

void add_train_products(TrainKernels& kernels) {
  kernels.products = [](Device& device) {
    return cuda_of(device).products(ProductsOf::Training).name();
  };
  kernels.product = multiply_for_training;
  kernels.forward = [](Device& device, DType type, const TrainWeights& w, const TrainMatrix& m,
                       const void* x, int rows, void* y) {
    multiply_for_training(device, product_with_transposed(type, w, m, x, rows, y));
  };
  kernels.forward_f32 = [](Device& device, DType type, const TrainWeights& w, const TrainMatrix& m,
                           const void* x, int rows, float* y, bool add) {
    multiply_into_f32(device, product_with_transposed(type, w, m, x, rows, y), add);
  };
  kernels.forward_silu = [](Device& device, DType type, const TrainWeights& w, const TrainMatrix& m,
                            const void* x, const float* bias, const void* residual, int rows,
                            float* z, void* y) {
    multiply_into_f32(device, product_with_transposed(type, w, m, x, rows, z), false);
    train_kernels(device).silu(device, type, z, bias, residual, y, rows, m.n_out);
  };
  kernels.backward_input = [](Device& device, DType type, const TrainWeights& w,
                              const TrainMatrix& m, const void* dy, int rows, void* dx) {
    multiply_for_training(device, product_with(type, w, m, dy, rows, dx));
  };
  kernels.backward_input_f32 = [](Device& device, DType type, const TrainWeights& w,
                                  const TrainMatrix& m, const void* dy, int rows, float* dx) {
    multiply_into_f32(device, product_with(type, w, m, dy, rows, dx), false);
  };
  kernels.backward_weight = [](Device& device, DType type, const TrainWeights&,
                               const TrainMatrix& m, const void* dy, const void* x, int rows,
                               float* gradient) {
    multiply_for_training(device, {.a = dy,
                                   .b = x,
                                   .c = gradient + m.at,
                                   .a_transposed = true,
                                   .in = type,
                                   .add = true,
                                   .m = m.n_out,
                                   .n = m.n_in,
                                   .k = rows});
  };
}

}  // namespace kernels::DECOSCOPE_GPU
