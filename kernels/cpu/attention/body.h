// Attention over a paged cache and a token tree: softmax(q k^T) v with online softmax, chunk by chunk (chunk_body.h).
// Chunk c is positions [64 c, 64 c + 64) and span s is positions [256 s, 256 s + 256), wherever they are stored. A query's
// online softmax starts again in each span, and the results of its spans are joined in order (split-K, as in Flash-Decoding),
// so threads can share the spans of a row without a change of its bits.
// If a chunk contains rows of the current forward, its keys are gathered into a tile with the layout of a page, so the result
// does not depend on where keys are stored. Rows whose chains agree in a chunk share the tile.
#pragma once

#include "kernels/cpu/attention/chunk_body.h"

namespace kernels::cpu {
namespace {

// The result of a query's span, in memory as its Query has it: sums[0] is the largest score, sums[1] the sum of weights.
inline int partial_floats(int head_dim) {
  return 16 + padded_dim(head_dim);
}

// Scratch of an item: see AttentionRows.
std::int64_t attention_scratch_bytes(int n_rows, int n_rep, int head_dim) {
  const std::int64_t per_query = static_cast<std::int64_t>(sizeof(Query) + sizeof(Query*)) +
                                 4 * (2 * partial_floats(head_dim) + kChunk);
  const std::int64_t tile = static_cast<std::int64_t>(head_dim) * kChunk * 4;
  const std::int64_t wide = static_cast<std::int64_t>(padded_dim(head_dim)) * kChunk * 4;
  return per_query * n_rows * n_rep + tile + wide + 256;
}

inline char* aligned(char* p) {
  return reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(p) + 63) / 64 * 64);
}

inline int lowest_visible(const AttentionCall& call, int row) {
  const int pos = call.pos[row];
  return call.sliding_window > 0 && pos >= call.sliding_window ? pos - call.sliding_window + 1 : 0;
}
// True if the row sees one of the positions [base, base + n).
inline bool sees(const AttentionCall& call, int row, int base, int n) {
  return call.pos[row] >= base && lowest_visible(call, row) < base + n;
}

// Joins the result of a later span to that of the spans before it.
inline void join_partial(float* total, const float* next, int dim) {
  const float top = next[0] > total[0] ? next[0] : total[0];
  float factor[16] = {total[0] - top, next[0] - top};
  f_store(factor, f_exp(f_load(factor)));
  total[0] = top;
  total[1] = total[1] * factor[0] + next[1] * factor[1];
  const F old_factor = f_set(factor[0]), new_factor = f_set(factor[1]);
  for (int d = 16; d < 16 + dim; d += 16)
    f_store(total + d, f_fma(f_load(next + d), new_factor, f_mul(f_load(total + d), old_factor)));
}

// out = acc / sum of weights
inline void write_out(const AttentionCall& call, int row, int head, const float* total) {
  const F inverse = f_set(1.0f / total[1]);
  float* out = call.out + row * call.out_stride + static_cast<std::int64_t>(head) * call.head_dim;
  for (int d = 0; d < call.head_dim; d += 16)
    f_store_part(out + d, f_mul(f_load(total + 16 + d), inverse), call.head_dim - d);
}

// A cache of type Q8_0: pages as in ScaledInt8, a staged row has int8 [head_dim] and scales [head_dim / 32]. For few queries the
// passes multiply the int8 of a page by their scales in registers. For many queries, and in a chunk with rows of the current
// forward, the chunk is converted to f32 once. Both give the same bits.
struct StoreQ8 : StoreF32 {};

// keys or values [n_rows, 64] of one chunk, 32 rows for each row of scales
inline void widen_q8_keys(const std::int8_t* from, int head_dim, float* to, Ahead& ahead) {
  const std::uint16_t* scales = scales_after(from, head_dim);
  for (int first = 0; first < head_dim; first += kCacheGroup, scales += kChunk) {
    F scale[4];
#pragma GCC unroll 4
    for (int b = 0; b < 4; b++) scale[b] = f_load_f16(scales + 16 * b);
    for (int d = first; d < first + kCacheGroup; d++) {
      ahead.fetch<kChunk>();
#pragma GCC unroll 4
      for (int b = 0; b < 4; b++) {
        const int at = d * kChunk + 16 * b;
        f_store(to + at, f_mul(f_load_i8(from + at), scale[b]));
      }
    }
  }
}
inline void widen_q8_values(
    const std::int8_t* from, int head_dim, int n_slots, float* to, Ahead& ahead) {
  const std::uint16_t* scales = scales_after(from, head_dim);
  for (int first = 0; first < head_dim; first += kCacheGroup, scales += kChunk) {
    alignas(64) float scale[kChunk];
    for (int b = 0; b < kChunk; b += 16) f_store(scale + b, f_load_f16(scales + b));
    for (int slot = 0; slot < n_slots; slot++) {
      ahead.fetch<kCacheGroup>();
      for (int d = first; d < first + kCacheGroup; d += 16) {
        const int at = slot * head_dim + d;
        f_store(to + at, f_mul(f_load_i8(from + at), f_set(scale[slot])));
      }
    }
  }
}
// One staged row of a head; value i goes to to[i * stride].
inline void widen_q8_row(const std::int8_t* from, int head_dim, float* to, int stride) {
  const auto* scales = reinterpret_cast<const std::uint16_t*>(from + head_dim);
  for (int first = 0; first < head_dim; first += kCacheGroup, scales++) {
    const float scale = f32_of_half(scales);
    for (int d = first; d < first + kCacheGroup; d++)
      to[d * stride] = static_cast<float>(from[d]) * scale;
  }
}

// The rows of an item, chunk by chunk.
template <class Store>
struct AttentionRows {
  using Element = typename Store::Element;
  static constexpr bool kIsQ8 = __is_same(Store, StoreQ8);

  const AttentionCall& call;
  const AttentionItem& item;
  const int n_rep, head_dim, prefix, floats;
  // Scratch
  float* totals;   // [queries, floats] the spans so far; unused if the item writes partial results
  float* spare;    // [queries, floats] a later span
  Query* queries;  // [n_rows n_rep]
  Query** group;   // [n_rows n_rep] queries of the current group
  int n_group = 0;
  Element* tile;  // [head_dim, kChunk]
  float* wide;    // keys or values of the chunk in f32, for groups of many queries; values of Q8_0
  const Element* values[kChunk];
  /// For each slot, the row whose key is in the tile; -1: a cached position or none
  int owner[kChunk];

  AttentionRows(const AttentionCall& a, const AttentionItem& of, char* scratch)
      : call(a),
        item(of),
        n_rep(a.n_heads / a.n_kv_heads),
        head_dim(a.head_dim),
        prefix(a.prefix_len[of.seq]),
        floats(partial_floats(a.head_dim)) {
    const std::int64_t n_queries = std::int64_t{item.n_rows} * n_rep;
    tile = reinterpret_cast<Element*>(aligned(scratch));
    wide = reinterpret_cast<float*>(
        aligned(reinterpret_cast<char*>(tile + std::int64_t{head_dim} * kChunk)));
    totals = wide + std::int64_t{padded_dim(head_dim)} * kChunk;
    spare = totals + n_queries * floats;
    float* scores = spare + n_queries * floats;
    queries = reinterpret_cast<Query*>(scores + n_queries * kChunk);
    group = reinterpret_cast<Query**>(queries + n_queries);
    for (int i = 0; i < n_queries; i++) {
      const int head = item.kv_head * n_rep + i % n_rep;
      queries[i].q = call.q + item.rows[i / n_rep] * call.q_stride + std::int64_t{head} * head_dim;
      queries[i].sums = nullptr;
      queries[i].scores = scores + std::int64_t{i} * kChunk;
    }
  }

  // Bytes of one position and head, as kernels::cache_bytes()
  std::int64_t bytes_of_position() const {
    if (kIsQ8) return head_dim + head_dim / kCacheGroup * 2;
    return static_cast<std::int64_t>(sizeof(Element)) * head_dim;
  }
  // The item's head in a page of keys or of values.
  const char* page_of(const char* pages, int chunk) const {
    const int page = call.pages[call.page_begin[item.seq] + chunk];
    return pages + page * call.page_bytes + item.kv_head * kChunk * bytes_of_position();
  }
  const char* staged(const char* rows_of, int row) const {
    return rows_of + (std::int64_t{row} * call.n_kv_heads + item.kv_head) * bytes_of_position();
  }

  // Adds a row's query heads to the group, with its visible slots of the chunk at position `base`.
  void add_to_group(int i, int base) {
    const int lo = lowest_visible(call, item.rows[i]) - base, hi = call.pos[item.rows[i]] - base;
    for (int rep = 0; rep < n_rep; rep++) {
      Query& query = queries[i * n_rep + rep];
      query.lo = lo > 0 ? lo : 0;
      query.hi = hi < kChunk - 1 ? hi : kChunk - 1;
      group[n_group++] = &query;
    }
  }

  void weigh_group() {
    for (int i = 0; i < n_group; i += kSoftmaxQueries)
      online_softmax(group + i, n_group - i < kSoftmaxQueries ? n_group - i : kSoftmaxQueries,
                     call.scale, call.softcap);
  }
  // Computes the group's queries over the first n_slots positions of the chunk.
  void attend_group(const Element* keys, int n_slots, Ahead next_keys, Ahead next_values) {
    const bool widens = n_group >= kWidenedQueries && sizeof(Element) < 4;
    if (widens) {
      widen_keys(keys, n_slots, next_keys);
      in_groups(group, n_group, ScorePass<StoreF32>{wide, head_dim, next_keys});
    } else {
      in_groups(group, n_group, ScorePass<Store>{keys, head_dim, next_keys});
    }
    weigh_group();
    if (widens) {
      const float* rows[kChunk];
      widen_values(rows, n_slots, next_values);
      in_groups(group, n_group, ValuePass<StoreF32>{{rows}, head_dim, next_values});
    } else {
      in_groups(group, n_group, ValuePass<Store>{{values}, head_dim, next_values});
    }
    n_group = 0;
  }
  // Conversion to f32 is exact, so it changes no result.
  void widen_keys(const Element* keys, int n_slots, Ahead& ahead) {
    for (int d = 0; d < head_dim; d++) {
      for (int i = 0; i < n_slots; i += 16) {
        ahead.fetch<16 * sizeof(Element)>();
        f_store(wide + d * kChunk + i, Store::load(keys + d * kChunk + i));
      }
    }
    ahead.wanted = false;
  }
  void widen_values(const float** rows, int n_slots, Ahead& ahead) {
    for (int slot = 0; slot < n_slots; slot++) {
      float* to = wide + std::int64_t{slot} * padded_dim(head_dim);
      rows[slot] = to;
      for (int d = 0; d < head_dim; d += 16) {
        ahead.fetch<16 * sizeof(Element)>();
        f_store(to + d, head_dim - d >= 16 ? Store::load(values[slot] + d)
                                           : Store::load_part(values[slot] + d, head_dim - d));
      }
    }
    ahead.wanted = false;
  }

  // Sets `values` to the first n_slots values of a cached chunk; `f32` receives those of a Q8_0 cache.
  void use_cached_values(int chunk,
                         int n_slots,
                         [[maybe_unused]] float* f32,
                         [[maybe_unused]] Ahead& ahead) {
    const char* page = page_of(call.v_pages, chunk);
    const auto* v = reinterpret_cast<const Element*>(page);
    if constexpr (kIsQ8) {
      widen_q8_values(reinterpret_cast<const std::int8_t*>(page), head_dim, n_slots, f32, ahead);
      v = f32;
    }
    for (int slot = 0; slot < n_slots; slot++) values[slot] = v + std::int64_t{slot} * head_dim;
  }
  // Copies the keys of a cached chunk to the tile.
  void use_cached_keys(int chunk, [[maybe_unused]] Ahead& ahead) {
    const char* page = page_of(call.k_pages, chunk);
    if constexpr (kIsQ8)
      widen_q8_keys(reinterpret_cast<const std::int8_t*>(page), head_dim, tile, ahead);
    else
      __builtin_memcpy(tile, page, sizeof(Element) * head_dim * kChunk);
  }
  // Prefetches the keys and values of the first chunk, which no chunk before it did.
  void prefetch_chunk(int chunk) const {
    if (chunk * kChunk >= prefix) return;
    const char* const both[] = {call.k_pages, call.v_pages};
    for (const char* pages : both) {
      const char* at = page_of(pages, chunk);
      for (int i = 0; i < kChunk * bytes_of_position(); i += 64) prefetch_to_l2(at + i);
    }
  }
  void cached_chunk(int chunk, bool is_last) {
    for (int i = 0; i < item.n_rows; i++)
      if (sees(call, item.rows[i], chunk * kChunk, kChunk)) add_to_group(i, chunk * kChunk);
    const bool has_next = !is_last && (chunk + 1) * kChunk < prefix;
    const int next = has_next ? chunk + 1 : chunk;
    Ahead next_keys = {page_of(call.k_pages, next), has_next};
    Ahead next_values = {page_of(call.v_pages, next), has_next};
    if constexpr (kIsQ8) {
      prefetch_scales(next_keys);
      prefetch_scales(next_values);
      n_group > kMaxQueries ? attend_widened(chunk, next_keys, next_values)
                            : attend_scaled(chunk, next_keys, next_values);
      n_group = 0;
    } else {
      use_cached_values(chunk, kChunk, nullptr, next_values);
      attend_group(reinterpret_cast<const Element*>(page_of(call.k_pages, chunk)), kChunk,
                   next_keys, next_values);
    }
  }

  void attend_widened(int chunk, Ahead next_keys, Ahead next_values) {
    Ahead none = {call.k_pages, false};
    use_cached_keys(chunk, next_keys);
    in_groups(group, n_group, ScorePass<StoreF32>{tile, head_dim, none});
    weigh_group();
    use_cached_values(chunk, kChunk, tile, next_values);  // the tile stays in the L1 cache
    in_groups(group, n_group, ValuePass<StoreF32>{{values}, head_dim, none});
  }
  // Prefetches the scales of the next chunk, if it is wanted. The passes prefetch only the int8.
  void prefetch_scales(const Ahead& next) const {
    const char* at = next.at + head_dim * kChunk;
    for (int i = 0; i < head_dim / kCacheGroup * kChunk * 2 && next.wanted; i += 64)
      prefetch_to_l2(at + i);
  }
  void attend_scaled(int chunk, Ahead next_keys, Ahead next_values) {
    const char *keys = page_of(call.k_pages, chunk), *page = page_of(call.v_pages, chunk);
    in_groups(
        group, n_group,
        ScorePass<ScaledInt8>{reinterpret_cast<const std::int8_t*>(keys), head_dim, next_keys});
    weigh_group();
    const std::int8_t* rows[kChunk];
    for (int slot = 0; slot < kChunk; slot++)
      rows[slot] = reinterpret_cast<const std::int8_t*>(page) + slot * head_dim;
    const std::uint16_t* scales = scales_after(page, head_dim);
    for (int i = 0; i < head_dim / kCacheGroup * kChunk; i += 16)
      f_store(wide + i, f_load_f16(scales + i));
    in_groups(group, n_group, ValuePass<ScaledInt8>{{rows, wide}, head_dim, next_values});
  }

  void put_in_tile(int slot, int row) {
    const char *key = staged(call.staged_k, row), *value = staged(call.staged_v, row);
    if constexpr (kIsQ8) {
      float* to = wide + std::int64_t{slot} * head_dim;
      widen_q8_row(reinterpret_cast<const std::int8_t*>(key), head_dim, tile + slot, kChunk);
      widen_q8_row(reinterpret_cast<const std::int8_t*>(value), head_dim, to, 1);
      values[slot] = to;
    } else {
      const auto* keys = reinterpret_cast<const Element*>(key);
      for (int d = 0; d < head_dim; d++) tile[d * kChunk + slot] = keys[d];
      values[slot] = reinterpret_cast<const Element*>(value);
    }
    owner[slot] = row;
  }
  void attend_tile(int n_slots) {
    const Ahead none = {reinterpret_cast<const char*>(tile), false};
    attend_group(tile, n_slots, none, none);
  }
  // A chunk with rows of the current forward: rows whose chains agree in its slots form a group.
  void chunk_in_flight(int chunk) {
    const int base = chunk * kChunk;
    const int n_cached = prefix > base ? prefix - base : 0;
    for (int slot = 0; slot < kChunk; slot++) owner[slot] = -1;
    if (n_cached > 0) {
      Ahead none = {call.k_pages, false};
      use_cached_keys(chunk, none);
      use_cached_values(chunk, n_cached, wide, none);
    }
    int n_used = n_cached;  // slots of the tile in use
    for (int i = 0; i < item.n_rows; i++) {
      const int row = item.rows[i], pos = call.pos[row];
      if (!sees(call, row, base, kChunk)) continue;
      const int* chain = call.chain + call.chain_begin[row] - prefix + base;  // indexed by slot
      const int end = pos - base < kChunk ? pos - base + 1 : kChunk;
      // A row has only one chain of ancestors, so two chains that share a row also share all rows
      // before it.
      int agrees = end < n_used ? end : n_used;
      while (agrees > n_cached && owner[agrees - 1] != chain[agrees - 1]) agrees--;
      if (agrees < end && agrees < n_used) {
        attend_tile(n_used);
        n_used = agrees;
      }
      for (int slot = agrees; slot < end; slot++)
        if (owner[slot] != chain[slot]) put_in_tile(slot, chain[slot]);
      n_used = n_used > end ? n_used : end;
      add_to_group(i, base);
    }
    if (n_group) attend_tile(n_used);
  }

  // Queries that see the span begin its online softmax: the first in the total, later ones in the spare memory.
  void begin_span(int span) {
    for (int i = 0; i < item.n_rows * n_rep; i++) {
      Query& query = queries[i];
      if (!sees(call, item.rows[i / n_rep], span * kSpan, kSpan)) continue;
      float* to = query.sums ? spare : totals;
      if (item.partials) to = item.partials + (span - item.first_span) * item.partials_stride;
      query.sums = to + std::int64_t{i} * floats;
      query.top = -kInfinity;
      query.rescale = 1;
      for (int d = 0; d < floats; d += 16) f_store(query.sums + d, f_set(0));
    }
  }
  void end_span(int span) {
    for (int i = 0; i < item.n_rows * n_rep; i++) {
      const Query& query = queries[i];
      if (!sees(call, item.rows[i / n_rep], span * kSpan, kSpan)) continue;
      query.sums[1] = f_sum(f_load(query.sums));
      query.sums[0] = query.top;
      float* total = totals + std::int64_t{i} * floats;
      if (!item.partials && query.sums != total)
        join_partial(total, query.sums, padded_dim(head_dim));
    }
  }

  void run() {
    int first = item.last_span * kSpan, last = 0;
    for (int i = 0; i < item.n_rows; i++) {
      const int lo = lowest_visible(call, item.rows[i]), hi = call.pos[item.rows[i]];
      first = lo < first ? lo : first;
      last = hi > last ? hi : last;
    }
    first = first > item.first_span * kSpan ? first : item.first_span * kSpan;
    last = last < item.last_span * kSpan ? last : item.last_span * kSpan - 1;
    prefetch_chunk(first / kChunk);
    for (int span = first / kSpan; span <= last / kSpan && first <= last; span++) {
      begin_span(span);
      const int end = (span + 1) * kSpan - 1 < last ? (span + 1) * kSpan - 1 : last;
      const int begin = span * kSpan > first ? span * kSpan : first;
      for (int chunk = begin / kChunk; chunk <= end / kChunk; chunk++) {
        if ((chunk + 1) * kChunk <= prefix)
          cached_chunk(chunk, chunk == last / kChunk);
        else
          chunk_in_flight(chunk);
      }
      end_span(span);
    }
    if (item.partials) return;
    for (int i = 0; i < item.n_rows * n_rep; i++)
      write_out(call, item.rows[i / n_rep], item.kv_head * n_rep + i % n_rep,
                totals + std::int64_t{i} * floats);
  }
};

template <class Store>
void attend(const AttentionCall& call, const AttentionItem& item, char* scratch) {
  AttentionRows<Store>(call, item, scratch).run();
}

// The spans [first_span, last_span) of the item's rows, joined in order. partials [spans, partials_stride]
void join_spans(const AttentionCall& call, const AttentionItem& item) {
  const int n_rep = call.n_heads / call.n_kv_heads, floats = partial_floats(call.head_dim);
  for (int i = 0; i < item.n_rows * n_rep; i++) {
    const int row = item.rows[i / n_rep];
    float* total = nullptr;
    for (int span = item.first_span; span < item.last_span; span++) {
      if (!sees(call, row, span * kSpan, kSpan)) continue;
      float* partial = item.partials + (span - item.first_span) * item.partials_stride +
                       std::int64_t{i} * floats;
      if (total)
        join_partial(total, partial, padded_dim(call.head_dim));
      else
        total = partial;
    }
    write_out(call, row, item.kv_head * n_rep + i % n_rep, total);
  }
}

}  // namespace
}  // namespace kernels::cpu
