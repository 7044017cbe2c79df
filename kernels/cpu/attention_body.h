// softmax(q k^T) v in position space. Chunk c is positions [64 c, 64 c + 64) wherever they are
// stored; a query sums over its visible positions in order, rescaling once a chunk.
//   keys    of a page or a tile: [head_dim, 64], so lanes are positions
//   values  of a position: [head_dim] in a row, in a page [64, head_dim] or among the staged rows
// A chunk that holds rows in flight gets its keys gathered into a tile of a page's layout, so
// storage changes no bit. Rows whose chains agree in a chunk share its tile.
#pragma once

#include "kernels/cpu/kernel_table.h"

namespace kernels::cpu {
namespace {

// What a query carries from chunk to chunk. acc [head_dim_padded] follows in scratch.
struct Query {
  const float* q;
  float* acc;
  float* scores;  // [kChunk]
  float top;
  float sum;
  int lo, hi;  // slots of the current chunk that it sees, inclusive
};

inline int padded_dim(int head_dim) {
  return (head_dim + 15) / 16 * 16;
}

std::int64_t attention_scratch_bytes(int n_rows, int n_rep, int head_dim) {
  const std::int64_t per_query =
      static_cast<std::int64_t>(sizeof(Query)) + 4 * (padded_dim(head_dim) + kChunk);
  const std::int64_t tile = static_cast<std::int64_t>(head_dim) * kChunk * 4;
  return per_query * n_rows * n_rep + tile + kChunk * 16 + 256;
}

inline char* aligned(char* p) {
  return reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(p) + 63) / 64 * 64);
}

template <class Store, int kQueries, int kBlocks>
void score_block(Query* const* queries,
                 const typename Store::Element* keys,
                 int head_dim,
                 int first) {
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

// Scores become weights relative to the largest score so far; what was summed before is rescaled.
inline void soften(Query& query, float scale, int dim) {
  alignas(64) static const float kSlot[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const F lo = f_set(static_cast<float>(query.lo)), hi = f_set(static_cast<float>(query.hi));
  F score[4];
  F top = f_set(-kInfinity);
  for (int b = 0; b < 4; b++) {
    const F slot = f_add(f_load(kSlot), f_set(static_cast<float>(16 * b)));
    const M visible = m_and(m_less_equal(lo, slot), m_less_equal(slot, hi));
    score[b] =
        f_select(visible, f_mul(f_load(query.scores + 16 * b), f_set(scale)), f_set(-kInfinity));
    top = f_max(top, score[b]);
  }
  const float old_top = query.top;
  const float chunk_top = f_top(top);
  const float new_top = chunk_top > old_top ? chunk_top : old_top;
  F sum[4];
  for (int b = 0; b < 4; b++) {
    sum[b] = f_exp(f_sub(score[b], f_set(new_top)));
    f_store(query.scores + 16 * b, sum[b]);
  }
  const F rescale = f_exp(f_set(old_top - new_top));
  float rescale_lanes[16];
  f_store(rescale_lanes, rescale);
  const float chunk_sum = f_sum(f_add(f_add(sum[0], sum[1]), f_add(sum[2], sum[3])));
  query.sum = query.sum * rescale_lanes[0];
  query.sum = query.sum + chunk_sum;
  query.top = new_top;
  for (int d = 0; d < dim; d += 16) f_store(query.acc + d, f_mul(f_load(query.acc + d), rescale));
}

// acc += weight * value for slots [lo, hi] in order, values d .. d + 16 kBlocks.
template <class Store, int kQueries, int kBlocks>
void value_block(Query* const* queries,
                 const typename Store::Element* const* values,
                 int lo,
                 int hi,
                 int d,
                 int part) {
  F sum[kQueries][kBlocks];
#pragma GCC unroll 4
  for (int i = 0; i < kQueries; i++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) sum[i][b] = f_load(queries[i]->acc + d + 16 * b);
  const float* weight[kQueries];
#pragma GCC unroll 4
  for (int i = 0; i < kQueries; i++) weight[i] = queries[i]->scores;
  for (int slot = lo; slot <= hi; slot++) {
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
                int head_dim) {
  if (lo > hi) return;
  int d = 0;
  for (; d + 16 * kValueBlocks <= head_dim; d += 16 * kValueBlocks)
    value_block<Store, kQueries, kValueBlocks>(queries, values, lo, hi, d, 16);
  for (; d < head_dim; d += 16)
    value_block<Store, kQueries, 1>(queries, values, lo, hi, d, head_dim - d);
}

// A few queries over one chunk. Values are summed together where all see them; a position that one
// of them does not see is never multiplied into it, not even by zero.
template <class Store, int kQueries>
void chunk_step(Query* const* queries,
                const typename Store::Element* keys,
                const typename Store::Element* const* values,
                int head_dim,
                float scale) {
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
       at += 16 * kScoreBlocks)
    score_block<Store, kQueries, kScoreBlocks>(queries, keys, head_dim, at);
  for (; at <= last; at += 16) score_block<Store, kQueries, 1>(queries, keys, head_dim, at);
  for (int i = 0; i < kQueries; i++) soften(*queries[i], scale, padded_dim(head_dim));
  if (all_lo > all_hi) {
    for (int i = 0; i < kQueries; i++)
      add_values<Store, 1>(queries + i, values, queries[i]->lo, queries[i]->hi, head_dim);
    return;
  }
  for (int i = 0; i < kQueries; i++)
    add_values<Store, 1>(queries + i, values, queries[i]->lo, all_lo - 1, head_dim);
  add_values<Store, kQueries>(queries, values, all_lo, all_hi, head_dim);
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
                 float scale) {
  for (int i = 0; i < n;) {
    Query* some[kMaxQueryBlock];
    const int left = n - i;
    const int take = left >= 4 ? 4 : left >= 2 ? 2 : 1;
    for (int j = 0; j < take; j++) some[j] = queries + which[i + j];
    if (take == 4)
      chunk_step<Store, 4>(some, keys, values, head_dim, scale);
    else if (take == 2)
      chunk_step<Store, 2>(some, keys, values, head_dim, scale);
    else
      chunk_step<Store, 1>(some, keys, values, head_dim, scale);
    i += take;
  }
}

// The work on one kv head for some rows of one sequence.
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
  Element* tile;  // [head_dim, kChunk]
  const Element* values[kChunk];
  int owner[kChunk];  // the row whose key is in the tile at a slot; -1: a cached position or none

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
    auto* floats = reinterpret_cast<float*>(at);
    const int dim = padded_dim(head_dim);
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

  // Adds a row's query heads to the group, with what it sees of the chunk that begins at `base`.
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
  void flush(const Element* keys) {
    all_queries<Store>(queries, which, n_which, keys, values, head_dim, call.scale);
    n_which = 0;
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
    flush(page_of(call.k_pages, chunk));
  }

  void put_in_tile(int slot, int row) {
    const Element* key = staged(call.staged_k, row);
    for (int d = 0; d < head_dim; d++) tile[d * kChunk + slot] = key[d];
    values[slot] = staged(call.staged_v, row);
    owner[slot] = row;
  }

  // A chunk with rows in flight: rows whose chains agree on its slots are done together.
  void chunk_in_flight(int chunk) {
    const int base = chunk * kChunk;
    const int n_cached = prefix > base ? prefix - base : 0;
    for (int slot = 0; slot < kChunk; slot++) owner[slot] = -1;
    if (n_cached > 0) {
      const Element* keys = page_of(call.k_pages, chunk);
      __builtin_memcpy(tile, keys, sizeof(Element) * head_dim * kChunk);
      use_cached_values(chunk, n_cached);
    }
    int n_used = n_cached;  // slots of the tile that the group's rows may see
    for (int i = 0; i < n_rows; i++) {
      if (!sees(i, base)) continue;
      const int* chain = call.chain + call.chain_begin[rows[i]] - prefix + base;  // by slot
      const int end = call.pos[rows[i]] - base < kChunk ? call.pos[rows[i]] - base + 1 : kChunk;
      int agrees = n_cached;
      while (agrees < end && agrees < n_used && owner[agrees] == chain[agrees]) agrees++;
      if (agrees < end && agrees < n_used) {
        flush(tile);
        n_used = agrees;
      }
      for (int slot = agrees; slot < end; slot++)
        if (owner[slot] != chain[slot]) put_in_tile(slot, chain[slot]);
      n_used = n_used > end ? n_used : end;
      join(i, base);
    }
    if (n_which) flush(tile);
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
