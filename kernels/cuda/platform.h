// The first include of every .cu file: CUDA's own header, or that of the emulation. Code below it is the same for both;
// only this file, intrinsics.cuh, row_tiles.cuh, the f16 conversions in math.cuh and the emulation differ.
//   nvcc            namespace kernels::cuda
//   any C++ (with DECOSCOPE_CUDA_EMULATION)   namespace kernels::cuda_emulated
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#if defined(DECOSCOPE_CUDA_EMULATION)

#include "kernels/emulation/emulation.h"
#include "kernels/emulation/emulation_checks.h"

#define DECOSCOPE_GPU cuda_emulated

namespace kernels::cuda_emulated {
using namespace emulation;
inline constexpr bool kEmulated = true;
/// How long a free waits for work that may use the memory.
inline constexpr std::chrono::milliseconds kWorkPatience{50};
/// Details of a fault besides the name of the error; empty: none.
inline std::string fault_details() {
  return fault_text();
}
}  // namespace kernels::cuda_emulated

#else

#include <cuda_runtime.h>

#define DECOSCOPE_GPU cuda

namespace kernels::cuda {

inline constexpr bool kEmulated = false;
/// How long a free waits for work that may use the memory; then the window offers save and exit.
inline constexpr std::chrono::seconds kWorkPatience{60};
/// CUDA gives no details of a fault.
inline std::string fault_details() {
  return {};
}

/// One object of type T in the block's shared memory; its constructor does not run.
template <class T>
__device__ T& static_shared() {
  __shared__ __align__(16) unsigned char bytes[sizeof(T)];
  return *reinterpret_cast<T*>(bytes);
}
/// The launch's dynamic shared memory, aligned to 128 bytes: bulk copies to less aligned addresses run at a quarter of
/// the speed.
__device__ inline unsigned char* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char bytes[];
  return bytes;
}

/// Adds a programmatic edge: `to` may start once every block of `from` has called let_next_begin() or has ended.
inline cudaError_t add_early_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
#if CUDART_VERSION >= 12030
  cudaGraphEdgeData edge = {};
  edge.from_port = cudaGraphKernelNodePortProgrammatic;
  edge.type = cudaGraphDependencyTypeProgrammatic;
#if CUDART_VERSION >= 13000
  return cudaGraphAddDependencies(graph, &from, &to, &edge, 1);
#else
  return cudaGraphAddDependencies_v2(graph, &from, &to, &edge, 1);
#endif
#else
  return cudaGraphAddDependencies(graph, &from, &to, 1);
#endif
}

/// The runtime's handle of a kernel.
template <class... P>
const void* handle_of(const char*, void (*kernel)(P...)) {
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace kernels::cuda

#endif
