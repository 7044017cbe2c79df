// Products of a group of four warps: wgmma on Hopper, which reads the rows in shared memory once
// for all four. Its results must equal those of multiply_tile bit for bit. On an H100 they do
// (measured in bf16 with 8, 16 and 64 rows at a time), and the tests of products check every width.
// Other GPUs and the emulation use multiply_tile.
#pragma once

#include "kernels/cuda/intrinsics.cuh"
#include "kernels/cuda/packed.cuh"
#include "kernels/cuda/platform.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

/// With at least this many tiles of 8 rows, wgmma is faster.
constexpr int kWideTiles = 4;
constexpr int kRowTileBytes = 8 * kChunk * 2;  // of 8 rows in a chunk

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// The matrix descriptor of tiles of 8 rows x 8 k, 128 bytes each, in shared memory: the next rows are 128 bytes away, the
/// next k `k_bytes`. (PTX ISA, "Matrix Descriptor Format": no swizzle.)
__device__ inline std::uint64_t described(const void* shared, int k_bytes) {
  const auto at = static_cast<std::uint64_t>(__cvta_generic_to_shared(shared));
  return (at & 0x3ffff) >> 4 | static_cast<std::uint64_t>(k_bytes >> 4) << 16 |
         std::uint64_t{128 >> 4} << 32;
}

#define DECOSCOPE_WGMMA_32(type)                                                            \
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type                  \
               " {"                                                                         \
               "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "                   \
               "{%16,%17,%18,%19}, %20, 1, 1, 1, 0;"                                        \
               : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), \
                 "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), \
                 "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), \
                 "+f"(d[3][3])                                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows))

/// Adds products over 16 k to d: 64 outputs by 32 rows. a: weights of the warp's 16 outputs, as in
/// multiply_tile
__device__ inline void multiply_32(Half type,
                                   float (*d)[4],
                                   const unsigned (&a)[4],
                                   std::uint64_t rows) {
  if (type == Half::Bf16)
    DECOSCOPE_WGMMA_32("bf16");
  else
    DECOSCOPE_WGMMA_32("f16");
}

#define DECOSCOPE_WGMMA_64(type)                                                            \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                  \
               " {"                                                                         \
               "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                     \
               "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "         \
               "{%32,%33,%34,%35}, %36, 1, 1, 1, 0;"                                        \
               : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), \
                 "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), \
                 "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), \
                 "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), \
                 "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]), "+f"(d[6][0]), \
                 "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]), \
                 "+f"(d[7][2]), "+f"(d[7][3])                                               \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows))

/// Adds products over 16 k to d: 64 outputs by 64 rows. a: weights of the warp's 16 outputs, as in
/// multiply_tile
__device__ inline void multiply_64(Half type,
                                   float (*d)[4],
                                   const unsigned (&a)[4],
                                   std::uint64_t rows) {
  if (type == Half::Bf16)
    DECOSCOPE_WGMMA_64("bf16");
  else
    DECOSCOPE_WGMMA_64("f16");
}

#undef DECOSCOPE_WGMMA_32
#undef DECOSCOPE_WGMMA_64

/// A compiler barrier for the sums: no access to them moves across it.
template <int kRowTiles>
__device__ inline void keep_in_place(float (&sum)[kRowTiles][4]) {
#pragma unroll
  for (int r = 0; r < kRowTiles; r++)
    asm volatile("" : "+f"(sum[r][0]), "+f"(sum[r][1]), "+f"(sum[r][2]), "+f"(sum[r][3])::"memory");
}
template <int kRowTiles>
__device__ inline void multiply_rows_begin(float (&sum)[kRowTiles][4], unsigned (&a)[4][4]) {
  keep_in_place(sum);
#pragma unroll
  for (int tile = 0; tile < 4; tile++)
    asm volatile(""
                 : "+r"(a[tile][0]), "+r"(a[tile][1]), "+r"(a[tile][2]),
                   "+r"(a[tile][3])::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
template <int kRowTiles>
__device__ inline void multiply_rows_end(float (&sum)[kRowTiles][4]) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  keep_in_place(sum);
}

/// An mbarrier and the bulk copies that report to it (PTX ISA, "mbarrier", "cp.async.bulk"). wgmma sees the copied data
/// without a fence; a fence would wait for all copies.
class Arrivals {
 public:
  __device__ explicit Arrivals(std::uint64_t* barrier)
      : at_(static_cast<unsigned>(__cvta_generic_to_shared(barrier))) {}
  __device__ void begin(int n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at_), "r"(n) : "memory");
  }
  /// Makes the initialised barriers visible to copies.
  __device__ static void begun() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at_) : "memory");
  }
  __device__ void expect(unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at_), "r"(bytes)
                 : "memory");
  }
  __device__ void fetch(void* to_shared, const void* from, unsigned bytes) {
    const auto to = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(to),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(at_)
        : "memory");
  }
  /// Waits for a copy.
  /// @param parity  parity of the number of copies before it
  __device__ void wait(unsigned parity) {
    unsigned done = 0;
    while (!done)
      asm volatile(
          "{ .reg .pred arrived; mbarrier.try_wait.parity.shared.b64 arrived, [%1], %2; "
          "selp.u32 %0, 1, 0, arrived; }"
          : "=r"(done)
          : "r"(at_), "r"(parity)
          : "memory");
  }

 private:
  unsigned at_;
};

#else

template <int kRowTiles>
__device__ inline void multiply_rows_begin(float (&)[kRowTiles][4], unsigned (&)[4][4]) {}
template <int kRowTiles>
__device__ inline void multiply_rows_end(float (&)[kRowTiles][4]) {}

#endif

/// sum[r] += the warp's 16 outputs times tile r of the rows, over 16 k. Between multiply_rows_begin() and
/// multiply_rows_end() nothing may touch the sums or the operands.
/// @param rows  in shared memory, [2 of 8 k][kRowTiles][8 rows][8 k]
template <int kRowTiles>
__device__ inline void multiply_rows(Half type,
                                     float (&sum)[kRowTiles][4],
                                     const unsigned (&a)[4],
                                     const unsigned char* rows) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (kRowTiles == 4) {
    multiply_32(type, sum, a, described(rows, kRowTiles * 128));
    return;
  } else if constexpr (kRowTiles > 4) {
#pragma unroll
    for (int r = 0; r < kRowTiles; r += 8)
      multiply_64(type, sum + r, a, described(rows + r * 128, kRowTiles * 128));
    return;
  }
#endif
  const auto* words = reinterpret_cast<const unsigned*>(rows) + threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < kRowTiles; r++) {
    const unsigned b[2] = {words[r * 32], words[(kRowTiles + r) * 32]};
    multiply_tile(type, sum[r], a, b);
  }
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU
