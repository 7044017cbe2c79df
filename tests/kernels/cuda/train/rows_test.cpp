// Training operations on rows and elements, their backwards and the products, on CUDA devices,
// against double loops, at odd sizes.
#include <algorithm>
#include <cmath>

#include "tests/kernels/cuda/train/kit.h"

namespace kernels::test {
namespace {

class CudaTraining : public ::testing::TestWithParam<TrainCase> {
 protected:
  DType type() const { return GetParam().type; }
};
INSTANTIATE_TEST_SUITE_P(Types,
                         CudaTraining,
                         ::testing::ValuesIn(train_cases()),
                         name_of_train_case);

TEST_P(CudaTraining, rms_norm_and_backward_equal_double_loops) {
  const OpenedCuda device(GetParam().device);
  const TrainKernels& kernels = train_kernels(*device);
  const double eps = 1e-5f;
  for (const auto& [n_rows, dim] : {std::pair{1, 5}, std::pair{150, 33}, std::pair{3, 300}}) {
    const auto x = normal_values(n_rows * dim, 1), w = normal_values(dim, 2);
    const auto dh = kept_values(n_rows * dim, 3, type());
    const auto dx_before = normal_values(n_rows * dim, 4), dw_before = normal_values(dim, 5);
    const DeviceFloats in(*device, x), weights(*device, w), r(*device, std::vector<float>(n_rows)),
        copy(*device, std::vector<float>(x.size())), dx(*device, dx_before), dw(*device, dw_before);
    const TypedArray h(*device, type(), std::vector<float>(x.size())), d(*device, type(), dh),
        dx_copy(*device, type(), std::vector<float>(x.size()));
    kernels.rms_norm(*device, type(), in.data(), weights.data(), h.data(), r.data(), copy.data(),
                     n_rows, dim, 1e-5f);
    kernels.rms_norm_backward(*device, type(), in.data(), weights.data(), r.data(), d.data(),
                              dx.data(), dw.data(), dx_copy.data(), n_rows, dim);
    EXPECT_EQ(copy.read(), x);
    const auto normed = h.read(), d_in = dx.read(), d_copy = dx_copy.read(), d_w = dw.read(),
               scales = r.read();
    std::vector<double> exact_dw(dw_before.begin(), dw_before.end());
    for (int row = 0; row < n_rows; row++) {
      double squares = 0, dot = 0;
      const auto at = [&](int i) { return std::size_t(row) * dim + i; };
      for (int i = 0; i < dim; i++) {
        squares += double(x[at(i)]) * x[at(i)];
        dot += double(dh[at(i)]) * x[at(i)] * w[i];
      }
      const double scale = 1 / std::sqrt(squares / dim + eps);
      ASSERT_NEAR(scales[row], scale, 1e-6 * scale);
      for (int i = 0; i < dim; i++) {
        const double exact = x[at(i)] * scale * w[i];
        ASSERT_NEAR(normed[at(i)], exact, 3e-6 * std::fabs(exact) + rounding(exact, type()));
        const double d_exact = dx_before[at(i)] + scale * w[i] * dh[at(i)] -
                               x[at(i)] * scale * scale * scale * dot / dim;
        ASSERT_NEAR(d_in[at(i)], d_exact, 1e-5 * (1 + std::fabs(d_exact)));
        ASSERT_EQ(d_copy[at(i)], stored(d_in[at(i)], type()));
        exact_dw[i] += double(dh[at(i)]) * x[at(i)] * scale;
      }
    }
    for (int i = 0; i < dim; i++) ASSERT_NEAR(d_w[i], exact_dw[i], 1e-5 * n_rows) << i;
  }
}

TEST_P(CudaTraining, rope_rotates_the_first_heads_and_back) {
  const OpenedCuda device(GetParam().device);
  const TrainKernels& kernels = train_kernels(*device);
  for (const int head_dim : {2, 6, 80}) {
    const int n_rows = 9, stride = 3 * head_dim + 5, half = head_dim / 2;
    const auto turns = normal_values(11 * head_dim, 6);
    const auto before = kept_values(n_rows * stride, 7, type());
    std::vector<std::int32_t> pos(n_rows);
    for (int row = 0; row < n_rows; row++) pos[row] = row * 7 % 11;
    const DeviceList<std::int32_t> there(*device, pos);
    const DeviceFloats table(*device, turns);
    for (const float direction : {1.0f, -1.0f}) {
      const TypedArray x(*device, type(), before);
      kernels.rope(*device, type(), x.data(), there.data(), table.data(), n_rows, stride, 2,
                   head_dim, direction);
      const auto after = x.read();
      for (int at = 0; at < int(after.size()); at++) {
        const int row = at / stride, i = at % stride, d = i % head_dim;
        if (i >= 2 * head_dim) {
          ASSERT_EQ(after[at], before[at]) << "not rotated";
          continue;
        }
        const double c = turns[pos[row] * head_dim + d % half];
        const double s = direction * turns[pos[row] * head_dim + half + d % half];
        const double low = before[at - d + d % half], high = before[at - d + d % half + half];
        const double exact = d < half ? low * c - high * s : high * c + low * s;
        ASSERT_NEAR(after[at], exact, 1e-6 * (1 + std::fabs(exact)) + rounding(exact, type()));
      }
    }
  }
}

TEST_P(CudaTraining, swiglu_and_backward_equal_double_loops) {
  const OpenedCuda device(GetParam().device);
  const TrainKernels& kernels = train_kernels(*device);
  for (const auto& [n_rows, hidden] : {std::pair{1, 1}, std::pair{3, 37}, std::pair{2, 300}}) {
    auto gate_up = kept_values(n_rows * 2 * hidden, 8, type(), 4);
    gate_up[0] = 200;
    if (hidden > 1) gate_up[1] = -200;
    const auto d_act = kept_values(n_rows * hidden, 9, type());
    const TypedArray in(*device, type(), gate_up), d(*device, type(), d_act),
        act(*device, type(), d_act), again(*device, type(), d_act), d_in(*device, type(), gate_up);
    kernels.swiglu(*device, type(), in.data(), act.data(), n_rows, hidden);
    kernels.swiglu_backward(*device, type(), in.data(), d.data(), d_in.data(), again.data(), n_rows,
                            hidden);
    EXPECT_EQ(act.read(), again.read());
    const auto found = act.read(), d_found = d_in.read();
    for (int at = 0; at < n_rows * hidden; at++) {
      const int wide = at / hidden * 2 * hidden + at % hidden;
      const double g = gate_up[wide], u = gate_up[wide + hidden], s = 1 / (1 + std::exp(-g));
      const auto near = [&](float value, double exact) {
        EXPECT_NEAR(value, exact, 3e-6 * std::fabs(exact) + 1e-30 + rounding(exact, type())) << g;
      };
      near(found[at], g * s * u);
      // 1 + g (1 - s) cancels nothing larger than 1 + |g|.
      const double d_gate = d_act[at] * u * s * (1 + g * (1 - s));
      EXPECT_NEAR(d_found[wide], d_gate,
                  3e-6 * std::fabs(d_act[at] * u * s * (1 + std::fabs(g))) + 1e-30 +
                      rounding(d_gate, type()));
      near(d_found[wide + hidden], d_act[at] * g * s);
    }
  }
}

TEST_P(CudaTraining, cross_entropy_and_gradient_equal_double_loops) {
  const OpenedCuda device(GetParam().device);
  const TrainKernels& kernels = train_kernels(*device);
  for (const int vocab : {1, 47, 300}) {
    const int n_rows = 4;
    auto logits = normal_values(n_rows * vocab, 10, 5);
    if (vocab > 1) logits[1] = 90;
    const std::vector<std::int32_t> target = {0, vocab - 1, vocab / 2, 0};
    const std::vector<float> weight = {1, 0.1f, 0, 0.5f};
    const DeviceFloats in(*device, logits), weights(*device, weight),
        loss(*device, std::vector<float>(n_rows, -1));
    const DeviceList<std::int32_t> targets(*device, target);
    const TypedArray d(*device, type(), std::vector<float>(logits.size(), -1));
    kernels.cross_entropy(*device, type(), in.data(), targets.data(), weights.data(), d.data(),
                          loss.data(), n_rows, vocab);
    const auto losses = loss.read(), found = d.read();
    for (int row = 0; row < n_rows; row++) {
      const float* z = &logits[std::size_t(row) * vocab];
      const double top = *std::max_element(z, z + vocab);
      double sum = 0;
      for (int i = 0; i < vocab; i++) sum += std::exp(z[i] - top);
      const double exact = weight[row] == 0 ? 0 : std::log(sum) - (z[target[row]] - top);
      ASSERT_NEAR(losses[row], exact, 1e-5 * (1 + exact));
      for (int i = 0; i < vocab; i++) {
        const double p = std::exp(z[i] - top) / sum;
        const double gradient = weight[row] * (p - (i == target[row]));
        ASSERT_NEAR(found[std::size_t(row) * vocab + i], gradient,
                    1e-6 * weight[row] + rounding(gradient, type()));
      }
    }
  }
}

/// log of softmax(z), in double.
std::vector<double> log_distribution(const float* z, int n) {
  const double top = *std::max_element(z, z + n);
  double sum = 0;
  for (int i = 0; i < n; i++) sum += std::exp(z[i] - top);
  std::vector<double> distribution(z, z + n);
  for (double& x : distribution) x -= top + std::log(sum);
  return distribution;
}

/// A row's loss and its derivative, and the magnitude of their terms, which bounds the rounding.
struct GoalLoss {
  double loss = 0, size = 0;
  std::vector<double> d, d_size;
};
GoalLoss smoothed_loss(const std::vector<double>& log_q, int target, double smoothing) {
  GoalLoss exact;
  const auto n = static_cast<int>(log_q.size());
  for (int i = 0; i < n; i++) {
    const double label = smoothing / n + (i == target ? 1 - smoothing : 0);
    exact.loss -= label * log_q[i];
    exact.size += label * std::fabs(log_q[i]);
    exact.d.push_back(std::exp(log_q[i]) - label);
    exact.d_size.push_back(1);
  }
  return exact;
}
GoalLoss divergence_loss(const std::vector<double>& log_q,
                         const std::vector<double>& log_p,
                         RowGoal::Kind by) {
  const bool forward = by == RowGoal::Kind::Forward, mixed = by == RowGoal::Kind::JensenShannon;
  GoalLoss exact;
  std::vector<double> g;  // the gradient is q (g - sum of q g)
  double of_q = 0;
  for (std::size_t i = 0; i < log_q.size(); i++) {
    const double p = std::exp(log_p[i]), q = std::exp(log_q[i]);
    const double log_m = std::log(0.5 * (p + q));
    if (forward) exact.loss += p * (log_p[i] - log_q[i]);
    g.push_back(mixed ? 0.5 * (log_q[i] - log_m) : log_q[i] - log_p[i]);
    if (mixed) exact.loss += 0.5 * p * (log_p[i] - log_m);
    if (!forward) exact.loss += q * g.back();
    of_q += q * g.back();
    exact.size += (forward ? p : mixed ? p + q : q) * (std::fabs(log_q[i]) + std::fabs(log_p[i]));
  }
  for (std::size_t i = 0; i < log_q.size(); i++) {
    const double q = std::exp(log_q[i]);
    exact.d.push_back(forward ? q - std::exp(log_p[i]) : q * (g[i] - of_q));
    exact.d_size.push_back(
        forward ? 1 : 1 + q * (std::fabs(log_q[i]) + std::fabs(log_p[i]) + exact.size));
  }
  return exact;
}

TEST_P(CudaTraining, label_and_teacher_losses_equal_double_loops) {
  using Kind = RowGoal::Kind;
  const OpenedCuda device(GetParam().device);
  const TrainKernels& kernels = train_kernels(*device);
  for (const int vocab : {1, 47, 300}) {
    auto logits = normal_values(9 * vocab, 50, 5);
    if (vocab > 1) logits[1] = logits[3 * vocab] = 60;
    const auto others = normal_values(2 * vocab, 51, 5);
    const std::vector<RowGoal> goals = {{},
                                        {Kind::Target, 0.25f, 0},
                                        {Kind::Forward, 0, 1},
                                        {Kind::Reverse, 0, 0},
                                        {Kind::Reverse, 0, 1},
                                        {Kind::Forward, 0, 0},
                                        {Kind::Forward, 0, 1},
                                        {Kind::JensenShannon, 0, 0},
                                        {Kind::JensenShannon, 0, 1}};
    const int n_rows = int(goals.size());
    const std::vector<std::int32_t> target = {0, vocab - 1, 0, 0, 0, 0, 0, 0, 0};
    const std::vector<float> weight = {1, 0.1f, 0.5f, 2, 0.1f, 1, 0, 0.5f, 2};
    const DeviceFloats in(*device, logits), beside(*device, others), weights(*device, weight);
    const DeviceList<std::int32_t> targets(*device, target);
    const DeviceList<RowGoal> there(*device, goals);
    // The teacher rows are those of another forward, or rows of the same forward.
    for (const bool themselves : {false, true}) {
      const DeviceFloats loss(*device, std::vector<float>(n_rows, -1));
      const TypedArray d(*device, type(), std::vector<float>(logits.size(), -1));
      kernels.goal_losses(*device, type(), in.data(), themselves ? in.data() : beside.data(),
                          there.data(), targets.data(), weights.data(), d.data(), loss.data(),
                          n_rows, vocab);
      const auto losses = loss.read(), found = d.read();
      for (int row = 0; row < n_rows; row++) {
        const RowGoal& goal = goals[row];
        const float* teacher = (themselves ? logits : others).data() + goal.teacher * vocab;
        const auto log_q = log_distribution(&logits[std::size_t(row) * vocab], vocab);
        const GoalLoss exact =
            goal.kind == Kind::Target
                ? smoothed_loss(log_q, target[row], goal.smoothing)
                : divergence_loss(log_q, log_distribution(teacher, vocab), goal.kind);
        SCOPED_TRACE("row " + std::to_string(row) + " of " + std::to_string(vocab));
        ASSERT_NEAR(losses[row], weight[row] == 0 ? 0 : exact.loss, 1e-6 * (1 + exact.size));
        for (int i = 0; i < vocab; i++) {
          const double gradient = weight[row] * exact.d[i];
          ASSERT_NEAR(found[std::size_t(row) * vocab + i], gradient,
                      1e-6 * weight[row] * exact.d_size[i] + rounding(gradient, type()));
        }
      }
    }
  }
}

TEST_P(CudaTraining, conversion_rounds_to_nearest) {
  const OpenedCuda device(GetParam().device);
  const auto x = normal_values(700, 11);
  const DeviceFloats in(*device, x);
  const TypedArray out(*device, type(), x);
  train_kernels(*device).convert(*device, type(), in.data(), out.data(), 700);
  const auto y = out.read();
  for (std::size_t i = 0; i < x.size(); i++) ASSERT_EQ(y[i], stored(x[i], type()));
}

// Updates weights with large, tiny and zero gradients, in two steps, because the moments matter
// from the second step on.
TEST_P(CudaTraining, adamw_follows_its_formula_and_rounds_weights) {
  const OpenedCuda device(GetParam().device);
  const int n = 300;
  auto w = normal_values(n, 12);
  std::vector<float> mean(n), square(n);
  const DeviceFloats w_there(*device, w), m_there(*device, mean), s_there(*device, square),
      g_there(*device, std::vector<float>(n));
  const TypedArray rounded(*device, type(), std::vector<float>(n));
  std::vector<double> exact(w.begin(), w.end()), m(n), v(n);
  for (int step = 1; step <= 2; step++) {
    auto g = normal_values(n, std::uint32_t(20 + step));
    g[0] = 0;
    g[1] = 1e-20f;
    g[2] = 1e6f;
    device->ops().upload(*device, g_there.data(), g.data(), 4 * n);
    AdamStep s;
    s.lr = 0.01f;
    s.weight_decay = 0.5f;
    s.gradient_scale = 0.25f;
    s.correction1 = float(1 / (1 - std::pow(0.9, step)));
    s.correction2 = float(1 / (1 - std::pow(0.95, step)));
    const DeviceList<AdamStep> there(*device, {s});
    train_kernels(*device).adamw(*device, w_there.data(), m_there.data(), s_there.data(),
                                 g_there.data(), type(), rounded.data(), n, there.data());
    for (int i = 0; i < n; i++) {
      const double gradient = g[i] * 0.25;
      m[i] = m[i] * s.beta1 + gradient * (1 - double(s.beta1));
      v[i] = v[i] * s.beta2 + gradient * gradient * (1 - double(s.beta2));
      exact[i] -= s.lr * (m[i] * s.correction1 / (std::sqrt(v[i] * s.correction2) + s.eps) +
                          0.5 * exact[i]);
    }
  }
  const auto found = w_there.read(), narrow = rounded.read();
  for (int i = 0; i < n; i++) {
    ASSERT_NEAR(found[i], exact[i], 1e-6 * (1 + std::fabs(exact[i]))) << i;
    ASSERT_EQ(narrow[i], stored(found[i], type()));
  }
  EXPECT_EQ(g_there.read(), std::vector<float>(n)) << "the gradient is cleared";
}

// Values that change between steps are kept in device memory, so a step launches the graph of the
// previous one.
TEST(EmulatedTrainingStep, updates_with_the_graph_of_the_previous_step) {
  using emulation::calls_of;
  const OpenedCuda device("cuda:emulated", emulation::Watch::Once);
  const int n = 40, n_runs = 6;
  const std::vector<float> ones(n, 1);
  const DeviceFloats w(*device, ones), mean(*device, ones), square(*device, ones), g(*device, ones);
  DeviceMemory step(*device, sizeof(AdamStep));
  float last = 1;
  for (int t = 1; t <= 5; t++) {
    const std::int64_t made = calls_of("cudaGraphInstantiateWithFlags"),
                       updates = calls_of("cudaGraphExecKernelNodeSetParams"),
                       launched = device->n_launches();
    AdamStep s;
    s.lr = 0.01f * float(t);
    step.write(&s);
    for (int run = 0; run < n_runs; run++)
      train_kernels(*device).adamw(*device, w.data() + run, mean.data() + run, square.data() + run,
                                   g.data() + run, DType::F32, nullptr, 1,
                                   static_cast<const AdamStep*>(step.data()));
    const float found = w.read()[0];
    EXPECT_LT(found, last - 0.001f * float(t)) << "the step's own learning rate";
    last = found;
    EXPECT_EQ(calls_of("cudaGraphInstantiateWithFlags") - made, t == 2 ? 1 : 0) << "step " << t;
    EXPECT_EQ(calls_of("cudaGraphExecKernelNodeSetParams") - updates, 0) << "step " << t;
    EXPECT_EQ(device->n_launches() - launched, t == 1 ? n_runs : 1) << "step " << t;
  }
}

struct ProductCase {
  int m, n, k;
};

TEST_P(CudaTraining, products_in_every_direction_equal_plain_sums) {
  const OpenedCuda device(GetParam().device, emulation::Watch::Once);
  const TrainKernels& kernels = train_kernels(*device);
  for (const auto& [m, n, k] : {ProductCase{1, 1, 1}, {5, 70, 19}, {67, 3, 33}, {130, 65, 16}}) {
    for (int turned = 0; turned < 4; turned++) {
      const bool a_transposed = turned & 1, b_transposed = turned & 2;
      const auto a = kept_values(m * k, 30, type()), b = kept_values(k * n, 31, type());
      const TypedArray a_there(*device, type(), a), b_there(*device, type(), b);
      for (int way = 0; way < 3; way++) {  // into the type, into f32, added to f32
        if (way == 0 && type() == DType::F32) continue;
        const DType out = way == 0 ? type() : DType::F32;
        const auto before = normal_values(m * n, 32);
        const TypedArray c(*device, out, before);
        kernels.product(*device, {.a = a_there.data(),
                                  .b = b_there.data(),
                                  .c = c.data(),
                                  .a_transposed = a_transposed,
                                  .b_transposed = b_transposed,
                                  .in = type(),
                                  .out = out,
                                  .add = way == 2,
                                  .m = m,
                                  .n = n,
                                  .k = k});
        const auto found = c.read();
        for (int i = 0; i < m; i++) {
          for (int j = 0; j < n; j++) {
            double exact = way == 2 ? before[std::size_t(i) * n + j] : 0, size = 1;
            for (int p = 0; p < k; p++) {
              const double term = double(a[a_transposed ? p * m + i : i * k + p]) *
                                  b[b_transposed ? j * k + p : p * n + j];
              exact += term;
              size += std::fabs(term);
            }
            // k roundings or truncations of sums that never exceed the sum of the terms'
            // magnitudes.
            ASSERT_NEAR(found[std::size_t(i) * n + j], exact,
                        (k + 2) * 0x1p-23 * size + rounding(exact, out))
                << m << " " << n << " " << k << ", turned " << turned << ", way " << way;
          }
        }
      }
    }
  }
}

class CudaTrainingRows : public OnEachCuda {};

TEST_P(CudaTrainingRows, embedding_gradients_are_added_in_order) {
  const OpenedCuda device(GetParam());
  const TrainKernels& kernels = train_kernels(*device);
  const int n_tokens = 6, dim = 37, n_rows = 9;
  const std::vector<std::int32_t> token = {3, 0, 3, 5, 0, 3, 1, 5, 2};
  const auto table = normal_values(n_tokens * dim, 40), dx = normal_values(n_rows * dim, 41);
  const DeviceFloats table_there(*device, table), x(*device, std::vector<float>(n_rows * dim)),
      d(*device, dx), d_table(*device, table);
  const DeviceList<std::int32_t> tokens(*device, token);
  kernels.gather_rows(*device, table_there.data(), tokens.data(), x.data(), n_rows, dim);
  const auto gathered = x.read();
  for (int at = 0; at < n_rows * dim; at++)
    ASSERT_EQ(gathered[at], table[token[at / dim] * dim + at % dim]);
  // Row 8, of token 2, is left out.
  const DeviceList<std::int32_t> row(*device, {1, 4, 6, 0, 2, 5, 3, 7}),
      begin(*device, {0, 2, 3, 6, 8});
  kernels.scatter_rows(*device, d.data(), tokens.data(), row.data(), begin.data(), 4,
                       d_table.data(), dim);
  auto expected = table;
  for (int r = 0; r < n_rows - 1; r++)
    for (int i = 0; i < dim; i++) expected[token[r] * dim + i] += dx[r * dim + i];
  EXPECT_EQ(d_table.read(), expected);
}

TEST_P(CudaTrainingRows, squares_are_summed_in_double_by_block) {
  const OpenedCuda device(GetParam());
  const std::int64_t n = kSquaresBlock + 77;
  const auto g = normal_values(std::size_t(n), 42);
  const DeviceFloats there(*device, g);
  const DeviceMemory sums(*device, 16, 8);
  train_kernels(*device).squares(*device, there.data(), n, static_cast<double*>(sums.data()));
  double found[2], exact[2] = {};
  sums.read(found);
  for (std::int64_t i = 0; i < n; i++) exact[i / kSquaresBlock] += double(g[i]) * g[i];
  EXPECT_NEAR(found[0], exact[0], 1e-10 * exact[0]);
  EXPECT_NEAR(found[1], exact[1], 1e-10 * exact[1]);
}
INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaTrainingRows,
                         ::testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

}  // namespace
}  // namespace kernels::test
