// The first attention kernel: partial results of one chunk of 64 positions for rows of one sequence, as FlashAttention
// computes them (largest score, sum of weights, weighted values). attention_join.cuh joins the chunks of a row.
//   scores   over head_dim in slabs of 256 bytes, slabs in order. Half types: multiply_tile, 16 dimensions after 16, with
//            one sum for each part that the query is split into. f32: four sums of every fourth dimension
//   weights  relative to the largest score that the row sees in the chunk; 16 lanes with 4 slots each, then a tree
//   values   half types: multiply_tile, 16 slots after 16, with one sum for each part of the weights. f32: four sums of
//            every fourth slot
// The slot of a position is its place in the chunk, wherever its vectors lie in shared memory. Positions that a row does
// not see contribute zeros or no term.
#pragma once

#include "kernels/cuda/attention_join.cuh"
#include "kernels/ops.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kTileQueries = 8, kMostQueries = 32;  // queries in a multiply_tile, and in a block
// bytes of each vector that are in shared memory at a time
constexpr int kSlabBytes = 256;
constexpr int kLanesAVector = kSlabBytes / 16, kVectorsATime = kAttentionThreads / kLanesAVector;
constexpr int kScorePitch = kPageSize + 4;
constexpr unsigned kUnseen = 0xff;

/// 16 bytes of f32.
struct Floats {
  float x[4];
  __device__ explicit Floats(const float* from) {
    const uint4 bytes = *reinterpret_cast<const uint4*>(from);
    x[0] = __uint_as_float(bytes.x);
    x[1] = __uint_as_float(bytes.y);
    x[2] = __uint_as_float(bytes.z);
    x[3] = __uint_as_float(bytes.w);
  }
};

/// An f32 as a sum of elements of the stored type, for exact products with stored elements.
template <class Store>
struct Parts;
template <>
struct Parts<StoreF32> {
  static constexpr int kN = 1;
  float of[kN];
  __device__ explicit Parts(float x) : of{x} {}
};
template <>
struct Parts<StoreBf16> {  // exact, except for parts below the smallest bf16
  static constexpr int kN = 3;
  std::uint16_t of[kN];
  __device__ explicit Parts(float x) {
#pragma unroll
    for (int i = 0; i < kN; i++) {
      const unsigned high = __float_as_uint(x) & 0xffff0000u;
      of[i] = static_cast<std::uint16_t>(high >> 16);
      x -= __uint_as_float(high);
    }
  }
};
template <>
struct Parts<StoreF16> {  // 22 bits of precision, down to 2^-25; infinite above 65,504
  static constexpr int kN = 2;
  std::uint16_t of[kN];
  __device__ explicit Parts(float x) {
    of[0] = StoreF16::narrow(x);
    of[1] = StoreF16::narrow(x - StoreF16::widen(of[0]));
  }
};

/// The layout of a block's dynamic shared memory, in bytes.
template <class Store>
struct ChunkMemory {
  using Element = typename Store::Element;
  static constexpr int kSlab = kSlabBytes / static_cast<int>(sizeof(Element));  // dimensions
  static constexpr int kWeightPitch = kPageSize * static_cast<int>(sizeof(Element)) + 16;
  int width;  // of a vector's slab, padded with zeros
  int pitch;  // distance of vectors; an odd multiple of 16, so 8 vectors use different banks
  int values, queries, scores, bytes;
  __host__ __device__ ChunkMemory(int head_dim, int n_queries) {
    const int wanted = head_dim * static_cast<int>(sizeof(Element));
    width = (wanted < kSlabBytes ? wanted + 63 : kSlabBytes) / 64 * 64;
    pitch = width + 16;
    values = kPageSize * pitch;
    queries = 2 * values;  // the weights use this memory later
    const int widest = pitch > kWeightPitch ? pitch : kWeightPitch;
    scores = queries + Parts<Store>::kN * n_queries * widest;
    bytes = scores + n_queries * kScorePitch * 4;
  }
};

/// The slots that a batch of queries sees. Rows and queries are numbered from the first of the batch.
struct SeenByBatch {
  int lo[kMostQueries], hi[kMostQueries];  // first and last slot that a row sees
  int chain[kMostQueries];                 // index of the chunk's first slot in the row's chain
  int partial[kMostQueries];               // index of the row's chunk in partials
  int row[kMostQueries];                   // row of the plan
  std::uint8_t runs[kMostQueries / kTileQueries];  // of each tile, bit q: a run begins at query q
  int n_staged;
  int mixed;              // 1: some run has queries that see different slots
  int too_large;          // 1: the chunk may have a value v for which 0 * v is not 0
  int staged[kPageSize];  // staged rows whose vectors follow the cached ones
  alignas(4) std::uint8_t place[kMostQueries][kPageSize];  // of each slot: its vector, or kUnseen
  /// the same, for all queries of the run that begins at a query
  alignas(4) std::uint8_t together[kMostQueries][kPageSize];
};

/// One chunk and one kv head. Queries of a group (rows times the query heads of the kv head, GQA) are numbered row by
/// row, the heads of a row in order.
template <class Store, int kTiles>
class ChunkBlock {
 public:
  __device__ ChunkBlock(const AttentionCall& call, const ChunkItem& item)
      : call_(call),
        item_(item),
        memory_(call.head_dim, kTiles * kTileQueries),
        n_rep_(call.n_heads / call.n_kv_heads),
        seen_(static_shared<SeenByBatch>()) {}

  /// Computes queries from `begin` on: as many of the n queries (at least one) as have keys that
  /// fit together into shared memory.
  /// @return  their number
  __device__ int attend(int begin, int n) {
    n_stored_ = item_.n_cached;
    fetch_keys(0, 0);
    fetch_values(0, 0);
    place_rows(begin, n);
    if (n_stored_ > item_.n_cached) {
      fetch_keys(0, item_.n_cached);
      fetch_values(0, item_.n_cached);
    }
    const int n_slabs = (call_.head_dim + kSlab - 1) / kSlab;
    for (int slab = 0; slab < n_slabs; slab++) {
      if (slab > 0) {
        __syncthreads();
        fetch_keys(slab, 0);
      }
      load_queries(slab);
      copy_async_wait(slab == 0 ? 1 : 0);  // values may still be copying
      __syncthreads();
      add_scores(slab);
    }
    __syncthreads();
    weigh();
    copy_async_wait(0);
    __syncthreads();
    for (int slab = 0; slab < n_slabs; slab++) {
      if (slab > 0) {
        __syncthreads();
        fetch_values(slab, 0);
        copy_async_wait(0);
        __syncthreads();
      }
      split_runs_of_large_values(slab);
      add_values(slab);
    }
    return n_;
  }

 private:
  using Element = typename Store::Element;
  using Memory = ChunkMemory<Store>;
  static constexpr int kSlab = Memory::kSlab, kParts = Parts<Store>::kN;
  static constexpr int kN = 16 / static_cast<int>(sizeof(Element));  // elements of 16 bytes

  __device__ int dims_of(int slab) const {
    const int left = call_.head_dim - slab * kSlab;
    return left < kSlab ? left : kSlab;
  }
  __device__ int row_of(int query) const { return (begin_ + query) / n_rep_ - begin_ / n_rep_; }
  __device__ unsigned char* shared(int from) const { return dynamic_shared() + from; }
  __device__ float* scores(int query) const {
    return reinterpret_cast<float*>(shared(memory_.scores)) + query * kScorePitch;
  }
  /// One part of a query's weights; the weights are the sum of all parts.
  __device__ unsigned char* weights(int part, int query) const {
    return shared(memory_.queries) + (part * kTiles * kTileQueries + query) * Memory::kWeightPitch;
  }
  __device__ unsigned char* query(int part, int query) const {
    return shared(memory_.queries) + (part * kTiles * kTileQueries + query) * memory_.pitch;
  }

  // ---- Copies keys, values and queries to shared memory

  __device__ void fetch_keys(int slab, int from) const {
    fetch(call_.k_pages, call_.staged_k, 0, slab, from);
  }
  __device__ void fetch_values(int slab, int from) const {
    fetch(call_.v_pages, call_.staged_v, memory_.values, slab, from);
  }
  /// Copies vectors [from, n_stored_), first those of the page, then staged ones, as one group of asynchronous copies.
  __device__ void fetch(const char* pages, const void* staged, int to, int slab, int from) const {
    const int n_dims = dims_of(slab), d = threadIdx.x % kLanesAVector * kN, head = blockIdx.y;
    const std::int64_t page_head = std::int64_t{head} * kPageSize * call_.head_dim + slab * kSlab;
    const auto* page =
        reinterpret_cast<const Element*>(pages + item_.page * call_.page_bytes) + page_head;
    const auto* rows = static_cast<const Element*>(staged) + head * call_.head_dim + slab * kSlab;
    const std::int64_t row_pitch = std::int64_t{call_.n_kv_heads} * call_.head_dim;
    const bool in_vectors = call_.head_dim % kN == 0;
    if (d * static_cast<int>(sizeof(Element)) < memory_.width) {
      for (int at = from + static_cast<int>(threadIdx.x) / kLanesAVector; at < n_stored_;
           at += kVectorsATime) {
        const Element* vector = at < item_.n_cached
                                    ? page + at * call_.head_dim
                                    : rows + seen_.staged[at - item_.n_cached] * row_pitch;
        auto* place = reinterpret_cast<Element*>(shared(to + at * memory_.pitch)) + d;
        if (in_vectors && d < n_dims)
          copy_async_16(place, vector + d);
        else
          for (int i = 0; i < kN; i++) place[i] = d + i < n_dims ? vector[d + i] : Element{};
      }
    }
    copy_async_commit();
  }

  __device__ void load_queries(int slab) const {
    const int n_dims = dims_of(slab), lane = threadIdx.x % kLanesAVector;
    for (int i = threadIdx.x / kLanesAVector; i < n_; i += kVectorsATime) {
      const int row = row_of(i),
                head = static_cast<int>(blockIdx.y) * n_rep_ + (begin_ + i) % n_rep_;
      const float* q = call_.q + seen_.row[row] * call_.q_stride +
                       std::int64_t{head} * call_.head_dim + slab * kSlab;
#pragma unroll
      for (int j = 0; j < kSlab / 2 / kLanesAVector; j++) {
        const int d = 2 * (lane + j * kLanesAVector);
        if (d * static_cast<int>(sizeof(Element)) >= memory_.width) break;
        const Parts<Store> low(d < n_dims ? q[d] : 0.0f), high(d + 1 < n_dims ? q[d + 1] : 0.0f);
#pragma unroll
        for (int part = 0; part < kParts; part++) {
          auto* to = reinterpret_cast<Pair*>(query(part, i)) + d / 2;
          *to = {low.of[part], high.of[part]};
        }
      }
    }
  }

  // ---- Finds the slots that a row sees, and the places of their vectors

  /// Chooses the queries of this batch: halves n until all their staged keys fit.
  __device__ void place_rows(int begin, int n) {
    begin_ = begin;
    for (n_ = n;; n_ = (n_ + 1) / 2) {
      describe_rows();
      __syncthreads();
      place_cached();
      __syncthreads();
      if (item_.n_cached < kPageSize) {
        place_staged();
        __syncthreads();
      }
      n_stored_ = item_.n_cached + seen_.n_staged;
      if (n_stored_ <= kPageSize) break;
      __syncthreads();
    }
    find_runs(false);
  }

  __device__ int n_rows() const {
    return row_of(n_ - 1) + 1;
  }

  __device__ void describe_rows() const {
    const int i = threadIdx.x;
    if (i == 0) seen_.n_staged = 0, seen_.mixed = 0, seen_.too_large = 0;
    if (i >= n_rows()) return;
    const ListedRow row = call_.listed[item_.first + begin_ / n_rep_ + i];
    const int base = item_.chunk * kPageSize, last = row.pos - base;
    seen_.lo[i] = row.first > base ? row.first - base : 0;
    seen_.hi[i] = last < kPageSize - 1 ? last : kPageSize - 1;
    seen_.chain[i] = row.chain + base;
    seen_.partial[i] = row.chunks + item_.chunk;
    seen_.row[i] = row.row;
  }

  /// Cached slots; 16 slots of a row for each thread. Writes the rows of staged slots to the memory of the scores.
  __device__ void place_cached() const {
    const int row = threadIdx.x / 4;
    if (row >= n_rows()) return;
    const int lo = seen_.lo[row], hi = seen_.hi[row];
    auto* staged = reinterpret_cast<int*>(scores(row));
    for (int word = threadIdx.x % 4 * 4, end = word + 4; word < end; word++) {
      unsigned places = 0;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int slot = word * 4 + i;
        const bool sees = slot >= lo && slot <= hi;
        if (sees && slot >= item_.n_cached) staged[slot] = call_.chain[seen_.chain[row] + slot];
        places |= (sees ? static_cast<unsigned>(slot) : kUnseen) << 8 * i;
      }
      reinterpret_cast<unsigned*>(seen_.place[row])[word] = places;
    }
  }

  /// Gives every visible staged row a place; rows of a tree may share one. A warp handles a slot at a time, a lane a row.
  __device__ void place_staged() const {
    const int lane = threadIdx.x % 32, n = n_rows();
    for (int slot = item_.n_cached + static_cast<int>(threadIdx.x) / 32; slot < kPageSize;
         slot += kAttentionWarps) {
      const bool sees = lane < n && slot >= seen_.lo[lane] && slot <= seen_.hi[lane];
      const unsigned all = __ballot_sync(kAllLanes, sees);
      if (all == 0) continue;
      const int node = sees ? reinterpret_cast<int*>(scores(lane))[slot] : -1;
      const int leader = first_same_lane(node, n);
      const bool leads = sees && leader == lane;
      const unsigned leaders = __ballot_sync(kAllLanes, leads);
      int first = 0;
      if (lane == 0) first = atomicAdd(&seen_.n_staged, __popc(leaders));
      first = __shfl_sync(kAllLanes, first, 0);
      if (!sees) continue;
      const int at = first + __popc(leaders & ((1u << leader) - 1));
      if (item_.n_cached + at >= kPageSize) continue;
      seen_.place[lane][slot] = static_cast<std::uint8_t>(item_.n_cached + at);
      if (leads) seen_.staged[at] = node;
    }
  }

  /// Splits each tile's queries into runs. The queries of a run share one product with the values:
  /// each slot has the same place in shared memory for all of them. A query has weight 0 at a slot
  /// that it does not see. A warp handles a tile, a lane four slots.
  /// @param strictly  a run has only queries that see the same slots
  __device__ void find_runs(bool strictly) const {
    const int tile = threadIdx.x / 32, word = threadIdx.x % 16;
    unsigned all = 0, runs = 0;
    int first = 0;
    bool mixed = false;
    for (int i = 0; i < kTileQueries; i++) {
      const int query = tile * kTileQueries + i;
      if (query >= n_) {
        runs |= 1u << i;
        continue;
      }
      const unsigned own = reinterpret_cast<const unsigned*>(seen_.place[row_of(query)])[word];
      const bool apart = strictly ? own != all : two_places(own, all);
      if (i == 0 || __ballot_sync(kAllLanes, apart) != 0) {
        runs |= 1u << i, first = query, all = own;
      } else {
        mixed = mixed || own != all;
        all = either_place(own, all);
      }
      if (threadIdx.x % 32 < 16) reinterpret_cast<unsigned*>(seen_.together[first])[word] = all;
    }
    if (threadIdx.x % 32 == 0) seen_.runs[tile] = static_cast<std::uint8_t>(runs);
    if (__ballot_sync(kAllLanes, mixed) != 0 && threadIdx.x % 32 == 0) atomicExch(&seen_.mixed, 1);
  }
  /// Compares two words, each with the places of four slots. Returns true if some slot has a known
  /// place in both words and the two places differ.
  __device__ static bool two_places(unsigned a, unsigned b) {
    bool found = false;
#pragma unroll
    for (int shift = 0; shift < 32; shift += 8) {
      const unsigned x = a >> shift & 0xff, y = b >> shift & 0xff;
      found = found || (x != kUnseen && y != kUnseen && x != y);
    }
    return found;
  }
  __device__ static unsigned either_place(unsigned a, unsigned b) {
    unsigned either = 0;
#pragma unroll
    for (int shift = 0; shift < 32; shift += 8) {
      const unsigned x = a >> shift & 0xff, y = b >> shift & 0xff;
      either |= (x == kUnseen ? y : x) << shift;
    }
    return either;
  }
  __device__ int end_of_run(int begin) const {
    int end = begin + 1;
    while (end < kMostQueries && !(seen_.runs[end / kTileQueries] >> end % kTileQueries & 1)) end++;
    return end;
  }

  /// Splits runs strictly if a value is so large that its product with weight 0 may differ from 0.
  /// Synchronises the block if a run has queries that see different slots.
  __device__ void split_runs_of_large_values(int slab) const {
    if constexpr (sizeof(Element) == 2) {
      if (!seen_.mixed) return;
      constexpr unsigned kMost = Store::kType == DType::BF16 ? 0x6000 : 0x7c00;  // 2^65; infinity
      const int n_words = (dims_of(slab) + 1) / 2, lane = threadIdx.x % 32;
      bool found = false;
      for (int at = threadIdx.x / 32; at < n_stored_; at += kAttentionWarps) {
        const auto* words =
            reinterpret_cast<const unsigned*>(shared(memory_.values + at * memory_.pitch));
        for (int i = lane; i < n_words; i += 32) {
          const unsigned two = words[i];
          found = found || (two & 0x7fff) >= kMost || (two >> 16 & 0x7fff) >= kMost;
        }
      }
      if (__ballot_sync(kAllLanes, found) != 0 && lane == 0) atomicExch(&seen_.too_large, 1);
      __syncthreads();
      if (!seen_.too_large) return;
      find_runs(true);
      __syncthreads();
    }
  }

  // ---- scores, indexed by the place of a key; weights, indexed by slot

  __device__ void add_scores(int slab) const {
    if constexpr (sizeof(Element) == 2)
      add_scores_of_halves(slab);
    else
      add_scores_of_floats(slab);
  }

  /// A warp handles 16 keys.
  __device__ void add_scores_of_halves(int slab) const {
    const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16;
    if (first >= n_stored_) return;
    float sums[kTiles][kParts][4] = {};
    const unsigned char* keys = shared((first + lane % 16) * memory_.pitch) + lane / 16 * 16;
    const int n_bytes = (dims_of(slab) * 2 + 63) / 64 * 64;
    for (int at = 0; at < n_bytes; at += 64) {  // 32 dimensions
      unsigned k[2][4];
      load_tiles(k[0], keys + at);
      load_tiles(k[1], keys + at + 32);
#pragma unroll
      for (int tile = 0; tile < kTiles; tile++) {
        if (tile * kTileQueries >= n_) break;
#pragma unroll
        for (int part = 0; part < kParts; part++) {
          unsigned q[4];
          load_tiles(q, query(part, tile * kTileQueries + lane % 8) + lane / 8 * 16 + at);
          multiply_tile(Store::kHalf, sums[tile][part], k[0], {q[0], q[1]});
          multiply_tile(Store::kHalf, sums[tile][part], k[1], {q[2], q[3]});
        }
      }
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; tile++) {
      if (tile * kTileQueries >= n_) break;
#pragma unroll
      for (int e = 0; e < 4; e++) {
        float* score =
            scores(tile * kTileQueries + lane % 4 * 2 + e % 2) + first + lane / 4 + e / 2 * 8;
        const float sum = sum_of_parts(sums[tile], e);
        *score = slab == 0 ? sum : *score + sum;
      }
    }
  }

  /// Adds the smallest part first.
  __device__ static float sum_of_parts(const float (&sums)[kParts][4], int e) {
    float sum = sums[kParts - 1][e];
#pragma unroll
    for (int part = kParts - 2; part >= 0; part--) sum += sums[part][e];
    return sum;
  }

  /// A thread handles one key and one query at a time.
  __device__ void add_scores_of_floats(int slab) const {
    const int place = threadIdx.x % kPageSize;
    if (place >= n_stored_) return;
    const auto* key = reinterpret_cast<const float*>(shared(place * memory_.pitch));
    for (int i = threadIdx.x / kPageSize; i < n_; i += kAttentionThreads / kPageSize) {
      const auto* q = reinterpret_cast<const float*>(query(0, i));
      float sums[4] = {};
      for (int d = 0; d < dims_of(slab); d += 4) {
        const Floats a(q + d), b(key + d);
#pragma unroll
        for (int e = 0; e < 4; e++) sums[e] = fmaf(a.x[e], b.x[e], sums[e]);
      }
      const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
      float* score = scores(i) + place;
      *score = slab == 0 ? sum : *score + sum;
    }
  }

  /// The score of a product q . k.
  __device__ float score_of(float product) const {
    const float score = product * call_.scale;
    return call_.softcap > 0 ? capped(score, call_.softcap) : score;
  }

  /// Softmax weights: 16 lanes for a query, 4 slots for a lane. The weights replace the queries in shared memory.
  __device__ void weigh() const {
    constexpr int kLanes = 16, kSlots = kPageSize / kLanes;
    const int lane = threadIdx.x % kLanes;
    for (int tile = 0; tile * kTileQueries < n_; tile++) {
      const int i = tile * kTileQueries + static_cast<int>(threadIdx.x) / kLanes;
      const bool there = i < n_;
      const std::uint8_t* places = seen_.place[there ? row_of(i) : 0];
      float weight[kSlots], top = -kInfinity, sum = 0;
#pragma unroll
      for (int j = 0; j < kSlots; j++) {
        const unsigned place = there ? places[lane + j * kLanes] : kUnseen;
        weight[j] = place == kUnseen ? -kInfinity : score_of(scores(i)[place]);
        top = Larger()(top, weight[j]);
      }
      for (int by = kLanes / 2; by > 0; by /= 2) top = Larger()(top, across(top, by));
#pragma unroll
      for (int j = 0; j < kSlots; j++) {
        weight[j] = weight[j] == -kInfinity ? 0.0f : exp_f32(weight[j] - top);
        const Parts<Store> parts(weight[j]);
#pragma unroll
        for (int part = 0; part < kParts; part++)
          reinterpret_cast<Element*>(weights(part, i))[lane + j * kLanes] = parts.of[part];
      }
      sum = (weight[0] + weight[1]) + (weight[2] + weight[3]);
      for (int by = kLanes / 2; by > 0; by /= 2) sum += across(sum, by);
      if (float* partial = there && lane < 2 ? partial_of(i) : nullptr)
        partial[lane] = lane == 0 ? top : sum;
    }
  }

  /// Memory for a query's partial result; null if its row sees no slot of the chunk.
  __device__ float* partial_of(int query) const {
    const int row = row_of(query);
    if (seen_.lo[row] > seen_.hi[row]) return nullptr;
    const std::int64_t head = static_cast<int>(blockIdx.y) * n_rep_ + (begin_ + query) % n_rep_;
    return call_.partials +
           (std::int64_t{seen_.partial[row]} * call_.n_heads + head) * (2 + call_.head_dim);
  }

  // ---- values

  __device__ void add_values(int slab) const {
    if constexpr (sizeof(Element) == 2) {
      for (int begin = 0, end; begin < n_; begin = end) {
        end = end_of_run(begin);
        add_values_of_halves(slab, begin, end);
      }
    } else {
      add_values_of_floats(slab);
    }
  }

  /// Adds the values of one run of queries. A warp handles 16 dimensions at a time.
  __device__ void add_values_of_halves(int slab, int begin, int end) const {
    const int lane = threadIdx.x % 32, tile = begin / kTileQueries * kTileQueries;
    const std::uint8_t* places = seen_.together[begin];
    constexpr int kSteps = kPageSize / 16;
    const unsigned char* values[kSteps];
    unsigned low[kSteps], high[kSteps], w[kParts][kSteps][2];
#pragma unroll
    for (int step = 0; step < kSteps; step++) {
      const int place = places[step * 16 + lane % 8 + lane / 16 * 8] % kPageSize;
      values[step] = shared(memory_.values + place * memory_.pitch) + lane / 8 % 2 * 16;
      low[step] = seen_halves(places + step * 16 + lane % 4 * 2);
      high[step] = seen_halves(places + step * 16 + lane % 4 * 2 + 8);
    }
#pragma unroll
    for (int part = 0; part < kParts; part++) {
#pragma unroll
      for (int step = 0; step < kSteps; step += 2) {
        unsigned pair[4];
        load_tiles(pair, weights(part, tile + lane % 8) + lane / 8 * 16 + step * 32);
        w[part][step][0] = pair[0], w[part][step][1] = pair[1];
        w[part][step + 1][0] = pair[2], w[part][step + 1][1] = pair[3];
      }
    }
    float* to[2];
    for (int e = 0; e < 2; e++) {
      const int query = tile + lane % 4 * 2 + e;
      to[e] = query >= begin && query < end ? partial_of(query) : nullptr;
      if (to[e]) to[e] += 2 + slab * kSlab;
    }
    const int n_dims = dims_of(slab);
    for (int d = threadIdx.x / 32 * 16; d < n_dims; d += kAttentionWarps * 16) {
      float sums[kParts][4] = {};
#pragma unroll
      for (int step = 0; step < kSteps; step++) {
        unsigned v[4];
        load_tiles_transposed(v, values[step] + d * 2);
        v[0] &= low[step], v[1] &= low[step], v[2] &= high[step], v[3] &= high[step];
#pragma unroll
        for (int part = 0; part < kParts; part++)
          multiply_tile(Store::kHalf, sums[part], v, w[part][step]);
      }
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int at = d + lane / 4 + e / 2 * 8;
        if (to[e % 2] && at < n_dims) to[e % 2][at] = sum_of_parts(sums, e);
      }
    }
  }

  /// A mask of two slots: all bits of a half are set if its slot is visible.
  __device__ static unsigned seen_halves(const std::uint8_t* places) {
    return (places[0] != kUnseen ? 0xffffu : 0) | (places[1] != kUnseen ? 0xffff0000u : 0);
  }

  /// A thread handles one dimension of one query at a time.
  __device__ void add_values_of_floats(int slab) const {
    const int d = threadIdx.x % kSlab;
    if (d >= dims_of(slab)) return;
    for (int i = threadIdx.x / kSlab; i < n_; i += kAttentionThreads / kSlab) {
      float* partial = partial_of(i);
      if (!partial) continue;
      const int row = row_of(i), lo = seen_.lo[row], hi = seen_.hi[row];
      const auto* weight = reinterpret_cast<const float*>(weights(0, i));
      float sums[4] = {};
      for (int slot = lo / 4 * 4; slot <= hi; slot += 4) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
          if (slot + e < lo || slot + e > hi) continue;
          const unsigned char* value =
              shared(memory_.values + seen_.place[row][slot + e] * memory_.pitch);
          sums[e] = fmaf(weight[slot + e], reinterpret_cast<const float*>(value)[d], sums[e]);
        }
      }
      partial[2 + slab * kSlab + d] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
  }

  struct alignas(2 * sizeof(Element)) Pair {
    Element low, high;
  };

  const AttentionCall& call_;
  const ChunkItem item_;
  const Memory memory_;
  const int n_rep_;
  SeenByBatch& seen_;
  int begin_ = 0, n_ = 0;  // the batch: first query, number
  int n_stored_ = 0;       // keys in shared memory, cached ones first
};

// grid: (items, kv heads, queries of a group / (8 kTiles))
template <class Store, int kTiles>
__global__ void __launch_bounds__(kAttentionThreads) attend_chunks(AttentionCall call) {
  let_next_begin();
  wait_for_earlier();
  const ChunkItem item = call.items[blockIdx.x];
  const int n_queries = (item.end - item.first) * (call.n_heads / call.n_kv_heads);
  int begin = static_cast<int>(blockIdx.z) * kTiles * kTileQueries;
  const int end =
      begin + kTiles * kTileQueries < n_queries ? begin + kTiles * kTileQueries : n_queries;
  ChunkBlock<Store, kTiles> block(call, item);
  while (begin < end) {
    begin += block.attend(begin, end - begin);
    if (begin < end) __syncthreads();
  }
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU
