// The emulation: the CUDA features that kernels use, and the faults that it detects. The faulty kernels
// are in this file, each beside its correct form.
#include "kernels/cuda/math.cuh"
//
#include <sys/mman.h>
#include <unistd.h>
#include <numeric>

#include <gmock/gmock.h>

#include "kernels/dtype.h"
#include "kernels/philox.h"
#include "tests/kernels/emulation/faults_kit.h"

namespace kernels::cuda_emulated {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// ---- features of CUDA

__global__ void indices(int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<int>(gridDim.x * 1000000 + blockIdx.x * 1000 + threadIdx.x);
}

TEST_F(Emulation, threads_have_their_indices) {
  const Memory<int> out(100);
  ASSERT_EQ(cudaSuccess, run(indices, 3, 40, out.data(), 100));
  for (int i = 0; i < 100; i++) ASSERT_EQ(out.read()[i], 3000000 + i / 40 * 1000 + i % 40);
}

__global__ void reversed_in_block(const int* in, int* out) {
  int* kept = reinterpret_cast<int*>(dynamic_shared());
  kept[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = kept[blockDim.x - 1 - threadIdx.x];
}

TEST_F(Emulation, a_barrier_makes_shared_memory_visible) {
  std::vector<int> values(64);
  std::iota(values.begin(), values.end(), 5);
  const Memory<int> in(values), out(64);
  ASSERT_EQ(cudaSuccess, run(reversed_in_block, 1, 64, in.data(), out.data()));
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(out.read(), values);
}

__global__ void warp_words(unsigned* out) {
  const int lane = threadIdx.x % 32, at = threadIdx.x * 5;
  out[at] = __shfl_xor_sync(kAllLanes, lane, 3);
  out[at + 1] = __shfl_down_sync(kAllLanes, lane, 4);
  out[at + 2] = __shfl_up_sync(kAllLanes, lane, 2);
  out[at + 3] = __ballot_sync(kAllLanes, lane % 3 == 0);
  out[at + 4] =
      __any_sync(kAllLanes, lane == 31) * 2 + __all_sync(kAllLanes, lane < 31) + __popc(0xf0u) * 4;
}

TEST_F(Emulation, lanes_exchange_their_values) {
  const Memory<unsigned> out(64 * 5);
  ASSERT_EQ(cudaSuccess, run(warp_words, 1, 64, out.data()));
  const auto words = out.read();
  for (unsigned i = 0; i < 64; i++) {
    const unsigned lane = i % 32;
    EXPECT_EQ(words[i * 5], lane ^ 3);
    EXPECT_EQ(words[i * 5 + 1], lane < 28 ? lane + 4 : lane);
    EXPECT_EQ(words[i * 5 + 2], lane > 1 ? lane - 2 : lane);
    EXPECT_EQ(words[i * 5 + 3], 0x49249249u);
    EXPECT_EQ(words[i * 5 + 4], 2u + 4 * 4);
  }
}

__global__ void counted(int* total, unsigned* least, int* most, int* first) {
  atomicAdd(total, 2);
  atomicMin(least, threadIdx.x + blockIdx.x);
  atomicMax(most, static_cast<int>(threadIdx.x));
  atomicCAS(first, -1, 7);
}

TEST_F(Emulation, atomics_of_all_blocks_add_up) {
  const Memory<int> total(1), most(1), first(1, -1);
  const Memory<unsigned> least(1, 99);
  ASSERT_EQ(cudaSuccess,
            run(counted, 3, 50, total.data(), least.data(), most.data(), first.data()));
  EXPECT_EQ(total.read()[0], 300);
  EXPECT_EQ(least.read()[0], 0u);
  EXPECT_EQ(most.read()[0], 49);
  EXPECT_EQ(first.read()[0], 7);
}

template <int kType>
__global__ void one_tile(const float* w, const float* x, float* y) {
  const int lane = threadIdx.x, row = lane / 4, pair = lane % 4 * 2;
  const Half type = kType ? Half::Bf16 : Half::F16;
  const auto half = [&](float v) {
    return static_cast<unsigned>(kType ? StoreBf16::narrow(v) : StoreF16::narrow(v));
  };
  unsigned a[4], b[2];
  for (int i = 0; i < 4; i++) {
    const float* from = w + (row + i % 2 * 8) * 16 + pair + i / 2 * 8;
    a[i] = half(from[0]) | half(from[1]) << 16;
  }
  for (int i = 0; i < 2; i++) {
    const float* from = x + row * 16 + pair + i * 8;
    b[i] = half(from[0]) | half(from[1]) << 16;
  }
  float d[4] = {};
  multiply_tile(type, d, a, b);
  for (int i = 0; i < 4; i++) y[(row + i / 2 * 8) * 8 + pair + i % 2] = d[i];
}

TEST_F(Emulation, a_tile_product_rounds_inputs_and_adds_in_order) {
  for (const bool bf16 : {false, true}) {
    std::vector<float> w(16 * 16), x(8 * 16);
    for (std::size_t i = 0; i < w.size(); i++) w[i] = std::sin(float(i) * 0.37f);
    for (std::size_t i = 0; i < x.size(); i++) x[i] = std::cos(float(i) * 0.71f) * 3;
    const Memory<float> of_w(w), of_x(x), y(16 * 8);
    ASSERT_EQ(cudaSuccess,
              run(bf16 ? one_tile<1> : one_tile<0>, 1, 32, of_w.data(), of_x.data(), y.data()));
    const auto rounded = [&](float v) {
      return bf16 ? f32_from_bf16(bf16_from_f32(v)) : f32_from_f16(f16_from_f32(v));
    };
    for (int i = 0; i < 16; i++) {
      for (int j = 0; j < 8; j++) {
        float sum = 0;
        for (int k = 0; k < 16; k++) sum += rounded(w[i * 16 + k]) * rounded(x[j * 16 + k]);
        ASSERT_EQ(y.read()[i * 8 + j], sum) << i << " " << j;
      }
    }
  }
}

struct FourTiles {
  uint4 rows[32];
};
__global__ void four_tiles(const uint4* in, unsigned* out) {
  uint4* rows = static_shared<FourTiles>().rows;
  rows[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  unsigned straight[4], transposed[4];
  load_tiles(straight, rows + threadIdx.x);
  load_tiles_transposed(transposed, rows + threadIdx.x);
  for (int tile = 0; tile < 4; tile++) {
    out[threadIdx.x * 8 + tile] = straight[tile];
    out[threadIdx.x * 8 + 4 + tile] = transposed[tile];
  }
}

TEST_F(Emulation, tiles_are_loaded_by_rows_and_by_columns) {
  std::vector<std::uint16_t> halves(32 * 8);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  std::vector<uint4> rows(32);
  std::memcpy(static_cast<void*>(rows.data()), halves.data(), 32 * sizeof(uint4));
  const Memory<uint4> in(rows);
  const Memory<unsigned> out(32 * 8);
  ASSERT_EQ(cudaSuccess, run(four_tiles, 1, 32, in.data(), out.data()));
  const auto words = out.read();
  for (unsigned lane = 0; lane < 32; lane++) {
    for (unsigned tile = 0; tile < 4; tile++) {
      const unsigned line = lane / 4, along = lane % 4 * 2;
      const unsigned straight = tile * 64 + line * 8 + along, column = tile * 64 + along * 8 + line;
      ASSERT_EQ(words[lane * 8 + tile], straight | (straight + 1) << 16);
      ASSERT_EQ(words[lane * 8 + 4 + tile], column | (column + 8) << 16);
    }
  }
}

__global__ void noise(
    std::uint64_t seed, unsigned stream, unsigned position, unsigned* bits, double* g) {
  const Words words = philox_block(seed, stream, position, blockIdx.x);
  bits[blockIdx.x * 4 + threadIdx.x] = words.w[threadIdx.x];
  g[blockIdx.x * 4 + threadIdx.x] = gumbel(words.w[threadIdx.x]);
}

TEST_F(Emulation, gumbel_noise_equals_the_cpus_bit_for_bit) {
  for (const std::uint64_t seed :
       {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0x123456789abcdef0}}) {
    const Memory<unsigned> bits(80);
    const Memory<double> g(80);
    ASSERT_EQ(cudaSuccess, run(noise, 20, 4, seed, 3u, 77u, bits.data(), g.data()));
    for (unsigned i = 0; i < 80; i++) {
      ASSERT_EQ(bits.read()[i], random_bits(seed, 3, 77, i));
      ASSERT_EQ(g.read()[i], gumbel_from_bits(random_bits(seed, 3, 77, i)));
    }
  }
}

__global__ void exponentials(const float* x, float* y) {
  y[blockIdx.x] = exp_f32(x[blockIdx.x]);
}

TEST_F(Emulation, exp_is_accurate_to_22_bits) {
  std::vector<float> x = {0, -100, -101, -kInfinity, 88, -87.4f, -0.0f};
  for (int i = 0; i < 500; i++) x.push_back(float(i) * 0.35f - 87);
  const Memory<float> in(x), out(x.size());
  ASSERT_EQ(cudaSuccess, run(exponentials, unsigned(x.size()), 1, in.data(), out.data()));
  for (std::size_t i = 0; i < x.size(); i++)
    ASSERT_NEAR(out.read()[i], std::exp(double(x[i])), 0x1p-22 * std::exp(double(x[i])) + 1.2e-38)
        << x[i];
}

// ---- detected faults; `right` runs the correct kernel

template <bool kRight>
__global__ void neighbour(const float* in, float* out) {
  float* kept = reinterpret_cast<float*>(dynamic_shared());
  kept[threadIdx.x] = in[threadIdx.x];
  if (kRight) __syncthreads();
  out[threadIdx.x] = kept[(threadIdx.x + 32) % blockDim.x];
}

TEST_F(Emulation, a_missing_barrier_is_detected) {
  const Memory<float> in(64, 1.5f), out(64);
  EXPECT_EQ(cudaSuccess, run(neighbour<true>, 1, 64, in.data(), out.data()));
  EXPECT_EQ(cudaErrorLaunchFailure, run(neighbour<false>, 1, 64, in.data(), out.data()));
  EXPECT_THAT(fault_text(),
              AllOf(HasSubstr("kernel tested"), HasSubstr("of 256 of device memory")));
}

template <bool kRight>
__global__ void doubled(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (kRight ? i < n : i < (n + 1) / 2 * 2) out[i] = 2 * in[i];
}

TEST_F(Emulation, a_wrong_index_at_an_odd_size_is_detected) {
  for (const int n : {64, 33, 4095}) {
    const Memory<float> in(n, 1.0f), out(n);
    EXPECT_EQ(cudaSuccess, run(doubled<true>, 128, 32, in.data(), out.data(), n));
    if (n % 2 == 0) continue;
    EXPECT_EQ(cudaErrorIllegalAddress, run(doubled<false>, 128, 32, in.data(), out.data(), n));
    EXPECT_THAT(fault_text(), AllOf(HasSubstr("kernel tested"), HasSubstr("device memory")));
    forget_faults();
  }
}

__global__ void reads_at(const float* in, float* out, std::int64_t at) {
  out[threadIdx.x] = in[at];
}

TEST_F(Emulation, reads_far_outside_name_thread_and_distance) {
  const Memory<float> in(100), out(1);
  EXPECT_EQ(cudaErrorIllegalAddress, run(reads_at, 1, 1, in.data(), out.data(), std::int64_t{104}));
  EXPECT_THAT(fault_text(),
              AllOf(HasSubstr("block (0, 0, 0), thread (0, 0, 0)"),
                    HasSubstr("16 bytes past the end of 400 bytes of device memory")));
  EXPECT_EQ(cudaErrorIllegalAddress, cudaStreamSynchronize(stream_)) << "the error stays";
  forget_faults();
  EXPECT_EQ(cudaErrorIllegalAddress,
            run(reads_at, 1, 1, in.data(), out.data(), std::int64_t{-2000}));
}

enum class Made { Sum, SumOfProductsByZero, Largest, Smallest };

/// The result of in[first], .., in[end - 1].
template <Made kMade, class T>
__global__ void made_of(const T* in, T* out, int first, int end) {
  T made = 0;
  for (int i = first; i < end; i++) {
    if (kMade == Made::Sum) made += in[i];
    if (kMade == Made::SumOfProductsByZero) made += 0 * in[i];
    if (kMade == Made::Largest) made = in[i] > made ? in[i] : made;
    if (kMade == Made::Smallest) made = in[i] < made ? in[i] : made;
  }
  *out = made;
}

// These kernels have no other fault, and no protected page is near.
TEST_F(Emulation, a_read_outside_a_buffer_within_its_page_is_detected) {
  const auto expect_seen = [&](auto kernel, auto one, auto expected) {
    for (const int n : {33, 1001}) {
      const Memory<decltype(one)> in(static_cast<std::size_t>(n), one), out(1);
      EXPECT_EQ(cudaSuccess, run(kernel, 1, 1, in.data(), out.data(), 0, n)) << fault_text();
      EXPECT_EQ(out.read()[0], expected(n));
      const std::string of =
          std::to_string(4 * n) + " bytes of device memory: the kernel reads there";
      EXPECT_EQ(cudaErrorIllegalAddress, run(kernel, 1, 1, in.data(), out.data(), 0, n + 1));
      EXPECT_THAT(fault_text(), AllOf(HasSubstr("kernel tested: byte "),
                                      HasSubstr("depends on the memory past the end of " + of)));
      forget_faults();
      for (const int first : {-1, n == 33 ? -900 : -20}) {
        EXPECT_EQ(cudaErrorIllegalAddress, run(kernel, 1, 1, in.data(), out.data(), first, n));
        EXPECT_THAT(fault_text(), HasSubstr("depends on the memory before the start of " + of));
        forget_faults();
      }
      EXPECT_EQ(cudaSuccess, run(kernel, 1, 1, in.data(), out.data(), 0, n)) << fault_text();
    }
  };
  expect_seen(made_of<Made::Sum, float>, 1.0f, [](int n) { return static_cast<float>(n); });
  expect_seen(made_of<Made::Sum, unsigned>, 1u, [](int n) { return static_cast<unsigned>(n); });
  expect_seen(made_of<Made::SumOfProductsByZero, float>, 1.0f, [](int) { return 0.0f; });
  expect_seen(made_of<Made::Largest, float>, 1.0f, [](int) { return 1.0f; });
  expect_seen(made_of<Made::Smallest, float>, -1.0f, [](int) { return -1.0f; });
}

template <bool kRight>
__global__ void summed(const float* in, float* out) {
  float* sum = reinterpret_cast<float*>(dynamic_shared());
  if (threadIdx.x == 0) *sum = 0;
  __syncthreads();
  if (kRight) {
    if (threadIdx.x == 0)
      for (unsigned i = 0; i < blockDim.x; i++) *sum += in[i];
  } else {
    atomicAdd(sum, in[threadIdx.x]);  // in any order
  }
  __syncthreads();
  if (threadIdx.x == 0) *out = *sum;
}

TEST_F(Emulation, an_unordered_sum_is_detected) {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); i++) values[i] = std::exp(float(i) * 0.3f);
  const Memory<float> in(values), out(1);
  EXPECT_EQ(cudaSuccess, run(summed<true>, 1, 64, in.data(), out.data()));
  EXPECT_EQ(cudaErrorLaunchFailure, run(summed<false>, 1, 64, in.data(), out.data()));
  EXPECT_THAT(fault_text(), HasSubstr("depends on the order of threads"));
}

__global__ void last_writer(int* out) {
  *out = static_cast<int>(blockIdx.x * 100 + threadIdx.x);
}

TEST_F(Emulation, races_between_threads_or_blocks_are_detected) {
  const Memory<int> out(1);
  EXPECT_EQ(cudaErrorLaunchFailure, run(last_writer, 1, 2, out.data()));
  EXPECT_THAT(fault_text(), HasSubstr("race"));
  forget_faults();
  EXPECT_EQ(cudaErrorLaunchFailure, run(last_writer, 2, 1, out.data()));
}

template <bool kRight>
__global__ void accumulated(float* out) {
  float* kept = reinterpret_cast<float*>(dynamic_shared());
  if (kRight) kept[threadIdx.x] = 0;
  kept[threadIdx.x] += 1;
  out[threadIdx.x] = kept[threadIdx.x] > 0.5f ? 1.0f : 0.0f;
}

TEST_F(Emulation, a_read_of_uninitialised_shared_memory_is_detected) {
  const Memory<float> out(32);
  EXPECT_EQ(cudaSuccess, run(accumulated<true>, 1, 32, out.data()));
  EXPECT_EQ(cudaErrorLaunchFailure, run(accumulated<false>, 1, 32, out.data()));
  EXPECT_THAT(fault_text(), HasSubstr("the kernel reads bytes that it did not write"));
}

__global__ void half_meets(int* out) {
  if (threadIdx.x < 32) __syncthreads();
  out[threadIdx.x] = 1;
}
__global__ void two_barriers(int* out) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}
__global__ void lane_stays_away(int* out) {
  if (threadIdx.x != 5) out[threadIdx.x] = __shfl_xor_sync(kAllLanes, 1, 1);
}

TEST_F(Emulation, divergent_barriers_are_detected) {
  const Memory<int> out(64);
  EXPECT_EQ(cudaErrorLaunchFailure, run(half_meets, 1, 64, out.data()));
  EXPECT_THAT(fault_text(), HasSubstr("ended while others wait at a barrier"));
  forget_faults();
  EXPECT_EQ(cudaErrorLaunchFailure, run(two_barriers, 1, 64, out.data()));
  EXPECT_THAT(fault_text(), HasSubstr("waits at the barrier at emulation_test.cpp:"));
  forget_faults();
  EXPECT_EQ(cudaErrorLaunchFailure, run(lane_stays_away, 1, 64, out.data()));
  EXPECT_THAT(fault_text(), HasSubstr("lane 5 of warp 0 never reaches emulation_test.cpp:"));
}

template <int kWaits>
__global__ void copied(const uint4* in, uint4* out) {
  auto* kept = reinterpret_cast<uint4*>(dynamic_shared());
  copy_async_16(kept + threadIdx.x, in + threadIdx.x);
  copy_async_commit();
  copy_async_wait(kWaits);
  out[threadIdx.x] = kept[threadIdx.x];
}

__global__ void tiles_of_all(float* out) {
  float d[4] = {};
  const unsigned a[4] = {}, b[2] = {};
  multiply_tile(Half::Bf16, d, a, b);
  out[threadIdx.x] = d[0];
}

// The partial warp comes after a whole warp whose lanes have synchronised at the same place.
TEST_F(Emulation, a_tile_product_by_a_partial_warp_is_detected) {
  const Memory<float> out(64);
  EXPECT_EQ(cudaSuccess, run(tiles_of_all, 1, 64, out.data()));
  EXPECT_EQ(cudaErrorLaunchFailure, run(tiles_of_all, 1, 40, out.data()));
  EXPECT_THAT(fault_text(), HasSubstr("need all 32 lanes of a warp"));
}

__global__ void first_ends(float* out) {
  if (threadIdx.x == 0) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

TEST_F(Emulation, a_thread_that_ends_before_a_barrier_is_named) {
  const Memory<float> out(64);
  EXPECT_EQ(cudaErrorLaunchFailure, run(first_ends, 1, 64, out.data()));
  EXPECT_THAT(fault_text(), HasSubstr("thread (0, 0, 0): ended while others wait at a barrier"));
}

TEST_F(Emulation, an_asynchronous_copy_without_a_wait_is_detected) {
  const Memory<uint4> in(16, {1, 2, 3, 4}), out(16);
  EXPECT_EQ(cudaSuccess, run(copied<0>, 1, 16, in.data(), out.data()));
  EXPECT_EQ(out.read()[7].z, 3u);
  EXPECT_EQ(cudaErrorLaunchFailure, run(copied<1>, 1, 16, in.data(), out.data()));
}

/// Copies vectors from `from` to `to`, both counted in unsigned.
template <class V, bool kAsync>
__global__ void copied_in_vectors(const unsigned* from, unsigned* to) {
  constexpr unsigned kN = sizeof(V) / 4;
  if (!kAsync) {
    *reinterpret_cast<V*>(to + threadIdx.x * kN) =
        *reinterpret_cast<const V*>(from + threadIdx.x * kN);
    return;
  }
  auto* kept = reinterpret_cast<V*>(dynamic_shared());
  copy_async_16(kept + threadIdx.x, from + threadIdx.x * kN);
  copy_async_commit();
  copy_async_wait(0);
  reinterpret_cast<V*>(to)[threadIdx.x] = kept[threadIdx.x];
}

// An address that is aligned for a number may be misaligned for a vector.
TEST_F(Emulation, a_misaligned_vector_access_is_detected) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "skipped under UBSan, which stops at the access";
#endif
  std::vector<unsigned> values(68);
  std::iota(values.begin(), values.end(), 1u);
  const Memory<unsigned> in(values), out(68, 0);
  const auto expect_caught = [&](auto kernel, unsigned n, unsigned bytes, unsigned at,
                                 unsigned to) {
    EXPECT_EQ(cudaErrorMisalignedAddress, run(kernel, 1, n, in.data() + at, out.data() + to));
    EXPECT_THAT(
        fault_text(),
        AllOf(HasSubstr("kernel tested, block (0, 0, 0), thread (0, 0, 0): reads or writes " +
                        std::to_string(bytes) + " bytes"),
              HasSubstr("no multiple of " + std::to_string(bytes))));
    forget_faults();
  };
  EXPECT_EQ(cudaSuccess, run(copied_in_vectors<uint4, false>, 1, 16, in.data() + 4, out.data()));
  EXPECT_EQ(out.read()[63], 68u);
  EXPECT_EQ(cudaSuccess, run(copied_in_vectors<uint4, true>, 1, 16, in.data(), out.data() + 4));
  EXPECT_EQ(cudaSuccess, run(copied_in_vectors<uint2, false>, 1, 33, in.data() + 2, out.data()));
  EXPECT_EQ(out.read()[65], 68u);
  EXPECT_EQ(cudaSuccess, run(copied_in_vectors<float4, false>, 1, 16, in.data(), out.data() + 4));
  EXPECT_EQ(out.read()[67], 64u);
  for (const unsigned off : {1u, 2u, 3u}) {
    expect_caught(copied_in_vectors<uint4, false>, 16, 16, off, 0);
    expect_caught(copied_in_vectors<uint4, false>, 16, 16, 0, off);
    expect_caught(copied_in_vectors<uint4, true>, 16, 16, off, 0);
    expect_caught(copied_in_vectors<float4, false>, 16, 16, off, 0);
    expect_caught(copied_in_vectors<float4, false>, 16, 16, 0, off);
  }
  expect_caught(copied_in_vectors<uint2, false>, 33, 8, 1, 0);
}

struct Triple {
  float of[3];
};
template <int kN>
__global__ void writes_static(float* out) {
  Triple& shared = static_shared<Triple>();
  volatile float* of = shared.of;
  for (int i = 0; i < kN; i++) of[i] = 1;
  out[0] = of[0];
}

TEST_F(Emulation, writes_past_shared_memory_are_detected) {
  const Memory<float> out(1);
  EXPECT_EQ(cudaSuccess, run(writes_static<3>, 1, 1, out.data()));
  EXPECT_EQ(cudaErrorIllegalAddress, run(writes_static<4>, 1, 1, out.data()));
  EXPECT_THAT(fault_text(), HasSubstr("past the end of a static shared object of 12 bytes"));
  forget_faults();
  // 256 bytes hold 64 floats.
  EXPECT_EQ(cudaErrorIllegalAddress, run(neighbour<true>, 1, 65, out.data() - 64, out.data() - 64));
}

TEST_F(Emulation, invalid_launches_are_refused) {
  const Memory<int> out(1);
  EXPECT_EQ(cudaErrorInvalidConfiguration, run(last_writer, 0, 32, out.data()));
  EXPECT_EQ(cudaErrorInvalidConfiguration, run(last_writer, 1, 1025, out.data()));
}

template <int kBytes>
struct Bytes {
  unsigned char of[kBytes];
};
template <int kStatic>
__global__ void takes_shared(int* out) {
  static_shared<Bytes<kStatic>>().of[0] = 1;
  *out = 1;
}

constexpr std::size_t kPlain = 48 << 10;

TEST_F(Emulation, too_much_shared_memory_is_refused) {
  const Memory<int> out(1);
  const auto kernel = last_writer;
  const auto launch = [&](std::size_t bytes) {
    const cudaError_t error = enqueue("tested", kernel, 1, 1, bytes, stream_, out.data());
    return error == cudaSuccess ? cudaStreamSynchronize(stream_) : error;
  };
  const auto allow = [&](int bytes) {
    return cudaFuncSetAttribute(handle_of("tested", kernel),
                                cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  EXPECT_EQ(cudaSuccess, launch(kPlain));
  EXPECT_EQ(cudaErrorInvalidValue, launch(kPlain + 1));
  EXPECT_EQ(cudaSuccess, launch(kPlain)) << "a refused launch has no effect";
  int most = 0;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  EXPECT_EQ(cudaErrorInvalidValue, allow(most + 1));
  EXPECT_EQ(cudaSuccess, allow(60'000));
  EXPECT_EQ(cudaSuccess, launch(60'000));
  EXPECT_EQ(cudaErrorInvalidValue, launch(60'001));
  EXPECT_EQ(cudaSuccess, allow(most));
  EXPECT_EQ(cudaSuccess, launch(static_cast<std::size_t>(most)));
}

// The first launch is refused when it runs: its static objects are known only then.
TEST_F(Emulation, static_shared_memory_counts_beside_dynamic) {
  const Memory<int> out(1, 0);
  const auto launch = [&](std::size_t bytes) {
    return enqueue("tested", takes_shared<16>, 1, 1, bytes, stream_, out.data());
  };
  ASSERT_EQ(cudaSuccess, launch(kPlain));
  EXPECT_EQ(cudaErrorInvalidValue, cudaStreamSynchronize(stream_));
  EXPECT_THAT(fault_text(), HasSubstr("kernel tested: 16 bytes of static and 49152 of dynamic"));
  EXPECT_EQ(out.read()[0], 0);
  forget_faults();
  EXPECT_EQ(cudaErrorInvalidValue, launch(kPlain)) << "static objects are known now";
  EXPECT_EQ(cudaSuccess, launch(kPlain - 16));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  cudaFuncAttributes found;
  ASSERT_EQ(cudaSuccess, cudaFuncGetAttributes(&found, handle_of("tested", takes_shared<16>)));
  EXPECT_EQ(found.sharedSizeBytes, 16u);
  int most = 0;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  const auto allow = [](int bytes) {
    return cudaFuncSetAttribute(handle_of("tested", takes_shared<16>),
                                cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  EXPECT_EQ(cudaErrorInvalidValue, allow(most));
  EXPECT_EQ(cudaSuccess, allow(most - 16));
  EXPECT_EQ(cudaSuccess, launch(static_cast<std::size_t>(most) - 16));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
}

TEST_F(Emulation, streams_run_when_the_host_waits) {
  const Memory<int> out(1, -1);
  ASSERT_EQ(cudaSuccess, enqueue("tested", last_writer, 1, 1, 0, stream_, out.data()));
  EXPECT_EQ(out.read()[0], -1);
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(out.read()[0], 0);
}

// A control test: the emulation detects that the program reuses memory before the copy from it is made.
// CU18.
TEST_F(Emulation, a_copy_from_memory_freed_too_early_is_detected) {
  const Memory<int> out(1, -1);
  int passing = 7;
  ASSERT_EQ(cudaSuccess,
            cudaMemcpyAsync(out.data(), &passing, sizeof passing, cudaMemcpyHostToDevice, stream_));
  passing = 9;
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(out.read()[0], 9) << "the value at the time of the copy";

  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto freed = [&] {
    void* const page =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static_cast<void>(
        cudaMemcpyAsync(out.data(), page, sizeof(int), cudaMemcpyHostToDevice, stream_));
    munmap(page, bytes);
    static_cast<void>(cudaStreamSynchronize(stream_));
  };
  EXPECT_DEATH(freed(), "");
}

TEST_F(Emulation, host_access_to_device_memory_is_detected) {
  const Memory<int> out(1, 3);
  fence_host_off(true);
  EXPECT_EQ(cudaSuccess, run(last_writer, 1, 1, out.data())) << "a kernel may access it";
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile int*>(out.data())), "");
  fence_host_off(false);
  EXPECT_EQ(out.read()[0], 0);
}

}  // namespace
}  // namespace kernels::cuda_emulated
