// Attention over a paged cache and a token tree: softmax(q k^T) v with online softmax, chunk by
// chunk. Chunk c is positions [64 c, 64 c + 64) wherever they are stored. A query adds its visible
// positions in order and rescales its sums once per chunk.
//   keys    of a page or a tile: [head_dim, 64], so SIMD lanes are positions
//   values  of a position: [head_dim] contiguous, in a page [64, head_dim] or in the staged rows
// If a chunk contains rows of the current forward, its keys are gathered into a tile with the
// layout of a page, so the result does not depend on where keys are stored. Rows whose chains agree
// in a chunk share the tile.
#pragma once

#include "kernels/cpu/kernel_table.h"

namespace kernels::cpu {
namespace {

/// With at least this many queries, a chunk is converted to f32 once for all of them
constexpr int kManyQueries = 8;

// The online-softmax state of a query. acc [head_dim_padded] follows in scratch.
struct Query {
  const float* q;
  float* acc;
  float* scores;  // [kChunk]
  float top;
  float sum;
  int lo, hi;  // visible slots of the current chunk, inclusive
};

inline int padded_dim(int head_dim) {
  return (head_dim + 15) / 16 * 16;
}

std::int64_t attention_scratch_bytes(int n_rows, int n_rep, int head_dim) {
  const std::int64_t per_query =
      static_cast<std::int64_t>(sizeof(Query)) + 4 * (padded_dim(head_dim) + kChunk);
  const std::int64_t tile = static_cast<std::int64_t>(head_dim) * kChunk * 4;
  const std::int64_t wide = tile + static_cast<std::int64_t>(padded_dim(head_dim)) * kChunk * 4;
  return (per_query + 4) * n_rows * n_rep + tile + wide + 256;
}

// Memory for the next pass. It is prefetched row by row while this pass computes.
struct Ahead {
  const char* at;
  int row_bytes;  // 0: none
  void fetch(int row) const {
    const char* line = at + static_cast<std::int64_t>(row) * row_bytes;
    for (int i = 0; i < row_bytes; i += 64) prefetch(line + i);
  }
};

inline char* aligned(char* p) {
  return reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(p) + 63) / 64 * 64);
}

template <class Store, int kQueries, int kBlocks>
void score_block(Query* const* queries,
                 const typename Store::Element* keys,
                 int head_dim,
                 int first,
                 Ahead ahead) {
  F sum[kQueries][kBlocks];
#pragma GCC unroll 4
  for (int i = 0; i < kQueries; i++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) sum[i][b] = f_set(0);
  const float* q[kQueries];
#pragma GCC unroll 4
  for (int i = 0; i < kQueries; i++) q[i] = queries[i]->q;
  keys += first;
  for (int d = 0; d < head_dim; d++, keys += kChunk) {
    ahead.fetch(d);
    F key[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) key[b] = Store::load(keys + 16 * b);
#pragma GCC unroll 4
    for (int i = 0; i < kQueries; i++) {
      const F broadcast = f_set(q[i][d]);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; b++) sum[i][b] = f_fma(broadcast, key[b], sum[i][b]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kQueries; i++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) f_store(queries[i]->scores + first + 16 * b, sum[i][b]);
}

// Online softmax: turns scores into weights relative to the largest score so far and rescales the earlier sums.
template <int kQueries>
void online_softmax_update(Query* const* queries, float scale, float softcap, int dim) {
  alignas(64) static const float kSlot[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  float steps[16] = {};  // old minus new largest score; one lane per query
  for (int i = 0; i < kQueries; i++) {
    Query& query = *queries[i];
    F score[4];
    for (int b = 0; b < 4; b++) score[b] = f_mul(f_load(query.scores + 16 * b), f_set(scale));
    if (softcap > 0)
      for (int b = 0; b < 4; b++) score[b] = f_capped(score[b], f_set(softcap));
    if (query.lo > 0 || query.hi < kChunk - 1) {
      const F lo = f_set(static_cast<float>(query.lo)), hi = f_set(static_cast<float>(query.hi));
      for (int b = 0; b < 4; b++) {
        const F slot = f_add(f_load(kSlot), f_set(static_cast<float>(16 * b)));
        const M visible = m_and(m_less_equal(lo, slot), m_less_equal(slot, hi));
        score[b] = f_select(visible, score[b], f_set(-kInfinity));
      }
    }
    for (int b = 0; b < 4; b++) f_store(query.scores + 16 * b, score[b]);
    const float top = f_top(f_max(f_max(score[0], score[1]), f_max(score[2], score[3])));
    const float new_top = top > query.top ? top : query.top;
    steps[i] = query.top - new_top;
    query.top = new_top;
  }
  float rescale[16];
  f_store(rescale, f_exp(f_load(steps)));
  for (int i = 0; i < kQueries; i++) {
    Query& query = *queries[i];
    const F top = f_set(query.top);
    F weight[4];
    for (int b = 0; b < 4; b++) {
      weight[b] = f_exp(f_sub(f_load(query.scores + 16 * b), top));
      f_store(query.scores + 16 * b, weight[b]);
    }
    const float sum = f_sum(f_add(f_add(weight[0], weight[1]), f_add(weight[2], weight[3])));
    query.sum = query.sum * rescale[i] + sum;
    const F factor = f_set(rescale[i]);
    for (int d = 0; d < dim; d += 16) f_store(query.acc + d, f_mul(f_load(query.acc + d), factor));
  }
}

// acc += weight * value for slots [lo, hi] in order, dimensions d .. d + 16 kBlocks.
template <class Store, int kQueries, int kBlocks>
void value_block(Query* const* queries,
                 const typename Store::Element* const* values,
                 int lo,
                 int hi,
                 int d,
                 int part,
                 Ahead ahead) {
  F sum[kQueries][kBlocks];
#pragma GCC unroll 4
  for (int i = 0; i < kQueries; i++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) sum[i][b] = f_load(queries[i]->acc + d + 16 * b);
  const float* weight[kQueries];
#pragma GCC unroll 4
  for (int i = 0; i < kQueries; i++) weight[i] = queries[i]->scores;
  for (int slot = lo; slot <= hi; slot++) {
    ahead.fetch(slot);
    const typename Store::Element* value = values[slot] + d;
    F v[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++)
      v[b] =
          kBlocks == 1 && part < 16 ? Store::load_part(value, part) : Store::load(value + 16 * b);
#pragma GCC unroll 4
    for (int i = 0; i < kQueries; i++) {
      const F broadcast = f_set(weight[i][slot]);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; b++) sum[i][b] = f_fma(broadcast, v[b], sum[i][b]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kQueries; i++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) f_store(queries[i]->acc + d + 16 * b, sum[i][b]);
}

template <class Store, int kQueries>
void add_values(Query* const* queries,
                const typename Store::Element* const* values,
                int lo,
                int hi,
                int head_dim,
                Ahead ahead = {}) {
  if (lo > hi) return;
  int d = 0;
  for (; d + 16 * kValueBlocks <= head_dim; d += 16 * kValueBlocks) {
    value_block<Store, kQueries, kValueBlocks>(queries, values, lo, hi, d, 16, ahead);
    ahead = {};
  }
  for (; d < head_dim; d += 16, ahead = {})
    value_block<Store, kQueries, 1>(queries, values, lo, hi, d, head_dim - d, ahead);
}

// A few queries over one chunk. Slots that all queries see are added in one pass. A query never multiplies the value of a slot
// that it does not see, not even by zero.
template <class Store, int kQueries>
void chunk_step(Query* const* queries,
                const typename Store::Element* keys,
                const typename Store::Element* const* values,
                int head_dim,
                const AttentionCall& call,
                Ahead ahead_of_scores,
                Ahead ahead_of_values) {
  int all_lo = 0, all_hi = kChunk - 1, first = kChunk, last = 0;
  for (int i = 0; i < kQueries; i++) {
    const Query& query = *queries[i];
    all_lo = query.lo > all_lo ? query.lo : all_lo;
    all_hi = query.hi < all_hi ? query.hi : all_hi;
    first = query.lo < first ? query.lo : first;
    last = query.hi > last ? query.hi : last;
  }
  int at = first / 16 * 16;
  for (; at + 16 * kScoreBlocks <= kChunk && at + 16 * (kScoreBlocks - 1) <= last;
       at += 16 * kScoreBlocks, ahead_of_scores = {})
    score_block<Store, kQueries, kScoreBlocks>(queries, keys, head_dim, at, ahead_of_scores);
  for (; at <= last; at += 16, ahead_of_scores = {})
    score_block<Store, kQueries, 1>(queries, keys, head_dim, at, ahead_of_scores);
  online_softmax_update<kQueries>(queries, call.scale, call.softcap, padded_dim(head_dim));
  if (all_lo > all_hi) {
    for (int i = 0; i < kQueries; i++)
      add_values<Store, 1>(queries + i, values, queries[i]->lo, queries[i]->hi, head_dim);
    return;
  }
  for (int i = 0; i < kQueries; i++)
    add_values<Store, 1>(queries + i, values, queries[i]->lo, all_lo - 1, head_dim);
  add_values<Store, kQueries>(queries, values, all_lo, all_hi, head_dim, ahead_of_values);
  for (int i = 0; i < kQueries; i++)
    add_values<Store, 1>(queries + i, values, all_hi + 1, queries[i]->hi, head_dim);
}

template <class Store>
void all_queries(Query* queries,
                 const int* which,
                 int n,
                 const typename Store::Element* keys,
                 const typename Store::Element* const* values,
                 int head_dim,
                 const AttentionCall& call,
                 Ahead ahead_of_scores,
                 Ahead ahead_of_values) {
  for (int i = 0; i < n; ahead_of_scores = ahead_of_values = {}) {
    Query* some[kMaxQueryBlock];
    const int left = n - i;
    const int take = left >= 4 ? 4 : left >= 2 ? 2 : 1;
    for (int j = 0; j < take; j++) some[j] = queries + which[i + j];
    if (take == 4)
      chunk_step<Store, 4>(some, keys, values, head_dim, call, ahead_of_scores, ahead_of_values);
    else if (take == 2)
      chunk_step<Store, 2>(some, keys, values, head_dim, call, ahead_of_scores, ahead_of_values);
    else
      chunk_step<Store, 1>(some, keys, values, head_dim, call, ahead_of_scores, ahead_of_values);
    i += take;
  }
}

// One kv head for some rows of one sequence.
template <class Store>
struct AttentionRows {
  using Element = typename Store::Element;

  const AttentionCall& call;
  const int seq, kv_head;
  const int* rows;
  const int n_rows;
  int n_rep, head_dim, prefix;
  Query* queries;
  int* which;  // [n_rows n_rep] queries of the current group
  int n_which = 0;
  Element* tile;       // [head_dim, kChunk]
  float* wide_keys;    // the tile in f32, for groups of many queries
  float* wide_values;  // [kChunk, padded head_dim]
  const Element* values[kChunk];
  /// Of each slot: the row whose key is in the tile; -1: a cached position or none
  int owner[kChunk];

  AttentionRows(
      const AttentionCall& a, int seq_of_rows, int head, const int* some, int n, char* scratch)
      : call(a), seq(seq_of_rows), kv_head(head), rows(some), n_rows(n) {
    n_rep = call.n_heads / call.n_kv_heads;
    head_dim = call.head_dim;
    prefix = call.prefix_len[seq];
    tile = reinterpret_cast<Element*>(aligned(scratch));
    char* at =
        aligned(reinterpret_cast<char*>(tile + static_cast<std::int64_t>(head_dim) * kChunk));
    const int n_queries = n_rows * n_rep;
    const int dim = padded_dim(head_dim);
    wide_keys = reinterpret_cast<float*>(at);
    wide_values = wide_keys + static_cast<std::int64_t>(head_dim) * kChunk;
    float* floats = wide_values + static_cast<std::int64_t>(dim) * kChunk;
    queries =
        reinterpret_cast<Query*>(floats + static_cast<std::int64_t>(n_queries) * (dim + kChunk));
    which = reinterpret_cast<int*>(queries + n_queries);
    for (int i = 0; i < n_queries; i++) {
      const int row = rows[i / n_rep], head_of_query = kv_head * n_rep + i % n_rep;
      Query& query = queries[i];
      query.q = call.q + row * call.q_stride + static_cast<std::int64_t>(head_of_query) * head_dim;
      query.acc = floats + static_cast<std::int64_t>(i) * (dim + kChunk);
      query.scores = query.acc + dim;
      query.top = -kInfinity;
      query.sum = 0;
      for (int d = 0; d < dim; d++) query.acc[d] = 0;
    }
  }

  int lowest_visible(int row) const {
    const int pos = call.pos[row];
    return call.sliding_window > 0 && pos >= call.sliding_window ? pos - call.sliding_window + 1
                                                                 : 0;
  }
  const Element* page_of(const char* pages, int chunk) const {
    const int page = call.pages[call.page_begin[seq] + chunk];
    const auto* base = reinterpret_cast<const Element*>(pages + page * call.page_bytes);
    return base + static_cast<std::int64_t>(kv_head) * head_dim * kChunk;
  }
  const Element* staged(const char* rows_of, int row) const {
    const std::int64_t index = static_cast<std::int64_t>(row) * call.n_kv_heads + kv_head;
    return reinterpret_cast<const Element*>(rows_of) + index * head_dim;
  }

  // Adds a row's query heads to the group, with its visible slots of the chunk at position `base`.
  void join(int i, int base) {
    const int lo = lowest_visible(rows[i]) - base, hi = call.pos[rows[i]] - base;
    for (int rep = 0; rep < n_rep; rep++) {
      Query& query = queries[i * n_rep + rep];
      query.lo = lo > 0 ? lo : 0;
      query.hi = hi < kChunk - 1 ? hi : kChunk - 1;
      which[n_which++] = i * n_rep + rep;
    }
  }
  bool sees(int i, int base) const {
    return call.pos[rows[i]] >= base && lowest_visible(rows[i]) <= base + kChunk - 1;
  }
  // Computes the group's queries over the first n_slots positions of the chunk. `next` points to the keys of the next chunk if
  // it is cached.
  void flush(const Element* keys, int n_slots, Ahead values_ahead, Ahead next) {
    if (n_which >= kManyQueries && sizeof(Element) < 4) {
      widen(keys, n_slots, values_ahead);
      const float* wide[kChunk];
      for (int slot = 0; slot < n_slots; slot++)
        wide[slot] = wide_values + static_cast<std::int64_t>(slot) * padded_dim(head_dim);
      all_queries<StoreF32>(queries, which, n_which, wide_keys, wide, head_dim, call, {}, next);
    } else {
      all_queries<Store>(queries, which, n_which, keys, values, head_dim, call, values_ahead, next);
    }
    n_which = 0;
  }
  // For many queries, converts keys and values to f32 once. This does not change the results.
  void widen(const Element* keys, int n_slots, Ahead values_ahead) {
    for (int d = 0; d < head_dim; d++) {
      values_ahead.fetch(d);
      for (int i = 0; i < n_slots; i += 16)
        f_store(wide_keys + d * kChunk + i, Store::load(keys + d * kChunk + i));
    }
    for (int slot = 0; slot < n_slots; slot++) {
      float* to = wide_values + static_cast<std::int64_t>(slot) * padded_dim(head_dim);
      int d = 0;
      for (; d + 16 <= head_dim; d += 16) f_store(to + d, Store::load(values[slot] + d));
      if (d < head_dim) f_store(to + d, Store::load_part(values[slot] + d, head_dim - d));
    }
  }
  void use_cached_values(int chunk, int n_slots) {
    const Element* v = page_of(call.v_pages, chunk);
    for (int slot = 0; slot < n_slots; slot++)
      values[slot] = v + static_cast<std::int64_t>(slot) * head_dim;
  }

  void cached_chunk(int chunk) {
    use_cached_values(chunk, kChunk);
    for (int i = 0; i < n_rows; i++)
      if (sees(i, chunk * kChunk)) join(i, chunk * kChunk);
    const Ahead values_ahead = {reinterpret_cast<const char*>(values[0]),
                                static_cast<int>(kChunk * sizeof(Element))};
    Ahead next = {};
    if ((chunk + 2) * kChunk <= prefix)
      next = {reinterpret_cast<const char*>(page_of(call.k_pages, chunk + 1)),
              static_cast<int>(head_dim * sizeof(Element))};
    flush(page_of(call.k_pages, chunk), kChunk, values_ahead, next);
  }

  void put_in_tile(int slot, int row) {
    const Element* key = staged(call.staged_k, row);
    for (int d = 0; d < head_dim; d++) tile[d * kChunk + slot] = key[d];
    values[slot] = staged(call.staged_v, row);
    owner[slot] = row;
  }

  // A chunk with rows of the current forward: rows whose chains agree in its slots form a group.
  void chunk_in_flight(int chunk) {
    const int base = chunk * kChunk;
    const int n_cached = prefix > base ? prefix - base : 0;
    for (int slot = 0; slot < kChunk; slot++) owner[slot] = -1;
    if (n_cached > 0) {
      const Element* keys = page_of(call.k_pages, chunk);
      __builtin_memcpy(tile, keys, sizeof(Element) * head_dim * kChunk);
      use_cached_values(chunk, n_cached);
    }
    int n_used = n_cached;  // slots of the tile in use
    for (int i = 0; i < n_rows; i++) {
      if (!sees(i, base)) continue;
      const int* chain = call.chain + call.chain_begin[rows[i]] - prefix + base;  // indexed by slot
      const int end = call.pos[rows[i]] - base < kChunk ? call.pos[rows[i]] - base + 1 : kChunk;
      // A row has only one chain of ancestors, so two chains that share a row also share all rows
      // before it.
      int agrees = end < n_used ? end : n_used;
      while (agrees > n_cached && owner[agrees - 1] != chain[agrees - 1]) agrees--;
      if (agrees < end && agrees < n_used) {
        flush(tile, n_used, {}, {});
        n_used = agrees;
      }
      for (int slot = agrees; slot < end; slot++)
        if (owner[slot] != chain[slot]) put_in_tile(slot, chain[slot]);
      n_used = n_used > end ? n_used : end;
      join(i, base);
    }
    if (n_which) flush(tile, n_used, {}, {});
  }

  void run() {
    int first = call.pos[rows[0]], last = 0;
    for (int i = 0; i < n_rows; i++) {
      const int lo = lowest_visible(rows[i]), hi = call.pos[rows[i]];
      first = lo < first ? lo : first;
      last = hi > last ? hi : last;
    }
    for (int chunk = first / kChunk; chunk <= last / kChunk; chunk++) {
      if ((chunk + 1) * kChunk <= prefix)
        cached_chunk(chunk);
      else
        chunk_in_flight(chunk);
    }
    for (int i = 0; i < n_rows * n_rep; i++) {
      const Query& query = queries[i];
      const F inverse = f_set(1.0f / query.sum);
      float* out = call.out + rows[i / n_rep] * call.out_stride +
                   static_cast<std::int64_t>(kv_head * n_rep + i % n_rep) * head_dim;
      for (int d = 0; d < head_dim; d += 16)
        f_store_part(out + d, f_mul(f_load(query.acc + d), inverse), head_dim - d);
    }
  }
};

template <class Store>
void attend(
    const AttentionCall& call, int seq, int kv_head, const int* rows, int n_rows, char* scratch) {
  AttentionRows<Store>(call, seq, kv_head, rows, n_rows, scratch).run();
}

}  // namespace
}  // namespace kernels::cpu
