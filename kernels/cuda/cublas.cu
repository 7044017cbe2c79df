// cuBLAS: one handle on the device's stream, with its own workspace and without atomics, so the same products in the same
// order have the same bits.
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/train/products.h"

#if !defined(DECOSCOPE_CUDA_EMULATION) && __has_include(<cublas_v2.h>)
#define DECOSCOPE_HAS_CUBLAS
#include <cublas_v2.h>
#include <dlfcn.h>

#include <mutex>
#endif

namespace kernels::DECOSCOPE_GPU {

#if defined(DECOSCOPE_HAS_CUBLAS)

namespace {

/// Bytes; the recommendation of cuBLAS for sm_90
constexpr std::int64_t kCublasWorkspace = 32 << 20;

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
// The header declares two signatures; this is the library's.
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

/// Loads the library. It stays loaded, because handles of several devices may use it.
/// @return  null if that fails; `why` then says why
const CublasCalls* cublas_of(const std::string& named, std::string& why) {
  static std::mutex opening;  // several threads may call this at the same time
  static CublasCalls calls;
  const std::lock_guard hold(opening);
  if (calls.gemm) return &calls;
  void* library = nullptr;
  for (const char* name : {"libcublas.so.13", "libcublas.so.12"}) {
    library = dlopen(named.empty() ? name : named.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    const char* reason = dlerror();
    if (why.empty()) why = reason ? reason : name;
    if (!named.empty()) break;
  }
  if (!library) return nullptr;
  why.clear();
  CublasCalls found;
  const auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library, name));
    if (!call && why.empty()) why = std::string("it has no ") + name;
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
  if (!why.empty()) return nullptr;
  calls = found;
  return &calls;
}

const CublasCalls& expect_cublas(const CudaDevice& device, const std::string& named) {
  std::string why;
  if (const CublasCalls* calls = cublas_of(named, why)) return *calls;
  throw Error(ErrorCode::Device, device.name() +
                                     ": training needs cuBLAS, which is not available: " + why +
                                     "; install it, name its file in DECOSCOPE_CUBLAS, or use this "
                                     "program's slower products with DECOSCOPE_CUBLAS=own");
}

class CublasProducts : public Products {
 public:
  CublasProducts(CudaDevice& device, const std::string& named, ProductsOf whose)
      : device_(device), whose_(whose), calls_(expect_cublas(device, named)) {
    const cudaStream_t stream = device.stream_for("cublasCreate");
    workspace_ = DeviceBuffer(device, kCublasWorkspace, "the matrix library");
    check(calls_.create(&handle_), "cublasCreate");
    try {
      check(calls_.version(handle_, &version_), "cublasGetVersion");
      check(calls_.set_stream(handle_, stream), "cublasSetStream");
      check(calls_.set_workspace(handle_, workspace_.data(), kCublasWorkspace),
            "cublasSetWorkspace");
      // f32 products stay f32, and sums stay f32 for bf16 results.
      const int exact = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
      check(calls_.set_math_mode(handle_, static_cast<cublasMath_t>(exact)), "cublasSetMathMode");
      check(calls_.set_atomics_mode(handle_, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode");
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~CublasProducts() override { destroy(); }
  std::string name() const override { return "cuBLAS " + std::to_string(version_); }

  void multiply(CudaDevice& device, const Gemm& g) override {
    static_cast<void>(device.stream_for("cublasGemmEx"));
    const float one = 1, kept = g.add ? 1.0f : 0.0f;
    const auto type = [](DType t) {
      return t == DType::F32 ? CUDA_R_32F : t == DType::F16 ? CUDA_R_16F : CUDA_R_16BF;
    };
    const auto op_of = [](bool t) { return t ? CUBLAS_OP_T : CUBLAS_OP_N; };
    check(calls_.gemm(handle_, op_of(g.a_transposed), op_of(g.b_transposed), g.m, g.n, g.k, &one,
                      g.a, type(g.in), g.lda, g.b, type(g.in), g.ldb, &kept, g.c, type(g.out),
                      g.ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
  }

 private:
  void check(cublasStatus_t status, const char* call) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    const char* instead =
        whose_ == ProductsOf::Training
            ? "; the last checkpoint is kept; try DECOSCOPE_CUBLAS=own, or train without --device"
            : "; earlier results are kept; try CUDA_PROMPTS=own, or --device cpu";
    const bool is_memory = status == CUBLAS_STATUS_ALLOC_FAILED;
    throw Error(is_memory ? ErrorCode::Resources : ErrorCode::Device,
                device_.name() + ": " + call + ": " + calls_.status_name(status) +
                    (is_memory ? ", " + device_.memory_text() : "") + instead);
  }

  void destroy() {
    const cublasStatus_t status = calls_.destroy(handle_);
    if (status != CUBLAS_STATUS_SUCCESS)
      device_.note(std::string("cublasDestroy_v2: ") + calls_.status_name(status) +
                   "; its memory stays allocated until the program ends");
  }

  CudaDevice& device_;
  ProductsOf whose_;
  const CublasCalls& calls_;
  DeviceBuffer workspace_;
  cublasHandle_t handle_ = nullptr;
  int version_ = 0;
};

}  // namespace

std::unique_ptr<Products> open_cublas(CudaDevice& device,
                                      const std::string& named,
                                      ProductsOf whose) {
  return std::make_unique<CublasProducts>(device, named, whose);
}

std::string why_no_cublas(const std::string& named) {
  std::string why;
  return cublas_of(named, why) ? "" : why;
}

#else

std::string why_no_cublas(const std::string&) {
  return "its header was missing when this program was built";
}

std::unique_ptr<Products> open_cublas(CudaDevice& device, const std::string&, ProductsOf) {
  throw Error(ErrorCode::Device,
              device.name() +
                  ": training needs cuBLAS, whose header was missing when this program was built; "
                  "DECOSCOPE_CUBLAS=own uses this program's slower products");
}

#endif

}  // namespace kernels::DECOSCOPE_GPU
