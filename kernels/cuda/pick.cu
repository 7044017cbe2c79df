// Choosing (Gumbel-max trick) and ranking tokens on the device: only ids and a few numbers go to the host. A choice has one
// block for every 2,048 tokens of a row; the last block to arrive combines their results and applies the filters. A
// ranking has one block per row. Scores are computed in double by the formula of kernels/philox.h, so a GPU and a CPU pick
// different tokens only if two scores differ by the last bits of exp and log.
#include "kernels/checks.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/filters.cuh"
#include "kernels/cuda/math.cuh"
#include "kernels/sampling.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

/// Adds a token's score and weight to the results so far.
__device__ inline void add_noisy(
    const Row& row, int id, float logit, unsigned bits, Best<double>& best, double& weights) {
  weights += weight_of(logit, row.top, row.temperature);
  const double score =
      static_cast<double>(logit) / static_cast<double>(row.temperature) + gumbel(bits);
  best = Better()(best, one_of(score, id));
}
__device__ inline Words bits_of_four(const RowSettings& settings, int first) {
  return philox_block(settings.seed, settings.stream, settings.position,
                      static_cast<unsigned>(first / 4));
}

// Finds the kept token with the best noisy score; `sum` is the weight of all kept tokens. Synchronises the block.
__device__ Best<double> best_of_kept(const Row& row, const RowSettings& settings, double& sum) {
  const std::uint64_t floor = lowest_kept(row, settings);
  Best<double> best = nothing<double>();
  double weights = 0;
  for_fours<2>(row, [&](int first, const Four& four, int n) {
    bool kept[4], any = false;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      kept[j] =
          j < n && four.of[j] != -kInfinity && keeps(row, settings, floor, first + j, four.of[j]);
      any = any || kept[j];
    }
    if (!any) return;
    const Words bits = bits_of_four(settings, first);
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (kept[j]) add_noisy(row, first + j, four.of[j], bits.w[j], best, weights);
  });
  sum = over_warps(weights, 0.0, Plus());
  return over_warps(best, nothing<double>(), Better());
}

// ---- choice

constexpr int kMostPicked = 65'535;  // rows

/// The result of a block over its tokens, without filters.
struct Slice {
  Best<double> best;  // score
  double sum;         // weight relative to the block's own largest logit
  float top;
  int bad;  // as in Seen
};

/// Scores this thread's four tokens from `first` on without filters, and reduces over the block.
__device__ inline void score_slice(const Row& row,
                                   const RowSettings& settings,
                                   bool greedy,
                                   int first,
                                   const Four& four,
                                   Slice& slice) {
  double weights = 0;
  Best<double> best = nothing<double>();
  const Words bits = greedy ? Words{} : bits_of_four(settings, first);
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

/// Combines all slices of a row; every warp does it. Rescales the sums to the largest logit.
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

// grid: (slices of a row, rows).  own [rows, n] for rows with a penalty; with several slices per row:
// slices [rows, slices], done [rows], 0 before and after
__global__ void __launch_bounds__(kPickThreads, 2) pick_rows(const float* logits,
                                                             std::int64_t stride,
                                                             int n,
                                                             const RowSettings* rows,
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
  const RowSettings settings = rows[blockIdx.y];
  const bool greedy = settings.temperature < kGreedyTemperature;
  const bool filtered = !greedy && has_filters(settings, n);
  Seen seen = {nothing<float>(), n};
#pragma unroll
  for (int j = 3; j >= 0; j--)
    if (first + j < n && is_bad(four.of[j])) seen.bad = first + j;
  Row row = {x, n, lie_in_fours(stride, logits), 0, greedy ? 1.0f : settings.temperature};
  if (has_penalty(settings)) {
    own += std::int64_t{blockIdx.y} * n;
    const int begin = static_cast<int>(blockIdx.x) * kSlice;
    penalise(x, settings, history, begin, n - begin < kSlice ? n : begin + kSlice, own);
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
  if (!filtered) score_slice(row, settings, greedy, first, four, all);
  if (gridDim.x > 1) {
    slices += blockIdx.y * gridDim.x;
    if (threadIdx.x == 0) slices[blockIdx.x] = all;
    if (!last_to_come(done + blockIdx.y, gridDim.x)) return;
    if (!filtered && threadIdx.x >= 32) return;  // one warp is enough
    all = joined_slices(slices, static_cast<int>(gridDim.x), row.temperature);
    row.top = all.top;
  }
  Picked picked = {-1, 0, 0, 0, all.bad < n ? all.bad : -1, 0};
  if (all.bad == n && row.top > -kInfinity && row.top < kInfinity) {
    if (filtered) all.best = best_of_kept(row, settings, all.sum);
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

// Writes the k largest keys of the kept tokens to `keys`, in any order. Synchronises the block. @return  their number
__device__ int collect_ranked(
    const Row& row, const RowSettings& settings, std::uint64_t floor, int k, std::uint64_t* keys) {
  const std::uint64_t lowest =
      k < row.n ? cut_at(row, floor, /*by_weight=*/false, static_cast<double>(k)) : floor;
  Ranked& ranked = static_shared<Ranked>();
  __syncthreads();
  if (threadIdx.x == 0) ranked.n = 0;
  __syncthreads();
  for_tokens<2>(row, [&](int id, float logit) {
    const std::uint64_t key = key_of(logit, id);
    if (key < lowest || logit == -kInfinity || !keeps(row, settings, floor, id, logit)) return;
    keys[atomicAdd(&ranked.n, 1u)] = key;
  });
  __syncthreads();
  return static_cast<int>(ranked.n);
}

// grid: one block per row; shared: k keys.  own [rows, n] for rows with a penalty;  tokens [rows, k].
// The rank of a token is the number of larger keys, so the order in which keys were written has no effect. Without `out`
// no probabilities are summed.
__global__ void __launch_bounds__(kPickThreads, 1) rank_rows(const float* logits,
                                                             std::int64_t stride,
                                                             int n,
                                                             const RowSettings* rows,
                                                             const int* history,
                                                             float* own,
                                                             int k,
                                                             Ranking* out,
                                                             RankedToken* tokens) {
  let_next_begin();
  wait_for_earlier();
  RowSettings settings = rows[blockIdx.x];
  const bool first = threadIdx.x == 0, greedy = settings.temperature < kGreedyTemperature;
  Row row = {logits + blockIdx.x * stride, n, lie_in_fours(stride, logits), 0,
             greedy ? 1.0f : settings.temperature};
  const Seen seen = see_row(row, settings, history, own + std::int64_t{blockIdx.x} * n);
  Ranking ranking = {0, seen.bad < n ? seen.bad : -1, 0};
  RankedToken* const own_tokens = tokens + std::int64_t{blockIdx.x} * k;
  if (!is_a_distribution(seen, n)) {
    if (first && out) out[blockIdx.x] = ranking;
    for (int i = threadIdx.x; i < k; i += blockDim.x) own_tokens[i] = {-1, 0};
    return;
  }
  if (greedy) settings.min_p = 0;
  const std::uint64_t floor = greedy ? 0 : lowest_kept(row, settings);
  if (out) {
    double sum = 0;
    for_tokens<2>(row, [&](int id, float logit) {
      if (keeps(row, settings, floor, id, logit)) sum += weight_of(logit, row.top, row.temperature);
    });
    ranking.sum = over_warps(sum, 0.0, Plus());
  }
  auto* keys = reinterpret_cast<std::uint64_t*>(dynamic_shared());
  ranking.n = collect_ranked(row, settings, floor, k, keys);
  for (int i = threadIdx.x; i < ranking.n; i += blockDim.x) {
    int place = 0;
    for (int other = 0; other < ranking.n; other++) place += keys[other] > keys[i];
    const auto id = static_cast<int>(~static_cast<unsigned>(keys[i]));
    own_tokens[place] = {id, row.logits[id]};
  }
  for (int i = ranking.n + static_cast<int>(threadIdx.x); i < k; i += blockDim.x)
    own_tokens[i] = {-1, 0};
  if (first && out) out[blockIdx.x] = ranking;
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
  ensure(n_rows <= kMostPicked, "pick: too many rows for a grid");
  CudaDevice& cuda = cuda_of(device);
  const std::int64_t bytes = n_rows * static_cast<std::int64_t>(sizeof(Picked)),
                     slices_at = in_sixteens(bytes);
  const int n_slices = blocks_for(n_valid, kSlice);
  const std::int64_t slice_bytes =
      n_slices > 1 ? std::int64_t{n_rows} * n_slices * static_cast<std::int64_t>(sizeof(Slice)) : 0;
  const RowsOnDevice uploaded =
      upload_rows(cuda, Use::Pick, rows, n_rows, n_valid, slices_at + slice_bytes);
  auto* done = n_slices > 1
                   ? static_cast<unsigned*>(cuda.scratch(Use::Done, std::int64_t{n_rows} * 4, true))
                   : nullptr;
  cuda.launch_early(
      "pick", pick_rows, dim3(static_cast<unsigned>(n_slices), static_cast<unsigned>(n_rows)),
      pick_threads(n_valid), 0, logits, stride, n_valid, uploaded.rows, uploaded.history,
      uploaded.own, reinterpret_cast<Slice*>(uploaded.results + slices_at), done,
      reinterpret_cast<Picked*>(uploaded.results));
  cuda.request_download(out, uploaded.results, bytes);
  cuda.finish_unless_deferred();
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
  const RowsOnDevice uploaded =
      upload_rows(cuda, Use::Rank, rows, n_rows, n_valid, ranking_bytes + token_bytes);
  cuda.launch_early("rank", rank_rows, n_rows, pick_threads(n_valid),
                    static_cast<std::size_t>(k) * 8, logits, stride, n_valid, uploaded.rows,
                    uploaded.history, uploaded.own, k,
                    out ? reinterpret_cast<Ranking*>(uploaded.results) : nullptr,
                    reinterpret_cast<RankedToken*>(uploaded.results + ranking_bytes));
  if (out) cuda.request_download(out, uploaded.results, ranking_bytes);
  cuda.request_download(tokens, uploaded.results + ranking_bytes, token_bytes);
  cuda.finish_unless_deferred();
}

}  // namespace

void add_pick_ops(Ops& ops) {
  ops.pick = pick;
  ops.rank = rank;
}

}  // namespace kernels::DECOSCOPE_GPU
