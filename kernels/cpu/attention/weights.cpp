// Attention weights of one row, for display and probes. At most a few rows per step need them, so these are plain loops, the
// same for every instruction set.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_device.h"

namespace kernels::cpu {
namespace {

inline float as_f32(float x, DType) {
  return x;
}
inline float as_f32(std::uint16_t x, DType dtype) {
  return dtype == DType::BF16 ? f32_from_bf16(x) : f32_from_f16(x);
}

inline float half_at(const std::int8_t* halves, int i) {
  std::uint16_t bits;
  std::memcpy(&bits, halves + 2 * i, 2);
  return f32_from_f16(bits);
}

/// Returns the product whose score without a softcap equals the capped score of `product`.
double capped_product(double product, const Scores& scores) {
  return scores.softcap * std::tanh(product * scores.scale / scores.softcap) / scores.scale;
}

// The keys of one kv head in the row's sequence.
template <class Element>
struct Keys {
  const KvLayer& layer;
  const RowsPlan& plan;
  const Element* staged;
  int seq, kv_head;

  // score[s] = q . key of position 64 page + s, for the first n slots
  void score_page(int page, int n, const float* q, double* score) const {
    const int id = plan.pages[plan.page_begin[seq] + page];
    const auto* keys = reinterpret_cast<const Element*>(static_cast<const char*>(layer.k) +
                                                        id * layer.page_bytes) +
                       std::int64_t{kv_head} * layer.head_dim * kPageSize;
    std::fill_n(score, n, 0.0);
    for (int d = 0; d < layer.head_dim; d++)
      for (int s = 0; s < n; s++)
        score[s] += double{q[d]} * as_f32(keys[d * kPageSize + s], layer.dtype);
  }
  double score_row(int row, const float* q) const {
    const Element* key = staged + (std::int64_t{row} * layer.n_kv_heads + kv_head) * layer.head_dim;
    double score = 0;
    for (int d = 0; d < layer.head_dim; d++) score += double{q[d]} * as_f32(key[d], layer.dtype);
    return score;
  }
};

// The same in a cache of type Q8_0 (cache.cpp).
template <>
struct Keys<std::int8_t> {
  const KvLayer& layer;
  const RowsPlan& plan;
  const std::int8_t* staged;
  int seq, kv_head;

  void score_page(int page, int n, const float* q, double* score) const {
    const int id = plan.pages[plan.page_begin[seq] + page], dim = layer.head_dim;
    const std::int8_t* keys = static_cast<const std::int8_t*>(layer.k) + id * layer.page_bytes +
                              kv_head * kPageSize * cache_bytes(DType::Q8_0, dim);
    std::fill_n(score, n, 0.0);
    for (int d = 0; d < dim; d++)
      for (int s = 0; s < n; s++)
        score[s] += double{q[d]} * static_cast<float>(keys[d * kPageSize + s]) *
                    half_at(keys + kPageSize * dim, d / kCacheGroup * kPageSize + s);
  }
  double score_row(int row, const float* q) const {
    const int dim = layer.head_dim;
    const std::int8_t* key =
        staged + (std::int64_t{row} * layer.n_kv_heads + kv_head) * cache_bytes(DType::Q8_0, dim);
    double score = 0;
    for (int d = 0; d < dim; d++)
      score += double{q[d]} * static_cast<float>(key[d]) * half_at(key + dim, d / kCacheGroup);
    return score;
  }
};

template <class Element>
void weights_of(const KvLayer& layer,
                const RowsPlan& plan,
                int row,
                const float* q,
                const void* staged_k,
                int n_heads,
                const Scores& scores,
                float* mean) {
  const int seq = plan.seq[row], prefix = plan.prefix_len[seq];
  const int* chain = plan.chain + plan.chain_begin[row];
  const int n_chain = plan.chain_begin[row + 1] - plan.chain_begin[row];
  const int n = prefix + n_chain;
  const int first = plan.sliding_window > 0 ? std::max(0, n - plan.sliding_window) : 0;
  std::vector<double> score(static_cast<std::size_t>(n) + kPageSize);
  std::fill_n(mean, n_chain, 0.0f);
  for (int head = 0; head < n_heads; head++, q += layer.head_dim) {
    const Keys<Element> keys = {layer, plan, static_cast<const Element*>(staged_k), seq,
                                head / (n_heads / layer.n_kv_heads)};
    for (int page = first / kPageSize; page * kPageSize < prefix; page++)
      keys.score_page(page, std::min(kPageSize, prefix - page * kPageSize), q,
                      score.data() + page * kPageSize);
    for (int j = 0; j < n_chain; j++) score[prefix + j] = keys.score_row(chain[j], q);
    if (scores.softcap > 0)
      for (int p = first; p < n; p++) score[p] = capped_product(score[p], scores);
    const double top = *std::max_element(score.begin() + first, score.begin() + n);
    double sum = 0;
    for (int p = first; p < n; p++) sum += score[p] = std::exp((score[p] - top) * scores.scale);
    for (int j = std::max(0, first - prefix); j < n_chain; j++)
      mean[j] += static_cast<float>(score[prefix + j] / sum / n_heads);
  }
}

void attention_weights(Device&,
                       const KvLayer& layer,
                       const RowsPlan& plan,
                       int row,
                       const float* q,
                       const void* staged_k,
                       int n_heads,
                       const Scores& scores,
                       float* mean) {
  check_attention_weights(plan, row, scores);
  if (layer.dtype == DType::Q8_0)
    weights_of<std::int8_t>(layer, plan, row, q, staged_k, n_heads, scores, mean);
  else if (layer.dtype == DType::F32)
    weights_of<float>(layer, plan, row, q, staged_k, n_heads, scores, mean);
  else
    weights_of<std::uint16_t>(layer, plan, row, q, staged_k, n_heads, scores, mean);
}

}  // namespace

void add_attention_weights_ops(Ops& ops) {
  ops.attention_weights = attention_weights;
}

}  // namespace kernels::cpu
