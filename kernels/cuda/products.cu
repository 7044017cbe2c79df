#include "kernels/cuda/products.h"

#include <cstdlib>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/train_parts.h"

#if !defined(DECOSCOPE_CUDA_EMULATION) && __has_include(<cublas_v2.h>)
#define DECOSCOPE_HAS_CUBLAS
#include <cublas_v2.h>
#include <dlfcn.h>

#include <mutex>
#endif

namespace kernels::DECOSCOPE_GPU {
namespace {

// ---- own kernels: a block makes 64 by 64 elements, a thread 4 by 4 of them, k in steps of 16

constexpr int kGemmTile = 64, kGemmDepth = 16, kGemmThreads = 256, kGemmOwn = 4;

struct GemmTiles {
  float a[kGemmDepth][kGemmTile + 1];
  float b[kGemmDepth][kGemmTile + 1];
};

/// tile[p][i] = element (first + i, depth + p) of op(X), op(X) being [n, k]; zeros beyond.
/// @param across  whether p runs along X's columns as they lie
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
    // Neighbours in a warp read neighbours in memory.
    const int i = across ? at / kGemmDepth : at % kGemmTile;
    const int p = across ? at % kGemmDepth : at / kGemmTile;
    const std::int64_t row = first + i, column = depth + p;
    float value = 0;
    if (row < n && column < k)
      value = S::widen(across ? x[column + row * ld] : x[row + column * ld]);
    tile[p][i] = value;
  }
}

// Each element's sum in order of k. grid: tiles of m, tiles of n
template <class In, class Out>
__global__ void __launch_bounds__(kGemmThreads) gemm_tiles(Gemm g) {
  auto& tiles = static_shared<GemmTiles>();
  const int first_m = blockIdx.x * kGemmTile, first_n = blockIdx.y * kGemmTile;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float sums[kGemmOwn][kGemmOwn] = {};
  for (int depth = 0; depth < g.k; depth += kGemmDepth) {
    load_gemm_tile<In>(static_cast<const typename In::Element*>(g.a), g.a_turned, g.lda, first_m,
                       g.m, depth, g.k, tiles.a);
    load_gemm_tile<In>(static_cast<const typename In::Element*>(g.b), !g.b_turned, g.ldb, first_n,
                       g.n, depth, g.k, tiles.b);
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
    else if (g.out == DType::F32)
      run(gemm_tiles<StoreBf16, StoreF32>);
    else
      run(gemm_tiles<StoreBf16, StoreBf16>);
  }
};

#if defined(DECOSCOPE_HAS_CUBLAS)

// ---- cuBLAS: one handle on the device's stream, with workspace of its own and no atomics, so that
// the same products in the same order have the same bits

constexpr std::int64_t kCublasWorkspace = 32 << 20;  // bytes; what cuBLAS advises for sm_90

using CublasGemm = cublasStatus_t (*)(cublasHandle_t handle,
                                      cublasOperation_t of_a,
                                      cublasOperation_t of_b,
                                      int m,
                                      int n,
                                      int k,
                                      const void* alpha,
                                      const void* a,
                                      cudaDataType type_a,
                                      int lda,
                                      const void* b,
                                      cudaDataType type_b,
                                      int ldb,
                                      const void* beta,
                                      void* c,
                                      cudaDataType type_c,
                                      int ldc,
                                      cublasComputeType_t compute,
                                      cublasGemmAlgo_t algorithm);
// The header has it under two signatures; this is the library's.
[[maybe_unused]] constexpr CublasGemm kCublasGemm = &::cublasGemmEx;

struct CublasCalls {
  decltype(&::cublasCreate_v2) create = nullptr;
  decltype(&::cublasDestroy_v2) destroy = nullptr;
  decltype(&::cublasGetVersion_v2) version = nullptr;
  decltype(&::cublasSetStream_v2) set_stream = nullptr;
  decltype(&::cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&::cublasSetMathMode) set_math_mode = nullptr;
  decltype(&::cublasSetAtomicsMode) set_atomics_mode = nullptr;
  CublasGemm gemm = nullptr;
  decltype(&::cublasGetStatusName) status_name = nullptr;
};

[[noreturn]] void refuse_cublas(const CudaDevice& device, const std::string& why) {
  throw Error(ErrorCode::Device,
              device.name() + ": training multiplies with cuBLAS, which cannot be had: " + why +
                  "; install it, name its file in DECOSCOPE_CUBLAS, or take this program's own, "
                  "slower products with DECOSCOPE_CUBLAS=own");
}

/// Opened once and never closed: handles of several devices may be in use.
const CublasCalls& cublas_of(const CudaDevice& device, const std::string& named) {
  static std::mutex opening;  // devices of several threads may want it at once
  static CublasCalls calls;
  const std::lock_guard hold(opening);
  if (calls.gemm) return calls;
  void* library = nullptr;
  std::string why;
  for (const char* name : {"libcublas.so.13", "libcublas.so.12"}) {
    library = dlopen(named.empty() ? name : named.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    const char* told = dlerror();
    if (why.empty()) why = told ? told : name;
    if (!named.empty()) break;
  }
  if (!library) refuse_cublas(device, why);
  CublasCalls found;
  const auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library, name));
    if (!call) refuse_cublas(device, std::string("it has no ") + name);
  };
  find(found.create, "cublasCreate_v2");
  find(found.destroy, "cublasDestroy_v2");
  find(found.version, "cublasGetVersion_v2");
  find(found.set_stream, "cublasSetStream_v2");
  find(found.set_workspace, "cublasSetWorkspace_v2");
  find(found.set_math_mode, "cublasSetMathMode");
  find(found.set_atomics_mode, "cublasSetAtomicsMode");
  find(found.status_name, "cublasGetStatusName");
  find(found.gemm, "cublasGemmEx");
  calls = found;
  return calls;
}

class CublasProducts : public Products {
 public:
  CublasProducts(CudaDevice& device, const std::string& named)
      : device_(device), calls_(cublas_of(device, named)) {
    const cudaStream_t stream = device.queued("cublasCreate");
    workspace_ = DeviceBuffer(device, kCublasWorkspace);
    check(calls_.create(&handle_), "cublasCreate");
    try {
      check(calls_.version(handle_, &version_), "cublasGetVersion");
      check(calls_.set_stream(handle_, stream), "cublasSetStream");
      check(calls_.set_workspace(handle_, workspace_.data(), kCublasWorkspace),
            "cublasSetWorkspace");
      // f32 stays f32, and sums stay f32 where the result is bf16.
      const int exact = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
      check(calls_.set_math_mode(handle_, static_cast<cublasMath_t>(exact)), "cublasSetMathMode");
      check(calls_.set_atomics_mode(handle_, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode");
    } catch (...) {
      static_cast<void>(calls_.destroy(handle_));
      throw;
    }
  }
  ~CublasProducts() override { static_cast<void>(calls_.destroy(handle_)); }
  std::string name() const override { return "cuBLAS " + std::to_string(version_); }

  void multiply(CudaDevice& device, const Gemm& g) override {
    static_cast<void>(device.queued("cublasGemmEx"));
    const float one = 1, kept = g.add ? 1.0f : 0.0f;
    const auto type = [](DType t) { return t == DType::F32 ? CUDA_R_32F : CUDA_R_16BF; };
    const auto turned = [](bool t) { return t ? CUBLAS_OP_T : CUBLAS_OP_N; };
    check(calls_.gemm(handle_, turned(g.a_turned), turned(g.b_turned), g.m, g.n, g.k, &one, g.a,
                      type(g.in), g.lda, g.b, type(g.in), g.ldb, &kept, g.c, type(g.out), g.ldc,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
  }

 private:
  void check(cublasStatus_t status, const char* call) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw Error(
        status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::Resources : ErrorCode::Device,
        device_.name() + ": " + call + ": " + calls_.status_name(status) +
            "; the last checkpoint is kept; try DECOSCOPE_CUBLAS=own, or train without --device");
  }

  CudaDevice& device_;
  const CublasCalls& calls_;
  DeviceBuffer workspace_;
  cublasHandle_t handle_ = nullptr;
  int version_ = 0;
};

#endif

}  // namespace

Gemm gemm_of(const TrainProduct& p) {
  return {.a = p.b,
          .b = p.a,
          .c = p.c,
          .a_turned = p.b_turned,
          .b_turned = p.a_turned,
          .m = p.n,
          .n = p.m,
          .k = p.k,
          .lda = p.b_turned ? p.k : p.n,
          .ldb = p.a_turned ? p.m : p.k,
          .ldc = p.n,
          .in = p.in,
          .out = p.out,
          .add = p.add};
}

std::unique_ptr<Products> open_products(CudaDevice& device) {
  const char* asked = std::getenv("DECOSCOPE_CUBLAS");
  const std::string named = asked ? asked : "";
  if (kEmulated || named == "own") return std::make_unique<OwnProducts>();
#if defined(DECOSCOPE_HAS_CUBLAS)
  return std::make_unique<CublasProducts>(device, named);
#else
  throw Error(ErrorCode::Device,
              device.name() +
                  ": training multiplies with cuBLAS, whose header was not there when "
                  "this program was built; DECOSCOPE_CUBLAS=own takes its own, slower "
                  "products");
#endif
}

void add_train_products(TrainKernels& kernels) {
  kernels.products = [](Device& device) { return cuda_of(device).products().name(); };
  kernels.product = [](Device& device, const TrainProduct& p) {
    ensure(p.m >= 0 && p.n > 0 && p.k > 0, "product: sizes must be positive");
    ensure(p.in != DType::F16 && (p.out == p.in || p.out == DType::F32),
           "product: of f32 or bf16, into the same type or f32");
    ensure(!p.add || p.out == DType::F32, "product: sums are added in f32");
    if (p.m > 0) cuda_of(device).products().multiply(cuda_of(device), gemm_of(p));
  };
}

}  // namespace kernels::DECOSCOPE_GPU
