#include "engine/train/ops/cpu_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "engine/base/types.h"
#include "engine/train/ops/aligned_vector.h"

namespace engine {
namespace {

using kernels::AttentionRows;
using kernels::AttentionSpan;
using kernels::Device;
using kernels::DType;
using kernels::RowGoal;
using kernels::TrainMatrix;
using kernels::TrainWeights;

constexpr int kRowMultiple = 32;    // rows of a tile of AMX
constexpr int kLogitRows = 64;      // rows whose logits are in memory together
constexpr int kGradientRows = 512;  // rows whose gradients of logits are

template <typename T>
std::unique_ptr<LinearMath<T>> math_for(Compute compute) {
  if constexpr (std::is_same_v<T, float>)
    return linear_math_f32();
  else
    return linear_math_bf16(compute);
}

// ---- Conversion between types

float wide(float x) {
  return x;
}
float wide(Bf16 x) {
  return kernels::f32_from_bf16(x.bits);
}
void narrow(float x, float* y) {
  *y = x;
}
void narrow(float x, Bf16* y) {
  *y = {kernels::bf16_from_f32(x)};
}
template <typename From, typename To>
void copy_row(const From* from, int n, To* to) {
  if constexpr (std::is_same_v<From, To>)
    std::copy_n(from, n, to);
  else
    for (int i = 0; i < n; i++) narrow(wide(from[i]), to + i);
}

/// Calls work(T()) with T = float or Bf16.
template <typename Work>
void with_storage(DType type, const Work& work) {
  ensure(type == DType::F32 || type == DType::BF16, "training must compute in f32 or bf16");
  if (type == DType::F32)
    work(float());
  else
    work(Bf16());
}

// ---- weights

template <typename T>
class Packed final : public PackedWeights {
 public:
  Packed(const float* masters, const std::vector<TrainMatrix>& matrices, Compute compute)
      : math_(math_for<T>(compute)) {
    for (const TrainMatrix& m : matrices) {
      auto made = math_->make(masters + m.at, m.n_out, m.n_in);
      math_->repack(*made);
      order_.push_back(made.get());
      by_place_.emplace(m.at, std::move(made));
    }
  }
  void repack(int i) override { math_->repack(*order_[static_cast<std::size_t>(i)]); }
  int n_matrices() const override { return static_cast<int>(order_.size()); }
  const PackedLinear<T>& of(const TrainMatrix& m) const { return *by_place_.at(m.at); }

 private:
  std::unique_ptr<LinearMath<T>> math_;
  std::vector<PackedLinear<T>*> order_;
  std::unordered_map<std::int64_t, std::unique_ptr<PackedLinear<T>>> by_place_;
};

template <typename T>
const PackedLinear<T>& packed(const TrainWeights& w, const TrainMatrix& m) {
  return static_cast<const Packed<T>*>(static_cast<const PackedWeights*>(w.packed))->of(m);
}

// ---- the device

const kernels::Ops& memory_ops() {
  static const kernels::Ops ops = [] {
    kernels::Ops filled = {};
    filled.name = "cpu training";
    filled.allocate = [](Device&, std::int64_t bytes, const char*) {
      void* memory = allocate_aligned(static_cast<std::size_t>(bytes));
      std::memset(memory, 0, static_cast<std::size_t>(bytes));
      return memory;
    };
    filled.release = [](Device&, void* memory) { free_aligned(memory); };
    filled.upload = filled.download = [](Device&, void* to, const void* from, std::int64_t bytes) {
      if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
    };
    return filled;
  }();
  return ops;
}

template <typename T>
class CpuShard final : public Device {
 public:
  CpuShard(Compute compute, const TrainTable& table)
      : Device(memory_ops()),
        math(math_for<T>(compute)),
        rows(table.ops<T>()),
        parameters(table.parameters) {}
  std::string name() const override { return "cpu"; }

  /// Scratch memory for at least n floats. Invalidates the memory of the last call.
  float* floats(std::int64_t n) { return grown(floats_, n); }
  T* numbers(std::int64_t n) { return grown(numbers_, n); }

  const std::unique_ptr<LinearMath<T>> math;
  const RowOps<T>& rows;
  const ParameterOps& parameters;

 private:
  template <typename N>
  static N* grown(AlignedVector<N>& memory, std::int64_t n) {
    if (std::ssize(memory) < n) memory.resize(static_cast<std::size_t>(n));
    return memory.data();
  }
  AlignedVector<float> floats_;
  AlignedVector<T> numbers_;
};

template <typename T>
CpuShard<T>& shard_of(Device& device) {
  return static_cast<CpuShard<T>&>(device);
}
template <typename T>
const T* in(const void* array) {
  return static_cast<const T*>(array);
}
template <typename T>
T* out(void* array) {
  return static_cast<T*>(array);
}

// ---- Attention

struct SegmentsAndViews {
  explicit SegmentsAndViews(const AttentionSpan* spans, int n_rows)
      : views(static_cast<std::size_t>(n_rows)) {
    for (int row = 0; row < n_rows;) {
      const AttentionSpan& first = spans[row];
      if (first.end == row) {  // it attends to nothing
        row++;
        continue;
      }
      segments.push_back({first.begin, first.end});
      longest = std::max(longest, first.end - first.begin);
      for (; row < first.end; row++)
        views[static_cast<std::size_t>(row)] = {spans[row].prefix_end - first.begin,
                                                spans[row].own_begin - first.begin};
    }
  }
  int n() const { return static_cast<int>(segments.size()); }
  std::vector<Segment> segments;
  std::vector<RowView> views;
  int longest = 0;
};

AttentionShape shape_of(const AttentionRows& rows) {
  return {rows.n_heads, rows.n_kv_heads, rows.head_dim};
}

// ---- losses

Divergence divergence_of(RowGoal::Kind kind) {
  if (kind == RowGoal::Kind::JensenShannon) return Divergence::JensenShannon;
  return kind == RowGoal::Kind::Reverse ? Divergence::Reverse : Divergence::Forward;
}

template <typename T>
float goal_loss(CpuShard<T>& shard,
                const float* logits,
                const float* teachers,
                const RowGoal& goal,
                std::int32_t target,
                float weight,
                T* d_logits,
                int vocab) {
  if (weight == 0 || (goal.kind == RowGoal::Kind::Target && goal.smoothing == 0)) {
    float loss = 0;
    float* copy = shard.floats(vocab);  // a copy, because cross_entropy overwrites its input
    std::copy_n(logits, vocab, copy);
    shard.rows.cross_entropy(copy, &target, &weight, d_logits, &loss, 1, vocab);
    return loss;
  }
  if (goal.kind == RowGoal::Kind::Target)
    return shard.rows.smoothed_cross_entropy(logits, target, goal.smoothing, weight, d_logits,
                                             vocab);
  return shard.rows.divergence(logits, teachers + std::int64_t{goal.teacher} * vocab,
                               divergence_of(goal.kind), weight, d_logits, vocab);
}

template <typename T>
void feature_losses(const float* f,
                    const std::int32_t* row,
                    const Bf16* wanted,
                    const std::int32_t* wanted_row,
                    const T* d_read,
                    int d_stride,
                    float weight,
                    float* dx,
                    float* squares,
                    int n_rows,
                    int dim) {
  for (int r = 0; r < n_rows; r++, d_read += d_stride) {
    const float* from = f + std::int64_t{row[r]} * dim;
    const Bf16* goal = wanted + std::int64_t{wanted_row[r]} * dim;
    float* to = dx + std::int64_t{row[r]} * dim;
    float sum = 0;
    for (int i = 0; i < dim; i++) {
      const float off = from[i] - wide(goal[i]);
      sum += off * off;
      to[i] = 2 * weight * off;
    }
    squares[r] = sum;
    for (int i = 0; i < dim; i++) to[i] += wide(d_read[i]);
  }
}

/// The target's rank from 1: one more than the number of token ids below n_valid that rank before
/// it.
int rank_of(const float* logits, int n_valid, int target) {
  int rank = 1;
  for (int i = 0; i < n_valid; i++)
    rank += logits[i] > logits[target] || (logits[i] == logits[target] && i < target);
  return rank;
}

int likeliest(const float* logits, int vocab) {
  int best = 0;
  for (int i = 0; i < vocab; i++) {
    if (std::isnan(logits[i]) || logits[i] == INFINITY) return -1;
    if (logits[i] > logits[best]) best = i;
  }
  return best;
}

// ---- the table

template <typename T>
void add_products(kernels::TrainOps& ops) {
  ops.forward = [](Device& device, DType, const TrainWeights& w, const TrainMatrix& m,
                   const void* x, int rows, void* y) {
    shard_of<T>(device).math->forward(packed<T>(w, m), in<T>(x), rows, out<T>(y));
  };
  ops.forward_f32 = [](Device& device, DType, const TrainWeights& w, const TrainMatrix& m,
                       const void* x, int rows, float* y, bool add) {
    shard_of<T>(device).math->forward_f32(packed<T>(w, m), in<T>(x), rows, y, add);
  };
  ops.forward_silu = [](Device& device, DType, const TrainWeights& w, const TrainMatrix& m,
                        const void* x, const float* bias, const void* residual, int rows, float* z,
                        void* y) {
    for (int row = 0; bias && row < rows; row++)
      std::copy_n(bias, m.n_out, z + std::int64_t{row} * m.n_out);
    shard_of<T>(device).math->forward_f32(packed<T>(w, m), in<T>(x), rows, z, bias != nullptr);
    shard_of<T>(device).rows.silu(z, in<T>(residual), out<T>(y), std::int64_t{rows} * m.n_out);
  };
  ops.backward_input = [](Device& device, DType, const TrainWeights& w, const TrainMatrix& m,
                          const void* dy, int rows, void* dx) {
    shard_of<T>(device).math->backward_input(packed<T>(w, m), in<T>(dy), rows, out<T>(dx));
  };
  ops.backward_input_f32 = [](Device& device, DType, const TrainWeights& w, const TrainMatrix& m,
                              const void* dy, int rows, float* dx) {
    const std::int64_t n = std::int64_t{rows} * m.n_in;
    T* rounded = shard_of<T>(device).numbers(n);
    shard_of<T>(device).math->backward_input(packed<T>(w, m), in<T>(dy), rows, rounded);
    for (std::int64_t i = 0; i < n; i++) dx[i] = wide(rounded[i]);
  };
  ops.backward_weight = [](Device& device, DType, const TrainWeights& w, const TrainMatrix& m,
                           const void* dy, const void* x, int rows, float* gradient) {
    shard_of<T>(device).math->backward_weight(packed<T>(w, m), in<T>(dy), in<T>(x), rows,
                                              gradient + m.at);
  };
}

template <typename T>
void add_row_ops(kernels::TrainOps& ops) {
  ops.convert = [](Device& device, DType, const float* x, void* y, std::int64_t n) {
    shard_of<T>(device).rows.convert(x, out<T>(y), n);
  };
  ops.rms_norm = [](Device& device, DType, const float* x, const float* w, void* h, float* r,
                    float* x_copy, int n_rows, int dim, float eps) {
    shard_of<T>(device).rows.rms_norm(x, w, out<T>(h), r, x_copy, n_rows, dim, eps);
  };
  ops.rms_norm_backward = [](Device& device, DType, const float* x, const float* w, const float* r,
                             const void* dh, float* dx, float* dw, void* dx_copy, int n_rows,
                             int dim) {
    shard_of<T>(device).rows.rms_norm_backward(x, w, r, in<T>(dh), dx, dw, out<T>(dx_copy), n_rows,
                                               dim);
  };
  ops.rope = [](Device& device, DType, void* x, const std::int32_t* pos, const float* cos_sin,
                int n_rows, int stride, int n_rotated, int head_dim, float direction) {
    shard_of<T>(device).rows.rope(out<T>(x), pos, cos_sin, n_rows, stride, n_rotated, head_dim,
                                  direction);
  };
  ops.swiglu = [](Device& device, DType, const void* gate_up, void* act, int n_rows, int hidden) {
    shard_of<T>(device).rows.swiglu(in<T>(gate_up), out<T>(act), n_rows, hidden);
  };
  ops.swiglu_backward = [](Device& device, DType, const void* gate_up, const void* d_act,
                           void* d_gate_up, void* act, int n_rows, int hidden) {
    shard_of<T>(device).rows.swiglu_backward(in<T>(gate_up), in<T>(d_act), out<T>(d_gate_up),
                                             out<T>(act), n_rows, hidden);
  };
  ops.silu_backward = [](Device& device, DType, const float* z, const void* dy, void* dz,
                         std::int64_t n) {
    shard_of<T>(device).rows.silu_backward(z, in<T>(dy), out<T>(dz), n);
  };
  ops.add = [](Device&, DType, const void* x, void* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i++)
      narrow(wide(out<T>(y)[i]) + wide(in<T>(x)[i]), out<T>(y) + i);
  };
  ops.column_sums = [](Device& device, DType, const void* x, float* sums, int n_rows, int width) {
    shard_of<T>(device).rows.column_sums(in<T>(x), sums, n_rows, width);
  };
}

template <typename T>
void add_attention(kernels::TrainOps& ops) {
  ops.attention = [](Device& device, DType, const AttentionRows& a, const void* qkv,
                     const AttentionSpan* spans, void* attended, float* lse) {
    const SegmentsAndViews seen(spans, a.n_rows);
    std::fill_n(out<T>(attended), std::int64_t{a.n_rows} * a.out_width(), T{});
    CpuShard<T>& shard = shard_of<T>(device);
    shard.rows.attention(in<T>(qkv), seen.segments.data(), seen.n(), seen.views.data(),
                         out<T>(attended), lse, shape_of(a),
                         shard.floats(attention_scratch(shape_of(a), seen.longest)));
  };
  ops.attention_backward = [](Device& device, DType, const AttentionRows& a, const void* qkv,
                              const AttentionSpan* spans, const void* attended,
                              const void* d_attended, const float* lse, void* d_qkv) {
    const SegmentsAndViews seen(spans, a.n_rows);
    std::fill_n(out<T>(d_qkv), std::int64_t{a.n_rows} * a.qkv_width(), T{});
    CpuShard<T>& shard = shard_of<T>(device);
    shard.rows.attention_backward(in<T>(qkv), seen.segments.data(), seen.n(), seen.views.data(),
                                  in<T>(attended), in<T>(d_attended), lse, out<T>(d_qkv),
                                  shape_of(a),
                                  shard.floats(attention_scratch(shape_of(a), seen.longest)));
  };
}

template <typename T>
void add_losses(kernels::TrainOps& ops) {
  ops.cross_entropy = [](Device& device, DType, float* logits, const std::int32_t* target,
                         const float* weight, void* d_logits, float* loss, int n_rows, int vocab) {
    shard_of<T>(device).rows.cross_entropy(logits, target, weight, out<T>(d_logits), loss, n_rows,
                                           vocab);
  };
  ops.goal_losses = [](Device& device, DType, const float* logits, const float* teachers,
                       const RowGoal* goals, const std::int32_t* target, const float* weight,
                       void* d_logits, float* loss, int n_rows, int vocab) {
    for (int row = 0; row < n_rows; row++) {
      const std::int64_t at = std::int64_t{row} * vocab;
      loss[row] = goal_loss(shard_of<T>(device), logits + at, teachers, goals[row], target[row],
                            weight[row], out<T>(d_logits) + at, vocab);
    }
  };
  ops.feature_loss = [](Device&, DType, const float* f, const std::int32_t* row, const void* wanted,
                        const std::int32_t* wanted_row, const void* d_read, int d_stride,
                        float weight, float* dx, float* squares, int n_rows, int dim) {
    feature_losses(f, row, in<Bf16>(wanted), wanted_row, in<T>(d_read), d_stride, weight, dx,
                   squares, n_rows, dim);
  };
  ops.target_ranks = [](Device&, const float* logits, const std::int32_t* target,
                        std::int32_t* rank, int n_rows, int vocab, int n_valid) {
    for (int row = 0; row < n_rows; row++, logits += vocab)
      rank[row] = target[row] < 0 ? 0 : rank_of(logits, n_valid, target[row]);
  };
  ops.argmax = [](Device&, const float* logits, int n_rows, int vocab,
                  std::int32_t* token_to_host) {
    for (int row = 0; row < n_rows; row++, logits += vocab)
      token_to_host[row] = likeliest(logits, vocab);
  };
}

template <typename T>
void add_copies(kernels::TrainOps& ops) {
  ops.clear = [](Device&, void* data, std::int64_t bytes) {
    std::memset(data, 0, static_cast<std::size_t>(bytes));
  };
  ops.gather_rows = [](Device&, const float* table, const std::int32_t* token, float* x, int n_rows,
                       int dim) {
    for (int row = 0; row < n_rows; row++)
      std::copy_n(table + std::int64_t{token[row]} * dim, dim, x + std::int64_t{row} * dim);
  };
  ops.scatter_rows = [](Device& device, const float* dx, const std::int32_t* token,
                        const std::int32_t* row, const std::int32_t* begin, int n_groups,
                        float* table, int dim) {
    for (int at = n_groups ? begin[0] : 0; at < begin[n_groups]; at++)
      shard_of<T>(device).parameters.add(table + std::int64_t{token[row[at]]} * dim,
                                         dx + std::int64_t{row[at]} * dim, dim);
  };
  ops.copy_rows = [](Device&, DType from_type, const void* from, const std::int32_t* from_row,
                     DType to_type, void* to, const std::int32_t* to_row, int to_stride, int n_rows,
                     int dim) {
    with_storage(from_type, [&]<typename From>(From) {
      with_storage(to_type, [&]<typename To>(To) {
        for (int r = 0; r < n_rows; r++) {
          const std::int64_t source = from_row ? from_row[r] : r;
          To* row = out<To>(to) + std::int64_t{to_row ? to_row[r] : r} * to_stride;
          if (source < 0)
            std::fill_n(row, dim, To{});
          else
            copy_row(in<From>(from) + source * dim, dim, row);
        }
      });
    });
  };
}

template <typename T>
const kernels::TrainOps& table_of() {
  static const kernels::TrainOps table = [] {
    kernels::TrainOps ops = {};
    ops.row_multiple = kRowMultiple;
    ops.logit_rows = kLogitRows;
    ops.gradient_rows = kGradientRows;
    add_products<T>(ops);
    add_row_ops<T>(ops);
    add_attention<T>(ops);
    add_losses<T>(ops);
    add_copies<T>(ops);
    return ops;
  }();
  return table;
}

}  // namespace

std::unique_ptr<PackedWeights> pack_weights(const float* masters,
                                            const std::vector<TrainMatrix>& matrices,
                                            Compute compute) {
  if (compute == Compute::F32) return std::make_unique<Packed<float>>(masters, matrices, compute);
  return std::make_unique<Packed<Bf16>>(masters, matrices, compute);
}

std::unique_ptr<Device> open_cpu_shard(Compute compute, const TrainTable& table) {
  if (compute == Compute::F32) return std::make_unique<CpuShard<float>>(compute, table);
  return std::make_unique<CpuShard<Bf16>>(compute, table);
}

const kernels::TrainOps& cpu_train_ops(Compute compute) {
  return compute == Compute::F32 ? table_of<float>() : table_of<Bf16>();
}

}  // namespace engine
