// Attention over a paged cache and a token tree: softmax(q k^T) v with online softmax, chunk by chunk (attention_chunk_body.h).
// Chunk c is positions [64 c, 64 c + 64) and span s is positions [256 s, 256 s + 256), wherever they are stored. A query's
// online softmax starts again in each span, and the results of its spans are joined in order (split-K, as in Flash-Decoding),
// so threads can share the spans of a row without a change of its bits.
// If a chunk contains rows of the current forward, its keys are gathered into a tile with the layout of a page, so the result
// does not depend on where keys are stored. Rows whose chains agree in a chunk share the tile.
#pragma once

#include "kernels/cpu/attention_chunk_body.h"

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

// The rows of an item, chunk by chunk.
template <class Store>
struct AttentionRows {
  using Element = typename Store::Element;

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
  float* wide;    // keys or values of the chunk in f32, for groups of many queries
  const Element* values[kChunk];
  /// Of each slot: the row whose key is in the tile; -1: a cached position or none
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

  const Element* page_of(const char* pages, int chunk) const {
    const int page = call.pages[call.page_begin[item.seq] + chunk];
    const auto* base = reinterpret_cast<const Element*>(pages + page * call.page_bytes);
    return base + std::int64_t{item.kv_head} * head_dim * kChunk;
  }
  const Element* staged(const char* rows_of, int row) const {
    const std::int64_t index = std::int64_t{row} * call.n_kv_heads + item.kv_head;
    return reinterpret_cast<const Element*>(rows_of) + index * head_dim;
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

  // Computes the group's queries over the first n_slots positions of the chunk.
  void attend_group(const Element* keys, int n_slots, Ahead next_keys, Ahead next_values) {
    const bool widens = n_group >= kWidenedQueries && sizeof(Element) < 4;
    if (widens) {
      widen_keys(keys, n_slots, next_keys);
      in_groups(group, n_group, ScorePass<StoreF32>{wide, head_dim, next_keys});
    } else {
      in_groups(group, n_group, ScorePass<Store>{keys, head_dim, next_keys});
    }
    for (int i = 0; i < n_group; i += kSoftmaxQueries)
      online_softmax(group + i, n_group - i < kSoftmaxQueries ? n_group - i : kSoftmaxQueries,
                     call.scale, call.softcap);
    if (widens) {
      const float* rows[kChunk];
      widen_values(rows, n_slots, next_values);
      in_groups(group, n_group, ValuePass<StoreF32>{rows, head_dim, next_values});
    } else {
      in_groups(group, n_group, ValuePass<Store>{values, head_dim, next_values});
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

  void use_cached_values(int chunk, int n_slots) {
    const Element* v = page_of(call.v_pages, chunk);
    for (int slot = 0; slot < n_slots; slot++) values[slot] = v + std::int64_t{slot} * head_dim;
  }
  // Prefetches the keys and values of the first chunk, which no chunk before it did.
  void prefetch_chunk(int chunk) const {
    if (chunk * kChunk >= prefix) return;
    const auto bytes = static_cast<int>(sizeof(Element)) * head_dim * kChunk;
    const char* const both[] = {call.k_pages, call.v_pages};
    for (const char* pages : both) {
      const auto* at = reinterpret_cast<const char*>(page_of(pages, chunk));
      for (int i = 0; i < bytes; i += 64) prefetch_to_l2(at + i);
    }
  }
  void cached_chunk(int chunk, bool is_last) {
    use_cached_values(chunk, kChunk);
    for (int i = 0; i < item.n_rows; i++)
      if (sees(call, item.rows[i], chunk * kChunk, kChunk)) add_to_group(i, chunk * kChunk);
    const bool has_next = !is_last && (chunk + 1) * kChunk < prefix;
    const int next = has_next ? chunk + 1 : chunk;
    attend_group(page_of(call.k_pages, chunk), kChunk,
                 {reinterpret_cast<const char*>(page_of(call.k_pages, next)), has_next},
                 {reinterpret_cast<const char*>(page_of(call.v_pages, next)), has_next});
  }

  void put_in_tile(int slot, int row) {
    const Element* key = staged(call.staged_k, row);
    for (int d = 0; d < head_dim; d++) tile[d * kChunk + slot] = key[d];
    values[slot] = staged(call.staged_v, row);
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
      const Element* keys = page_of(call.k_pages, chunk);
      __builtin_memcpy(tile, keys, sizeof(Element) * head_dim * kChunk);
      use_cached_values(chunk, n_cached);
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
