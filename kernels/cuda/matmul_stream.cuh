// The matrix product of more than 16 rows in half precision. A persistent block computes several
// tiles of 128 outputs one after another; a ring of stages in shared memory holds the next chunks
// of weights and rows, across tiles. On Hopper a producer thread fills the ring with bulk copies
// and the consumer warps multiply with wgmma; on other GPUs and in the emulation all threads copy
// asynchronously. A block may start while the previous kernel still runs (programmatic dependent
// launch). It loads its first weights before it waits for that kernel.
#pragma once

#include "kernels/cuda/matmul_call.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kMostStages = 5, kFewestStages = 3;
constexpr int kMostGroups = 2;  // groups in a block share the rows

/// The tasks of a block: blockIdx.x, blockIdx.x + gridDim.x, ... A task is a tile of outputs, summed
/// over all of k or over one of the four partial sums (split-K).
class Task {
 public:
  __device__ explicit Task(const MatmulCall& call)
      : n_whole_(call.n_whole), n_(call.n_tasks), at_(static_cast<int>(blockIdx.x)) {}
  __device__ bool is_there() const { return at_ < n_; }
  __device__ void next() { at_ += static_cast<int>(gridDim.x); }
  __device__ bool is_whole() const { return at_ < n_whole_; }
  /// The tile of 128 outputs.
  __device__ int block() const {
    return is_whole() ? at_ : n_whole_ + (at_ - n_whole_) / kPartials;
  }
  /// The partial sums [first(), end()).
  __device__ int first() const { return is_whole() ? 0 : (at_ - n_whole_) % kPartials; }
  __device__ int end() const { return is_whole() ? kPartials : first() + 1; }

 private:
  int n_whole_, n_, at_;
};

/// Iterates over the chunks of a block's tasks.
class ChunkWalk {
 public:
  __device__ explicit ChunkWalk(const MatmulCall& call)
      : task_(call), n_chunks_(chunks_of(call.k)) {
    begin();
  }
  __device__ bool is_there() const { return task_.is_there(); }
  __device__ int block() const { return task_.block(); }
  __device__ int place() const { return place_; }
  __device__ int chunk() const { return cursor_.chunk; }
  __device__ void next() {
    cursor_.advance(n_chunks_);
    if (++place_ < end_) return;
    task_.next();
    begin();
  }

 private:
  // Skips partial sums without chunks.
  __device__ void begin() {
    for (; task_.is_there(); task_.next()) {
      place_ = place_of_partial(task_.first(), n_chunks_);
      end_ = place_of_partial(task_.end(), n_chunks_);
      cursor_ = {task_.first(), task_.first()};
      if (place_ < end_) return;
    }
  }
  Task task_;
  int n_chunks_, place_ = 0, end_ = 0;
  ChunkCursor cursor_ = {0, 0};
};

/// The ring of stages in shared memory. A stage holds one chunk of the weights of each group and of all rows.
template <int kRowTiles, int kGroups>
class Stages {
 public:
  static constexpr int kWeightBytes = kGroups * kChunkBytes, kRowBytes = kRowTiles * kRowTileBytes;
  static constexpr int kBytes = kWeightBytes + kRowBytes;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  /// Synchronises the block.
  __device__ explicit Stages(const MatmulCall& call) : call_(call) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < call.n_stages; i++) full(i).begin(1), empty(i).begin(kWarps * kGroups);
      Arrivals::begun();
    }
    __syncthreads();
  }
  /// Loads every chunk of the block's tasks. One thread calls it.
  __device__ void fetch_all() {
    ChunkWalk early(call_), walk(call_);
    int n = 0;
    for (; n < call_.n_stages && early.is_there(); n++, early.next()) {
      full(n).expect(kBytes);
      fetch_weights(early, n);
    }
    wait_for_earlier();  // earlier kernels write the rows
    for (int i = 0; i < n; i++, walk.next()) fetch_rows(walk, i);
    for (unsigned turn = 0; walk.is_there(); turn++) {
      for (int stage = 0; stage < call_.n_stages && walk.is_there(); stage++, walk.next()) {
        empty(stage).wait(turn % 2);
        full(stage).expect(kBytes);
        fetch_weights(walk, stage);
        fetch_rows(walk, stage);
      }
    }
  }
  /// Waits for the next stage and returns it.
  __device__ const unsigned char* wait() {
    full(stage_).wait(turn_ % 2);
    return at(stage_);
  }
  /// Frees the stage that wait() returned. Every consumer thread calls it.
  __device__ void release() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) empty(stage_).arrive();
    if (++stage_ == call_.n_stages) stage_ = 0, turn_++;
  }

 private:
  struct Barriers {
    std::uint64_t full[kMostStages], empty[kMostStages];
  };
  __device__ static Arrivals full(int stage) {
    return Arrivals(&static_shared<Barriers>().full[stage]);
  }
  __device__ static Arrivals empty(int stage) {
    return Arrivals(&static_shared<Barriers>().empty[stage]);
  }
  __device__ void fetch_weights(const ChunkWalk& walk, int stage) {
    for (int group = 0; group < kGroups; group++)
      full(stage).fetch(at(stage) + group * kChunkBytes, weights(walk, group), kChunkBytes);
  }
  __device__ void fetch_rows(const ChunkWalk& walk, int stage) {
    full(stage).fetch(at(stage) + kWeightBytes, rows(walk), kRowBytes);
  }
  int stage_ = 0;
  unsigned turn_ = 0;
#else
  __device__ explicit Stages(const MatmulCall& call) : walk_(call), call_(call) {
    for (int i = 0; i + 1 < kFewestStages; i++) fetch(i);
  }
  __device__ const unsigned char* wait() {
    copy_async_wait(kFewestStages - 2);
    __syncthreads();
    fetch(stage_ == 0 ? kFewestStages - 1 : stage_ - 1);
    return at(stage_);
  }
  __device__ void release() {
    if (++stage_ == kFewestStages) stage_ = 0;
  }

 private:
  __device__ void fetch(int stage) {
    if (walk_.is_there()) {
      for (int group = 0; group < kGroups; group++)
        copy(at(stage) + group * kChunkBytes, weights(walk_, group), kChunkBytes);
      copy(at(stage) + kWeightBytes, rows(walk_), kRowBytes);
      walk_.next();
    }
    copy_async_commit();
  }
  __device__ static void copy(unsigned char* to, const unsigned char* from, unsigned bytes) {
    for (unsigned byte = threadIdx.x * 16; byte < bytes; byte += blockDim.x * 16)
      copy_async_16(to + byte, from + byte);
  }
  ChunkWalk walk_;
  int stage_ = 0;
#endif
  __device__ static unsigned char* at(int stage) {
    return dynamic_shared() + stage * kBytes;
  }
  /// The weights of a group; a group past the matrix reads the last block's.
  __device__ const unsigned char* weights(const ChunkWalk& walk, int group) const {
    const int last = (call_.n - 1) / kBlockOutputs, wanted = walk.block() * kGroups + group;
    return static_cast<const unsigned char*>(call_.weights) +
           (std::int64_t{wanted < last ? wanted : last} * chunks_of(call_.k) + walk.place()) *
               kChunkBytes;
  }
  __device__ const unsigned char* rows(const ChunkWalk& walk) const {
    return static_cast<const unsigned char*>(call_.rows) + std::int64_t{walk.chunk()} * kRowBytes;
  }
  const MatmulCall& call_;
};

struct LastGroup {
  bool is_last[kMostGroups];
};
/// True in the last of the four groups that sum these outputs. For outputs past the end of the
/// matrix the counter is null. Without bulk copies all groups of a block must call it together.
__device__ inline bool last_group_to_come(unsigned* done, int group) {
  bool& is_last = static_shared<LastGroup>().is_last[group];
  sync_group(group);
  if (threadIdx.x % kMatThreads == 0 && done) {
    __threadfence();  // covers the writes of the whole group
    is_last = atomicAdd(done, 1u) + 1 == kPartials;
    if (is_last) *done = 0;
    __threadfence();
  }
  sync_group(group);
  return done && is_last;
}

/// The elements of y that a lane writes for kN tiles of rows, starting at a row and an output.
template <int kN>
class TilesOfY {
 public:
  /// Loads the residual of all elements at once, if the product is added to y.
  __device__ TilesOfY(const MatmulCall& call, int row, int first)
      : call_(call),
        row_(row + static_cast<int>(threadIdx.x) % 4 * 2),
        output_(first + static_cast<int>(threadIdx.x) / 32 % kWarps * 16 +
                static_cast<int>(threadIdx.x) % 32 / 4) {
#pragma unroll
    for (int r = 0; r < kN; r++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const std::int64_t at = place(r, i);
        before_[r][i] = at >= 0 && call.add ? call.y[at] : 0;
      }
    }
  }
  __device__ void write(int r, int i, float sum) const {
    const std::int64_t at = place(r, i);
    if (at < 0) return;
    if (call_.bias) sum += call_.bias[output_ + i / 2 * 8];
    call_.y[at] = call_.add ? sum + before_[r][i] : sum;
  }

 private:
  __device__ std::int64_t place(int r, int i) const {  // -1: outside y
    const int row = row_ + r * 8 + i % 2, output = output_ + i / 2 * 8;
    return row < call_.n_rows && output < call_.n ? row * call_.y_stride + output : -1;
  }
  const MatmulCall& call_;
  int row_, output_;
  float before_[kN][4];
};

constexpr int kTilesAtOnce = 4;  // tiles of rows that are loaded and written together

/// Writes sums over all of k to y.
template <int kRowTiles>
__device__ inline void write_sums(const MatmulCall& call,
                                  int first,
                                  const float (&sum)[kRowTiles][4]) {
#pragma unroll
  for (int begin = 0; begin < kRowTiles; begin += kTilesAtOnce) {
    if (begin * 8 >= call.n_rows) break;
    const TilesOfY<kTilesAtOnce> y(call, begin * 8, first);
#pragma unroll
    for (int r = 0; r < kTilesAtOnce; r++) {
#pragma unroll
      for (int i = 0; i < 4; i++) y.write(r, i, sum[begin + r][i]);
    }
  }
}

/// Adds the four partial sums in order and writes them to y.
/// @param partials  this lane's first element; the partial sums are kFours apart, in fragment order
template <int kRowTiles>
__device__ inline void write_partials(const MatmulCall& call, int first, const Four* partials) {
  constexpr int kFours = kRowTiles * kMatThreads;
#pragma unroll 1
  for (int begin = 0; begin * 8 < call.n_rows; begin += kTilesAtOnce) {
    const TilesOfY<kTilesAtOnce> y(call, begin * 8, first);
    Four part[kTilesAtOnce][kPartials];
#pragma unroll
    for (int r = 0; r < kTilesAtOnce; r++) {
#pragma unroll
      for (int p = 0; p < kPartials; p++)
        part[r][p] = load_four(partials[p * kFours + (begin + r) * kMatThreads].of,
                               (begin + r) * 8 < call.n_rows ? 4 : 0, true);
    }
#pragma unroll
    for (int r = 0; r < kTilesAtOnce; r++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float all = part[r][0].of[i];
#pragma unroll
        for (int p = 1; p < kPartials; p++) all += part[r][p].of[i];
        y.write(r, i, all);
      }
    }
  }
}

/// Writes a group's sums to y, or its partial sum to memory; the last of the four groups adds them.
template <int kRowTiles, int kGroups>
__device__ inline void leave_task(const MatmulCall& call,
                                  const Task& task,
                                  const float (&sum)[kRowTiles][4]) {
  const int group = static_cast<int>(threadIdx.x) / kMatThreads;
  const int block = task.block() * kGroups + group, first = block * kBlockOutputs;
  if (task.is_whole()) {
    write_sums<kRowTiles>(call, first, sum);
    return;
  }
  constexpr int kFours = kRowTiles * kMatThreads;
  const bool there = first < call.n;
  Four* partials = reinterpret_cast<Four*>(call.partials) +
                   std::int64_t{block - call.n_whole * kGroups} * kPartials * kFours +
                   threadIdx.x % kMatThreads;
#pragma unroll
  for (int r = 0; r < kRowTiles; r++)
    if (there && r * 8 < call.n_rows)
      store_four(partials[task.first() * kFours + r * kMatThreads].of,
                 {{sum[r][0], sum[r][1], sum[r][2], sum[r][3]}}, 4, true);
  if (last_group_to_come(there ? call.done + block : nullptr, group))
    write_partials<kRowTiles>(call, first, partials);
}

/// Threads of a block: 128 for each 64 outputs, and the producer's warp.
template <int kGroups>
constexpr int kStreamThreads = kGroups* kMatThreads + 32;

// grid: at most one block per multiprocessor; shared: n_stages times Stages::kBytes
template <class Store, int kRowTiles, int kGroups>
__global__ void __launch_bounds__(kStreamThreads<kGroups>) multiply_stream(MatmulCall call) {
  let_next_begin();
#if !defined(__CUDA_ARCH_FEAT_SM90_ALL)
  wait_for_earlier();
  if (threadIdx.x >= kGroups * kMatThreads) return;
#endif
  Stages<kRowTiles, kGroups> stages(call);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if (threadIdx.x >= kGroups * kMatThreads) {
    if (threadIdx.x == kGroups * kMatThreads)
      stages.fetch_all();
    else
      wait_for_earlier();
    return;
  }
  wait_for_earlier();
#endif
  const int n_chunks = chunks_of(call.k);
  const unsigned of_lane = threadIdx.x / 32 * (kChunkBytes / kWarps) + threadIdx.x % 32 * 16;
  for (Task task(call); task.is_there(); task.next()) {
    Sums<kRowTiles> sums;
    ChunkCursor here = {task.first(), task.first()};
    const int n = place_of_partial(task.end(), n_chunks) - place_of_partial(task.first(), n_chunks);
    for (int i = 0; i < n; i++) {
      const unsigned char* stage = stages.wait();
      unsigned a[4][4];
#pragma unroll
      for (int tile = 0; tile < 4; tile++) {
        const uint4 w = *reinterpret_cast<const uint4*>(stage + of_lane + tile * 512);
        a[tile][0] = w.x, a[tile][1] = w.y, a[tile][2] = w.z, a[tile][3] = w.w;
      }
      if constexpr (kRowTiles >= kWideTiles) multiply_rows_begin(sums.now, a);
#pragma unroll
      for (int tile = 0; tile < 4; tile++)
        multiply_rows<kRowTiles>(
            Store::kHalf, sums.now, a[tile],
            stage + kGroups * kChunkBytes + tile * kRowTiles * kRowTileBytes / 4);
      if constexpr (kRowTiles >= kWideTiles) multiply_rows_end(sums.now);
      stages.release();
      const int partial = here.partial;
      here.advance(n_chunks);
      if (here.partial != partial) sums.end_partial();
    }
    leave_task<kRowTiles, kGroups>(call, task, sums.before);
  }
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU
