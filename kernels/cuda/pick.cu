// Choosing and ranking tokens: only ids and their numbers cross the bus. A choice has a block for
// every 2,048 tokens of a row, of which the last to come joins what they found, and cuts where
// there are filters; a ranking has a block a row. Scores are made in double by the formula of
// kernels/philox.h, so a GPU picks what a CPU picks but where two scores are apart by no more than
// the last bits of their machines' exp and log.
//   order    a token's key is (logit, lowest id first) in 64 bits: all differ, so "the first k" is
//            one threshold, found digit by digit
//   top-p    sums of weights are kept in units of 2^-44 of the largest: whole numbers, so atomics
//            give the same sum in any order. What a cut is off by is n 2^-45 of the largest weight
#include <vector>

#include "kernels/checks.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"
#include "kernels/sampling.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kPickThreads = 512, kSlice = 4 * kPickThreads;  // tokens of a block: four a thread
constexpr int kDigits = 256;                                  // of a key, eight bits at a time
constexpr double kUnit = 17592186044416.0;                    // 2^44

/// Whole warps, no more than there are fours of tokens.
constexpr int pick_threads(int n) {
  return n > kSlice - 128 ? kPickThreads : (n + 127) / 128 * 32;
}

/// PickRow for the device.
struct Asked {
  std::uint64_t seed;
  float temperature, top_p, min_p, repetition_penalty;
  int top_k;
  unsigned stream, position;
  int history, n_history;  // ids of the row in the list of all
};

/// The best score, its token, the second best score.
template <class Score>
struct Best {
  Score score, second;
  int id;
};
struct Better {
  template <class Score>
  __device__ Best<Score> operator()(const Best<Score>& a, const Best<Score>& b) const {
    const bool first = a.score > b.score || (a.score == b.score && a.id < b.id);
    Best<Score> best = first ? a : b;
    const Score loser = first ? b.score : a.score;
    if (loser > best.second) best.second = loser;
    const Score other = first ? b.second : a.second;
    if (other > best.second) best.second = other;
    return best;
  }
};
template <class Score>
__device__ Best<Score> one_of(Score score, int id) {
  return {score, -static_cast<Score>(kInfinity), id};
}
template <class Score>
__device__ Best<Score> nothing() {
  return one_of(-static_cast<Score>(kInfinity), 0x7fffffff);
}

__device__ inline std::uint64_t key_of(float logit, int id) {
  if (logit == 0) logit = 0;  // of two zeros neither is larger
  const unsigned bits = __float_as_uint(logit);
  const unsigned ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
  return static_cast<std::uint64_t>(ordered) << 32 | ~static_cast<unsigned>(id);
}

/// How likely a token is beside the most likely.
__device__ inline double weight_of(float logit, float top, float temperature) {
  const double below = static_cast<double>(logit) - static_cast<double>(top);
  return exp(temperature == 1 ? below : below / static_cast<double>(temperature));
}
using Count = unsigned long long;
__device__ inline Count units_of(double weight) {
  return static_cast<Count>(weight * kUnit + 0.5);
}

struct Row {
  const float* logits;
  int n;
  bool in_fours;
  float top, temperature;
};

/// Calls take(first id, four logits, how many there are) for this thread's fours of a row, in
/// order; kTogether of them are read at a time.
template <int kTogether, class Take>
__device__ inline void for_fours(const Row& row, const Take& take) {
  const int step = 4 * static_cast<int>(blockDim.x);
  for (int first = 4 * static_cast<int>(threadIdx.x); first < row.n; first += kTogether * step) {
    Four fours[kTogether];
#pragma unroll
    for (int t = 0; t < kTogether; t++)
      fours[t] = load_four(row.logits + first + t * step, row.n - first - t * step, row.in_fours);
#pragma unroll
    for (int t = 0; t < kTogether; t++) take(first + t * step, fours[t], row.n - first - t * step);
  }
}
/// Calls take(id, logit) likewise.
template <int kTogether, class Take>
__device__ inline void for_tokens(const Row& row, const Take& take) {
  for_fours<kTogether>(row, [&](int first, const Four& four, int n) {
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (j < n) take(first + j, four.of[j]);
  });
}

// ---- cuts

struct Digits {
  unsigned low[kDigits], high[kDigits];  // of how much the tokens with this digit add
  unsigned n_tokens[kDigits];
  std::uint64_t prefix;  // the key's digits that are found
  Count above;           // what tokens with larger keys add
  double wanted;
  bool is_alone;  // one token alone has this prefix
};
__device__ inline void add_amount(Digits& digits, int digit, Count amount) {
  const auto low = static_cast<unsigned>(amount);
  const unsigned carry = atomicAdd(&digits.low[digit], low) + low < low;
  const unsigned high = static_cast<unsigned>(amount >> 32) + carry;
  if (high > 0) atomicAdd(&digits.high[digit], high);
}
__device__ inline Count amount_of(const Digits& digits, int digit, bool by_weight) {
  if (!by_weight) return digits.n_tokens[digit];
  return static_cast<Count>(digits.high[digit]) << 32 | digits.low[digit];
}

// The next digit: the largest where the sum crosses what is wanted, or the last one there is. A
// warp finds it, a lane has eight. @param share  at first, of all that there is; else 0
__device__ inline void find_digit(Digits& digits, bool by_weight, double share) {
  constexpr int kOwn = kDigits / 32;
  const int lane = threadIdx.x, largest = kDigits - 1 - kOwn * lane;
  Count amounts[kOwn], sum = 0;
  bool there[kOwn];
#pragma unroll
  for (int j = 0; j < kOwn; j++) {
    amounts[j] = amount_of(digits, largest - j, by_weight);
    there[j] = digits.n_tokens[largest - j] > 0;
    sum += amounts[j];
  }
  Count until = sum;  // of all lanes up to this one
  for (int by = 1; by < 32; by *= 2) {
    const Count before = __shfl_up_sync(kAllLanes, until, by);
    if (lane >= by) until += before;
  }
  const Count all = __shfl_sync(kAllLanes, until, 31);
  const double wanted = share > 0 ? share * static_cast<double>(all) : digits.wanted;
  Count above = digits.above + until - sum, above_found = above, above_last = above;
  int found = -1, last = kDigits;
#pragma unroll
  for (int j = 0; j < kOwn; j++) {
    if (!there[j]) continue;
    last = largest - j;
    above_last = above;
    above += amounts[j];
    if (found >= 0 || !(static_cast<double>(above) >= wanted)) continue;
    found = last;
    above_found = above_last;
  }
  const int crossing = over_warp(found, Larger()), lowest = over_warp(last, Smaller());
  const int digit = crossing >= 0 ? crossing : lowest < kDigits ? lowest : 0;
  __syncwarp();  // all have read what one of them writes
  if (digit > largest || digit <= largest - kOwn) return;
  if (lowest < kDigits) digits.above = crossing >= 0 ? above_found : above_last;
  digits.wanted = wanted;
  digits.prefix = digits.prefix << 8 | static_cast<unsigned>(digit);
  digits.is_alone = digits.n_tokens[digit] == 1;
}

// A key: of tokens not below `floor` those not below it are the first that add up to at least
// `wanted`, or all. by_weight: weights in units, and `wanted` is a share of them all; else every
// token counts one. Meets the block.
__device__ std::uint64_t cut_at(const Row& row,
                                std::uint64_t floor,
                                bool by_weight,
                                double wanted) {
  Digits& digits = static_shared<Digits>();
  __syncthreads();
  if (threadIdx.x == 0) {
    digits.prefix = 0;
    digits.above = 0;
    digits.wanted = by_weight ? 0 : wanted;
  }
  for (int shift = 56; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < kDigits; i += blockDim.x)
      digits.low[i] = digits.high[i] = digits.n_tokens[i] = 0;
    __syncthreads();
    const std::uint64_t prefix = digits.prefix;
    for_tokens<2>(row, [&](int id, float logit) {
      const std::uint64_t key = key_of(logit, id);
      if (key < floor || (shift < 56 && key >> (shift + 8) != prefix)) return;
      const auto digit = static_cast<int>(key >> shift & 255);
      if (by_weight)
        add_amount(digits, digit, units_of(weight_of(logit, row.top, row.temperature)));
      atomicAdd(&digits.n_tokens[digit], 1u);
    });
    __syncthreads();
    if (threadIdx.x < 32) find_digit(digits, by_weight, by_weight && shift == 56 ? wanted : 0);
    __syncthreads();
    if (digits.is_alone) return digits.prefix << shift;  // no other token is between it and its key
  }
  return digits.prefix;
}

/// Tokens that the filters keep are those with a key of at least this.
__device__ std::uint64_t lowest_kept(const Row& row, const Asked& asked) {
  std::uint64_t floor = 0;
  if (asked.top_k > 0 && asked.top_k < row.n)
    floor = cut_at(row, 0, /*by_weight=*/false, static_cast<double>(asked.top_k));
  if (asked.top_p < 1)
    floor = cut_at(row, floor, /*by_weight=*/true, static_cast<double>(asked.top_p));
  return floor;
}
__device__ inline bool has_filters(const Asked& asked, int n) {
  return (asked.top_k > 0 && asked.top_k < n) || asked.top_p < 1 || asked.min_p > 0;
}

__device__ inline bool keeps(
    const Row& row, const Asked& asked, std::uint64_t floor, int id, float logit) {
  if (floor > 0 && key_of(logit, id) < floor) return false;
  if (asked.min_p <= 0 || logit == row.top) return true;
  return weight_of(logit, row.top, row.temperature) >= static_cast<double>(asked.min_p);
}

// ---- rows

/// Tokens [first, end) with the repetition penalty, in memory of the row's own. Twice the same id,
/// twice the same. Meets the block.
__device__ inline void penalise(
    const float* logits, const Asked& asked, const int* history, int first, int end, float* own) {
  for (int i = first + static_cast<int>(threadIdx.x); i < end; i += blockDim.x) own[i] = logits[i];
  __syncthreads();
  for (int i = threadIdx.x; i < asked.n_history; i += blockDim.x) {
    const int id = history[asked.history + i];
    if (id < first || id >= end) continue;
    const float logit = logits[id];
    own[id] = logit < 0 ? logit * asked.repetition_penalty : logit / asked.repetition_penalty;
  }
  __syncthreads();
}
__device__ inline bool has_penalty(const Asked& asked) {
  return asked.repetition_penalty != 1 && asked.n_history > 0;
}

/// The best logit, and the first id, or n, of one that is NaN or +inf.
struct Seen {
  Best<float> best;
  int bad;
};
struct SeenTogether {
  __device__ Seen operator()(const Seen& a, const Seen& b) const {
    return {Better()(a.best, b.best), Smaller()(a.bad, b.bad)};
  }
};
__device__ inline bool is_bad(float logit) {
  return !(logit < kInfinity);
}

/// The score of a token and what it weighs, added to what was found before.
__device__ inline void add_noisy(
    const Row& row, int id, float logit, unsigned bits, Best<double>& best, double& weights) {
  weights += weight_of(logit, row.top, row.temperature);
  const double score =
      static_cast<double>(logit) / static_cast<double>(row.temperature) + gumbel(bits);
  best = Better()(best, one_of(score, id));
}
__device__ inline Words bits_of_four(const Asked& asked, int first) {
  return philox_block(asked.seed, asked.stream, asked.position, static_cast<unsigned>(first / 4));
}

// Of the kept tokens the one with the best noisy score; `sum` is what all kept weigh. Meets the
// block.
__device__ Best<double> best_of_kept(const Row& row, const Asked& asked, double& sum) {
  const std::uint64_t floor = lowest_kept(row, asked);
  Best<double> best = nothing<double>();
  double weights = 0;
  for_fours<2>(row, [&](int first, const Four& four, int n) {
    bool kept[4], any = false;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      kept[j] =
          j < n && four.of[j] != -kInfinity && keeps(row, asked, floor, first + j, four.of[j]);
      any = any || kept[j];
    }
    if (!any) return;
    const Words bits = bits_of_four(asked, first);
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (kept[j]) add_noisy(row, first + j, four.of[j], bits.w[j], best, weights);
  });
  sum = over_warps(weights, 0.0, Plus());
  return over_warps(best, nothing<double>(), Better());
}

// ---- choice

constexpr int kMostPicked = 65'535;  // rows

/// What a block finds among its tokens, none of which is filtered away.
struct Slice {
  Best<double> best;  // of the scores
  double sum;         // what they weigh beside their own top
  float top;
  int bad;  // as of Seen
};

/// Of this thread's four, which are from `first` on, what is scored without filters; over the
/// block.
__device__ inline void score_slice(
    const Row& row, const Asked& asked, bool greedy, int first, const Four& four, Slice& slice) {
  double weights = 0;
  Best<double> best = nothing<double>();
  const Words bits = greedy ? Words{} : bits_of_four(asked, first);
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if (first + j >= row.n || four.of[j] == -kInfinity) continue;
    if (greedy)
      weights += weight_of(four.of[j], row.top, 1.0f);
    else
      add_noisy(row, first + j, four.of[j], bits.w[j], best, weights);
  }
  slice.sum = over_warps(weights, 0.0, Plus());
  if (!greedy) slice.best = over_warps(best, nothing<double>(), Better());
}

/// All slices of a row; every warp makes it for itself. The sums are scaled to the largest logit.
__device__ inline Slice joined_slices(const Slice* slices, int n, float temperature) {
  const int lane = threadIdx.x % 32;
  Slice all = {nothing<double>(), 0, -kInfinity, 0x7fffffff};
  for (int i = lane; i < n; i += 32) {
    all.best = Better()(all.best, slices[i].best);
    all.top = Larger()(all.top, slices[i].top);
    all.bad = Smaller()(all.bad, slices[i].bad);
  }
  all.best = over_warp(all.best, Better());
  all.top = over_warp(all.top, Larger());
  all.bad = over_warp(all.bad, Smaller());
  for (int i = lane; i < n; i += 32)
    if (slices[i].sum > 0)
      all.sum += slices[i].sum * weight_of(slices[i].top, all.top, temperature);
  all.sum = over_warp(all.sum, Plus());
  return all;
}

// grid: (slices of a row, rows).  own [rows, n] for rows with a penalty; where a row has several
// slices: slices [rows, slices], done [rows], zeros before and after
__global__ void __launch_bounds__(kPickThreads, 2) pick_rows(const float* logits,
                                                             std::int64_t stride,
                                                             int n,
                                                             const Asked* rows,
                                                             const int* history,
                                                             float* own,
                                                             Slice* slices,
                                                             unsigned* done,
                                                             Picked* out) {
  let_next_begin();
  wait_for_earlier();
  const int first = static_cast<int>(blockIdx.x) * kSlice + 4 * static_cast<int>(threadIdx.x);
  const float* x = logits + blockIdx.y * stride;
  Four four = load_four(x + first, n - first, lie_in_fours(stride, logits));
  const Asked asked = rows[blockIdx.y];
  const bool greedy = asked.temperature < kGreedyTemperature;
  const bool filtered = !greedy && has_filters(asked, n);
  Seen seen = {nothing<float>(), n};
#pragma unroll
  for (int j = 3; j >= 0; j--)
    if (first + j < n && is_bad(four.of[j])) seen.bad = first + j;
  Row row = {x, n, lie_in_fours(stride, logits), 0, greedy ? 1.0f : asked.temperature};
  if (has_penalty(asked)) {
    own += std::int64_t{blockIdx.y} * n;
    const int begin = static_cast<int>(blockIdx.x) * kSlice;
    penalise(x, asked, history, begin, n - begin < kSlice ? n : begin + kSlice, own);
    row.logits = own;
    row.in_fours = lie_in_fours(0, own);
    four = load_four(own + first, n - first, row.in_fours);
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (first + j < n) seen.best = Better()(seen.best, one_of(four.of[j], first + j));
  seen = over_warps(seen, {nothing<float>(), n}, SeenTogether());
  row.top = seen.best.score;
  Slice all = {{seen.best.score, seen.best.second, seen.best.id}, 0, seen.best.score, seen.bad};
  if (!filtered) score_slice(row, asked, greedy, first, four, all);
  if (gridDim.x > 1) {
    slices += blockIdx.y * gridDim.x;
    if (threadIdx.x == 0) slices[blockIdx.x] = all;
    if (!last_to_come(done + blockIdx.y, gridDim.x)) return;
    if (!filtered && threadIdx.x >= 32) return;  // a warp is enough
    all = joined_slices(slices, static_cast<int>(gridDim.x), row.temperature);
    row.top = all.top;
  }
  Picked picked = {-1, 0, 0, 0, all.bad < n ? all.bad : -1, 0};
  if (all.bad == n && row.top > -kInfinity && row.top < kInfinity) {
    if (filtered) all.best = best_of_kept(row, asked, all.sum);
    picked.id = all.best.id;
    picked.logit = row.logits[all.best.id];
    picked.score = static_cast<float>(all.best.score);
    picked.margin = static_cast<float>(all.best.score - all.best.second);
    picked.logp =
        static_cast<float>((static_cast<double>(picked.logit) - static_cast<double>(row.top)) /
                               static_cast<double>(row.temperature) -
                           log(all.sum));
  }
  if (threadIdx.x == 0) out[blockIdx.y] = picked;
}

// ---- ranking

struct Ranked {
  unsigned n;
};

// The k largest keys of the kept, in any order, at `keys`. Meets the block. @return  how many
__device__ int collect_ranked(
    const Row& row, const Asked& asked, std::uint64_t floor, int k, std::uint64_t* keys) {
  const std::uint64_t lowest =
      k < row.n ? cut_at(row, floor, /*by_weight=*/false, static_cast<double>(k)) : floor;
  Ranked& ranked = static_shared<Ranked>();
  __syncthreads();
  if (threadIdx.x == 0) ranked.n = 0;
  __syncthreads();
  for_tokens<2>(row, [&](int id, float logit) {
    const std::uint64_t key = key_of(logit, id);
    if (key < lowest || logit == -kInfinity || !keeps(row, asked, floor, id, logit)) return;
    keys[atomicAdd(&ranked.n, 1u)] = key;
  });
  __syncthreads();
  return static_cast<int>(ranked.n);
}

// grid: a block a row; shared: k keys.  own [rows, n] for rows with a penalty;  tokens [rows, k].
// The place of a token is the number of larger keys, so it does not matter who wrote its key when.
__global__ void __launch_bounds__(kPickThreads, 1) rank_rows(const float* logits,
                                                             std::int64_t stride,
                                                             int n,
                                                             const Asked* rows,
                                                             const int* history,
                                                             float* own,
                                                             int k,
                                                             Ranking* out,
                                                             RankedToken* tokens) {
  let_next_begin();
  wait_for_earlier();
  Asked asked = rows[blockIdx.x];
  const float* x = logits + blockIdx.x * stride;
  const bool first = threadIdx.x == 0, greedy = asked.temperature < kGreedyTemperature;
  Row row = {x, n, lie_in_fours(stride, logits), 0, greedy ? 1.0f : asked.temperature};
  Seen seen = {nothing<float>(), n};
  for_tokens<4>(row, [&](int id, float logit) {
    if (is_bad(logit) && id < seen.bad) seen.bad = id;
    seen.best = Better()(seen.best, one_of(logit, id));
  });
  if (has_penalty(asked)) {
    own += std::int64_t{blockIdx.x} * n;
    penalise(x, asked, history, 0, n, own);
    row.logits = x = own;
    row.in_fours = lie_in_fours(0, own);
    seen.best = nothing<float>();
    for_tokens<4>(row,
                  [&](int id, float logit) { seen.best = Better()(seen.best, one_of(logit, id)); });
  }
  seen = over_warps(seen, {nothing<float>(), n}, SeenTogether());
  row.top = seen.best.score;
  Ranking ranking = {0, seen.bad < n ? seen.bad : -1, 0};
  if (seen.bad < n || !(row.top > -kInfinity && row.top < kInfinity)) {
    if (first) out[blockIdx.x] = ranking;
    return;
  }
  if (greedy) asked.min_p = 0;
  const std::uint64_t floor = greedy ? 0 : lowest_kept(row, asked);
  double sum = 0;
  for_tokens<2>(row, [&](int id, float logit) {
    if (keeps(row, asked, floor, id, logit)) sum += weight_of(logit, row.top, row.temperature);
  });
  ranking.sum = over_warps(sum, 0.0, Plus());
  auto* keys = reinterpret_cast<std::uint64_t*>(dynamic_shared());
  ranking.n = collect_ranked(row, asked, floor, k, keys);
  for (int i = threadIdx.x; i < ranking.n; i += blockDim.x) {
    int place = 0;
    for (int other = 0; other < ranking.n; other++) place += keys[other] > keys[i];
    const auto id = static_cast<int>(~static_cast<unsigned>(keys[i]));
    tokens[std::int64_t{blockIdx.x} * k + place] = {id, x[id]};
  }
  if (first) out[blockIdx.x] = ranking;
}

/// What the host says of rows, on the device, and room for what comes back and for penalised rows.
struct AskedThere {
  const Asked* rows;
  const int* history;
  char* results;  // 16-byte aligned
  float* own;     // [n_rows, n_valid]; nothing where no row has a penalty
};
AskedThere tell_asked(
    CudaDevice& cuda, const PickRow* rows, int n_rows, int n_valid, std::int64_t result_bytes) {
  std::vector<Asked> asked;
  std::vector<int> history;
  bool penalty = false;
  for (int r = 0; r < n_rows; r++) {
    const PickRow& row = rows[r];
    asked.push_back({row.seed, row.temperature, row.top_p, row.min_p, row.repetition_penalty,
                     row.top_k, row.stream, row.position, static_cast<int>(history.size()),
                     row.n_history});
    if (row.repetition_penalty == 1) continue;
    penalty = true;
    history.insert(history.end(), row.history, row.history + row.n_history);
  }
  const auto part = [](std::int64_t bytes) { return (bytes + 15) / 16 * 16; };
  const std::int64_t asked_bytes = part(n_rows * static_cast<std::int64_t>(sizeof(Asked))),
                     history_bytes = part(static_cast<std::int64_t>(history.size()) * 4),
                     own_bytes = penalty ? std::int64_t{n_rows} * n_valid * 4 : 0;
  auto* memory = static_cast<char*>(
      cuda.scratch(Use::Pick, asked_bytes + history_bytes + part(result_bytes) + own_bytes));
  char* told_history = memory + asked_bytes;
  char* results = told_history + history_bytes;
  cuda.upload(memory, asked.data(), n_rows * static_cast<std::int64_t>(sizeof(Asked)));
  cuda.upload(told_history, history.data(), static_cast<std::int64_t>(history.size()) * 4);
  return {reinterpret_cast<const Asked*>(memory), reinterpret_cast<const int*>(told_history),
          results, reinterpret_cast<float*>(results + part(result_bytes))};
}

void pick(Device& device,
          const float* logits,
          std::int64_t stride,
          int n_rows,
          int vocab,
          int n_valid,
          const PickRow* rows,
          Picked* out) {
  check_pick(stride, vocab, n_valid);
  if (n_rows == 0) return;
  ensure(n_rows <= kMostPicked, "pick: more rows than a grid has");
  CudaDevice& cuda = cuda_of(device);
  const std::int64_t bytes = n_rows * static_cast<std::int64_t>(sizeof(Picked)),
                     slices_at = (bytes + 15) / 16 * 16;
  const int n_slices = blocks_for(n_valid, kSlice);
  const std::int64_t slice_bytes =
      n_slices > 1 ? std::int64_t{n_rows} * n_slices * static_cast<std::int64_t>(sizeof(Slice)) : 0;
  const AskedThere there = tell_asked(cuda, rows, n_rows, n_valid, slices_at + slice_bytes);
  auto* done = n_slices > 1
                   ? static_cast<unsigned*>(cuda.scratch(Use::Done, std::int64_t{n_rows} * 4, true))
                   : nullptr;
  cuda.launch_early("pick", pick_rows,
                    dim3(static_cast<unsigned>(n_slices), static_cast<unsigned>(n_rows)),
                    pick_threads(n_valid), 0, logits, stride, n_valid, there.rows, there.history,
                    there.own, reinterpret_cast<Slice*>(there.results + slices_at), done,
                    reinterpret_cast<Picked*>(there.results));
  cuda.await(out, there.results, bytes);
  cuda.answer();
}

void rank(Device& device,
          const float* logits,
          std::int64_t stride,
          int n_rows,
          int vocab,
          int n_valid,
          const PickRow* rows,
          int k,
          Ranking* out,
          RankedToken* tokens) {
  check_rank(stride, vocab, n_valid, k);
  if (n_rows == 0) return;
  CudaDevice& cuda = cuda_of(device);
  const std::int64_t ranking_bytes = n_rows * static_cast<std::int64_t>(sizeof(Ranking)),
                     token_bytes =
                         std::int64_t{n_rows} * k * static_cast<std::int64_t>(sizeof(RankedToken));
  const AskedThere there = tell_asked(cuda, rows, n_rows, n_valid, ranking_bytes + token_bytes);
  cuda.launch_early("rank", rank_rows, n_rows, pick_threads(n_valid),
                    static_cast<std::size_t>(k) * 8, logits, stride, n_valid, there.rows,
                    there.history, there.own, k, reinterpret_cast<Ranking*>(there.results),
                    reinterpret_cast<RankedToken*>(there.results + ranking_bytes));
  cuda.await(out, there.results, ranking_bytes);
  cuda.await(tokens, there.results + ranking_bytes, token_bytes);
  cuda.answer();
}

}  // namespace

void add_pick_ops(Ops& ops) {
  ops.pick = pick;
  ops.rank = rank;
}

}  // namespace kernels::DECOSCOPE_GPU
