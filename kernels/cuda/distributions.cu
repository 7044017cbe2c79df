// Speculative sampling on the device, in double: candidates are drawn from a draft's distribution and verified with the
// target's, by the rules of engine/decode/verify/draft_rules.h and typical.h. One block per node.
//   distribution  as kernels::filtered_distribution makes it. The order of a sum depends only on the number of valid
//                 tokens, so the bits of a node do not depend on other nodes. It is not the host's order, so the last
//                 bits of a probability may differ from the host's
//   sampling      in order of ids: each warp sums a range of ids, and the ranges are added in order
#include <algorithm>

#include "kernels/checks.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/filters.cuh"
#include "kernels/cuda/math.cuh"
#include "kernels/sampling.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

/// A row's distribution: the probability of a token is its weight divided by the weight of all kept tokens.
struct Distribution {
  Row row;
  RowSettings settings;
  Seen seen;
  std::uint64_t floor;
  double total;
  bool greedy;

  __device__ double weight(int id, float logit) const {
    if (greedy) return id == seen.best.id ? 1 : 0;
    return keeps(row, settings, floor, id, logit) ? weight_of(logit, row.top, row.temperature) : 0;
  }
  __device__ double p(int id) const { return weight(id, row.logits[id]) / total; }
};

/// Prepares the distribution of a row and applies its penalty in `own` [n]; write_distribution() finds the total weight. If
/// there is no distribution, is_a_distribution(seen) is false. Synchronises the block.
__device__ Distribution distribution_of(const float* logits,
                                        int n,
                                        bool in_fours,
                                        const RowSettings& settings,
                                        const int* history,
                                        float* own) {
  Distribution distribution = {
      {logits, n, in_fours, 0, settings.temperature}, settings, {}, 0, 0, false};
  distribution.greedy = settings.temperature < kGreedyTemperature;
  distribution.seen = see_row(distribution.row, settings, history, own);
  if (is_a_distribution(distribution.seen, n) && !distribution.greedy)
    distribution.floor = lowest_kept(distribution.row, settings);
  return distribution;
}

/// Calls take(id) for this thread's tokens of an array.
template <class Take>
__device__ inline void for_own(int n, const Take& take) {
  for (int id = static_cast<int>(threadIdx.x); id < n; id += static_cast<int>(blockDim.x)) take(id);
}

/// p of every token, [n]. Synchronises the block.
__device__ void write_distribution(Distribution& distribution, double* to) {
  double sum = 0;
  for_tokens<2>(distribution.row,
                [&](int id, float logit) { sum += to[id] = distribution.weight(id, logit); });
  distribution.total = over_warps(sum, 0.0, Plus());
  for_own(distribution.row.n, [&](int id) { to[id] /= distribution.total; });
  __syncthreads();
}

/// Sets distribution[v] = of(v), scaled to sum 1. @return  false if the sum is 0. Synchronises the block.
template <class Of>
__device__ bool remake(double* distribution, int n, const Of& of) {
  __syncthreads();  // all threads have read before one writes
  double sum = 0;
  for_own(n, [&](int v) { sum += distribution[v] = of(v); });
  sum = over_warps(sum, 0.0, Plus());
  if (!(sum > 0)) return false;
  for_own(n, [&](int v) { distribution[v] /= sum; });
  __syncthreads();
  return true;
}

/// The sum over all tokens of of(v). Synchronises the block.
template <class Of>
__device__ double sum_over(int n, const Of& of) {
  double sum = 0;
  for_own(n, [&](int v) { sum += of(v); });
  return over_warps(sum, 0.0, Plus());
}

/// Inverse transform sampling: the token at which the cumulative distribution passes u. Tokens of probability 0 are never
/// chosen.
struct Drawing {
  double of_warp[kPickThreads / 32];
  int token;
};
/// @return  -1: all probabilities are 0. Synchronises the block.
__device__ int draw_from(const double* distribution, int n, double u) {
  Drawing& drawing = static_shared<Drawing>();
  const int n_warps = static_cast<int>(blockDim.x) / 32, lane = threadIdx.x % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int stretch = (n + 32 * n_warps - 1) / (32 * n_warps) * 32, begin = warp * stretch;
  const int end = begin + stretch < n ? begin + stretch : n;
  __syncthreads();  // an earlier call's results have been read, and the distribution is written
  double sum = 0;
  for (int v = begin + lane; v < end; v += 32) sum += distribution[v];
  sum = over_warp(sum, Plus());
  if (lane == 0) drawing.of_warp[warp] = sum;
  if (threadIdx.x == 0) drawing.token = -1;
  __syncthreads();
  double all = 0, before = 0;
  for (int w = 0; w < n_warps; w++) all += drawing.of_warp[w];
  const double target = u * all;
  int drawn = -1;  // if, because of rounding, no warp passes u: the last warp with a positive sum
  for (int w = 0; w < n_warps; w++) {
    const double own = drawing.of_warp[w];
    if (own <= 0) continue;
    if (drawn >= 0) before += drawing.of_warp[drawn];
    drawn = w;
    if (target < before + own) break;
  }
  if (warp == drawn) {
    int last = -1, crossing = 0x7fffffff;
    for (int first = begin; first < end && crossing == 0x7fffffff; first += 32) {
      const int v = first + lane;
      const double p = v < end ? distribution[v] : 0;
      double until = p;  // sum of the lanes up to this one
      for (int by = 1; by < 32; by *= 2) {
        const double other = __shfl_up_sync(kAllLanes, until, by);
        if (lane >= by) until += other;
      }
      if (p > 0) last = v;
      crossing = over_warp(p > 0 && target < before + until ? v : 0x7fffffff, Smaller());
      before += __shfl_sync(kAllLanes, until, 31);
    }
    last = over_warp(last, Larger());
    if (lane == 0) drawing.token = crossing < n ? crossing : last;
  }
  __syncthreads();
  return drawing.token;
}

// ---- sampling candidates

/// Writes padding too, because the host copies every byte.
__device__ inline void set_token(DrawnToken& to, int id, double p) {
  memset(static_cast<void*>(&to), 0, sizeof to);
  to.id = id;
  to.p = p;
}

// grid: one block per node.  rows [nodes];  own [nodes, n] for rows with a penalty
__global__ void __launch_bounds__(kPickThreads, 1) draw_nodes(const float* logits,
                                                              std::int64_t stride,
                                                              int n,
                                                              const RowSettings* rows,
                                                              const int* history,
                                                              float* own,
                                                              const DrawNode* nodes,
                                                              const double* uniforms,
                                                              Drawn* out,
                                                              DrawnToken* tokens) {
  let_next_begin();
  wait_for_earlier();
  const DrawNode node = nodes[blockIdx.x];
  const bool first = threadIdx.x == 0;
  Distribution distribution =
      distribution_of(logits + node.row * stride, n, lie_in_fours(stride, logits), rows[blockIdx.x],
                      history, own + std::int64_t{blockIdx.x} * n);
  tokens += node.first;
  Drawn drawn = {0, distribution.seen.bad < n ? distribution.seen.bad : -1, 0};
  if (is_a_distribution(distribution.seen, n)) {
    write_distribution(distribution, node.distribution);
    drawn.largest = distribution.p(distribution.seen.best.id);
    for (; drawn.n < node.n; drawn.n++) {
      const int id = draw_from(node.distribution, n, uniforms[node.first + drawn.n]);
      if (id < 0) break;
      if (first) {
        set_token(tokens[drawn.n], id, node.distribution[id]);
        if (!node.again)
          node.distribution[id] = 0;  // the next draw synchronises the block before it reads
      }
    }
    if (first && !node.again)
      for (int i = 0; i < drawn.n; i++) node.distribution[tokens[i].id] = tokens[i].p;
  }
  if (!first) return;
  for (int i = drawn.n; i < node.n; i++) set_token(tokens[i], -1, 0);
  out[blockIdx.x] = drawn;
}

// ---- verification

/// A node's candidates and its residual distribution.
struct Trial {
  const Distribution& distribution;
  const VerifyNode& node;
  const Candidate* candidates;  // of the node
  VerifiedCandidate* out;       // of the node
  double *residual, *own_q;     // [n]
  int n, n_drawn;

  /// Accepts candidate i if its number is smaller than `chance`.
  __device__ bool keeps(int i, double chance) {
    if (threadIdx.x == 0) out[i].chance = chance;
    return candidates[n_drawn++].uniform < chance;
  }
};
__device__ inline double at_most_one(double x) {
  return x < 1 ? x : 1;
}

__device__ int verify_certain(Trial& trial) {
  for (int i = 0; i < trial.node.n; i++) {
    const int x = trial.candidates[i].token;
    const double p = trial.residual[x];
    if (p <= 0) continue;  // filtered out, or already rejected
    if (trial.keeps(i, at_most_one(p))) return i;
    const auto rest = [&](int v) { return v == x ? 0 : trial.residual[v]; };
    if (!remake(trial.residual, trial.n, rest)) return i;  // the residual is empty: accepts
  }
  return -1;
}

__device__ int verify_drawn(Trial& trial) {
  const double* q = trial.node.q;
  for (int i = 0; i < trial.node.n; i++) {
    const int x = trial.candidates[i].token;
    if (trial.keeps(i, at_most_one(trial.residual[x] / q[x]))) return i;
    const auto residual = [&](int v) {
      const double left = trial.residual[v] - q[v];
      return left > 0 ? left : 0;
    };
    if (!remake(trial.residual, trial.n, residual)) return i;  // p equals q except for rounding
    if (trial.node.rule == AcceptanceRule::With || i + 1 == trial.node.n) continue;
    const auto others = [&](int v) { return v == x ? 0 : q[v]; };
    if (!remake(trial.own_q, trial.n, others)) break;  // no other token can be drawn
    q = trial.own_q;
  }
  return -1;
}

__device__ inline double smaller_part(double p, double q, double rho) {
  return q < p / rho ? q : p / rho;
}
__device__ inline double overlap(const Trial& trial, double rho) {
  return sum_over(trial.n,
                  [&](int v) { return smaller_part(trial.residual[v], trial.node.q[v], rho); });
}
__device__ inline double any_of_k(double beta, int k) {
  return 1 - pow(1 - at_most_one(beta), static_cast<double>(k));
}

/// rho of K-Seq, as engine::k_seq_factor computes it.
__device__ double k_seq_factor(const Trial& trial) {
  const int k = trial.node.n;
  const auto is_valid = [&](double rho) {
    const double beta = overlap(trial, rho);
    return any_of_k(beta, k) <= rho * beta;
  };
  double low = 1, high = k;
  if (k <= 1 || is_valid(low)) return low;
  for (int i = 0; i < 40; i++) {
    const double middle = (low + high) / 2;
    (is_valid(middle) ? high : low) = middle;
  }
  return high;
}

__device__ int verify_k_seq(Trial& trial) {
  const double* q = trial.node.q;
  const double rho = k_seq_factor(trial);
  for (int i = 0; i < trial.node.n; i++) {
    const int x = trial.candidates[i].token;
    if (trial.keeps(i, at_most_one(trial.residual[x] / (rho * q[x])))) return i;
  }
  const double beta = overlap(trial, rho);
  const double share = beta > 0 ? any_of_k(beta, trial.node.n) / beta : 0;
  const auto rest = [&](int v) {
    const double left = trial.residual[v] - share * smaller_part(trial.residual[v], q[v], rho);
    return left > 0 ? left : 0;
  };
  return remake(trial.residual, trial.n, rest) ? -1 : trial.node.n - 1;
}

/// The threshold of typical acceptance.
__device__ double typical_threshold(const Trial& trial) {
  const double entropy = sum_over(trial.n, [&](int v) {
    const double p = trial.residual[v];
    return p > 0 ? -p * log(p) : 0;
  });
  const double by_entropy = trial.node.delta * exp(-entropy);
  return trial.node.epsilon < by_entropy ? trial.node.epsilon : by_entropy;
}

__device__ int verify_by_rule(Trial& trial) {
  const VerifyNode& node = trial.node;
  if (node.n == 0 || node.rule == AcceptanceRule::Naive) return -1;
  if (node.rule == AcceptanceRule::Typical) {
    const double threshold = typical_threshold(trial);
    for_own(node.n, [&](int i) { trial.out[i].chance = trial.out[i].p > threshold ? 1 : 0; });
    return -1;
  }
  if (!node.q) return verify_certain(trial);
  return node.rule == AcceptanceRule::KSeq ? verify_k_seq(trial) : verify_drawn(trial);
}

/// Chooses the token after a row whose candidates were all rejected.
__device__ int choose_from_residual(const Trial& trial) {
  double* left = trial.residual;
  if (trial.node.choice != ResidualChoice::Sample) {
    Best<double> best = nothing<double>();
    for_own(trial.n, [&](int v) { best = Better()(best, one_of(left[v], v)); });
    best = over_warps(best, nothing<double>(), Better());
    if (trial.node.choice == ResidualChoice::Argmax) return best.id;
    const double threshold = typical_threshold(trial);
    if (best.score > threshold)
      for_own(trial.n, [&](int v) { left[v] = left[v] > threshold ? left[v] : 0; });
  }
  return draw_from(left, trial.n, trial.node.uniform);
}

struct Named {
  int id[kMaxRejectionTokens], n;

  __device__ bool has(int token, int among) const {
    for (int i = 0; i < among; i++)
      if (id[i] == token) return true;
    return false;
  }
};
// Chooses the tokens to report: the given ones first, then the most likely ones of either distribution. Synchronises the
// block.
__device__ void fill_rejection_details(const Trial& trial,
                                       int token,
                                       int n_rejection_tokens,
                                       RejectionToken* reported) {
  const double* q = trial.node.q;
  const auto is_first = threadIdx.x == 0;
  Named& named = static_shared<Named>();
  int n = 0;  // each thread has its own copy, because the first thread writes named.n
  const auto name = [&](int id) {
    if (n < n_rejection_tokens && !named.has(id, n)) named.id[n++] = id;
    named.n = n;
  };
  __syncthreads();
  if (is_first) {
    name(token);
    for (int i = 0; i < trial.node.n; i++) name(trial.candidates[i].token);
  }
  __syncthreads();
  n = named.n;
  while (n < n_rejection_tokens) {
    Best<double> best = nothing<double>();
    for_tokens<2>(trial.distribution.row, [&](int id, float logit) {
      const double p = trial.distribution.weight(id, logit) / trial.distribution.total;
      const double weight = q && q[id] > p ? q[id] : p;
      if (weight > 0 && !named.has(id, n)) best = Better()(best, one_of(weight, id));
    });
    best = over_warps(best, nothing<double>(), Better());
    if (!(best.score > 0)) break;
    if (is_first) name(best.id);
    __syncthreads();
    n = named.n;
  }
  for_own(n_rejection_tokens, [&](int i) {
    if (i >= n) {
      reported[i] = {-1, 0, 0, 0};
      return;
    }
    const int id = named.id[i];
    reported[i] = {id, static_cast<float>(trial.distribution.p(id)),
                   q ? static_cast<float>(q[id]) : 0.0f, static_cast<float>(trial.residual[id])};
  });
}

// grid: one block per node.  rows [nodes];  own [nodes, n] for rows with a penalty;  left [nodes, n];
// own_q [nodes, n] if a node may need it
__global__ void __launch_bounds__(kPickThreads, 1) verify_nodes(const float* logits,
                                                                std::int64_t stride,
                                                                int n,
                                                                const RowSettings* rows,
                                                                const int* history,
                                                                float* own,
                                                                const VerifyNode* nodes,
                                                                const Candidate* candidates,
                                                                double* left,
                                                                double* own_q,
                                                                VerifiedNode* out,
                                                                VerifiedCandidate* of_candidates,
                                                                int n_rejection_tokens,
                                                                RejectionToken* rejection_tokens) {
  let_next_begin();
  wait_for_earlier();
  const VerifyNode node = nodes[blockIdx.x];
  const std::int64_t at = std::int64_t{blockIdx.x} * n;
  Distribution distribution =
      distribution_of(logits + node.row * stride, n, lie_in_fours(stride, logits), rows[blockIdx.x],
                      history, own + at);
  Trial trial = {distribution,
                 node,
                 candidates + node.first,
                 of_candidates + node.first,
                 left + at,
                 own_q + at,
                 n,
                 0};
  rejection_tokens += std::int64_t{blockIdx.x} * n_rejection_tokens;
  if (!is_a_distribution(distribution.seen, n)) {
    for_own(node.n, [&](int i) { trial.out[i] = {0, -1}; });
    for_own(n_rejection_tokens, [&](int i) { rejection_tokens[i] = {-1, 0, 0, 0}; });
    if (threadIdx.x == 0) out[blockIdx.x] = {-1, -1, 0};
    return;
  }
  write_distribution(distribution, trial.residual);
  for_own(node.n, [&](int i) { trial.out[i] = {trial.residual[trial.candidates[i].token], -1}; });
  __syncthreads();
  const int kept = verify_by_rule(trial);
  const int token = kept >= 0 ? trial.candidates[kept].token : choose_from_residual(trial);
  if (threadIdx.x == 0) out[blockIdx.x] = {kept, token, distribution.p(token)};
  if (n_rejection_tokens > 0)
    fill_rejection_details(trial, token, n_rejection_tokens, rejection_tokens);
}

// ---- host

template <class T>
constexpr std::int64_t bytes_of_all(std::int64_t n) {
  return n * static_cast<std::int64_t>(sizeof(T));
}

/// Parts of one piece of memory, each at a multiple of 16 bytes.
class Layout {
 public:
  template <class T>
  std::int64_t add(std::int64_t n) {
    const std::int64_t at = bytes_;
    bytes_ += in_sixteens(bytes_of_all<T>(n));
    return at;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

/// Sets a list to 0 if nodes do not write all of it, because the host copies every byte.
template <class Node>
void clear_gaps(
    CudaDevice& cuda, void* list, std::int64_t bytes, int n, const Node* nodes, int n_nodes) {
  int n_written = 0;
  for (int i = 0; i < n_nodes; i++) n_written += nodes[i].n;
  if (n_written < n) cuda.clear(list, bytes);
}

void draw(Device& device,
          const float* logits,
          std::int64_t stride,
          int vocab,
          int n_valid,
          const PickRow* rows,
          const DrawNode* nodes,
          int n_nodes,
          const double* uniforms,
          Drawn* out,
          DrawnToken* tokens) {
  check_draw(stride, vocab, n_valid, nodes, n_nodes);
  if (n_nodes == 0) return;
  int n_draws = 0;
  for (int i = 0; i < n_nodes; i++) n_draws = std::max(n_draws, nodes[i].first + nodes[i].n);
  Layout parts;
  const std::int64_t nodes_at = parts.add<DrawNode>(n_nodes),
                     uniforms_at = parts.add<double>(n_draws), out_at = parts.add<Drawn>(n_nodes),
                     tokens_at = parts.add<DrawnToken>(n_draws);
  CudaDevice& cuda = cuda_of(device);
  const RowsOnDevice uploaded =
      upload_rows(cuda, Use::Distributions, rows, n_nodes, n_valid, parts.bytes());
  char* const memory = uploaded.results;
  cuda.upload(memory + nodes_at, nodes, bytes_of_all<DrawNode>(n_nodes));
  cuda.upload(memory + uniforms_at, uniforms, bytes_of_all<double>(n_draws));
  clear_gaps(cuda, memory + tokens_at, bytes_of_all<DrawnToken>(n_draws), n_draws, nodes, n_nodes);
  cuda.launch_early(
      "draw", draw_nodes, n_nodes, pick_threads(n_valid), 0, logits, stride, n_valid, uploaded.rows,
      uploaded.history, uploaded.own, reinterpret_cast<const DrawNode*>(memory + nodes_at),
      reinterpret_cast<const double*>(memory + uniforms_at),
      reinterpret_cast<Drawn*>(memory + out_at), reinterpret_cast<DrawnToken*>(memory + tokens_at));
  cuda.request_download(out, memory + out_at, bytes_of_all<Drawn>(n_nodes));
  cuda.request_download(tokens, memory + tokens_at, bytes_of_all<DrawnToken>(n_draws));
  cuda.finish_unless_deferred();
}

/// True if the rule changes q from candidate to candidate.
bool alters_q(const VerifyNode& node) {
  return node.rule == AcceptanceRule::Without && node.q && node.n > 1;
}

void verify(Device& device,
            const float* logits,
            std::int64_t stride,
            int vocab,
            int n_valid,
            const PickRow* rows,
            const VerifyNode* nodes,
            int n_nodes,
            const Candidate* candidates,
            int n_candidates,
            VerifiedNode* out,
            VerifiedCandidate* of_candidates,
            int n_rejection_tokens,
            RejectionToken* rejection_tokens) {
  check_verify(stride, vocab, n_valid, nodes, n_nodes, candidates, n_candidates,
               n_rejection_tokens);
  if (n_nodes == 0) return;
  const std::int64_t n_reported = std::int64_t{n_nodes} * n_rejection_tokens,
                     n_in_distributions = std::int64_t{n_nodes} * n_valid;
  const bool alters = std::any_of(nodes, nodes + n_nodes, alters_q);
  Layout parts;
  const std::int64_t nodes_at = parts.add<VerifyNode>(n_nodes),
                     candidates_at = parts.add<Candidate>(n_candidates),
                     out_at = parts.add<VerifiedNode>(n_nodes),
                     of_candidates_at = parts.add<VerifiedCandidate>(n_candidates),
                     reported_at = parts.add<RejectionToken>(n_reported),
                     left_at = parts.add<double>(n_in_distributions),
                     own_q_at = parts.add<double>(alters ? n_in_distributions : 0);
  CudaDevice& cuda = cuda_of(device);
  const RowsOnDevice uploaded =
      upload_rows(cuda, Use::Distributions, rows, n_nodes, n_valid, parts.bytes());
  char* const memory = uploaded.results;
  cuda.upload(memory + nodes_at, nodes, bytes_of_all<VerifyNode>(n_nodes));
  cuda.upload(memory + candidates_at, candidates, bytes_of_all<Candidate>(n_candidates));
  clear_gaps(cuda, memory + of_candidates_at, bytes_of_all<VerifiedCandidate>(n_candidates),
             n_candidates, nodes, n_nodes);
  cuda.launch_early("verify", verify_nodes, n_nodes, pick_threads(n_valid), 0, logits, stride,
                    n_valid, uploaded.rows, uploaded.history, uploaded.own,
                    reinterpret_cast<const VerifyNode*>(memory + nodes_at),
                    reinterpret_cast<const Candidate*>(memory + candidates_at),
                    reinterpret_cast<double*>(memory + left_at),
                    reinterpret_cast<double*>(memory + own_q_at),
                    reinterpret_cast<VerifiedNode*>(memory + out_at),
                    reinterpret_cast<VerifiedCandidate*>(memory + of_candidates_at),
                    n_rejection_tokens, reinterpret_cast<RejectionToken*>(memory + reported_at));
  cuda.request_download(out, memory + out_at, bytes_of_all<VerifiedNode>(n_nodes));
  cuda.request_download(of_candidates, memory + of_candidates_at,
                        bytes_of_all<VerifiedCandidate>(n_candidates));
  cuda.request_download(rejection_tokens, memory + reported_at,
                        bytes_of_all<RejectionToken>(n_reported));
  cuda.finish_unless_deferred();
}

}  // namespace

void add_distribution_ops(Ops& ops) {
  ops.draw = draw;
  ops.verify = verify;
}

}  // namespace kernels::DECOSCOPE_GPU
