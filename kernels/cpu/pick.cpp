// Choosing tokens with the Gumbel-max trick. The vector loops find the two largest noisy scores within a known error. Tokens
// near them are then scored in double, so every instruction set picks the token of the formula in kernels/philox.h.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/op_times.h"
#include "kernels/philox.h"
#include "kernels/sampling.h"

namespace kernels::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool is_filtered(const PickRow& row, int n_valid) {
  if (row.repetition_penalty != 1 && row.n_history > 0) return true;
  if (row.temperature < kGreedyTemperature) return false;
  return (row.top_k > 0 && row.top_k < n_valid) || row.top_p < 1 || row.min_p > 0;
}

float logp_of(const CpuKernels& kernels,
              const float* logits,
              int n,
              float top,
              float chosen,
              float temperature) {
  const double sum = kernels.sum_exp(logits, n, top, 1.0f / temperature);
  return static_cast<float>((static_cast<double>(chosen) - top) / temperature - std::log(sum));
}

Picked greedy(const CpuKernels& kernels, const float* logits, int n, float top, float second) {
  Picked picked;
  picked.id = kernels.find_first(logits, n, top);
  picked.score = top;
  picked.margin = top - second;
  picked.logp = logp_of(kernels, logits, n, top, top, 1);
  return picked;
}

double exact_score(const float* logits, int id, const PickRow& row) {
  const std::uint32_t bits = random_bits(row.seed, row.stream, row.position, id);
  return static_cast<double>(logits[id]) / row.temperature + gumbel_from_bits(bits);
}

Picked sampled(const CpuKernels& kernels,
               const float* logits,
               int n,
               float top,
               const PickRow& row,
               char* scratch) {
  const int padded = (n + kNoiseBlock - 1) / kNoiseBlock * kNoiseBlock;
  auto* scores = reinterpret_cast<float*>(scratch);
  auto* near = reinterpret_cast<int*>(scores + padded);
  float best, second;
  kernels.noisy_scores(logits, n, top, 1.0f / row.temperature, row.seed, row.stream, row.position,
                       scores, &best, &second);
  // Each approximate score is within a known error of the exact one. So the exact best and second
  // best tokens are among those whose approximate score is at most twice that error below the
  // second best one.
  const float bound = std::isfinite(second) ? second : best;
  const float threshold = bound - 2e-4f - 1e-5f * std::fabs(bound);
  const int n_near = kernels.find_above(scores, n, threshold, near, n);
  double first_score = -std::numeric_limits<double>::infinity(), second_score = first_score;
  Picked picked;
  for (int i = 0; i < n_near; i++) {
    const double score = exact_score(logits, near[i], row);
    if (score > first_score) {  // ascending ids: ties stay with the lowest
      second_score = first_score;
      first_score = score;
      picked.id = near[i];
    } else {
      second_score = std::max(second_score, score);
    }
  }
  picked.score = static_cast<float>(first_score);
  picked.margin = static_cast<float>(first_score - second_score);
  picked.logp = logp_of(kernels, logits, n, top, logits[picked.id], row.temperature);
  return picked;
}

Picked pick_one(const CpuKernels& kernels,
                const float* logits,
                int n_valid,
                const PickRow& row,
                char* scratch) {
  Picked none;
  float top = 0, second = 0;
  none.bad_index = kernels.top_two(logits, n_valid, &top, &second);
  if (none.bad_index >= 0 || top == -kInfinity) return none;
  std::vector<float> kept;
  if (is_filtered(row, n_valid)) {
    if (!filter_logits({logits, static_cast<std::size_t>(n_valid)}, n_valid, row, kept))
      return none;
    logits = kept.data();
    none.bad_index = kernels.top_two(logits, n_valid, &top, &second);
    if (none.bad_index >= 0) return none;
  }
  Picked picked = row.temperature < kGreedyTemperature
                      ? greedy(kernels, logits, n_valid, top, second)
                      : sampled(kernels, logits, n_valid, top, row, scratch);
  if (picked.id >= 0) picked.logit = logits[picked.id];
  return picked;
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
  CpuDevice& cpu = cpu_of(device);
  const TimedOp timed(cpu, OpKind::Choice);
  const std::int64_t padded = (n_valid + kNoiseBlock - 1) / kNoiseBlock * kNoiseBlock;
  for (Scratch& scratch : cpu.own) scratch.at_least(padded * 8);
  split(cpu, n_rows, std::int64_t{n_rows} * n_valid, [&](int begin, int end, int thread) {
    for (int r = begin; r < end; r++)
      out[r] =
          pick_one(cpu.kernels, logits + r * stride, n_valid, rows[r], cpu.own[thread].at_least(0));
  });
}

// A lower bound of the k-th largest logit: the k-th largest of the blocks' maxima. -inf if there are fewer blocks.
// @return  first index of a NaN or +inf, else -1
int bound_of_top(const CpuKernels& kernels, const float* logits, int n, int k, float* bound) {
  constexpr int kBlock = 256;
  std::vector<float> largest;
  largest.reserve(static_cast<std::size_t>(n / kBlock + 1));
  for (int begin = 0; begin < n; begin += kBlock) {
    float top = 0, second = 0;
    const int bad = kernels.top_two(logits + begin, std::min(kBlock, n - begin), &top, &second);
    if (bad >= 0) return begin + bad;
    largest.push_back(top);
  }
  *bound = -kInfinity;
  if (static_cast<int>(largest.size()) < k) return -1;
  std::ranges::nth_element(largest, largest.begin() + k - 1, std::greater());
  *bound = largest[static_cast<std::size_t>(k) - 1];
  return -1;
}

// The k largest logits in order, without filters and probabilities; id -1 where there is none. `near` has room for n ids.
void top_tokens(
    const CpuKernels& kernels, const float* logits, int n, int k, int* near, RankedToken* tokens) {
  std::fill_n(tokens, k, RankedToken{});
  float bound = 0;
  if (bound_of_top(kernels, logits, n, k, &bound) >= 0) return;
  const int n_near = kernels.find_above(logits, n, bound, near, n);
  const int n_top = std::min(k, n_near);
  std::partial_sort(near, near + n_top, near + n_near, [logits](int a, int b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  for (int i = 0; i < n_top && logits[near[i]] != -kInfinity; i++)
    tokens[i] = {near[i], logits[near[i]]};
}

void rank_one(const CpuKernels& kernels,
              std::span<const float> logits,
              const PickRow& row,
              Ranking* out,
              std::span<RankedToken> tokens,
              int* near) {
  const auto n_valid = static_cast<int>(logits.size());
  if (!out && !is_filtered(row, n_valid))
    return top_tokens(kernels, logits.data(), n_valid, static_cast<int>(tokens.size()), near,
                      tokens.data());
  const Ranking ranking = rank_logits(logits, n_valid, row, tokens);
  std::ranges::fill(tokens.subspan(static_cast<std::size_t>(ranking.n)), RankedToken{});
  if (out) *out = ranking;
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
  CpuDevice& cpu = cpu_of(device);
  for (Scratch& scratch : cpu.own) scratch.at_least(std::int64_t{n_valid} * 4);
  const auto n = static_cast<std::size_t>(n_valid);
  const TimedOp timed(cpu, OpKind::Choice);
  const std::int64_t n_logits = std::int64_t{n_rows} * n_valid;
  const std::int64_t cost = out ? 8 * n_logits : n_logits / 8;
  split(cpu, n_rows, cost, [&](int begin, int end, int thread) {
    int* const near = reinterpret_cast<int*>(cpu.own[thread].at_least(0));
    for (int r = begin; r < end; r++)
      rank_one(cpu.kernels, {logits + r * stride, n}, rows[r], out ? out + r : nullptr,
               {tokens + std::int64_t{r} * k, static_cast<std::size_t>(k)}, near);
  });
}

}  // namespace

void add_pick_ops(Ops& ops) {
  ops.pick = pick;
  ops.rank = rank;
}

}  // namespace kernels::cpu
