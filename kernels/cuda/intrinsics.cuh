// Wrappers of PTX instructions. The emulation has the same functions. Instructions of Hopper only are in row_tiles.cuh.
#pragma once

#include "kernels/cuda/platform.h"

#if !defined(DECOSCOPE_CUDA_EMULATION)

namespace kernels::cuda {

/// Half types of the tensor cores.
enum class Half { F16, Bf16 };

/// d += a b for a warp: 16 x 16 times 16 x 8, in the fragments of PTX mma.m16n8k16 (row, col).
/// Inputs of the given type, sums in f32.
__device__ inline void multiply_tile(Half type,
                                     float (&d)[4],
                                     const unsigned (&a)[4],
                                     const unsigned (&b)[2]) {
  if (type == Half::Bf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

/// Loads four tiles of 8 x 8 halves from shared memory. Lane l passes the address of row l % 8 of tile l / 8, and gets
/// two halves of row l / 4 of each tile, from column l % 4 * 2 on.
__device__ inline void load_tiles(unsigned (&tiles)[4], const void* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
               : "r"(from)
               : "memory");
}
/// The same for transposed tiles: two halves of column l / 4, from row l % 4 * 2 on.
__device__ inline void load_tiles_transposed(unsigned (&tiles)[4], const void* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
               : "r"(from)
               : "memory");
}

/// Starts a copy of 16 bytes from device to shared memory, past the registers and the L1 cache.
__device__ inline void copy_async_16(void* to_shared, const void* from) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
/// Ends a group of this thread's copies.
__device__ inline void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most n of this thread's groups are incomplete; n is a constant, 0 to 3.
__device__ __forceinline__ void copy_async_wait(int n) {
  switch (n) {
    case 0:
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      break;
    case 1:
      asm volatile("cp.async.wait_group 1;" ::: "memory");
      break;
    case 2:
      asm volatile("cp.async.wait_group 2;" ::: "memory");
      break;
    default:
      asm volatile("cp.async.wait_group 3;" ::: "memory");
      break;
  }
}

/// Allows the next kernel of the graph to start once every block of this kernel has called this (programmatic dependent
/// launch).
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Waits for all earlier kernels and their writes. A kernel that may start early calls it in every thread; before that
/// it only touches memory that no kernel of a step writes.
__device__ inline void wait_for_earlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Returns the lowest lane of the warp that holds the same number.
__device__ inline int first_same_lane(int x, int) {
  return __ffs(static_cast<int>(__match_any_sync(0xffffffffu, x))) - 1;
}
/// Barrier of the 128 threads of a group.
__device__ inline void sync_group(int group) {
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}
/// Loads 16 bytes that are read once, past the L1 cache.
__device__ inline uint4 load_streamed(const uint4* from) {
  return __ldcs(from);
}
/// Prefetches [data, data + bytes), both multiples of 16, into the L2 cache. One thread calls it.
__device__ inline void prefetch_to_cache(const void* data, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(data)),
               "r"(bytes)
               : "memory");
#endif
}

}  // namespace kernels::cuda

#endif
