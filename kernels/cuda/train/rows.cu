// Training operations on rows and on single elements, and their backwards; norms.cu has the norms.
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/train/parts.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

// ---- RoPE with one thread per pair of a head; activation with one thread per element

template <class S>
__global__ void __launch_bounds__(kTrainThreads) train_rope_pairs(typename S::Element* x,
                                                                  const std::int32_t* pos,
                                                                  const float* cos_sin,
                                                                  std::int64_t n_pairs,
                                                                  int stride,
                                                                  int n_rotated,
                                                                  int head_dim,
                                                                  float direction) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kTrainThreads + threadIdx.x;
  if (at >= n_pairs) return;
  const int half = head_dim / 2, i = static_cast<int>(at % half);
  const std::int64_t head = at / half, row = head / n_rotated;
  auto* low = x + row * stride + head % n_rotated * head_dim + i;
  auto* high = low + half;
  const float* turn = cos_sin + std::int64_t{pos[row]} * head_dim + i;
  const float c = turn[0], s = turn[half] * direction, a = S::widen(*low), b = S::widen(*high);
  *low = S::narrow(a * c - b * s);
  *high = S::narrow(b * c + a * s);
}

template <class S>
void rope_rows(Device& device,
               void* x,
               const std::int32_t* pos,
               const float* cos_sin,
               int n_rows,
               int stride,
               int n_rotated,
               int head_dim,
               float direction) {
  const std::int64_t n = std::int64_t{n_rows} * n_rotated * (head_dim / 2);
  cuda_of(device).launch("train_rope", train_rope_pairs<S>, blocks_for(n, kTrainThreads),
                         kTrainThreads, 0, static_cast<typename S::Element*>(x), pos, cos_sin, n,
                         stride, n_rotated, head_dim, direction);
}

template <class S>
__global__ void __launch_bounds__(kTrainThreads) train_swiglu_elements(
    const typename S::Element* gate_up, typename S::Element* act, std::int64_t n, int hidden) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kTrainThreads + threadIdx.x;
  if (at >= n) return;
  const std::int64_t wide = at / hidden * 2 * hidden + at % hidden;
  const float g = S::widen(gate_up[wide]), u = S::widen(gate_up[wide + hidden]);
  act[at] = S::narrow(g * logistic(g) * u);
}

// silu'(g) = s (1 + g (1 - s)) with s the logistic function of g.
template <class S>
__global__ void __launch_bounds__(kTrainThreads)
    train_swiglu_backward_elements(const typename S::Element* gate_up,
                                   const typename S::Element* d_act,
                                   typename S::Element* d_gate_up,
                                   typename S::Element* act,
                                   std::int64_t n,
                                   int hidden) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kTrainThreads + threadIdx.x;
  if (at >= n) return;
  const std::int64_t wide = at / hidden * 2 * hidden + at % hidden;
  const float g = S::widen(gate_up[wide]), u = S::widen(gate_up[wide + hidden]);
  const float d = S::widen(d_act[at]), s = logistic(g), silu = g * s;
  act[at] = S::narrow(silu * u);
  d_gate_up[wide] = S::narrow(d * u * s * (1.0f + g - silu));
  d_gate_up[wide + hidden] = S::narrow(d * silu);
}

template <class S>
void swiglu_rows(Device& device, const void* gate_up, void* act, int n_rows, int hidden) {
  using Element = typename S::Element;
  const std::int64_t n = std::int64_t{n_rows} * hidden;
  cuda_of(device).launch("train_swiglu", train_swiglu_elements<S>, blocks_for(n, kTrainThreads),
                         kTrainThreads, 0, static_cast<const Element*>(gate_up),
                         static_cast<Element*>(act), n, hidden);
}

template <class S>
void swiglu_backward_rows(Device& device,
                          const void* gate_up,
                          const void* d_act,
                          void* d_gate_up,
                          void* act,
                          int n_rows,
                          int hidden) {
  using Element = typename S::Element;
  const std::int64_t n = std::int64_t{n_rows} * hidden;
  cuda_of(device).launch("train_swiglu_backward", train_swiglu_backward_elements<S>,
                         blocks_for(n, kTrainThreads), kTrainThreads, 0,
                         static_cast<const Element*>(gate_up), static_cast<const Element*>(d_act),
                         static_cast<Element*>(d_gate_up), static_cast<Element*>(act), n, hidden);
}

// ---- loss. grid: one block per row

/// A row's distribution: p_i = exp(z_i - top) / sum.
struct RowSoftmax {
  float top, sum;
};
/// Synchronises the block.
__device__ inline RowSoftmax softmax_of(const float* z, int vocab) {
  RowSoftmax softmax = {-kInfinity, 0};
  for (int i = threadIdx.x; i < vocab; i += kTrainThreads)
    softmax.top = z[i] > softmax.top ? z[i] : softmax.top;
  softmax.top = over_block<kTrainThreads>(softmax.top, Larger());
  for (int i = threadIdx.x; i < vocab; i += kTrainThreads)
    softmax.sum += exp_f32(z[i] - softmax.top);
  softmax.sum = over_block<kTrainThreads>(softmax.sum, Plus());
  return softmax;
}

/// The loss of the block's row and its gradient; both are 0 if the weight is 0.
/// @param loss_of  (logits [vocab], weight, d_logits [vocab]): returns the loss, at least in thread 0
template <class S, class LossOf>
__device__ void loss_of_row(const float* logits,
                            const float* weight,
                            typename S::Element* d_logits,
                            float* loss,
                            int vocab,
                            LossOf loss_of) {
  auto* d = d_logits + std::int64_t{blockIdx.x} * vocab;
  const float own = weight[blockIdx.x];
  float found = 0;
  if (own != 0) {
    found = loss_of(logits + std::int64_t{blockIdx.x} * vocab, own, d);
  } else {
    for (int i = threadIdx.x; i < vocab; i += kTrainThreads) d[i] = S::narrow(0);
  }
  if (threadIdx.x == 0) loss[blockIdx.x] = found;
}

/// -log of the target's probability.
template <class S>
__device__ float target_row(
    const float* z, int vocab, int right, float own, typename S::Element* d) {
  const RowSoftmax softmax = softmax_of(z, vocab);
  const float scale = own / softmax.sum;
  for (int i = threadIdx.x; i < vocab; i += kTrainThreads) {
    const float p = exp_f32(z[i] - softmax.top) * scale;
    d[i] = S::narrow(i == right ? p - own : p);
  }
  return logf(softmax.sum) - (z[right] - softmax.top);
}

template <class S>
__global__ void __launch_bounds__(kTrainThreads) train_loss_rows(const float* logits,
                                                                 const std::int32_t* target,
                                                                 const float* weight,
                                                                 typename S::Element* d_logits,
                                                                 float* loss,
                                                                 int vocab) {
  loss_of_row<S>(logits, weight, d_logits, loss, vocab, [=](auto* z, float own, auto* d) {
    return target_row<S>(z, vocab, target[blockIdx.x], own, d);
  });
}

// A smoothed label: 1 - smoothing on the target, smoothing spread over all tokens. @return  the loss
template <class S>
__device__ float smoothed_row(
    const float* z, int vocab, int right, float smoothing, float weight, typename S::Element* d) {
  const RowSoftmax softmax = softmax_of(z, vocab);
  const float log_sum = logf(softmax.sum), spread = smoothing / static_cast<float>(vocab);
  const float label = 1.0f - smoothing;
  float sum = 0;
  for (int i = threadIdx.x; i < vocab; i += kTrainThreads) {
    const float log_p = z[i] - softmax.top - log_sum, p = exp_f32(log_p);
    sum += log_p;
    d[i] = S::narrow((i == right ? p - spread - label : p - spread) * weight);
  }
  sum = over_block<kTrainThreads>(sum, Plus());
  return 0 - label * (z[right] - softmax.top - log_sum) - spread * sum;
}

// dD/dz = q - p for D = KL(p || q), and q (g - sum of q g) for the others, where g = log(q / p) for KL(q || p) and
// log(q / m) / 2 with m = (p + q) / 2 for the Jensen-Shannon divergence.
// @return  D
template <class S>
__device__ float divergence_row(const float* z,
                                const float* teacher,
                                int vocab,
                                RowGoal::Kind by,
                                float weight,
                                typename S::Element* d) {
  const RowSoftmax own = softmax_of(z, vocab), other = softmax_of(teacher, vocab);
  const float own_log = logf(own.sum), other_log = logf(other.sum);
  const bool is_mixed = by == RowGoal::Kind::JensenShannon;
  const auto g_of = [is_mixed](float log_q, float log_p) {
    return is_mixed ? -0.5f * logf(0.5f + 0.5f * exp_f32(log_p - log_q)) : log_q - log_p;
  };
  float sum = 0, mean = 0;
  for (int i = threadIdx.x; i < vocab; i += kTrainThreads) {
    const float log_q = z[i] - own.top - own_log, log_p = teacher[i] - other.top - other_log;
    const float q = exp_f32(log_q), p = exp_f32(log_p);
    if (by == RowGoal::Kind::Forward) {
      sum += p * (log_p - log_q);
      d[i] = S::narrow((q - p) * weight);
      continue;
    }
    const float g = g_of(log_q, log_p);
    mean += q * g;
    if (is_mixed) sum += p * (g + 0.5f * (log_p - log_q));
  }
  const float of_p = over_block<kTrainThreads>(sum, Plus());
  if (by == RowGoal::Kind::Forward) return of_p;
  const float of_q = over_block<kTrainThreads>(mean, Plus());
  for (int i = threadIdx.x; i < vocab; i += kTrainThreads) {
    const float log_q = z[i] - own.top - own_log, log_p = teacher[i] - other.top - other_log;
    d[i] = S::narrow(exp_f32(log_q) * (g_of(log_q, log_p) - of_q) * weight);
  }
  return of_q + of_p;
}

template <class S>
__global__ void __launch_bounds__(kTrainThreads) train_goal_rows(const float* logits,
                                                                 const float* teachers,
                                                                 const RowGoal* goals,
                                                                 const std::int32_t* target,
                                                                 const float* weight,
                                                                 typename S::Element* d_logits,
                                                                 float* loss,
                                                                 int vocab) {
  loss_of_row<S>(logits, weight, d_logits, loss, vocab, [=](auto* z, float own, auto* d) {
    const RowGoal goal = goals[blockIdx.x];
    if (goal.kind == RowGoal::Kind::Target)
      return smoothed_row<S>(z, vocab, target[blockIdx.x], goal.smoothing, own, d);
    return divergence_row<S>(z, teachers + std::int64_t{goal.teacher} * vocab, vocab,
                             goal.kind, own, d);
  });
}

template <class S>
void loss_rows(Device& device,
               const float* logits,
               const std::int32_t* target,
               const float* weight,
               void* d_logits,
               float* loss,
               int n_rows,
               int vocab) {
  cuda_of(device).launch("train_loss", train_loss_rows<S>, n_rows, kTrainThreads, 0, logits, target,
                         weight, static_cast<typename S::Element*>(d_logits), loss, vocab);
}

template <class S>
void goal_rows(Device& device,
               const float* logits,
               const float* teachers,
               const RowGoal* goals,
               const std::int32_t* target,
               const float* weight,
               void* d_logits,
               float* loss,
               int n_rows,
               int vocab) {
  cuda_of(device).launch("train_goals", train_goal_rows<S>, n_rows, kTrainThreads, 0, logits,
                         teachers, goals, target, weight,
                         static_cast<typename S::Element*>(d_logits), loss, vocab);
}

// ---- the table of embeddings

__global__ void __launch_bounds__(kTrainThreads)
    train_gather_rows(const float* table, const std::int32_t* token, float* x, int dim) {
  const float* from = table + std::int64_t{token[blockIdx.x]} * dim;
  float* to = x + std::int64_t{blockIdx.x} * dim;
  for (int i = threadIdx.x; i < dim; i += kTrainThreads) to[i] = from[i];
}

// grid: a block for each group of rows of one token; a thread adds its columns in the order of rows
__global__ void __launch_bounds__(kTrainThreads) train_scatter_rows(const float* dx,
                                                                    const std::int32_t* token,
                                                                    const std::int32_t* row,
                                                                    const std::int32_t* begin,
                                                                    float* table,
                                                                    int dim) {
  const int first = begin[blockIdx.x], last = begin[blockIdx.x + 1];
  float* to = table + std::int64_t{token[row[first]]} * dim;
  for (int i = threadIdx.x; i < dim; i += kTrainThreads) {
    float sum = to[i];
    for (int at = first; at < last; at++) sum += dx[std::int64_t{row[at]} * dim + i];
    to[i] = sum;
  }
}

// ---- parameters

template <class S>
__global__ void __launch_bounds__(kTrainThreads)
    train_convert_elements(const float* x, typename S::Element* y, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kTrainThreads + threadIdx.x;
  if (i < n) y[i] = S::narrow(x[i]);
}

__global__ void __launch_bounds__(kTrainThreads)
    train_square_blocks(const float* g, std::int64_t n, double* sums) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * kSquaresBlock;
  const std::int64_t end = begin + kSquaresBlock < n ? begin + kSquaresBlock : n;
  double sum = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kTrainThreads)
    sum += static_cast<double>(g[i]) * g[i];
  sum = over_block<kTrainThreads>(sum, Plus());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

template <class S>
__global__ void __launch_bounds__(kTrainThreads) train_adamw_elements(float* w,
                                                                      float* mean,
                                                                      float* square,
                                                                      float* g,
                                                                      typename S::Element* rounded,
                                                                      std::int64_t n,
                                                                      const AdamStep* step) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kTrainThreads + threadIdx.x;
  if (i >= n) return;
  const AdamStep s = *step;
  const float gradient = g[i] * s.gradient_scale;
  const float m = mean[i] * s.beta1 + gradient * (1.0f - s.beta1);
  const float v = square[i] * s.beta2 + gradient * gradient * (1.0f - s.beta2);
  const float move = m * s.correction1 / (sqrtf(v * s.correction2) + s.eps);
  const float weight = w[i] - s.lr * (move + s.weight_decay * w[i]);
  w[i] = weight;
  mean[i] = m;
  square[i] = v;
  g[i] = 0;
  if (rounded) rounded[i] = S::narrow(weight);
}

template <class S>
void adamw_run(Device& device,
               float* w,
               float* mean,
               float* square,
               float* g,
               void* rounded,
               std::int64_t n,
               const AdamStep* step) {
  cuda_of(device).launch("train_adamw", train_adamw_elements<S>, blocks_for(n, kTrainThreads),
                         kTrainThreads, 0, w, mean, square, g,
                         static_cast<typename S::Element*>(rounded), n, step);
}

void add_train_loss_kernels(TrainKernels& kernels) {
  kernels.cross_entropy = [](Device& device, DType type, float* logits, const std::int32_t* target,
                             const float* weight, void* d_logits, float* loss, int n_rows,
                             int vocab) {
    if (n_rows == 0) return;
    for_train_type(type, [&]<class S>(S) {
      loss_rows<S>(device, logits, target, weight, d_logits, loss, n_rows, vocab);
    });
  };
  kernels.goal_losses = [](Device& device, DType type, const float* logits, const float* teachers,
                           const RowGoal* goals, const std::int32_t* target, const float* weight,
                           void* d_logits, float* loss, int n_rows, int vocab) {
    if (n_rows == 0) return;
    for_train_type(type, [&]<class S>(S) {
      goal_rows<S>(device, logits, teachers, goals, target, weight, d_logits, loss, n_rows, vocab);
    });
  };
  kernels.squares = [](Device& device, const float* g, std::int64_t n, double* sums) {
    if (n == 0) return;
    cuda_of(device).launch("train_squares", train_square_blocks,
                           blocks_for(n, static_cast<int>(kSquaresBlock)), kTrainThreads, 0, g, n,
                           sums);
  };
  kernels.adamw = [](Device& device, float* w, float* mean, float* square, float* g, DType type,
                     void* rounded, std::int64_t n, const AdamStep* step) {
    if (n == 0) return;
    for_train_type(type,
                   [&]<class S>(S) { adamw_run<S>(device, w, mean, square, g, rounded, n, step); });
  };
}

}  // namespace

void add_train_row_kernels(TrainKernels& kernels) {
  kernels.clear = [](Device& device, void* data, std::int64_t bytes) {
    cuda_of(device).clear(data, bytes);
  };
  kernels.convert = [](Device& device, DType type, const float* x, void* y, std::int64_t n) {
    if (n == 0) return;
    for_train_type(type, [&]<class S>(S) {
      cuda_of(device).launch("train_convert", train_convert_elements<S>,
                             blocks_for(n, kTrainThreads), kTrainThreads, 0, x,
                             static_cast<typename S::Element*>(y), n);
    });
  };
  kernels.gather_rows = [](Device& device, const float* table, const std::int32_t* token, float* x,
                           int n_rows, int dim) {
    if (n_rows == 0) return;
    cuda_of(device).launch("train_gather", train_gather_rows, n_rows, kTrainThreads, 0, table,
                           token, x, dim);
  };
  kernels.scatter_rows = [](Device& device, const float* dx, const std::int32_t* token,
                            const std::int32_t* row, const std::int32_t* begin, int n_groups,
                            float* table, int dim) {
    if (n_groups == 0) return;
    cuda_of(device).launch("train_scatter", train_scatter_rows, n_groups, kTrainThreads, 0, dx,
                           token, row, begin, table, dim);
  };
  kernels.rope = [](Device& device, DType type, void* x, const std::int32_t* pos,
                    const float* cos_sin, int n_rows, int stride, int n_rotated, int head_dim,
                    float direction) {
    ensure(head_dim % 2 == 0 && n_rotated * head_dim <= stride,
           "rope: the heads do not fit into the row");
    if (n_rows == 0) return;
    for_train_type(type, [&]<class S>(S) {
      rope_rows<S>(device, x, pos, cos_sin, n_rows, stride, n_rotated, head_dim, direction);
    });
  };
  kernels.swiglu = [](Device& device, DType type, const void* gate_up, void* act, int n_rows,
                      int hidden) {
    if (n_rows == 0) return;
    for_train_type(type, [&]<class S>(S) { swiglu_rows<S>(device, gate_up, act, n_rows, hidden); });
  };
  kernels.swiglu_backward = [](Device& device, DType type, const void* gate_up, const void* d_act,
                               void* d_gate_up, void* act, int n_rows, int hidden) {
    if (n_rows == 0) return;
    for_train_type(type, [&]<class S>(S) {
      swiglu_backward_rows<S>(device, gate_up, d_act, d_gate_up, act, n_rows, hidden);
    });
  };
  add_train_loss_kernels(kernels);
}

}  // namespace kernels::DECOSCOPE_GPU
