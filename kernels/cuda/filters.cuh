// The filters of a row, for pick, rank, draw and verify: repetition penalty, top-k, top-p, min-p, as in
// kernels/sampling.h.
//   order   the key of a token is (logit, lowest id first) in 64 bits. All keys differ, so one
//           threshold separates the first k tokens. A radix search finds it digit by digit
//   top-p   weights are summed as integers in units of 2^-44 of the largest weight, so atomics give
//           the same sum in any order. The error of a sum is at most n 2^-45 times the largest
//           weight
#pragma once

#include <vector>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"
#include "kernels/sampling.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kPickThreads = 512, kSlice = 4 * kPickThreads;  // tokens of a block: four per thread
constexpr int kDigits = 256;                // values of a digit: eight bits of a key
constexpr double kUnit = 17592186044416.0;  // 2^44

/// Number of threads for n tokens: whole warps, with four tokens or more for each thread.
constexpr int pick_threads(int n) {
  return n > kSlice - 128 ? kPickThreads : (n + 127) / 128 * 32;
}

/// A PickRow on the device.
struct RowSettings {
  std::uint64_t seed;
  float temperature, top_p, min_p, repetition_penalty;
  int top_k;
  unsigned stream, position;
  int history, n_history;  // its ids: begin and number in the list of all rows
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

/// The probability of a token relative to the most likely token.
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

/// Calls take(first id, four logits, number of valid ones) for each of this thread's groups of four tokens, in order.
/// Loads kTogether groups at a time.
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
/// Calls take(id, logit) for each of these tokens.
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
  unsigned low[kDigits], high[kDigits];  // sum of the tokens with this digit, as two words
  unsigned n_tokens[kDigits];
  std::uint64_t prefix;  // the digits found so far
  Count above;           // sum of the tokens with larger keys
  double wanted;
  bool is_alone;  // only one token has this prefix
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

// Finds the next digit: the largest at which the sum reaches `wanted`, or the last that occurs. One warp does it; a lane
// has eight digits.
// @param share  for the first digit, the wanted share of the total; else 0
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
  Count until = sum;  // of the lanes up to this one
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
  __syncwarp();  // all lanes have read before one writes
  if (digit > largest || digit <= largest - kOwn) return;
  if (lowest < kDigits) digits.above = crossing >= 0 ? above_found : above_last;
  digits.wanted = wanted;
  digits.prefix = digits.prefix << 8 | static_cast<unsigned>(digit);
  digits.is_alone = digits.n_tokens[digit] == 1;
}

// Finds a threshold among the keys from `floor` on: the tokens from it on are the first whose sum reaches `wanted`, or all
// tokens. by_weight: sums weights, and `wanted` is a share of the total; else each token counts 1. Synchronises the block.
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
    // Only one token has this prefix, so the prefix alone separates it from all tokens with smaller
    // keys.
    if (digits.is_alone) return digits.prefix << shift;
  }
  return digits.prefix;
}

/// The filters keep the tokens with at least this key.
__device__ std::uint64_t lowest_kept(const Row& row, const RowSettings& settings) {
  std::uint64_t floor = 0;
  if (settings.top_k > 0 && settings.top_k < row.n)
    floor = cut_at(row, 0, /*by_weight=*/false, static_cast<double>(settings.top_k));
  if (settings.top_p >= 1) return floor;
  // The second search may find a threshold below `floor`.
  return Larger()(floor,
                  cut_at(row, floor, /*by_weight=*/true, static_cast<double>(settings.top_p)));
}
__device__ inline bool has_filters(const RowSettings& settings, int n) {
  return (settings.top_k > 0 && settings.top_k < n) || settings.top_p < 1 || settings.min_p > 0;
}

__device__ inline bool keeps(
    const Row& row, const RowSettings& settings, std::uint64_t floor, int id, float logit) {
  if (floor > 0 && key_of(logit, id) < floor) return false;
  if (settings.min_p <= 0 || logit == row.top) return true;
  return weight_of(logit, row.top, row.temperature) >= static_cast<double>(settings.min_p);
}

// ---- rows

/// Writes the logits of tokens [first, end) with the repetition penalty to `own`. A repeated id has no further effect.
/// Synchronises the block.
__device__ inline void penalise(const float* logits,
                                const RowSettings& settings,
                                const int* history,
                                int first,
                                int end,
                                float* own) {
  for (int i = first + static_cast<int>(threadIdx.x); i < end; i += blockDim.x) own[i] = logits[i];
  __syncthreads();
  for (int i = threadIdx.x; i < settings.n_history; i += blockDim.x) {
    const int id = history[settings.history + i];
    if (id < first || id >= end) continue;
    const float logit = logits[id];
    own[id] = logit < 0 ? logit * settings.repetition_penalty : logit / settings.repetition_penalty;
  }
  __syncthreads();
}
__device__ inline bool has_penalty(const RowSettings& settings) {
  return settings.repetition_penalty != 1 && settings.n_history > 0;
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

/// True if the row has a distribution.
__device__ inline bool is_a_distribution(const Seen& seen, int n) {
  return seen.bad == n && seen.best.score > -kInfinity && seen.best.score < kInfinity;
}
/// Scans a whole row, applies its penalty in `own` [n] and sets row.top. Every thread gets the result. Synchronises the
/// block.
__device__ inline Seen see_row(Row& row,
                               const RowSettings& settings,
                               const int* history,
                               float* own) {
  Seen seen = {nothing<float>(), row.n};
  for_tokens<4>(row, [&](int id, float logit) {
    if (is_bad(logit) && id < seen.bad) seen.bad = id;
    seen.best = Better()(seen.best, one_of(logit, id));
  });
  if (has_penalty(settings)) {
    penalise(row.logits, settings, history, 0, row.n, own);
    row.logits = own;
    row.in_fours = lie_in_fours(0, own);
    seen.best = nothing<float>();
    for_tokens<4>(row,
                  [&](int id, float logit) { seen.best = Better()(seen.best, one_of(logit, id)); });
  }
  seen = over_warps(seen, {nothing<float>(), row.n}, SeenTogether());
  row.top = seen.best.score;
  return seen;
}

// ---- host

constexpr std::int64_t in_sixteens(std::int64_t bytes) {
  return (bytes + 15) / 16 * 16;
}

/// Parameters of rows on the device, and memory for results and for penalised rows.
struct RowsOnDevice {
  const RowSettings* rows;
  const int* history;
  char* results;  // 16-byte aligned
  float* own;     // [n_rows, n_valid]; empty if no row has a penalty
};
inline RowsOnDevice upload_rows(CudaDevice& cuda,
                                Use use,
                                const PickRow* rows,
                                int n_rows,
                                int n_valid,
                                std::int64_t result_bytes) {
  std::vector<RowSettings> settings;
  std::vector<int> history;
  bool penalty = false;
  for (int r = 0; r < n_rows; r++) {
    const PickRow& row = rows[r];
    settings.push_back({row.seed, row.temperature, row.top_p, row.min_p, row.repetition_penalty,
                        row.top_k, row.stream, row.position, static_cast<int>(history.size()),
                        row.n_history});
    if (row.repetition_penalty == 1) continue;
    penalty = true;
    history.insert(history.end(), row.history, row.history + row.n_history);
  }
  const std::int64_t settings_bytes =
                         in_sixteens(n_rows * static_cast<std::int64_t>(sizeof(RowSettings))),
                     history_bytes = in_sixteens(static_cast<std::int64_t>(history.size()) * 4),
                     own_bytes = penalty ? std::int64_t{n_rows} * n_valid * 4 : 0;
  auto* memory = static_cast<char*>(
      cuda.scratch(use, settings_bytes + history_bytes + in_sixteens(result_bytes) + own_bytes));
  char* device_history = memory + settings_bytes;
  char* results = device_history + history_bytes;
  cuda.upload(memory, settings.data(), n_rows * static_cast<std::int64_t>(sizeof(RowSettings)));
  cuda.upload(device_history, history.data(), static_cast<std::int64_t>(history.size()) * 4);
  return {reinterpret_cast<const RowSettings*>(memory),
          reinterpret_cast<const int*>(device_history), results,
          reinterpret_cast<float*>(results + in_sixteens(result_bytes))};
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU
