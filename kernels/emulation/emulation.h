// What CUDA gives a kernel, in plain C++: with this header in place of CUDA's own, the same .cu and
// .cuh files compile with any C++20 compiler and run on the CPU, block by block, every GPU thread
// on a fiber of its own (fiber.h).
//   barriers     __syncthreads, __syncwarp, shuffles, votes, load_tiles and multiply_tile stop a
//                thread until those it meets have come to the same line
//   memory       device memory ends at a page nobody may touch and begins behind marks; shared
//                memory is filled with a pattern before each block, and ends likewise
//   async copies are made when they are waited for, no sooner; until then the place holds rubbish
//   streams      do their work when somebody waits for them, no sooner
//   vectors      uint2, uint4 and float4 are copied as a whole from and to multiples of their size
//                alone, as asynchronous copies are
//   limits       static and dynamic shared memory together: 48 KiB, or what every GPU has that
//                this project names where the kernel was allowed more
//   sums         multiply_tile adds its 16 products to the sum in order of k, each rounded to f32;
//                a GPU's tensor core adds several at a time and may truncate
//   not here     other architectures' paths, textures, cooperative groups: no kernel here uses them
// What it catches while it runs is told by check_kernels() in emulation_checks.h.
#pragma once

#include <math.h>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__

namespace kernels::emulation {

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
/// In a kernel it is a fault; outside, nothing.
void misaligned(std::size_t bytes);
/// A GPU reads and writes vectors at multiples of their size alone: in a kernel another place is a
/// fault.
/// @param places  addresses, joined by "or"
inline void expect_aligned(std::uintptr_t places, std::size_t bytes) {
  if (places % bytes != 0) misaligned(bytes);
}
inline std::uintptr_t place(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}
struct alignas(8) uint2 {
  unsigned x, y;
  uint2() = default;
  uint2(unsigned of_x, unsigned of_y) : x(of_x), y(of_y) {}
  uint2(const uint2& from) { *this = from; }
  uint2& operator=(const uint2& from) {
    expect_aligned(place(&from) | place(this), sizeof *this);
    x = from.x, y = from.y;
    return *this;
  }
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
  uint4() = default;
  uint4(unsigned of_x, unsigned of_y, unsigned of_z, unsigned of_w)
      : x(of_x), y(of_y), z(of_z), w(of_w) {}
  uint4(const uint4& from) { *this = from; }
  uint4& operator=(const uint4& from) {
    expect_aligned(place(&from) | place(this), sizeof *this);
    x = from.x, y = from.y, z = from.z, w = from.w;
    return *this;
  }
};
struct alignas(16) float4 {
  float x, y, z, w;
  float4() = default;
  float4(float of_x, float of_y, float of_z, float of_w) : x(of_x), y(of_y), z(of_z), w(of_w) {}
  float4(const float4& from) { *this = from; }
  float4& operator=(const float4& from) {
    expect_aligned(place(&from) | place(this), sizeof *this);
    x = from.x, y = from.y, z = from.z, w = from.w;
    return *this;
  }
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1)
      : x(of_x), y(of_y), z(of_z) {}
};

/// Of the thread that runs now.
struct Running {
  uint3 thread, block;
  uint3 n_threads, n_blocks;
  int lane;
  unsigned char* dynamic_shared;
};
extern constinit thread_local Running running;

// threadIdx and its like read what `running` says.
template <uint3 Running::*kWhich, unsigned uint3::*kAxis>
struct Index {
  operator unsigned() const { return running.*kWhich.*kAxis; }
};
template <uint3 Running::*kWhich>
struct Indices {
  Index<kWhich, &uint3::x> x;
  Index<kWhich, &uint3::y> y;
  Index<kWhich, &uint3::z> z;
};
inline constexpr Indices<&Running::thread> threadIdx{};
inline constexpr Indices<&Running::block> blockIdx{};
inline constexpr Indices<&Running::n_threads> blockDim{};
inline constexpr Indices<&Running::n_blocks> gridDim{};
inline constexpr int warpSize = 32;

using Where = std::source_location;

// ---- meeting points

void meet_block(Where where);
using Perform = void (*)(void* const* payloads, unsigned lanes);
/// Meets the lanes of `mask`; the last to come calls perform(payloads of all lanes, mask).
void meet_warp(unsigned mask, void* payload, Perform perform, Where where);

inline void __syncthreads(Where where = Where::current()) {
  meet_block(where);
}
inline void __syncwarp(unsigned mask = ~0u, Where where = Where::current()) {
  meet_warp(
      mask, nullptr, [](void* const*, unsigned) {}, where);
}
inline void __threadfence() {}

template <class T>
struct Shuffled {
  T in, out;
  int source;
};
template <class T>
T shuffle(unsigned mask, T value, int source, Where where) {
  static_assert(std::is_trivially_copyable_v<T>);
  Shuffled<T> own{value, value, source};
  const auto exchange = [](void* const* payloads, unsigned lanes) {
    for (int lane = 0; lane < 32; lane++) {
      if (!(lanes >> lane & 1)) continue;
      auto& to = *static_cast<Shuffled<T>*>(payloads[lane]);
      // What a lane outside the mask holds means nothing.
      if (lanes >> to.source & 1)
        to.out = static_cast<Shuffled<T>*>(payloads[to.source])->in;
      else
        std::memset(static_cast<void*>(&to.out), 0xff, sizeof(T));
    }
  };
  meet_warp(mask, &own, exchange, where);
  return own.out;
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int = 32, Where where = Where::current()) {
  return shuffle(mask, value, source & 31, where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by, int = 32, Where where = Where::current()) {
  return shuffle(mask, value, (running.lane ^ by) & 31, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int = 32, Where where = Where::current()) {
  const int from = running.lane + static_cast<int>(by);
  return shuffle(mask, value, from < 32 ? from : running.lane, where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int = 32, Where where = Where::current()) {
  const int from = running.lane - static_cast<int>(by);
  return shuffle(mask, value, from >= 0 ? from : running.lane, where);
}
unsigned __ballot_sync(unsigned mask, bool vote, Where where = Where::current());
inline bool __any_sync(unsigned mask, bool vote, Where where = Where::current()) {
  return __ballot_sync(mask, vote, where) != 0;
}
inline bool __all_sync(unsigned mask, bool vote, Where where = Where::current()) {
  return __ballot_sync(mask, !vote, where) == 0;
}

// ---- shared memory

void* static_shared_memory(const void* key, std::size_t bytes);
template <class T>
inline constexpr char kSharedKey = 0;
/// One object of type T in the block's shared memory; its constructor does not run.
template <class T>
T& static_shared() {
  static_assert(alignof(T) <= 16);
  return *static_cast<T*>(static_shared_memory(&kSharedKey<T>, sizeof(T)));
}
/// What the launch asked for, 16-byte aligned.
inline unsigned char* dynamic_shared() {
  return running.dynamic_shared;
}

// ---- atomics: fibers of one thread take turns, so plain reads and writes are atomic

template <class T>
T atomicAdd(T* to, std::type_identity_t<T> value) {
  const T old = *to;
  *to = old + value;
  return old;
}
template <class T>
T atomicMin(T* to, std::type_identity_t<T> value) {
  const T old = *to;
  if (value < old) *to = value;
  return old;
}
template <class T>
T atomicMax(T* to, std::type_identity_t<T> value) {
  const T old = *to;
  if (value > old) *to = value;
  return old;
}
template <class T>
T atomicExch(T* to, std::type_identity_t<T> value) {
  const T old = *to;
  *to = value;
  return old;
}
template <class T>
T atomicCAS(T* to, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const T old = *to;
  if (old == expected) *to = value;
  return old;
}

// ---- asynchronous copies to shared memory, 16 bytes each

void copy_async_16(void* to_shared, const void* from);
void copy_async_commit();
/// Waits until at most n of this thread's committed groups are not there yet.
void copy_async_wait(int n);

// ---- kernels that begin before those before them have ended

/// Returns the lowest lane below n that holds the same number, or this lane.
inline int first_same_lane(int x, int n, Where where = Where::current()) {
  int first = static_cast<int>(threadIdx.x % 32);
  for (int other = n - 1; other >= 0; other--)
    if (__shfl_sync(~0u, x, other, 32, where) == x) first = other;
  return first;
}
/// Barrier of the 128 threads of a group; the emulation synchronises the block.
inline void meet_group(int, Where where = Where::current()) {
  meet_block(where);
}
inline void let_next_begin() {}
/// Notes of a thread that it did.
void wait_for_earlier();
/// Does nothing but look: the bytes lie in one piece of device memory, at multiples of 16.
void prefetch_to_cache(const void* data, unsigned bytes);
inline uint4 load_streamed(const uint4* from) {
  return *from;
}

// ---- numbers

inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((std::uint64_t{a} * b) >> 32);
}

/// The value of IEEE half bits.
inline float f32_of_f16(unsigned half) {
  const unsigned sign = (half & 0x8000u) << 16, magnitude = (half & 0x7fffu) << 13;
  if (magnitude >= 0x0f800000u) return std::bit_cast<float>(sign | magnitude | 0x7f800000u);
  if (magnitude >= 0x00800000u) return std::bit_cast<float>(sign | (magnitude + 0x38000000u));
  const float value = static_cast<float>(half & 0x3ffu) * 0x1p-24f;  // zero, subnormal
  return std::bit_cast<float>(sign | std::bit_cast<unsigned>(value));
}

enum class Half { F16, Bf16 };
/// Of a lane.
struct TileOperands {
  Half type;
  float* d;
  const unsigned *a, *b;
};
/// payloads: TileOperands of all 32 lanes, in a kernel; fewer are a fault
void multiply_fragments(void* const* payloads, unsigned lanes);
/// d += a b for a warp: 16 x 16 times 16 x 8, in the fragments of PTX mma.m16n8k16 (row, col).
inline void multiply_tile(Half type,
                          float (&d)[4],
                          const unsigned (&a)[4],
                          const unsigned (&b)[2],
                          Where where = Where::current()) {
  TileOperands own{type, d, a, b};
  meet_warp(~0u, &own, multiply_fragments, where);
}

/// Of a lane.
struct TilePlaces {
  const void* row;
  unsigned* tiles;  // [4]
};
/// payloads: TilePlaces of all 32 lanes, in a kernel; fewer are a fault
template <bool kTransposed>
void share_tiles(void* const* payloads, unsigned lanes);
extern template void share_tiles<false>(void* const*, unsigned);
extern template void share_tiles<true>(void* const*, unsigned);
/// Four tiles of 8 by 8 halves from shared memory: lane l points at row l % 8 of tile l / 8. Of
/// each tile it has two halves of row l / 4, from column l % 4 * 2 on.
inline void load_tiles(unsigned (&tiles)[4], const void* row, Where where = Where::current()) {
  expect_aligned(place(row), 16);
  TilePlaces own{row, tiles};
  meet_warp(~0u, &own, share_tiles<false>, where);
}
/// The same of the transposed tiles: two halves of column l / 4, from row l % 4 * 2 on.
inline void load_tiles_transposed(unsigned (&tiles)[4],
                                  const void* row,
                                  Where where = Where::current()) {
  expect_aligned(place(row), 16);
  TilePlaces own{row, tiles};
  meet_warp(~0u, &own, share_tiles<true>, where);
}

// ---- the runtime's calls, as far as they are used; every one may be made to fail

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorECCUncorrectable = 214,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchTimeout = 702,
  cudaErrorAssert = 710,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719,
  cudaErrorUnknown = 999,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
struct Stream;
struct Event;
using cudaStream_t = Stream*;
using cudaEvent_t = Event*;
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int major, minor, multiProcessorCount;
  int pciDomainID, pciBusID, pciDeviceID;
  cudaUUID_t uuid;
};
struct cudaFuncAttributes {
  std::size_t sharedSizeBytes;  // what is known of it: of the static objects that were met so far
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize,
  cudaFuncAttributePreferredSharedMemoryCarveout
};
inline constexpr int cudaSharedmemCarveoutMaxShared = 100;  // percent
enum cudaDeviceAttr {
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrMultiProcessorCount
};
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDisableTiming = 2;

const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMalloc(void** data, std::size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaMallocHost(void** data, std::size_t bytes);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
/// Rows of `width` bytes, `pitch` apart there and `from_pitch` apart here.
cudaError_t cudaMemcpy2DAsync(void* to,
                              std::size_t pitch,
                              const void* from,
                              std::size_t from_pitch,
                              std::size_t width,
                              std::size_t height,
                              cudaMemcpyKind kind,
                              cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
/// Does the stream's work, as a wait does, unless work_never_ends().
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaGetLastError();
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);

/// A kernel that is called with what these pointers point at now.
template <class... P>
std::function<void()> bound(const void* handle, [[maybe_unused]] void** arguments) {
  const auto kernel = reinterpret_cast<void (*)(P...)>(const_cast<void*>(handle));
  return [&]<std::size_t... kI>(std::index_sequence<kI...>)->std::function<void()> {
    return [kernel, kept = std::tuple<P...>(*static_cast<P*>(arguments[kI])...)] {
      std::apply(kernel, kept);
    };
  }
  (std::index_sequence_for<P...>());
}
using Bind = std::function<void()> (*)(const void* handle, void** arguments);
/// Notes how to call a kernel of which the runtime is told no more than its handle, as a compiler
/// of CUDA's does.
void know_kernel(const void* handle, const char* name, std::size_t n_arguments, Bind bind);

/// What a kernel is called by, where the runtime is told about it.
template <class... P>
const void* handle_of(const char* name, void (*kernel)(P...)) {
  const void* handle = reinterpret_cast<const void*>(kernel);
  know_kernel(handle, name, sizeof...(P), bound<P...>);
  return handle;
}

/// Puts a kernel in the stream; its arguments are copied out of where `arguments` point.
cudaError_t cudaLaunchKernel(const void* kernel,
                             dim3 grid,
                             dim3 block,
                             void** arguments,
                             std::size_t shared_bytes,
                             cudaStream_t stream);

// Graphs of kernels (graphs.cpp). Nodes run in an order that their dependencies allow and that is
// as far as they do from the order of their making; where kernels are watched, in both.

struct Graph;
struct GraphNode;
struct GraphExec;
using cudaGraph_t = Graph*;
using cudaGraphNode_t = GraphNode*;
using cudaGraphExec_t = GraphExec*;
struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;  // null
};
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node,
                                   cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies,
                                   std::size_t n_dependencies,
                                   const cudaKernelNodeParams* params);
/// `to` may begin before `from` has ended: all its threads must call wait_for_earlier().
cudaError_t add_early_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec,
                                          cudaGraph_t graph,
                                          unsigned long long flags);
/// The kernel stays the node's, and the graph must still be there.
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec,
                                             cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

}  // namespace kernels::emulation
