// y = x w^T for a step's rows, and the tables that it and embedding read.
//   halves  tensor cores, 16 outputs by 8 rows at a time; weights lie in the order in which lanes
//           read their fragments, are streamed once through four stages of asynchronous copies, and
//           activations are rounded to the weights' type
//   f32     plain fused multiply-adds, 8 rows at a time or 32
//   sums    k is cut into chunks of 64; chunk c belongs to partial sum c % 4, which adds its chunks
//           in order; the four are added in order. Nothing of this depends on the rows, their
//           number or the device, and zeros appended to k add only zeros
//   many    over 128 rows go 128 at a time: the same path, so a prompt's cache has a step's bits
#include <algorithm>

#include "kernels/checks.h"
#include "kernels/cuda/attention_join.cuh"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/packed.cuh"
#include "kernels/cuda/row_kernels.cuh"
#include "kernels/cuda/row_tiles.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kPartials = 4;  // sums that a product is cut into
constexpr int kWarps = 4, kMatThreads = 32 * kWarps;
constexpr int kFewStages = 4, kMostStages = 6;  // of blocks with one group of warps, with two
constexpr int kStaticBytes = 64;                // of shared memory, at most
constexpr std::int64_t kBytesAhead = 16 << 20;  // of weights, asked for before the rows are there
constexpr int kMaxRows = 128;
constexpr int kWideOutputs = 192 * kBlockOutputs;  // from here on there are blocks enough
constexpr int kChunkBytes = kBlockOutputs * kChunk * 2, kRowTileBytes = 8 * kChunk * 2;
constexpr int kF32FewRows = 8, kF32MoreRows = 32;

__device__ inline float element_of(const void* data, DType type, std::int64_t i) {
  if (type == DType::F32) return static_cast<const float*>(data)[i];
  const std::uint16_t half = static_cast<const std::uint16_t*>(data)[i];
  return type == DType::BF16 ? StoreBf16::widen(half) : StoreF16::widen(half);
}

struct Raw {  // row-major outputs [first, first + n) of a matrix, on the device
  const void* data;
  DType type;
  int first, n, k;
};

// A thread writes the eight elements of one fragment.
template <class Store>
__global__ void __launch_bounds__(kMatThreads)
    pack_halves(Raw raw, int n_chunks, std::int64_t n_fragments, std::uint16_t* packed) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kMatThreads + threadIdx.x;
  if (at >= n_fragments) return;
  const auto lane = static_cast<int>(at % 32);
  const std::int64_t tile = at / 32, chunk = tile / 16;
  const auto output = static_cast<int>(chunk / n_chunks * kBlockOutputs + tile / 4 % 4 * 16);
  const auto j = static_cast<int>(chunk % n_chunks * kChunk + tile % 4 * 16);
  for (int e = 0; e < 8; e++) {
    const int row = output + lane / 4 + e / 2 % 2 * 8,
              column = j + lane % 4 * 2 + e / 4 * 8 + e % 2;
    const bool there = row < raw.n && column < raw.k;
    const float x = there ? element_of(raw.data, raw.type, std::int64_t{row} * raw.k + column) : 0;
    packed[at * 8 + e] = Store::narrow(x);
  }
}

__global__ void __launch_bounds__(kMatThreads) pack_f32(Raw raw, std::int64_t n, float* packed) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kMatThreads + threadIdx.x;
  if (at >= n) return;
  const std::int64_t line = at / kF32Outputs;
  const auto row = static_cast<int>(line / raw.k * kF32Outputs + at % kF32Outputs);
  packed[at] =
      row < raw.n ? element_of(raw.data, raw.type, std::int64_t{row} * raw.k + line % raw.k) : 0;
}

// Thread 4 t + l has columns 16 t + 2 l and 16 t + 2 l + 8 and those behind them, which of halves are
// two words of one fragment.  grid: (rows, blocks of threads)
__global__ void __launch_bounds__(kMatThreads)
    embed_rows(const void* packed, DType type, int k, const int* ids, float* y) {
  let_next_begin();
  wait_for_earlier();
  const int id = ids[blockIdx.x], thread = blockIdx.y * kMatThreads + threadIdx.x;
  const int first = thread / 4 * 16 + thread % 4 * 2;
  if (first >= k) return;
  Four own = {};
  if (type == DType::F32) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int j = first + e / 2 * 8 + e % 2;
      if (j < k) own.of[e] = static_cast<const float*>(packed)[place_of_f32(id, j, k)];
    }
  } else {
    const auto* words =
        static_cast<const unsigned*>(packed) + place_of_half(id, first, chunks_of(k)) / 2;
    const unsigned low = words[0], high = words[2];
    const auto widen = [&](unsigned half) {
      const auto bits = static_cast<std::uint16_t>(half);
      return type == DType::BF16 ? StoreBf16::widen(bits) : StoreF16::widen(bits);
    };
    own = {{widen(low & 0xffff), widen(low >> 16), widen(high & 0xffff), widen(high >> 16)}};
  }
  y += std::int64_t{blockIdx.x} * k;
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const int j = first + e / 2 * 8 + e % 2;
    if (j < k) y[j] = own.of[e];
  }
}

// ---- products

struct MatmulCall {
  const void* weights;
  const float* x;
  std::int64_t x_stride;
  float* y;
  std::int64_t y_stride;
  const float* bias;
  int n, k, n_rows;
  int add;           // 1: to what y holds. (No bool: bytes between members would have no value.)
  int n_stages;      // halves: chunks that are in shared memory at a time, at least 3
  int n_ahead;       // halves: chunks behind those, that are asked for before the rows are there
  const void* rows;  // halves: the rows, in place_of_row's order
  float* partials;   // halves, where partial sums are made by several blocks:
                     // [blocks of outputs][kPartials][n_rows][outputs of a block]
  unsigned* done;    // [blocks of outputs], zeros before and after
};

__device__ inline void finish(const MatmulCall& call, int row, int output, float sum) {
  if (call.bias) sum += call.bias[output];
  float* y = call.y + row * call.y_stride + output;
  if (call.add) sum += *y;
  *y = sum;
}

/// Where an element of the rows lies: [8 k][8 rows][row][k], in which both multiply_tile and Hopper's
/// products of a group of warps read them.
__device__ inline std::int64_t place_of_row(int row, int column, int n_row_tiles) {
  return (std::int64_t{column / 8} * n_row_tiles + row / 8) * 64 + row % 8 * 8 + column % 8;
}

/// Columns i .. i + 3 of a row, i a multiple of 4, rounded: they lie side by side.
template <class Store>
__device__ inline void store_prepared(
    std::uint16_t* rows, int row, int i, int n_row_tiles, const Four& four) {
  *reinterpret_cast<uint2*>(rows + place_of_row(row, i, n_row_tiles)) = {
      narrow_two<Store>(four.of[0], four.of[1]), narrow_two<Store>(four.of[2], four.of[3])};
}

// The rows in that order. grid: (chunks, tiles of 8 rows); a thread has four neighbours of a row
template <class Store>
__global__ void __launch_bounds__(kMatThreads)
    prepare_rows(const float* x, std::int64_t x_stride, int n_rows, int k, std::uint16_t* rows) {
  let_next_begin();
  wait_for_earlier();
  const int row = blockIdx.y * 8 + threadIdx.x / 16, i = blockIdx.x * kChunk + threadIdx.x % 16 * 4;
  const int n = row < n_rows ? k - i : 0;
  const Four own = load_four(x + row * x_stride + i, n, lie_in_fours(x_stride, x));
  store_prepared<Store>(rows, row, i, gridDim.y, own);
}

// The same for rows that are normed on the way: y [n_rows, k] is what rms_norm_rows makes of x.
// grid: a block of norm_threads(k) a row, those that fill the last tile of 8 too
template <class Store>
__global__ void __launch_bounds__(kNormThreads) norm_and_prepare(
    const float* x, const float* w, float* y, int n_rows, int k, float eps, std::uint16_t* rows) {
  let_next_begin();
  wait_for_earlier();
  const int row = blockIdx.x, n_tiles = gridDim.x / 8;
  const auto width = static_cast<int>(padded_to(k, kChunk));
  if (row >= n_rows) {
    for (int i = 4 * threadIdx.x; i < width; i += 4 * blockDim.x)
      store_prepared<Store>(rows, row, i, n_tiles, {});
    return;
  }
  const bool in_fours = lie_in_fours(k, x, w, y);
  x += std::int64_t{row} * k;
  y += std::int64_t{row} * k;
  for_normed({x, w, k, in_fours}, eps, width, [&](int i, int n, const Four& normed) {
    store_prepared<Store>(rows, row, i, n_tiles, normed);
    store_four(y + i, normed, n, in_fours);
  });
}

// The same for rows that are gated on the way: y [n_rows, k] is what swiglu_elements makes of x.
// grid: as prepare_rows
template <class Store>
__global__ void __launch_bounds__(kMatThreads)
    gate_and_prepare(const float* x, float* y, int n_rows, int k, std::uint16_t* rows) {
  let_next_begin();
  wait_for_earlier();
  const int row = blockIdx.y * 8 + threadIdx.x / 16, i = blockIdx.x * kChunk + threadIdx.x % 16 * 4;
  const int n = row < n_rows ? k - i : 0;
  Four own = {};
  if (n > 0) {
    const bool in_fours = lie_in_fours(k, x, y);
    const float* gate = x + std::int64_t{row} * 2 * k + i;
    own = gated(load_four(gate, n, in_fours), load_four(gate + k, n, in_fours));
    store_four(y + std::int64_t{row} * k + i, own, n, in_fours);
  }
  store_prepared<Store>(rows, row, i, gridDim.y, own);
}

// The same for rows that attention leaves in chunks: what it makes of them is what join_chunks does.
// grid: (rows, those that fill the last tile of 8 too; heads)
template <class Store>
__global__ void __launch_bounds__(kAttentionThreads)
    join_and_prepare(AttentionCall call, int n_rows, std::uint16_t* rows) {
  let_next_begin();
  wait_for_earlier();
  const int listed = blockIdx.x, head = blockIdx.y, n_tiles = gridDim.x / 8;
  const bool there = listed < n_rows;
  const int row = there ? call.rows[listed] : listed;
  const auto write = [&](int d, float value) {
    const int column = head * call.head_dim + d;
    if (there) call.out[row * call.out_stride + column] = value;
    rows[place_of_row(row, column, n_tiles)] = Store::narrow(value);
  };
  if (there)
    join(call, listed, head, write);
  else
    for (int d = threadIdx.x; d < call.head_dim; d += kAttentionThreads) write(d, 0.0f);
  if (head + 1 < call.n_heads) return;
  const int k = call.n_heads * call.head_dim;
  for (int i = k + static_cast<int>(threadIdx.x); i < padded_to(k, kChunk); i += kAttentionThreads)
    rows[place_of_row(row, i, n_tiles)] = Store::narrow(0.0f);
}

/// The chunks of some partial sums, sum by sum.
struct ChunkCursor {
  int partial, chunk;
  __device__ void advance(int n_chunks) {
    chunk += kPartials;
    if (chunk >= n_chunks) chunk = ++partial;
  }
};
__device__ inline int chunks_in(int partial, int n_chunks) {
  return partial < n_chunks ? (n_chunks - partial + kPartials - 1) / kPartials : 0;
}

/// How many groups of warps a block has, each with 64 outputs: they share the rows that they read.
__host__ __device__ constexpr int groups_of(int n_row_tiles) {
  return n_row_tiles >= kWideTiles ? 2 : 1;
}
/// Bytes of a stage: each group's weights, then the rows.
__host__ __device__ constexpr int stage_bytes(int n_row_tiles) {
  return groups_of(n_row_tiles) * kChunkBytes + n_row_tiles * kRowTileBytes;
}
__device__ inline int group_of_thread() {
  return threadIdx.x / kMatThreads;
}

/// A chunk of the group's weights. Where the last block has a group too many, that one repeats the
/// last outputs, and nobody takes what it makes.
template <int kRowTiles>
__device__ inline const unsigned char* weights_of(const MatmulCall& call, int chunk) {
  const int last = (call.n - 1) / kBlockOutputs;
  const int asked = blockIdx.x * groups_of(kRowTiles) + group_of_thread();
  return static_cast<const unsigned char*>(call.weights) +
         (std::int64_t{asked < last ? asked : last} * chunks_of(call.k) + chunk) * kChunkBytes;
}

/// One chunk from device to shared memory. A lane copies the weights that it reads itself.
template <int kRowTiles>
__device__ inline void fetch_weights(const MatmulCall& call, int chunk, unsigned char* stage) {
  const unsigned char* weights = weights_of<kRowTiles>(call, chunk);
  const int thread = threadIdx.x % kMatThreads, lane = thread % 32, warp = thread / 32;
  stage += group_of_thread() * kChunkBytes;
#pragma unroll
  for (int tile = 0; tile < 4; tile++) {
    const int at = ((warp * 4 + tile) * 32 + lane) * 16;
    copy_async_16(stage + at, weights + at);
  }
}
template <int kRowTiles>
__device__ inline void fetch_rows(const MatmulCall& call, int chunk, unsigned char* stage) {
  constexpr int kGroups = groups_of(kRowTiles);
  const auto* rows = static_cast<const unsigned char*>(call.rows) +
                     std::int64_t{chunk} * kRowTiles * kRowTileBytes;
  for (int at = threadIdx.x * 16; at < kRowTiles * kRowTileBytes; at += kGroups * kMatThreads * 16)
    copy_async_16(stage + kGroups * kChunkBytes + at, rows + at);
}

template <class Store, int kRowTiles>
__device__ inline void multiply_chunk(const unsigned char* stage, float (&sum)[kRowTiles][4]) {
  const int thread = threadIdx.x % kMatThreads, lane = thread % 32, warp = thread / 32;
  const auto* weights = reinterpret_cast<const uint4*>(stage + group_of_thread() * kChunkBytes) +
                        warp * 4 * 32 + lane;
  const unsigned char* rows = stage + groups_of(kRowTiles) * kChunkBytes;
  unsigned a[4][4];
#pragma unroll
  for (int tile = 0; tile < 4; tile++) {
    const uint4 w = weights[tile * 32];
    a[tile][0] = w.x, a[tile][1] = w.y, a[tile][2] = w.z, a[tile][3] = w.w;
  }
  multiply_rows_begin<kRowTiles>();
#pragma unroll
  for (int tile = 0; tile < 4; tile++)
    multiply_rows<kRowTiles>(Store::kHalf, sum, a[tile],
                             rows + tile * kRowTiles * kRowTileBytes / 4);
  multiply_rows_end<kRowTiles>();
}

/// Calls take(row, output of the block, sum) for the sums that this lane holds.
template <int kRowTiles, class Take>
__device__ inline void for_sums(const MatmulCall& call,
                                const float (&sum)[kRowTiles][4],
                                const Take& take) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int kOutputs = groups_of(kRowTiles) * kBlockOutputs;
#pragma unroll
  for (int r = 0; r < kRowTiles; r++) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int row = r * 8 + lane % 4 * 2 + i % 2, output = warp * 16 + lane / 4 + i / 2 * 8;
      if (row < call.n_rows && static_cast<int>(blockIdx.x) * kOutputs + output < call.n)
        take(row, output, sum[r][i]);
    }
  }
}

struct LastOne {
  bool is_last;
};
/// Whether all other blocks of these outputs have left their sums; meets the block.
__device__ inline bool last_to_come(unsigned* done) {
  LastOne& told = static_shared<LastOne>();
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) told.is_last = atomicAdd(done, 1u) + 1 == gridDim.y;
  __syncthreads();
  __threadfence();
  return told.is_last;
}

/// Several elements at a time, so that their reads are on the way together.
template <int kRowTiles>
__device__ inline void add_partials(const MatmulCall& call) {
  constexpr int kThreads = groups_of(kRowTiles) * kMatThreads;
  constexpr int kOutputs = groups_of(kRowTiles) * kBlockOutputs;
  constexpr int kAtOnce = kRowTiles < kWideTiles ? 4 : 8;
  const int first = static_cast<int>(blockIdx.x) * kOutputs;
  const int n = call.n_rows * kOutputs;
  const float* partials = call.partials + std::int64_t{blockIdx.x} * kPartials * n;
  for (int begin = threadIdx.x; begin < n; begin += kAtOnce * kThreads) {
    float part[kAtOnce][kPartials], before[kAtOnce];
    const auto place = [&](int j) {  // in y; -1: of none
      const int i = begin + j * kThreads, output = first + i % kOutputs;
      return i < n && output < call.n ? i / kOutputs * call.y_stride + output : -1;
    };
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) {
      const std::int64_t at = place(j);
#pragma unroll
      for (int p = 0; p < kPartials; p++)
        part[j][p] = at >= 0 ? partials[p * n + begin + j * kThreads] : 0;
      before[j] = at >= 0 && call.add ? call.y[at] : 0;
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) {
      const std::int64_t at = place(j);
      if (at < 0) continue;
      float sum = part[j][0];
      for (int p = 1; p < kPartials; p++) sum += part[j][p];
      if (call.bias) sum += call.bias[first + (begin + j * kThreads) % kOutputs];
      call.y[at] = call.add ? sum + before[j] : sum;
    }
  }
}

/// The chunks of a block's partial sums, some stages of them on their way to shared memory. Weights
/// need no kernel before this one: the first of them, and those that go to the GPU's cache, are asked
/// for before the rows are there.
template <int kRowTiles>
class Chunks {
 public:
  /// @param first, end  partial sums
  __device__ Chunks(const MatmulCall& call, int first, int end)
      : call_(call), n_chunks_(chunks_of(call.k)), ahead_{first, first} {
    for (int p = first; p < end; p++) n_ += chunks_in(p, n_chunks_);
    ChunkCursor of_rows = ahead_;
    begin_weights();
    wait_for_earlier();
    for (int i = 0; i < call.n_stages - 1; i++) {
      if (i < n_) fetch_rows<kRowTiles>(call, of_rows.chunk, at(i));
      of_rows.advance(n_chunks_);
      copy_async_commit();
    }
    free_stage_ = call.n_stages - 1;
  }
  __device__ int n() const { return n_; }
  /// The stage of chunk i, that is called for in turn; meets the block.
  __device__ const unsigned char* wait(int i) {
    copy_async_wait(call_.n_stages - 2);
    share_copies<kRowTiles>();
    __syncthreads();  // the chunk is there for all, and the stage before it is free
    if (i + call_.n_stages - 1 < n_) {
      fetch_weights<kRowTiles>(call_, ahead_.chunk, at(free_stage_));
      fetch_rows<kRowTiles>(call_, ahead_.chunk, at(free_stage_));
      ahead_.advance(n_chunks_);
    }
    copy_async_commit();
    free_stage_ = stage_;
    stage_ = stage_ + 1 < call_.n_stages ? stage_ + 1 : 0;
    return at(free_stage_);
  }

 private:
  __device__ unsigned char* at(int stage) const {
    return dynamic_shared() + stage * stage_bytes(kRowTiles);
  }
  __device__ void begin_weights() {
    for (int i = 0; i < call_.n_stages - 1 && i < n_; i++) {
      fetch_weights<kRowTiles>(call_, ahead_.chunk, at(i));
      ahead_.advance(n_chunks_);
    }
    if (threadIdx.x % kMatThreads != 0) return;
    ChunkCursor later = ahead_;
    const int end = call_.n_stages - 1 + call_.n_ahead;
    for (int i = call_.n_stages - 1; i < end && i < n_; i++) {
      prefetch_to_cache(weights_of<kRowTiles>(call_, later.chunk), kChunkBytes);
      later.advance(n_chunks_);
    }
  }

  const MatmulCall& call_;
  int n_chunks_, n_ = 0;
  ChunkCursor ahead_;
  int stage_ = 0, free_stage_;
};

// grid: (blocks of 64 outputs a group, 1 or kPartials: who makes the partial sums); a warp has 16
// outputs
template <class Store, int kRowTiles>
__global__ void __launch_bounds__(kMatThreads* groups_of(kRowTiles))
    multiply_tiles(MatmulCall call) {
  constexpr int kOutputs = groups_of(kRowTiles) * kBlockOutputs;
  let_next_begin();
  const bool alone = gridDim.y == 1;
  const int first = alone ? 0 : blockIdx.y, end = alone ? kPartials : first + 1;
  Chunks<kRowTiles> chunks(call, first, end);
  ChunkCursor here = {first, first};
  float sum[kRowTiles][4] = {}, total[kRowTiles][4] = {};
  for (int i = 0; i < chunks.n(); i++) {
    multiply_chunk<Store, kRowTiles>(chunks.wait(i), sum);
    const int partial = here.partial;
    here.advance(chunks_of(call.k));
    if (here.partial == partial) continue;
#pragma unroll
    for (int r = 0; r < kRowTiles; r++) {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        total[r][j] += sum[r][j];
        sum[r][j] = 0;
      }
    }
  }
  if (alone) {
    for_sums<kRowTiles>(call, total, [&](int row, int output, float x) {
      finish(call, row, static_cast<int>(blockIdx.x) * kOutputs + output, x);
    });
    return;
  }
  float* partials =
      call.partials + (std::int64_t{blockIdx.x} * kPartials + first) * call.n_rows * kOutputs;
  for_sums<kRowTiles>(call, total,
                      [&](int row, int output, float x) { partials[row * kOutputs + output] = x; });
  if (!last_to_come(call.done + blockIdx.x)) return;
  add_partials<kRowTiles>(call);
  if (threadIdx.x == 0) call.done[blockIdx.x] = 0;
}

template <int kRows>
union F32Shared {
  float x[kPartials][kRows][kChunk];
  float sum[kPartials][kRows][kF32Outputs];
};

// grid: (blocks of 32 outputs, tiles of kRows rows, each of which reads the weights once); a warp
// makes one of the partial sums, a lane is an output
template <int kRows>
__global__ void __launch_bounds__(kMatThreads) multiply_f32(MatmulCall call) {
  F32Shared<kRows>& shared = static_shared<F32Shared<kRows>>();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = blockIdx.y * kRows;
  const int rows_here = call.n_rows - first_row < kRows ? call.n_rows - first_row : kRows;
  const auto* weights = static_cast<const float*>(call.weights) +
                        std::int64_t{blockIdx.x} * call.k * kF32Outputs + lane;
  float sum[kRows] = {};
  for (int begin = warp * kChunk; begin < call.k; begin += kPartials * kChunk) {
    const int k_here = call.k - begin < kChunk ? call.k - begin : kChunk;
    __syncwarp();
    for (int i = lane; i < rows_here * kChunk; i += 32) {
      const int row = i / kChunk, j = i % kChunk;
      if (j < k_here)
        shared.x[warp][row][j] = call.x[(first_row + row) * call.x_stride + begin + j];
    }
    __syncwarp();
    for (int j = 0; j < k_here; j++) {
      const float w = weights[std::int64_t{begin + j} * kF32Outputs];
#pragma unroll
      for (int row = 0; row < kRows; row++)
        if (row < rows_here) sum[row] = fmaf(shared.x[warp][row][j], w, sum[row]);
    }
  }
  __syncthreads();  // sums take the place of the rows
#pragma unroll
  for (int row = 0; row < kRows; row++) shared.sum[warp][row][lane] = sum[row];
  __syncthreads();
  const int output = static_cast<int>(blockIdx.x) * kF32Outputs + lane;
  if (output >= call.n) return;
  for (int row = warp; row < rows_here; row += kWarps) {
    float all = shared.sum[0][row][lane];
    for (int p = 1; p < kPartials; p++) all += shared.sum[p][row][lane];
    finish(call, first_row + row, output, all);
  }
}

// ---- the host's side

std::int64_t packed_bytes(DType dtype, int n, int k) {
  if (dtype == DType::F32) return padded_to(n, kF32Outputs) * k * 4;
  return padded_to(n, kBlockOutputs) * padded_to(k, kChunk) * 2;
}

// Raw rows go over in slabs, and are put in order there.
void pack(Device& device, const void* w_host, DType from, int n, int k, DType to, void* packed) {
  ensure(n > 0 && k > 0, "pack: n and k are at least 1");
  CudaDevice& cuda = cuda_of(device);
  const std::int64_t row_bytes = std::int64_t{k} * bytes_of(from);
  const int most = static_cast<int>(
      std::max<std::int64_t>(1, (16 << 20) / (row_bytes * kBlockOutputs)) * kBlockOutputs);
  auto* raw_rows = static_cast<char*>(
      cuda.scratch(Use::Rows, row_bytes * std::min<std::int64_t>(most, padded_to(n, 1))));
  for (int first = 0; first < n; first += most) {
    const Raw raw = {raw_rows, from, first, std::min(most, n - first), k};
    cuda.upload(raw_rows, static_cast<const char*>(w_host) + first * row_bytes, raw.n * row_bytes);
    void* slab = static_cast<char*>(packed) + packed_bytes(to, first, k);
    if (to == DType::F32) {
      const std::int64_t floats = packed_bytes(to, raw.n, k) / 4;
      cuda.launch("pack", pack_f32, blocks_for(floats, kMatThreads), kMatThreads, 0, raw, floats,
                  static_cast<float*>(slab));
    } else {
      const std::int64_t fragments = packed_bytes(to, raw.n, k) / 16;
      cuda.launch("pack", to == DType::F16 ? pack_halves<StoreF16> : pack_halves<StoreBf16>,
                  blocks_for(fragments, kMatThreads), kMatThreads, 0, raw, chunks_of(k), fragments,
                  static_cast<std::uint16_t*>(slab));
    }
  }
}

void embed(
    Device& device, const PackedMatrix& table, const std::int32_t* ids, int n_rows, float* y) {
  for (int r = 0; r < n_rows; r++)
    ensure(ids[r] >= 0 && ids[r] < table.n, "embed: an id is outside the table");
  if (n_rows == 0) return;
  CudaDevice& cuda = cuda_of(device);
  const int* told = cuda.mirrored(Use::Ids, {ids, static_cast<std::size_t>(n_rows)});
  const int fours = blocks_for(table.k, 16) * 4;
  cuda.launch_early("embed", embed_rows, dim3(n_rows, blocks_for(fours, kMatThreads)), kMatThreads,
                    0, table.data, table.dtype, table.k, told, y);
}

/// The rows' fragments; a norm, a gate or a join that was asked for just before, of these rows, is
/// made on the way.
template <class Store>
void launch_prepare(CudaDevice& cuda, const MatmulCall& call, int n_tiles, std::uint16_t* rows) {
  const bool dense = call.x_stride == call.k;
  const auto is_normed = [&](dim3 grid, const float*, const float*, const float* y, int dim,
                             float) {
    return dense && y == call.x && dim == call.k && static_cast<int>(grid.x) == call.n_rows;
  };
  const auto is_gated = [&](dim3 grid, const float*, const float* y, int hidden) {
    return dense && y == call.x && hidden == call.k && static_cast<int>(grid.x) == call.n_rows;
  };
  const auto is_joined = [&](dim3 grid, const AttentionCall& join) {
    return dense && join.out == call.x && join.out_stride == call.k &&
           join.n_heads * join.head_dim == call.k && static_cast<int>(grid.x) == call.n_rows;
  };
  const dim3 grid(chunks_of(call.k), n_tiles);
  if (const auto norm = cuda.take_back(rms_norm_rows, is_normed)) {
    const auto& [x, w, y, dim, eps] = *norm;
    cuda.launch_early("norm_and_prepare", norm_and_prepare<Store>, 8 * n_tiles, norm_threads(dim),
                      0, x, w, y, call.n_rows, dim, eps, rows);
  } else if (const auto gate = cuda.take_back(swiglu_elements, is_gated)) {
    const auto& [x, y, hidden] = *gate;
    cuda.launch_early("gate_and_prepare", gate_and_prepare<Store>, grid, kMatThreads, 0, x, y,
                      call.n_rows, hidden, rows);
  } else if (const auto join = cuda.take_back(join_chunks, is_joined)) {
    const AttentionCall& chunks = std::get<0>(*join);
    cuda.launch_early("join_and_prepare", join_and_prepare<Store>,
                      dim3(8 * n_tiles, chunks.n_heads), kAttentionThreads, 0, chunks, call.n_rows,
                      rows);
  } else {
    cuda.launch_early("prepare_rows", prepare_rows<Store>, grid, kMatThreads, 0, call.x,
                      call.x_stride, call.n_rows, call.k, rows);
  }
}

template <class Store, int kRowTiles>
void launch_tiles(CudaDevice& cuda, MatmulCall call) {
  constexpr int kGroups = groups_of(kRowTiles), kOutputs = kGroups * kBlockOutputs;
  const int n_chunks = chunks_of(call.k), n_blocks = blocks_for(call.n, kOutputs);
  auto* rows = static_cast<std::uint16_t*>(
      cuda.scratch(Use::Rows, std::int64_t{n_chunks} * kRowTiles * kRowTileBytes));
  launch_prepare<Store>(cuda, call, kRowTiles, rows);
  call.rows = rows;
  const bool alone = call.n >= kWideOutputs;
  if (!alone) {
    call.partials = static_cast<float*>(cuda.scratch(
        Use::Partials, std::int64_t{n_blocks} * kPartials * call.n_rows * kOutputs * 4));
    call.done = static_cast<unsigned*>(cuda.scratch(Use::Done, std::int64_t{n_blocks} * 4, true));
  }
  const int n_parts = alone ? 1 : kPartials;
  constexpr int kStageBytes = stage_bytes(kRowTiles);
  const int most_stages = kGroups == 1 ? kFewStages : kMostStages;
  call.n_stages = std::min(most_stages, (cuda.most_shared() - kStaticBytes) / kStageBytes);
  call.n_ahead =
      static_cast<int>(kBytesAhead / (std::int64_t{n_blocks} * n_parts * kGroups * kChunkBytes));
  cuda.launch_early("matmul", multiply_tiles<Store, kRowTiles>, dim3(n_blocks, n_parts),
                    kMatThreads * kGroups, static_cast<std::size_t>(call.n_stages) * kStageBytes,
                    call);
}

template <class Store>
void multiply_halves(CudaDevice& cuda, MatmulCall call) {
  const int n_rows = call.n_rows;
  for (int first = 0; first < n_rows; first += kMaxRows) {
    call.n_rows = std::min(kMaxRows, n_rows - first);
    const int tiles = (call.n_rows + 7) / 8;
    const auto multiply = tiles == 1   ? launch_tiles<Store, 1>
                          : tiles == 2 ? launch_tiles<Store, 2>
                          : tiles <= 4 ? launch_tiles<Store, 4>
                          : tiles <= 8 ? launch_tiles<Store, 8>
                                       : launch_tiles<Store, 16>;
    multiply(cuda, call);
    call.x += kMaxRows * call.x_stride;
    call.y += kMaxRows * call.y_stride;
  }
}

template <int kRows>
void launch_f32(CudaDevice& cuda, const MatmulCall& call) {
  cuda.launch("matmul_f32", multiply_f32<kRows>,
              dim3(blocks_for(call.n, kF32Outputs), blocks_for(call.n_rows, kRows)), kMatThreads, 0,
              call);
}

void matmul(Device& device,
            const PackedMatrix& w,
            const float* x,
            std::int64_t x_stride,
            int n_rows,
            float* y,
            std::int64_t y_stride,
            const float* bias,
            bool add) {
  check_matmul(w, n_rows, x_stride, y_stride);
  if (n_rows == 0) return;
  CudaDevice& cuda = cuda_of(device);
  const MatmulCall call = {w.data, x,   x_stride, y, y_stride, bias,    w.n,    w.k,
                           n_rows, add, 0,        0, nullptr,  nullptr, nullptr};
  if (w.dtype == DType::F32)
    (n_rows <= kF32FewRows ? launch_f32<kF32FewRows> : launch_f32<kF32MoreRows>)(cuda, call);
  else if (w.dtype == DType::F16)
    multiply_halves<StoreF16>(cuda, call);
  else
    multiply_halves<StoreBf16>(cuda, call);
}

}  // namespace

void add_matrix_ops(Ops& ops) {
  ops.packed_bytes = packed_bytes;
  ops.pack = pack;
  ops.matmul = matmul;
  ops.embed = embed;
}

}  // namespace kernels::DECOSCOPE_GPU
