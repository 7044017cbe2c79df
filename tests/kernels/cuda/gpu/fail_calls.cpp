// Stands before CUDA's runtime (LD_PRELOAD, or earlier in the order of linking) and makes one of a
// program's calls fail, to see what the program makes of it:
//   DECOSCOPE_FAIL_CALL=N    the N-th call returns cudaErrorUnknown, and is not made; 0: none
//   DECOSCOPE_FAIL_LOG=FILE  gets "calls made, call that failed" when the program ends
// The emulated device has the same in emulation::fail_call. The program has to be linked with the
// shared runtime (DECOSCOPE_SHARED_CUDART=ON).
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>

namespace {

class Turns {
 public:
  Turns() {
    const char* asked = std::getenv("DECOSCOPE_FAIL_CALL");
    fails_ = asked ? std::atoll(asked) : 0;
  }
  ~Turns() {
    const char* path = std::getenv("DECOSCOPE_FAIL_LOG");
    std::FILE* file = path ? std::fopen(path, "w") : nullptr;
    if (!file) return;
    std::fprintf(file, "%lld %s\n", n_.load(), failed_.load() ? failed_.load() : "-");
    std::fclose(file);
  }
  /// Whether this call is the one.
  bool now(const char* name) {
    if (++n_ != fails_) return false;
    failed_ = name;
    return true;
  }

 private:
  long long fails_ = 0;
  std::atomic<long long> n_{0};
  std::atomic<const char*> failed_{nullptr};
};

Turns& turns() {
  static Turns all;
  return all;
}

/// The runtime's own, behind this library.
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
    if (turns().now(#name)) return cudaErrorUnknown;                 \
    static const auto behind = real<decltype(name)>(#name, nullptr); \
    return behind(__VA_ARGS__);                                      \
  }

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
STANDS_BEFORE(
    cudaMemsetAsync, (void* to, int value, size_t n, cudaStream_t stream), to, value, n, stream)
STANDS_BEFORE(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), stream, flags)
STANDS_BEFORE(cudaStreamDestroy, (cudaStream_t stream), stream)
STANDS_BEFORE(cudaStreamSynchronize, (cudaStream_t stream), stream)
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
