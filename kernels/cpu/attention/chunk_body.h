// The loops of attention over one chunk of 64 positions for a few queries: scores, online softmax, weighted sum of values.
//   keys    [head_dim, 64], so SIMD lanes are positions and scores need no sums across lanes
//   values  of a position: [head_dim] contiguous
// Each query has its own registers. A score sums over head_dim in order and a value sums over positions in order, so a query's
// bits do not depend on how many queries share a pass.
#pragma once

#include "kernels/cpu/kernel_table.h"

namespace kernels::cpu {
namespace {

/// Queries that share one pass over a chunk
constexpr int kMaxQueries = 6;
/// Queries whose rescaling factors are computed together, one per lane
constexpr int kSoftmaxQueries = 16;

// The online-softmax state of a query: the largest score so far, and relative to it
//   sums [16]               the sum of the weights, by lane
//   acc  [padded head_dim]  the sum of weight * value; it follows the sums
struct Query {
  const float* q;
  float* sums;
  float* scores;  // [kChunk] scores of the chunk, then weights
  float top;
  float rescale;  // acc must be multiplied by it before the next value is added
  int lo, hi;     // visible slots of the current chunk, inclusive
  float* acc() const { return sums + 16; }
};

inline int padded_dim(int head_dim) {
  return (head_dim + 15) / 16 * 16;
}

// Keys or values of the next chunk. The passes over a chunk prefetch them evenly: a step fetches as many bytes as it reads.
// Floats go to the L2 cache, because the processor has more requests in flight to it than to L1 (on a Zen 4, 22 GB/s against 12).
// Int8 goes to L1, which holds a whole chunk of it.
struct Ahead {
  const char* at;
  bool wanted;  // false: `at` is any valid address, and is prefetched again and again
  template <int kBytes, bool kToL1 = false>
  void fetch() {
    for (int i = 0; i < kBytes; i += 64) kToL1 ? prefetch(at + i) : prefetch_to_l2(at + i);
    at += wanted ? kBytes : 0;
  }
};

/// Number of values that share a scale in a page of a Q8_0 cache.
constexpr int kCacheGroup = 32;
/// The values of such a page without their scales, as an element type of the passes. A page of one head has int8 [head_dim, 64]
/// for keys or [64, head_dim] for values, then scales in f16 [head_dim / 32, 64].
struct ScaledInt8 {
  using Element = std::int8_t;
  static F load(const Element* p) { return f_load_i8(p); }
  static F load_part(const Element* p, int) { return f_load_i8(p); }
};
template <class Store>
constexpr bool kIsScaled = __is_same(Store, ScaledInt8);
/// The scales of a page of one head.
inline const std::uint16_t* scales_after(const void* page, int head_dim) {
  return reinterpret_cast<const std::uint16_t*>(static_cast<const char*>(page) + head_dim * kChunk);
}

// scores of slots first .. first + 16 kBlocks
template <class Store, int kQueries, int kBlocks>
void score_block(Query* const* queries,
                 const typename Store::Element* keys,
                 int head_dim,
                 int first,
                 Ahead& ahead_of) {
  Ahead ahead = ahead_of;
  F sum[kQueries][kBlocks];
#pragma GCC unroll 6
  for (int i = 0; i < kQueries; i++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) sum[i][b] = f_set(0);
  const float* q[kQueries];
#pragma GCC unroll 6
  for (int i = 0; i < kQueries; i++) q[i] = queries[i]->q;
  [[maybe_unused]] const std::uint16_t* scales = scales_after(keys, head_dim) + first;
  keys += first;
  for (int d = 0; d < head_dim; scales += kChunk) {
    const int end = kIsScaled<Store> ? d + kCacheGroup : head_dim;
    [[maybe_unused]] F scale[kBlocks];
    for (int b = 0; b < kBlocks && kIsScaled<Store>; b++) scale[b] = f_load_f16(scales + 16 * b);
    for (; d < end; d++, keys += kChunk) {
      ahead.fetch<16 * kBlocks * sizeof(typename Store::Element), kIsScaled<Store>>();
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; b++) {
        F key = Store::load(keys + 16 * b);
        if constexpr (kIsScaled<Store>) key = f_mul(key, scale[b]);
#pragma GCC unroll 6
        for (int i = 0; i < kQueries; i++) sum[i][b] = f_fma(f_set(q[i][d]), key, sum[i][b]);
      }
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kQueries; i++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) f_store(queries[i]->scores + first + 16 * b, sum[i][b]);
  ahead_of = ahead;
}

// Scores of all slots that one of the queries sees, and of some that none sees.
template <class Store, int kQueries>
void score_slots(Query* const* queries,
                 const typename Store::Element* keys,
                 int head_dim,
                 Ahead& ahead) {
  constexpr int kBlocks = attention_blocks(kQueries);
  int first = kChunk, last = 0;
  for (int i = 0; i < kQueries; i++) {
    first = queries[i]->lo < first ? queries[i]->lo : first;
    last = queries[i]->hi > last ? queries[i]->hi : last;
  }
  int at = first / 16 * 16;
  for (; at + 16 * kBlocks <= kChunk && at + 16 * (kBlocks - 1) <= last; at += 16 * kBlocks)
    score_block<Store, kQueries, kBlocks>(queries, keys, head_dim, at, ahead);
  for (; at <= last; at += 16) score_block<Store, kQueries, 1>(queries, keys, head_dim, at, ahead);
}

// Scales and masks the scores of a query's chunk and updates its largest score.
// @return  old minus new largest score
inline float scale_scores(Query& query, float scale, float softcap) {
  alignas(64) static const float kSlot[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  F score[4];
#pragma GCC unroll 4
  for (int b = 0; b < 4; b++) score[b] = f_mul(f_load(query.scores + 16 * b), f_set(scale));
  if (softcap > 0)
    for (int b = 0; b < 4; b++) score[b] = f_capped(score[b], f_set(softcap));
  if (query.lo > 0 || query.hi < kChunk - 1) {
    const F lo = f_set(static_cast<float>(query.lo)), hi = f_set(static_cast<float>(query.hi));
#pragma GCC unroll 4
    for (int b = 0; b < 4; b++) {
      const F slot = f_add(f_load(kSlot), f_set(static_cast<float>(16 * b)));
      const M visible = m_and(m_less_equal(lo, slot), m_less_equal(slot, hi));
      score[b] = f_select(visible, score[b], f_set(-kInfinity));
    }
  }
#pragma GCC unroll 4
  for (int b = 0; b < 4; b++) f_store(query.scores + 16 * b, score[b]);
  const float largest = f_top(f_max(f_max(score[0], score[1]), f_max(score[2], score[3])));
  const float top = largest > query.top ? largest : query.top;
  const float step = query.top - top;
  query.top = top;
  return step;
}

// Online softmax of at most kSoftmaxQueries queries: scores become weights relative to the largest score so far. The sums of
// values are rescaled when the next value is added. The largest scores of all queries come first, so that the processor need not
// wait for each.
inline void online_softmax(Query* const* queries, int n, float scale, float softcap) {
  alignas(64) float rescale[kSoftmaxQueries] = {};
  for (int i = 0; i < n; i++) rescale[i] = scale_scores(*queries[i], scale, softcap);
  f_store(rescale, f_exp(f_load(rescale)));
  for (int i = 0; i < n; i++) {
    Query& query = *queries[i];
    query.rescale = rescale[i];
    F sum = f_mul(f_load(query.sums), f_set(rescale[i]));
    const F top = f_set(query.top);
#pragma GCC unroll 4
    for (int b = 0; b < 4; b++) {
      const F weight = f_exp_below_0(f_sub(f_load(query.scores + 16 * b), top));
      f_store(query.scores + 16 * b, weight);
      sum = f_add(sum, weight);
    }
    f_store(query.sums, sum);
  }
}

// The values of a chunk: rows [kChunk] of head_dim, and for ScaledInt8 their scales [head_dim / 32, kChunk].
template <class Store>
struct Values {
  const typename Store::Element* const* rows;
  const float* scales = nullptr;
};

// acc = acc * rescale + weight * value for slots [lo, hi] in order, dimensions d .. d + 16 kBlocks.
template <class Store, int kQueries, int kBlocks>
void value_block(Query* const* queries,
                 const Values<Store>& values,
                 int lo,
                 int hi,
                 int d,
                 int part,
                 Ahead& ahead_of) {
  Ahead ahead = ahead_of;
  F sum[kQueries][kBlocks];
#pragma GCC unroll 6
  for (int i = 0; i < kQueries; i++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++)
      sum[i][b] = f_mul(f_load(queries[i]->acc() + d + 16 * b), f_set(queries[i]->rescale));
  const float* weight[kQueries];
#pragma GCC unroll 6
  for (int i = 0; i < kQueries; i++) weight[i] = queries[i]->scores;
  for (int slot = lo; slot <= hi; slot++) {
    ahead.fetch<16 * kBlocks * sizeof(typename Store::Element), kIsScaled<Store>>();
    const typename Store::Element* value = values.rows[slot] + d;
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) {
      F v = kBlocks == 1 && part < 16 ? Store::load_part(value, part) : Store::load(value + 16 * b);
      if constexpr (kIsScaled<Store>)
        v = f_mul(v, f_set(values.scales[(d + 16 * b) / kCacheGroup * kChunk + slot]));
#pragma GCC unroll 6
      for (int i = 0; i < kQueries; i++) sum[i][b] = f_fma(f_set(weight[i][slot]), v, sum[i][b]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kQueries; i++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) f_store(queries[i]->acc() + d + 16 * b, sum[i][b]);
  ahead_of = ahead;
}

template <class Store, int kQueries>
void add_values(Query* const* queries,
                const Values<Store>& values,
                int lo,
                int hi,
                int head_dim,
                Ahead& ahead) {
  if (lo > hi) return;
  constexpr int kBlocks = attention_blocks(kQueries);
  int d = 0;
  for (; d + 16 * kBlocks <= head_dim; d += 16 * kBlocks)
    value_block<Store, kQueries, kBlocks>(queries, values, lo, hi, d, 16, ahead);
  for (; d < head_dim; d += 16)
    value_block<Store, kQueries, 1>(queries, values, lo, hi, d, head_dim - d, ahead);
  for (int i = 0; i < kQueries; i++) queries[i]->rescale = 1;
}

// Slots that all queries see are added in one pass. A query never multiplies the value of a slot that it does not see, not even
// by zero.
template <class Store, int kQueries>
void value_slots(Query* const* queries, const Values<Store>& values, int head_dim, Ahead& ahead) {
  int lo = 0, hi = kChunk - 1;
  for (int i = 0; i < kQueries; i++) {
    lo = queries[i]->lo > lo ? queries[i]->lo : lo;
    hi = queries[i]->hi < hi ? queries[i]->hi : hi;
  }
  Ahead none = {ahead.at, false};
  if (lo > hi) {
    for (int i = 0; i < kQueries; i++)
      add_values<Store, 1>(queries + i, values, queries[i]->lo, queries[i]->hi, head_dim, none);
    return;
  }
  for (int i = 0; i < kQueries; i++)
    add_values<Store, 1>(queries + i, values, queries[i]->lo, lo - 1, head_dim, none);
  add_values<Store, kQueries>(queries, values, lo, hi, head_dim, ahead);
  for (int i = 0; i < kQueries; i++)
    add_values<Store, 1>(queries + i, values, hi + 1, queries[i]->hi, head_dim, none);
}

// Calls pass(queries of the group, their number as a constant) for groups of at most kMaxQueries of about the same size.
template <int kQueries = kMaxQueries, class Pass>
void call_with_number(Query* const* queries, int n, const Pass& pass) {
  if constexpr (kQueries > 1) {
    if (n < kQueries) return call_with_number<kQueries - 1>(queries, n, pass);
  }
  pass.template run<kQueries>(queries);
}
template <class Pass>
void in_groups(Query* const* queries, int n, const Pass& pass) {
  for (int groups = (n + kMaxQueries - 1) / kMaxQueries; groups > 0; groups--) {
    const int size = (n + groups - 1) / groups;
    call_with_number(queries, size, pass);
    queries += size;
    n -= size;
  }
}

template <class Store>
struct ScorePass {
  const typename Store::Element* keys;
  int head_dim;
  Ahead& ahead;
  template <int kQueries>
  void run(Query* const* queries) const {
    score_slots<Store, kQueries>(queries, keys, head_dim, ahead);
    ahead.wanted = false;
  }
};
template <class Store>
struct ValuePass {
  Values<Store> values;
  int head_dim;
  Ahead& ahead;
  template <int kQueries>
  void run(Query* const* queries) const {
    value_slots<Store, kQueries>(queries, values, head_dim, ahead);
    ahead.wanted = false;
  }
};

}  // namespace
}  // namespace kernels::cpu
