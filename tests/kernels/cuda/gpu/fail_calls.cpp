// Wraps CUDA's runtime (LD_PRELOAD, or linked before it) and makes one of a program's calls fail:
//   DECOSCOPE_FAIL_CALL=N    the N-th call returns cudaErrorUnknown and is not made; 0: none
//   DECOSCOPE_FAIL_ERROR=E   it returns this error instead, a number of cudaError_t
//   DECOSCOPE_FAIL_FOR_GOOD=1  every later CUDA call fails too, as after a bad address
//   DECOSCOPE_FAIL_LOG=FILE  receives "calls made, call that failed" when the program ends
// It also wraps cuBLAS (DECOSCOPE_CUBLAS), whose calls count too and return
// CUBLAS_STATUS_INTERNAL_ERROR:
//   DECOSCOPE_FAIL_CUBLAS=FILE  the real cuBLAS
// The emulated device has the same in emulation::fail_call. The program must be linked with the
// shared runtime (DECOSCOPE_SHARED_CUDART=ON).
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#define DECOSCOPE_HAS_CUBLAS
#endif

namespace {

class Turns {
 public:
  Turns() {
    const char* asked = std::getenv("DECOSCOPE_FAIL_CALL");
    const char* error = std::getenv("DECOSCOPE_FAIL_ERROR");
    fails_ = asked ? std::atoll(asked) : 0;
    error_ = error ? static_cast<cudaError_t>(std::atoi(error)) : cudaErrorUnknown;
    for_good_ = std::getenv("DECOSCOPE_FAIL_FOR_GOOD") != nullptr;
  }
  ~Turns() {
    const char* path = std::getenv("DECOSCOPE_FAIL_LOG");
    std::FILE* file = path ? std::fopen(path, "w") : nullptr;
    if (!file) return;
    std::fprintf(file, "%lld %s\n", n_.load(), failed_.load() ? failed_.load() : "-");
    std::fclose(file);
  }
  /// True for the call that must fail.
  bool now(const char* name) {
    if (++n_ != fails_) return false;
    failed_ = name;
    return true;
  }
  /// True for that call, and for all later ones if it fails for good.
  bool now_or_later(const char* name) { return now(name) || (for_good_ && failed_.load()); }
  cudaError_t error() const { return error_; }

 private:
  long long fails_ = 0;
  cudaError_t error_ = cudaErrorUnknown;
  bool for_good_ = false;
  std::atomic<long long> n_{0};
  std::atomic<const char*> failed_{nullptr};
};

Turns& turns() {
  static Turns all;
  return all;
}

/// The runtime's own function.
template <typename F>
F* real(const char* name, F*) {
  F* const found = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
  if (!found) {
    std::fprintf(stderr, "fail_calls: %s: not in CUDA's runtime\n", name);
    std::abort();
  }
  return found;
}

}  // namespace

#define STANDS_BEFORE(name, parameters, ...)                         \
  extern "C" cudaError_t name parameters {                           \
    if (turns().now_or_later(#name)) return turns().error();         \
    static const auto behind = real<decltype(name)>(#name, nullptr); \
    return behind(__VA_ARGS__);                                      \
  }

STANDS_BEFORE(cudaDriverGetVersion, (int* version), version)
STANDS_BEFORE(cudaRuntimeGetVersion, (int* version), version)
STANDS_BEFORE(cudaGetDeviceCount, (int* n), n)
STANDS_BEFORE(cudaGetDeviceProperties, (cudaDeviceProp * found, int device), found, device)
STANDS_BEFORE(cudaSetDevice, (int device), device)
STANDS_BEFORE(cudaMemGetInfo, (size_t * free, size_t* total), free, total)
STANDS_BEFORE(cudaMalloc, (void** data, size_t bytes), data, bytes)
STANDS_BEFORE(cudaFree, (void* data), data)
STANDS_BEFORE(cudaMallocHost, (void** data, size_t bytes), data, bytes)
STANDS_BEFORE(cudaFreeHost, (void* data), data)
STANDS_BEFORE(cudaMemcpyAsync,
              (void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t stream),
              to,
              from,
              n,
              kind,
              stream)
STANDS_BEFORE(cudaMemcpy2DAsync,
              (void* to,
               size_t pitch,
               const void* from,
               size_t from_pitch,
               size_t width,
               size_t height,
               cudaMemcpyKind kind,
               cudaStream_t stream),
              to,
              pitch,
              from,
              from_pitch,
              width,
              height,
              kind,
              stream)
STANDS_BEFORE(
    cudaMemsetAsync, (void* to, int value, size_t n, cudaStream_t stream), to, value, n, stream)
STANDS_BEFORE(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), stream, flags)
STANDS_BEFORE(cudaStreamDestroy, (cudaStream_t stream), stream)
STANDS_BEFORE(cudaStreamSynchronize, (cudaStream_t stream), stream)
STANDS_BEFORE(cudaStreamQuery, (cudaStream_t stream), stream)
STANDS_BEFORE(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), event, flags)
STANDS_BEFORE(cudaEventDestroy, (cudaEvent_t event), event)
STANDS_BEFORE(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), event, stream)
STANDS_BEFORE(cudaEventSynchronize, (cudaEvent_t event), event)
STANDS_BEFORE(cudaDeviceGetAttribute,
              (int* value, cudaDeviceAttr attribute, int device),
              value,
              attribute,
              device)
STANDS_BEFORE(cudaFuncGetAttributes,
              (cudaFuncAttributes * found, const void* kernel),
              found,
              kernel)
STANDS_BEFORE(cudaFuncSetAttribute,
              (const void* kernel, cudaFuncAttribute attribute, int value),
              kernel,
              attribute,
              value)
STANDS_BEFORE(
    cudaLaunchKernel,
    (const void* kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream),
    kernel,
    grid,
    block,
    args,
    shared,
    stream)
STANDS_BEFORE(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags), graph, flags)
STANDS_BEFORE(cudaGraphDestroy, (cudaGraph_t graph), graph)
STANDS_BEFORE(cudaGraphAddKernelNode,
              (cudaGraphNode_t * node,
               cudaGraph_t graph,
               const cudaGraphNode_t* dependencies,
               size_t n,
               const cudaKernelNodeParams* params),
              node,
              graph,
              dependencies,
              n,
              params)
#define STANDS_BEFORE_EDGES(name)                                                           \
  STANDS_BEFORE(name,                                                                       \
                (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, \
                 const cudaGraphEdgeData* edges, size_t n),                                 \
                graph, from, to, edges, n)
#if CUDART_VERSION >= 13000
STANDS_BEFORE_EDGES(cudaGraphAddDependencies)
#else
STANDS_BEFORE(cudaGraphAddDependencies,
              (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t n),
              graph,
              from,
              to,
              n)
#if CUDART_VERSION >= 12030
STANDS_BEFORE_EDGES(cudaGraphAddDependencies_v2)
#endif
#endif
STANDS_BEFORE(cudaGraphInstantiateWithFlags,
              (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
              exec,
              graph,
              flags)
STANDS_BEFORE(cudaGraphExecKernelNodeSetParams,
              (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaKernelNodeParams* params),
              exec,
              node,
              params)
STANDS_BEFORE(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), exec, stream)
STANDS_BEFORE(cudaGraphExecDestroy, (cudaGraphExec_t exec), exec)

#if defined(DECOSCOPE_HAS_CUBLAS)

namespace {

template <typename F>
F* of_cublas(const char* name, F*) {
  const char* file = std::getenv("DECOSCOPE_FAIL_CUBLAS");
  void* library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
  F* const found = library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
  if (!found) {
    std::fprintf(stderr, "fail_calls: %s: not in DECOSCOPE_FAIL_CUBLAS\n", name);
    std::abort();
  }
  return found;
}

}  // namespace

#define STANDS_FOR_CUBLAS(name, types, parameters, ...)                         \
  extern "C" cublasStatus_t name parameters {                                   \
    if (turns().now(#name)) return CUBLAS_STATUS_INTERNAL_ERROR;                \
    static const auto behind = of_cublas<cublasStatus_t types>(#name, nullptr); \
    return behind(__VA_ARGS__);                                                 \
  }

STANDS_FOR_CUBLAS(cublasCreate_v2, (cublasHandle_t*), (cublasHandle_t * handle), handle)
STANDS_FOR_CUBLAS(cublasDestroy_v2, (cublasHandle_t), (cublasHandle_t handle), handle)
STANDS_FOR_CUBLAS(cublasGetVersion_v2,
                  (cublasHandle_t, int*),
                  (cublasHandle_t handle, int* version),
                  handle,
                  version)
STANDS_FOR_CUBLAS(cublasSetStream_v2,
                  (cublasHandle_t, cudaStream_t),
                  (cublasHandle_t handle, cudaStream_t stream),
                  handle,
                  stream)
STANDS_FOR_CUBLAS(cublasSetWorkspace_v2,
                  (cublasHandle_t, void*, size_t),
                  (cublasHandle_t handle, void* workspace, size_t bytes),
                  handle,
                  workspace,
                  bytes)
STANDS_FOR_CUBLAS(cublasSetMathMode,
                  (cublasHandle_t, cublasMath_t),
                  (cublasHandle_t handle, cublasMath_t mode),
                  handle,
                  mode)
STANDS_FOR_CUBLAS(cublasSetAtomicsMode,
                  (cublasHandle_t, cublasAtomicsMode_t),
                  (cublasHandle_t handle, cublasAtomicsMode_t mode),
                  handle,
                  mode)
STANDS_FOR_CUBLAS(cublasGemmEx,
                  (cublasHandle_t,
                   cublasOperation_t,
                   cublasOperation_t,
                   int,
                   int,
                   int,
                   const void*,
                   const void*,
                   cudaDataType,
                   int,
                   const void*,
                   cudaDataType,
                   int,
                   const void*,
                   void*,
                   cudaDataType,
                   int,
                   cublasComputeType_t,
                   cublasGemmAlgo_t),
                  (cublasHandle_t handle,
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
                   cublasGemmAlgo_t algorithm),
                  handle,
                  of_a,
                  of_b,
                  m,
                  n,
                  k,
                  alpha,
                  a,
                  type_a,
                  lda,
                  b,
                  type_b,
                  ldb,
                  beta,
                  c,
                  type_c,
                  ldc,
                  compute,
                  algorithm)

extern "C" const char* cublasGetStatusName(cublasStatus_t status) {
  static const auto behind = of_cublas<const char*(cublasStatus_t)>("cublasGetStatusName", nullptr);
  return behind(status);
}

#endif
