// CUDA in plain C++: with this header instead of CUDA's own, the same .cu and .cuh files compile with any C++20 compiler
// and run on the CPU, block by block, each GPU thread on a fiber of its own (fiber.h).
//   barriers      __syncthreads, __syncwarp, shuffles, votes, load_tiles and multiply_tile suspend a thread until the
//                 threads that it synchronises with have reached the same line
//   memory        marks precede device memory, and an inaccessible page follows it; shared memory is filled with a
//                 pattern before each block, and an inaccessible page follows it
//   async copies  happen when the kernel waits for them; until then the target holds garbage
//   streams       work only when the host waits for them
//   vectors       uint2, uint4, float4 and asynchronous copies need addresses that are multiples of their size
//   limits        static and dynamic shared memory together: 48 KiB, or 99 KiB if the kernel's attribute allows more
//   sums          multiply_tile adds its 16 products in order of k, each rounded to f32; a GPU's tensor core adds several
//                 at a time and may truncate
//   missing       paths of other architectures, textures, cooperative groups: no kernel of this program uses them
// emulation_checks.h describes which faults of kernels it finds.
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

/// CUDA's vector of three.
struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
/// Reports a misaligned access: a fault in a kernel, ignored outside.
void misaligned(std::size_t bytes);
/// Checks that vectors are accessed at multiples of their size, as a GPU requires.
/// @param places  addresses, combined with bitwise or
inline void expect_aligned(std::uintptr_t places, std::size_t bytes) {
  if (places % bytes != 0) misaligned(bytes);
}
/// An address as a number.
inline std::uintptr_t place(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}
/// CUDA's vector of two; copies check their alignment, as those of the next two types.
struct alignas(8) uint2 {
  unsigned x, y;
  uint2() = default;
  /// From its elements.
  uint2(unsigned of_x, unsigned of_y) : x(of_x), y(of_y) {}
  /// Checks the alignment.
  uint2(const uint2& from) { *this = from; }
  /// Checks the alignment.
  uint2& operator=(const uint2& from) {
    expect_aligned(place(&from) | place(this), sizeof *this);
    x = from.x, y = from.y;
    return *this;
  }
};
/// CUDA's vector of four.
struct alignas(16) uint4 {
  unsigned x, y, z, w;
  uint4() = default;
  /// From its elements.
  uint4(unsigned of_x, unsigned of_y, unsigned of_z, unsigned of_w)
      : x(of_x), y(of_y), z(of_z), w(of_w) {}
  /// Checks the alignment.
  uint4(const uint4& from) { *this = from; }
  /// Checks the alignment.
  uint4& operator=(const uint4& from) {
    expect_aligned(place(&from) | place(this), sizeof *this);
    x = from.x, y = from.y, z = from.z, w = from.w;
    return *this;
  }
};
/// CUDA's vector of four floats.
struct alignas(16) float4 {
  float x, y, z, w;
  float4() = default;
  /// From its elements.
  float4(float of_x, float of_y, float of_z, float of_w) : x(of_x), y(of_y), z(of_z), w(of_w) {}
  /// Checks the alignment.
  float4(const float4& from) { *this = from; }
  /// Checks the alignment.
  float4& operator=(const float4& from) {
    expect_aligned(place(&from) | place(this), sizeof *this);
    x = from.x, y = from.y, z = from.z, w = from.w;
    return *this;
  }
};
/// Extent of a grid or a block.
struct dim3 {
  unsigned x, y, z;
  /// Missing extents are 1.
  constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1)
      : x(of_x), y(of_y), z(of_z) {}
};

/// Indices of the thread that runs now.
struct Running {
  uint3 thread, block;
  uint3 n_threads, n_blocks;
  int lane;
  unsigned char* dynamic_shared;
};
extern constinit thread_local Running running;

/// One index, read from `running`.
template <uint3 Running::*kWhich, unsigned uint3::*kAxis>
struct Index {
  /// Its current value.
  operator unsigned() const { return running.*kWhich.*kAxis; }
};
/// Three indices: threadIdx, blockIdx, blockDim or gridDim.
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

/// The line of a synchronisation, for messages.
using Where = std::source_location;

// ---- synchronisation

/// Suspends the thread until all threads of the block have reached `where`.
void sync_block(Where where);
/// Work of a warp: receives the payloads of all lanes and the mask of lanes.
using Perform = void (*)(void* const* payloads, unsigned lanes);
/// Suspends the lane until all lanes of `mask` have reached `where`. The last one calls perform(payloads, mask).
void sync_warp(unsigned mask, void* payload, Perform perform, Where where);

/// Barrier of the block.
inline void __syncthreads(Where where = Where::current()) {
  sync_block(where);
}
/// Barrier of the lanes of `mask`.
inline void __syncwarp(unsigned mask = ~0u, Where where = Where::current()) {
  sync_warp(
      mask, nullptr, [](void* const*, unsigned) {}, where);
}
/// Nothing to do: fibers run one at a time.
inline void __threadfence() {}

/// Payload of a shuffle.
template <class T>
struct Shuffled {
  T in, out;
  int source;
};
/// The value of lane `source`.
template <class T>
T shuffle(unsigned mask, T value, int source, Where where) {
  static_assert(std::is_trivially_copyable_v<T>);
  Shuffled<T> own{value, value, source};
  const auto exchange = [](void* const* payloads, unsigned lanes) {
    for (int lane = 0; lane < 32; lane++) {
      if (!(lanes >> lane & 1)) continue;
      auto& to = *static_cast<Shuffled<T>*>(payloads[lane]);
      // The value of a lane outside the mask is undefined.
      if (lanes >> to.source & 1)
        to.out = static_cast<Shuffled<T>*>(payloads[to.source])->in;
      else
        std::memset(static_cast<void*>(&to.out), 0xff, sizeof(T));
    }
  };
  sync_warp(mask, &own, exchange, where);
  return own.out;
}
/// The value of lane `source`.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int = 32, Where where = Where::current()) {
  return shuffle(mask, value, source & 31, where);
}
/// The value of the lane whose number is this one's xor `by`.
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by, int = 32, Where where = Where::current()) {
  return shuffle(mask, value, (running.lane ^ by) & 31, where);
}
/// The value of the lane `by` above; past the warp, the own value.
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int = 32, Where where = Where::current()) {
  const int from = running.lane + static_cast<int>(by);
  return shuffle(mask, value, from < 32 ? from : running.lane, where);
}
/// The value of the lane `by` below; before the warp, the own value.
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int = 32, Where where = Where::current()) {
  const int from = running.lane - static_cast<int>(by);
  return shuffle(mask, value, from >= 0 ? from : running.lane, where);
}
/// The lanes that vote true, as a mask.
unsigned __ballot_sync(unsigned mask, bool vote, Where where = Where::current());
/// True if a lane votes true.
inline bool __any_sync(unsigned mask, bool vote, Where where = Where::current()) {
  return __ballot_sync(mask, vote, where) != 0;
}
/// True if all lanes vote true.
inline bool __all_sync(unsigned mask, bool vote, Where where = Where::current()) {
  return __ballot_sync(mask, !vote, where) == 0;
}

// ---- shared memory

/// Memory of a static object of the block, by its key.
void* static_shared_memory(const void* key, std::size_t bytes);
template <class T>
inline constexpr char kSharedKey = 0;
/// One object of type T in the block's shared memory; its constructor does not run.
template <class T>
T& static_shared() {
  static_assert(alignof(T) <= 16);
  return *static_cast<T*>(static_shared_memory(&kSharedKey<T>, sizeof(T)));
}
/// The launch's dynamic shared memory, 16-byte aligned.
inline unsigned char* dynamic_shared() {
  return running.dynamic_shared;
}

// ---- atomics. Fibers run one at a time, so plain reads and writes are atomic; each returns the old value

/// *to += value.
template <class T>
T atomicAdd(T* to, std::type_identity_t<T> value) {
  const T old = *to;
  *to = old + value;
  return old;
}
/// *to = min(*to, value).
template <class T>
T atomicMin(T* to, std::type_identity_t<T> value) {
  const T old = *to;
  if (value < old) *to = value;
  return old;
}
/// *to = max(*to, value).
template <class T>
T atomicMax(T* to, std::type_identity_t<T> value) {
  const T old = *to;
  if (value > old) *to = value;
  return old;
}
/// *to = value.
template <class T>
T atomicExch(T* to, std::type_identity_t<T> value) {
  const T old = *to;
  *to = value;
  return old;
}
/// *to = value if *to equals `expected`.
template <class T>
T atomicCAS(T* to, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const T old = *to;
  if (old == expected) *to = value;
  return old;
}

// ---- asynchronous copies to shared memory, 16 bytes each

/// Records a copy of 16 bytes, made when the thread waits for it.
void copy_async_16(void* to_shared, const void* from);
/// Ends a group of copies.
void copy_async_commit();
/// Makes the copies of all groups of this thread except its last n.
void copy_async_wait(int n);

// ---- twins of intrinsics.cuh

/// Returns the lowest lane below n that holds the same number, or this lane.
inline int first_same_lane(int x, int n, Where where = Where::current()) {
  int first = static_cast<int>(threadIdx.x % 32);
  for (int other = n - 1; other >= 0; other--)
    if (__shfl_sync(~0u, x, other, 32, where) == x) first = other;
  return first;
}
/// Barrier of the 128 threads of a group; the emulation synchronises the block.
inline void sync_group(int, Where where = Where::current()) {
  sync_block(where);
}
/// Does nothing.
inline void let_next_begin() {}
/// Records that this thread made the call. In a kernel with a programmatic edge, every thread must
/// make it.
void wait_for_earlier();
/// Only checks that the bytes lie in one allocation, at multiples of 16.
void prefetch_to_cache(const void* data, unsigned bytes);
/// A plain load.
inline uint4 load_streamed(const uint4* from) {
  return *from;
}

// ---- bits of numbers

/// The float with these bits.
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
/// The bits of a float.
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
/// Number of 1 bits.
inline int __popc(unsigned x) {
  return std::popcount(x);
}
/// High word of a product.
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

/// Half types of the tensor cores.
enum class Half { F16, Bf16 };
/// A lane's operands of multiply_tile.
struct TileOperands {
  Half type;
  float* d;
  const unsigned *a, *b;
};
/// The product of a warp.  payloads: TileOperands of all 32 lanes; fewer are a fault
void multiply_fragments(void* const* payloads, unsigned lanes);
/// d += a b for a warp: 16 x 16 times 16 x 8, in the fragments of PTX mma.m16n8k16 (row, col).
inline void multiply_tile(Half type,
                          float (&d)[4],
                          const unsigned (&a)[4],
                          const unsigned (&b)[2],
                          Where where = Where::current()) {
  TileOperands own{type, d, a, b};
  sync_warp(~0u, &own, multiply_fragments, where);
}

/// A lane's arguments of load_tiles.
struct TilePlaces {
  const void* row;
  unsigned* tiles;  // [4]
};
/// Loads the tiles of a warp.  payloads: TilePlaces of all 32 lanes; fewer are a fault
template <bool kTransposed>
void share_tiles(void* const* payloads, unsigned lanes);
extern template void share_tiles<false>(void* const*, unsigned);
extern template void share_tiles<true>(void* const*, unsigned);
/// Loads four tiles of 8 x 8 halves from shared memory. Lane l passes the address of row l % 8 of tile l / 8, and gets
/// two halves of row l / 4 of each tile, from column l % 4 * 2 on.
inline void load_tiles(unsigned (&tiles)[4], const void* row, Where where = Where::current()) {
  expect_aligned(place(row), 16);
  TilePlaces own{row, tiles};
  sync_warp(~0u, &own, share_tiles<false>, where);
}
/// The same for transposed tiles: two halves of column l / 4, from row l % 4 * 2 on.
inline void load_tiles_transposed(unsigned (&tiles)[4],
                                  const void* row,
                                  Where where = Where::current()) {
  expect_aligned(place(row), 16);
  TilePlaces own{row, tiles};
  sync_warp(~0u, &own, share_tiles<true>, where);
}

// ---- the part of the CUDA runtime that this program uses. fail_call() can make any call fail

/// Errors, with CUDA's numbers.
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
/// Direction of a copy.
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
struct Stream;
struct Event;
using cudaStream_t = Stream*;
using cudaEvent_t = Event*;
/// Identity of a device.
struct cudaUUID_t {
  char bytes[16];
};
/// Properties of a device; the members in use.
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int major, minor, multiProcessorCount;
  int pciDomainID, pciBusID, pciDeviceID;
  cudaUUID_t uuid;
};
/// Attributes of a kernel.
struct cudaFuncAttributes {
  std::size_t sharedSizeBytes;  // static objects that earlier runs of the kernel have used
};
/// Settable attributes of a kernel.
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize,
  cudaFuncAttributePreferredSharedMemoryCarveout
};
inline constexpr int cudaSharedmemCarveoutMaxShared = 100;  // percent
/// Attributes of a device.
enum cudaDeviceAttr {
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrMultiProcessorCount
};
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDisableTiming = 2;

/// "cudaErrorUnknown".
const char* cudaGetErrorName(cudaError_t error);
/// A description of an error.
const char* cudaGetErrorString(cudaError_t error);
/// Returns the version that driver_version() set.
cudaError_t cudaDriverGetVersion(int* version);
/// 13000.
cudaError_t cudaRuntimeGetVersion(int* version);
/// The count is always 1.
cudaError_t cudaGetDeviceCount(int* count);
/// Title, memory and capability (emulation_checks.h).
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
/// Accepts only device 0.
cudaError_t cudaSetDevice(int device);
/// Device memory between marks and an inaccessible page.
cudaError_t cudaMalloc(void** data, std::size_t bytes);
/// Does the pending work of this thread, then frees the memory.
cudaError_t cudaFree(void* data);
/// Host memory.
cudaError_t cudaMallocHost(void** data, std::size_t bytes);
/// Frees it.
cudaError_t cudaFreeHost(void* data);
/// Free and total bytes under limit_memory().
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
/// Adds a copy to the stream.
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
/// Adds a copy of rows of `width` bytes, `pitch` apart in the target and `from_pitch` apart in the source.
cudaError_t cudaMemcpy2DAsync(void* to,
                              std::size_t pitch,
                              const void* from,
                              std::size_t from_pitch,
                              std::size_t width,
                              std::size_t height,
                              cudaMemcpyKind kind,
                              cudaStream_t stream);
/// Adds a memset to the stream.
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
/// A stream without work.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
/// Does the stream's work and frees it.
cudaError_t cudaStreamDestroy(cudaStream_t stream);
/// Does the stream's work.
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
/// Does the stream's work, unless work_never_ends() is set.
cudaError_t cudaStreamQuery(cudaStream_t stream);
/// An event.
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
/// Frees it.
cudaError_t cudaEventDestroy(cudaEvent_t event);
/// Stores the stream in the event.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
/// Does all work of the event's stream.
cudaError_t cudaEventSynchronize(cudaEvent_t event);
/// The last error of this thread, which it clears.
cudaError_t cudaGetLastError();
/// An attribute of the device.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
/// Attributes of a kernel.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);
/// Sets an attribute of a kernel.
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);

/// A call of a kernel with copies of the arguments that these pointers point to.
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
/// bound() for a kernel's parameter types.
using Bind = std::function<void()> (*)(const void* handle, void** arguments);
/// Registers how to call a kernel, because later calls name it only by its handle. (nvcc generates
/// such registrations.)
void know_kernel(const void* handle, const char* name, std::size_t n_arguments, Bind bind);

/// The runtime's handle of a kernel; registers the kernel.
template <class... P>
const void* handle_of(const char* name, void (*kernel)(P...)) {
  const void* handle = reinterpret_cast<const void*>(kernel);
  know_kernel(handle, name, sizeof...(P), bound<P...>);
  return handle;
}

/// Adds a kernel to the stream with copies of its arguments.
cudaError_t cudaLaunchKernel(const void* kernel,
                             dim3 grid,
                             dim3 block,
                             void** arguments,
                             std::size_t shared_bytes,
                             cudaStream_t stream);

// Graphs of kernels (graphs.cpp). Nodes run in the allowed order that differs most from the order of their creation. With
// Watch::Orders they run in both.

struct Graph;
struct GraphNode;
struct GraphExec;
using cudaGraph_t = Graph*;
using cudaGraphNode_t = GraphNode*;
using cudaGraphExec_t = GraphExec*;
/// A kernel launch as a node.
struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;  // null
};
/// An empty graph.
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags);
/// Frees it.
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
/// Adds a kernel that runs after its dependencies.
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node,
                                   cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies,
                                   std::size_t n_dependencies,
                                   const cudaKernelNodeParams* params);
/// Adds a programmatic edge: `to` may start before `from` has ended, and all its threads must call wait_for_earlier().
cudaError_t add_early_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to);
/// A launchable copy of a graph.
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec,
                                          cudaGraph_t graph,
                                          unsigned long long flags);
/// Updates grid, block and arguments of a node for later launches. The kernel must be the same, and the graph must exist.
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec,
                                             cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params);
/// Adds a graph to the stream.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
/// Frees it.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

}  // namespace kernels::emulation
