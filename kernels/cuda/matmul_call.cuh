// Arguments, inputs and partial sums of the products with weights of half types. k is cut into
// chunks of 64. Chunk c belongs to partial sum c % 4, which adds its chunks in order; the four
// partial sums are then added in order. The bits are the same whether one block computes all four
// or each has its own block (split-K).
#pragma once

#include "kernels/cuda/intrinsics.cuh"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/packed.cuh"
#include "kernels/cuda/row_tiles.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kWarps = 4, kMatThreads = 32 * kWarps;  // of a group of 64 outputs

/// Weights to prefetch into the GPU's cache: the kernels before a product use little memory
/// bandwidth, so their blocks prefetch, for each 64 outputs, the first chunks of each partial sum.
struct Ahead {
  const unsigned char* weights;
  int n_chunks;      // of k
  int n_parts;       // 1: one block sums all of k; kPartials: a block for each partial sum
  int n;             // blocks of 64 outputs times parts
  int n_prefetched;  // chunks to prefetch for each of these n, at most 32
};
/// Warps of a prefetching block. Each warp prefetches for one of the n.
constexpr int kPrefetchWarps = 4;

/// Prefetches the chunks of one prefetching block.
/// @param block  the number of the block among the prefetching blocks; negative: prefetches
///               nothing
__device__ inline void prefetch_weights(const Ahead& ahead, int block) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int i = block * kPrefetchWarps + warp, part = i % ahead.n_parts;
  if (block < 0 || warp >= kPrefetchWarps || i >= ahead.n || lane >= ahead.n_prefetched) return;
  const int place = place_of_partial(part, ahead.n_chunks) + lane;
  if (place >= place_of_partial(part + kPartials / ahead.n_parts, ahead.n_chunks)) return;
  const std::int64_t chunk = std::int64_t{i / ahead.n_parts} * ahead.n_chunks + place;
  prefetch_to_cache(ahead.weights + chunk * kChunkBytes, kChunkBytes);
}

/// Arguments of a product's kernels.
struct MatmulCall {
  const void* weights;
  const float* x;
  std::int64_t x_stride;
  float* y;
  std::int64_t y_stride;
  const float* bias;
  int n, k, n_rows;
  int add;           // 1: adds to y. (Not bool: padding bytes would have no defined value.)
  const void* rows;  // half types: the rounded rows, in the order of place_of_row
  /// Half types, split-K: for each 64 outputs [kPartials][n_rows][64] in multiply_few, [kPartials] in fragment order in
  /// multiply_stream.
  float* partials;
  unsigned* done;  // [blocks of 64 outputs], zeros before and after
  int n_whole;     // multiply_stream: tiles that one block sums over all of k,
  int n_tasks;     // these plus the partial sums of the other tiles,
  int n_stages;    // stages of the ring in shared memory
  int unused;
};

/// Adds bias and old value to a sum and writes it to y.
__device__ inline void finish(const MatmulCall& call, int row, int output, float sum) {
  if (call.bias) sum += call.bias[output];
  float* y = call.y + row * call.y_stride + output;
  if (call.add) sum += *y;
  *y = sum;
}

/// Index of an element of the rounded rows: [8 k][8 rows][row][k], the order that multiply_tile and Hopper's wgmma read.
__device__ inline std::int64_t place_of_row(int row, int column, int n_row_tiles) {
  return (std::int64_t{column / 8} * n_row_tiles + row / 8) * 64 + row % 8 * 8 + column % 8;
}

/// Stores columns i .. i + 3 of a row, rounded; i is a multiple of 4.
template <class Store>
__device__ inline void store_prepared(
    std::uint16_t* rows, int row, int i, int n_row_tiles, const Four& four) {
  *reinterpret_cast<uint2*>(rows + place_of_row(row, i, n_row_tiles)) = {
      narrow_two<Store>(four.of[0], four.of[1]), narrow_two<Store>(four.of[2], four.of[3])};
}

/// The partial sums [first, end) of a block.
struct Share {
  int first, end, n_chunks;
  __device__ explicit Share(const MatmulCall& call) : n_chunks(chunks_of(call.k)) {
    const bool alone = gridDim.y == 1;
    first = alone ? 0 : blockIdx.y;
    end = alone ? kPartials : first + 1;
  }
  /// The number of chunks of this share.
  __device__ int size() const { return place_of_partial(end, n_chunks) - begin(); }
  /// Index of the share's first chunk in a block of outputs; the share's other chunks follow.
  __device__ int begin() const { return place_of_partial(first, n_chunks); }
};

/// The next chunk of a sequence of partial sums.
struct ChunkCursor {
  int partial, chunk;
  __device__ void advance(int n_chunks) {
    chunk += kPartials;
    if (chunk >= n_chunks) chunk = ++partial;
  }
};

/// A lane's weights, loaded to registers chunk by chunk.
class Weights {
 public:
  using OfChunk = uint4[4];  // 16 k each

  /// @param block  of 64 outputs; a block past the end reads the last block's weights
  __device__ Weights(const MatmulCall& call, const Share& share, int block) : left_(share.size()) {
    const int last = (call.n - 1) / kBlockOutputs;
    const std::int64_t chunk =
        std::int64_t{block < last ? block : last} * share.n_chunks + share.begin();
    at_ = static_cast<const uint4*>(call.weights) + chunk * (kChunkBytes / 16) +
          threadIdx.x % kMatThreads / 32 * 128 + threadIdx.x % 32;
  }
  /// Loads the next chunk, if there is one.
  __device__ void load(OfChunk& w) {
    if (left_ <= 0) return;
    left_--;
#pragma unroll
    for (int tile = 0; tile < 4; tile++) w[tile] = load_streamed(at_ + tile * 32);
    at_ += kChunkBytes / 16;
  }

 private:
  const uint4* at_;
  int left_;
};

/// A lane's sums: the current partial sum, and the total of the earlier ones.
template <int kRowTiles>
struct Sums {
  float now[kRowTiles][4] = {}, before[kRowTiles][4] = {};
  __device__ void end_partial() {
#pragma unroll
    for (int r = 0; r < kRowTiles; r++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        before[r][i] += now[r][i];
        now[r][i] = 0;
      }
    }
  }
};

/// Adds the four partial sums of a block in order. Loads several elements at a time to overlap their latency.
__device__ inline void add_partials(const MatmulCall& call) {
  constexpr int kThreads = kMatThreads, kOutputs = kBlockOutputs, kAtOnce = 4;
  const int first = static_cast<int>(blockIdx.x) * kOutputs;
  const int n = call.n_rows * kOutputs;
  const float* partials = call.partials + std::int64_t{blockIdx.x} * kPartials * n;
  for (int begin = threadIdx.x; begin < n; begin += kAtOnce * kThreads) {
    float part[kAtOnce][kPartials], before[kAtOnce];
    const auto place = [&](int j) {  // index in y; -1: none
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

/// Writes a block's sums to y. With split-K, writes its partial sum to memory, and the last block to arrive adds all
/// partial sums.
template <int kRowTiles>
__device__ inline void leave_sums(const MatmulCall& call,
                                  const float (&sum)[kRowTiles][4],
                                  int partial) {
  constexpr int kOutputs = kBlockOutputs;
  const bool alone = gridDim.y == 1;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = static_cast<int>(blockIdx.x) * kOutputs;
  float* partials =
      call.partials + (std::int64_t{blockIdx.x} * kPartials + partial) * call.n_rows * kOutputs;
#pragma unroll
  for (int r = 0; r < kRowTiles; r++) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int row = r * 8 + lane % 4 * 2 + i % 2, output = warp * 16 + lane / 4 + i / 2 * 8;
      if (row >= call.n_rows || first + output >= call.n) continue;
      if (alone)
        finish(call, row, first + output, sum[r][i]);
      else
        partials[row * kOutputs + output] = sum[r][i];
    }
  }
  if (alone || !last_to_come(call.done + blockIdx.x, gridDim.y)) return;
  add_partials(call);
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU
