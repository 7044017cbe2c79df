// Choosing and ranking tokens: only ids and their numbers cross the bus. A row is a block; scores
// are made in double by the formula of kernels/philox.h, so a GPU picks what a CPU picks but where
// two scores are apart by no more than the last bits of their machines' exp and log.
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

constexpr int kPickThreads = 256;
constexpr int kDigits = 256;                // of a key, eight bits at a time
constexpr double kUnit = 17592186044416.0;  // 2^44

/// PickRow for the device.
struct Asked {
  std::uint64_t seed;
  float temperature, top_p, min_p, repetition_penalty;
  int top_k;
  unsigned stream, position;
  int history, n_history;  // ids of the row in the list of all
};

/// The best score, its token, the second best score.
struct Best {
  double score, second;
  int id;
};
struct Better {
  __device__ Best operator()(const Best& a, const Best& b) const {
    const bool first = a.score > b.score || (a.score == b.score && a.id < b.id);
    Best best = first ? a : b;
    const double loser = first ? b.score : a.score;
    if (loser > best.second) best.second = loser;
    const double other = first ? b.second : a.second;
    if (other > best.second) best.second = other;
    return best;
  }
};
__device__ inline Best nothing() {
  return {-static_cast<double>(kInfinity), -static_cast<double>(kInfinity), 0x7fffffff};
}

__device__ inline std::uint64_t key_of(float logit, int id) {
  if (logit == 0) logit = 0;  // of two zeros neither is larger
  const unsigned bits = __float_as_uint(logit);
  const unsigned ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
  return static_cast<std::uint64_t>(ordered) << 32 | ~static_cast<unsigned>(id);
}

/// How likely a token is beside the most likely.
__device__ inline double weight_of(float logit, float top, float temperature) {
  return exp((static_cast<double>(logit) - static_cast<double>(top)) /
             static_cast<double>(temperature));
}
using Count = unsigned long long;
__device__ inline Count units_of(double weight) {
  return static_cast<Count>(weight * kUnit + 0.5);
}

struct Digits {
  Count amount[kDigits];  // how much the tokens with this digit add
  unsigned n_tokens[kDigits];
  std::uint64_t prefix;  // the key's digits that are found
  Count above;           // what tokens with larger keys add
};

struct Row {
  const float* logits;
  int n;
  float top, temperature;
};

// The largest key whose token and all before it add up to at least `wanted`; of tokens not below
// `floor`. by_weight: weights, in units; else every token counts one. Meets the block.
__device__ std::uint64_t cut_at(const Row& row,
                                std::uint64_t floor,
                                bool by_weight,
                                double wanted) {
  Digits& digits = static_shared<Digits>();
  __syncthreads();
  if (threadIdx.x == 0) {
    digits.prefix = 0;
    digits.above = 0;
  }
  for (int shift = 56; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < kDigits; i += kPickThreads) {
      digits.amount[i] = 0;
      digits.n_tokens[i] = 0;
    }
    __syncthreads();
    const std::uint64_t prefix = digits.prefix;
    for (int i = threadIdx.x; i < row.n; i += kPickThreads) {
      const std::uint64_t key = key_of(row.logits[i], i);
      if (key < floor || (shift < 56 && key >> (shift + 8) != prefix)) continue;
      const auto digit = static_cast<int>(key >> shift & 255);
      const Count amount =
          by_weight ? units_of(weight_of(row.logits[i], row.top, row.temperature)) : 1;
      atomicAdd(&digits.amount[digit], amount);
      atomicAdd(&digits.n_tokens[digit], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int found = -1;  // where the sum crosses, or the last digit there is
      for (int digit = kDigits - 1; digit >= 0; digit--) {
        if (digits.n_tokens[digit] == 0) continue;
        if (found >= 0) digits.above += digits.amount[found];
        found = digit;
        if (static_cast<double>(digits.above + digits.amount[digit]) >= wanted) break;
      }
      digits.prefix = digits.prefix << 8 | static_cast<unsigned>(found < 0 ? 0 : found);
    }
    __syncthreads();
  }
  return digits.prefix;
}

__device__ double units_in(const Row& row, std::uint64_t floor) {
  Count sum = 0;
  for (int i = threadIdx.x; i < row.n; i += kPickThreads)
    if (key_of(row.logits[i], i) >= floor)
      sum += units_of(weight_of(row.logits[i], row.top, row.temperature));
  return static_cast<double>(over_block<kPickThreads>(sum, Plus()));
}

/// Tokens that the filters keep are those with a key of at least this.
__device__ std::uint64_t lowest_kept(const Row& row, const Asked& asked) {
  std::uint64_t floor = 0;
  if (asked.top_k > 0 && asked.top_k < row.n)
    floor = cut_at(row, 0, /*by_weight=*/false, static_cast<double>(asked.top_k));
  if (asked.top_p < 1)
    floor = cut_at(row, floor, /*by_weight=*/true,
                   static_cast<double>(asked.top_p) * units_in(row, floor));
  return floor;
}

__device__ inline bool keeps(const Row& row, const Asked& asked, std::uint64_t floor, int i) {
  const float logit = row.logits[i];
  if (floor > 0 && key_of(logit, i) < floor) return false;
  if (asked.min_p <= 0 || logit == row.top) return true;
  return weight_of(logit, row.top, row.temperature) >= static_cast<double>(asked.min_p);
}

/// The row with the repetition penalty, in memory of its own. Twice the same id, twice the same.
__device__ const float* penalised(
    const float* logits, int n, const Asked& asked, const int* history, float* own) {
  for (int i = threadIdx.x; i < n; i += kPickThreads) own[i] = logits[i];
  __syncthreads();
  for (int i = threadIdx.x; i < asked.n_history; i += kPickThreads) {
    const int id = history[asked.history + i];
    if (id < 0 || id >= n) continue;
    const float logit = logits[id];
    own[id] = logit < 0 ? logit * asked.repetition_penalty : logit / asked.repetition_penalty;
  }
  __syncthreads();
  return own;
}

__device__ Best best_logit(const float* logits, int n) {
  Best best = nothing();
  for (int i = threadIdx.x; i < n; i += kPickThreads)
    best = Better()(best, {static_cast<double>(logits[i]), nothing().second, i});
  return over_block<kPickThreads>(best, Better());
}

// Of the kept tokens the one with the best noisy score; `sum` is what all kept weigh.
__device__ Best best_with_noise(const Row& row, const Asked& asked, double& sum) {
  const std::uint64_t floor = lowest_kept(row, asked);
  Best best = nothing();
  double weights = 0;
  for (int i = 4 * static_cast<int>(threadIdx.x); i < row.n; i += 4 * kPickThreads) {
    const Words bits =
        philox_block(asked.seed, asked.stream, asked.position, static_cast<unsigned>(i / 4));
    for (int j = 0; j < 4 && i + j < row.n; j++) {
      const float logit = row.logits[i + j];
      if (logit == -kInfinity || !keeps(row, asked, floor, i + j)) continue;
      weights += weight_of(logit, row.top, row.temperature);
      const double score =
          static_cast<double>(logit) / static_cast<double>(row.temperature) + gumbel(bits.w[j]);
      best = Better()(best, {score, nothing().second, i + j});
    }
  }
  sum = over_block<kPickThreads>(weights, Plus());
  return over_block<kPickThreads>(best, Better());
}

/// First index of a logit that is NaN or +inf, or n. Meets the block.
__device__ inline int first_bad(const float* x, int n) {
  int bad = n;
  for (int i = threadIdx.x; i < n; i += kPickThreads)
    if (!(x[i] < kInfinity) && i < bad) bad = i;
  return over_block<kPickThreads>(bad, Smaller());
}

// grid: a block a row.  own [rows, n] for rows with a penalty
__global__ void __launch_bounds__(kPickThreads) pick_rows(const float* logits,
                                                          std::int64_t stride,
                                                          int n,
                                                          const Asked* rows,
                                                          const int* history,
                                                          float* own,
                                                          Picked* out) {
  const Asked asked = rows[blockIdx.x];
  const float* x = logits + blockIdx.x * stride;
  const int bad = first_bad(x, n);
  const bool first = threadIdx.x == 0;
  Picked picked = {-1, 0, 0, 0, bad < n ? bad : -1, 0};
  if (bad < n) {
    if (first) out[blockIdx.x] = picked;
    return;
  }
  if (asked.repetition_penalty != 1 && asked.n_history > 0)
    x = penalised(x, n, asked, history, own + std::int64_t{blockIdx.x} * n);
  Best best = best_logit(x, n);
  const auto top = static_cast<float>(best.score);
  if (!(top > -kInfinity && top < kInfinity)) {
    if (first) out[blockIdx.x] = picked;
    return;
  }
  const bool greedy = asked.temperature < kGreedyTemperature;
  const Row row = {x, n, top, greedy ? 1.0f : asked.temperature};
  double sum = 0;
  if (greedy) {
    for (int i = threadIdx.x; i < n; i += kPickThreads) sum += weight_of(x[i], top, 1.0f);
    sum = over_block<kPickThreads>(sum, Plus());
  } else {
    best = best_with_noise(row, asked, sum);
  }
  if (!first) return;
  picked.id = best.id;
  picked.logit = x[best.id];
  picked.score = static_cast<float>(best.score);
  picked.margin = static_cast<float>(best.score - best.second);
  picked.logp = static_cast<float>((static_cast<double>(x[best.id]) - static_cast<double>(top)) /
                                       static_cast<double>(row.temperature) -
                                   log(sum));
  out[blockIdx.x] = picked;
}

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
  for (int i = threadIdx.x; i < row.n; i += kPickThreads) {
    const std::uint64_t key = key_of(row.logits[i], i);
    if (key < lowest || row.logits[i] == -kInfinity || !keeps(row, asked, floor, i)) continue;
    keys[atomicAdd(&ranked.n, 1u)] = key;
  }
  __syncthreads();
  return static_cast<int>(ranked.n);
}

// grid: a block a row; shared: k keys.  own [rows, n] for rows with a penalty;  tokens [rows, k].
// The place of a token is the number of larger keys, so it does not matter who wrote its key when.
__global__ void __launch_bounds__(kPickThreads) rank_rows(const float* logits,
                                                          std::int64_t stride,
                                                          int n,
                                                          const Asked* rows,
                                                          const int* history,
                                                          float* own,
                                                          int k,
                                                          Ranking* out,
                                                          RankedToken* tokens) {
  Asked asked = rows[blockIdx.x];
  const float* x = logits + blockIdx.x * stride;
  const int bad = first_bad(x, n);
  const bool first = threadIdx.x == 0;
  Ranking ranking = {0, bad < n ? bad : -1, 0};
  if (bad == n && asked.repetition_penalty != 1 && asked.n_history > 0)
    x = penalised(x, n, asked, history, own + std::int64_t{blockIdx.x} * n);
  const float top = bad < n ? kInfinity : static_cast<float>(best_logit(x, n).score);
  if (!(top > -kInfinity && top < kInfinity)) {
    if (first) out[blockIdx.x] = ranking;
    return;
  }
  const bool greedy = asked.temperature < kGreedyTemperature;
  if (greedy) asked.min_p = 0;
  const Row row = {x, n, top, greedy ? 1.0f : asked.temperature};
  const std::uint64_t floor = greedy ? 0 : lowest_kept(row, asked);
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += kPickThreads)
    if (keeps(row, asked, floor, i)) sum += weight_of(x[i], top, row.temperature);
  ranking.sum = over_block<kPickThreads>(sum, Plus());
  auto* keys = reinterpret_cast<std::uint64_t*>(dynamic_shared());
  ranking.n = collect_ranked(row, asked, floor, k, keys);
  for (int i = threadIdx.x; i < ranking.n; i += kPickThreads) {
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
  CudaDevice& cuda = cuda_of(device);
  const std::int64_t bytes = n_rows * static_cast<std::int64_t>(sizeof(Picked));
  const AskedThere there = tell_asked(cuda, rows, n_rows, n_valid, bytes);
  cuda.launch("pick", pick_rows, n_rows, kPickThreads, 0, logits, stride, n_valid, there.rows,
              there.history, there.own, reinterpret_cast<Picked*>(there.results));
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
  cuda.launch("rank", rank_rows, n_rows, kPickThreads, static_cast<std::size_t>(k) * 8, logits,
              stride, n_valid, there.rows, there.history, there.own, k,
              reinterpret_cast<Ranking*>(there.results),
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
