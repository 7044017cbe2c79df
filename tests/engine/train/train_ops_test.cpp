// Compares the backward pass of every training operation with finite differences of its forward
// pass, and forward passes with plain loops in double precision, in every table that this machine
// supports.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/train/ops/train_ops.h"
#include "kernels/dtype.h"
#include "tests/engine/train/gradient_check.h"

namespace engine {
namespace {

using test::dot;
using test::expect_gradient;
using test::spread;

std::vector<const TrainTable*> tables() {
  const TrainTable* found[3];
  return {found, found + all_train_tables(found)};
}

class TrainOpsOf : public testing::TestWithParam<const TrainTable*> {
 protected:
  const RowOps<float>& ops() const { return GetParam()->f32; }
};

INSTANTIATE_TEST_SUITE_P(Tables, TrainOpsOf, testing::ValuesIn(tables()), [](const auto& tested) {
  return std::string(tested.param->name);
});

TEST_P(TrainOpsOf, rms_norm_matches_the_definition) {
  constexpr int kRows = 3, kDim = 48;
  const auto x = spread(kRows * kDim, 1), w = spread(kDim, 2);
  std::vector<float> h(x.size()), r(kRows), copy(x.size());
  ops().rms_norm(x.data(), w.data(), h.data(), r.data(), copy.data(), kRows, kDim, 1e-5f);
  EXPECT_EQ(copy, x);
  for (int row = 0; row < kRows; row++) {
    double squares = 0;
    for (int i = 0; i < kDim; i++) squares += std::pow(x[row * kDim + i], 2);
    const double scale = 1 / std::sqrt(squares / kDim + 1e-5);
    for (int i = 0; i < kDim; i++) {
      EXPECT_NEAR(h[row * kDim + i], x[row * kDim + i] * scale * w[i], 2e-6);
    }
  }
}

TEST_P(TrainOpsOf, rms_norm_backward_is_its_derivative) {
  constexpr int kRows = 3, kDim = 32;
  auto x = spread(kRows * kDim, 3), w = spread(kDim, 4);
  const auto d = spread(kRows * kDim, 5);
  std::vector<float> h(x.size()), r(kRows);
  const auto loss = [&] {
    ops().rms_norm(x.data(), w.data(), h.data(), r.data(), nullptr, kRows, kDim, 1e-5f);
    return dot(h, d);
  };
  loss();
  std::vector<float> dx(x.size(), 0.0f), dw(kDim, 0.0f), copy(x.size());
  ops().rms_norm_backward(x.data(), w.data(), r.data(), d.data(), dx.data(), dw.data(), copy.data(),
                          kRows, kDim);
  EXPECT_EQ(copy, dx);
  expect_gradient(x, dx, loss, "x");
  expect_gradient(w, dw, loss, "w");
}

TEST_P(TrainOpsOf, swiglu_backward_is_its_derivative) {
  constexpr int kRows = 2, kHidden = 32;
  auto gate_up = spread(kRows * 2 * kHidden, 6);
  for (float& g : gate_up) g *= 4;
  const auto d = spread(kRows * kHidden, 7);
  std::vector<float> act(d.size()), again(d.size()), d_gate_up(gate_up.size());
  const auto loss = [&] {
    ops().swiglu(gate_up.data(), act.data(), kRows, kHidden);
    return dot(act, d);
  };
  loss();
  ops().swiglu_backward(gate_up.data(), d.data(), d_gate_up.data(), again.data(), kRows, kHidden);
  for (std::size_t i = 0; i < act.size(); i++) EXPECT_NEAR(again[i], act[i], 1e-5);
  expect_gradient(gate_up, d_gate_up, loss, "gate_up");
}

TEST_P(TrainOpsOf, silu_and_its_backward_match_the_definition) {
  constexpr int kN = 48;
  auto z = spread(kN, 21);
  for (float& value : z) value *= 4;
  auto x = spread(kN, 22);
  const auto d = spread(kN, 23);
  std::vector<float> y(kN), alone(kN), dz(kN);
  ops().silu(z.data(), x.data(), y.data(), kN);
  ops().silu(z.data(), nullptr, alone.data(), kN);
  for (std::size_t i = 0; i < kN; i++) {
    const double silu = z[i] / (1 + std::exp(-static_cast<double>(z[i])));
    EXPECT_NEAR(alone[i], silu, 2e-6);
    EXPECT_NEAR(y[i], x[i] + silu, 2e-6);
  }
  ops().silu_backward(z.data(), d.data(), dz.data(), kN);
  expect_gradient(
      z, dz,
      [&] {
        ops().silu(z.data(), x.data(), y.data(), kN);
        return dot(y, d);
      },
      "z");
}

TEST_P(TrainOpsOf, column_sums_are_accumulated) {
  constexpr int kRows = 3, kWidth = 32;
  const auto x = spread(kRows * kWidth, 24);
  std::vector<float> sums(kWidth, 1.0f);
  ops().column_sums(x.data(), sums.data(), kRows, kWidth);
  for (std::size_t i = 0; i < kWidth; i++)
    EXPECT_NEAR(sums[i], 1 + x[i] + x[kWidth + i] + x[2 * kWidth + i], 1e-6);
}

TEST_P(TrainOpsOf, rope_backward_is_the_inverse_rotation) {
  for (const int head_dim : {16, 32, 64}) {
    const int rows = 5, stride = 3 * head_dim;
    std::vector<float> table(static_cast<std::size_t>(8 * head_dim));
    for (int pos = 0; pos < 8; pos++) {
      for (int i = 0; i < head_dim / 2; i++) {
        table[static_cast<std::size_t>(pos * head_dim + i)] = std::cos(0.3f * pos + i);
        table[static_cast<std::size_t>(pos * head_dim + head_dim / 2 + i)] =
            std::sin(0.3f * pos + i);
      }
    }
    const std::vector<std::int32_t> pos = {0, 1, 2, 0, 7};
    const auto x = spread(static_cast<std::size_t>(rows * stride), 8);
    auto y = x;
    ops().rope(y.data(), pos.data(), table.data(), rows, stride, 2, head_dim, 1.0f);
    // Two heads are rotated, so the third keeps its values. Elements i and i + head_dim / 2 of a
    // head are rotated as a pair.
    EXPECT_EQ(y[static_cast<std::size_t>(stride + 2 * head_dim)],
              x[static_cast<std::size_t>(stride + 2 * head_dim)]);
    const auto at = static_cast<std::size_t>(stride + 1),
               half = static_cast<std::size_t>(head_dim / 2);
    EXPECT_NEAR(y[at], x[at] * std::cos(1.3f) - x[at + half] * std::sin(1.3f), 1e-6);
    // A rotation's transpose is its inverse.
    ops().rope(y.data(), pos.data(), table.data(), rows, stride, 2, head_dim, -1.0f);
    for (std::size_t i = 0; i < x.size(); i++) EXPECT_NEAR(y[i], x[i], 1e-6);
  }
}

TEST_P(TrainOpsOf, cross_entropy_and_gradient_match_the_definition) {
  constexpr int kRows = 3, kVocab = 48;
  auto logits = spread(kRows * kVocab, 9);
  for (float& z : logits) z *= 5;
  const std::vector<std::int32_t> target = {4, 47, 0};
  const std::vector<float> weight = {1.0f, 0.1f, 0.0f};
  std::vector<float> loss(kRows), d(logits.size());
  const auto total = [&] {
    auto scratch = logits;
    ops().cross_entropy(scratch.data(), target.data(), weight.data(), d.data(), loss.data(), kRows,
                        kVocab);
    double sum = 0;
    for (int row = 0; row < kRows; row++) sum += static_cast<double>(loss[row]) * weight[row];
    return sum;
  };
  total();
  double sum = 0;
  for (int i = 0; i < kVocab; i++) sum += std::exp(static_cast<double>(logits[i]));
  EXPECT_NEAR(loss[0], std::log(sum) - logits[4], 1e-5);
  EXPECT_EQ(loss[2], 0.0f) << "a row of weight 0 has no loss";
  const auto gradient = d;
  for (int i = 0; i < kVocab; i++) EXPECT_EQ(gradient[2 * kVocab + i], 0.0f);
  expect_gradient(logits, gradient, total, "logits");
}

TEST_P(TrainOpsOf, smoothed_cross_entropy_and_gradient_match) {
  constexpr int kVocab = 48;
  auto logits = spread(kVocab, 21);
  for (float& z : logits) z *= 4;
  std::vector<float> d(kVocab), ignored(kVocab);
  for (const std::int32_t target : {0, 17, 47}) {
    const float found =
        ops().smoothed_cross_entropy(logits.data(), target, 0.1f, 0.5f, d.data(), kVocab);
    double sum = 0, expected = 0;
    for (const float z : logits) sum += std::exp(static_cast<double>(z));
    for (int i = 0; i < kVocab; i++) {
      const double label = 0.1 / kVocab + (i == target ? 0.9 : 0);
      expected -= label * (logits[static_cast<std::size_t>(i)] - std::log(sum));
    }
    EXPECT_NEAR(found, expected, 1e-5 * (1 + expected));
    const auto gradient = d;
    expect_gradient(
        logits, gradient,
        [&] {
          return 0.5 * static_cast<double>(ops().smoothed_cross_entropy(
                           logits.data(), target, 0.1f, 0.5f, ignored.data(), kVocab));
        },
        "logits");
  }
}

TEST_P(TrainOpsOf, divergences_and_their_gradients) {
  constexpr int kVocab = 48;
  auto logits = spread(kVocab, 22);
  const auto teacher = spread(kVocab, 23);
  for (float& z : logits) z *= 3;
  const auto distribution = [](const std::vector<float>& z) {
    std::vector<double> p(z.begin(), z.end());
    double sum = 0;
    for (double& x : p) sum += x = std::exp(x);
    for (double& x : p) x /= sum;
    return p;
  };
  const auto q = distribution(logits), p = distribution(teacher);
  std::vector<float> d(kVocab), ignored(kVocab);
  const auto kl = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); i++) sum += a[i] * std::log(a[i] / b[i]);
    return sum;
  };
  std::vector<double> m;
  for (std::size_t i = 0; i < kVocab; i++) m.push_back(0.5 * (p[i] + q[i]));
  for (const auto& [by, expected] :
       {std::pair{Divergence::Forward, kl(p, q)}, std::pair{Divergence::Reverse, kl(q, p)},
        std::pair{Divergence::JensenShannon, 0.5 * (kl(p, m) + kl(q, m))}}) {
    const float found = ops().divergence(logits.data(), teacher.data(), by, 0.5f, d.data(), kVocab);
    EXPECT_NEAR(found, expected, 1e-5);
    const auto gradient = d;
    expect_gradient(
        logits, gradient,
        [&, kind = by] {
          return 0.5 * static_cast<double>(ops().divergence(logits.data(), teacher.data(), kind,
                                                            0.5f, ignored.data(), kVocab));
        },
        "logits");
    // The divergence of a distribution from itself is 0.
    EXPECT_NEAR(ops().divergence(teacher.data(), teacher.data(), by, 1, d.data(), kVocab), 0, 1e-6);
    for (const float x : d) EXPECT_NEAR(x, 0, 1e-7);
  }
}

// Softmax attention by its definition, row by row in double.
std::vector<float> plain_attention(const std::vector<float>& qkv,
                                   const std::vector<Segment>& segments,
                                   const std::vector<RowView>& views,
                                   const AttentionShape& s,
                                   int rows) {
  std::vector<float> out(static_cast<std::size_t>(rows * s.out_width()), 0.0f);
  const int width = s.qkv_width(), shared = s.n_heads / s.n_kv_heads;
  for (const Segment& segment : segments) {
    for (int i = segment.begin; i < segment.end; i++) {
      const RowView view = views.empty() ? RowView{} : views[static_cast<std::size_t>(i)];
      for (int head = 0; head < s.n_heads; head++) {
        const float* q = &qkv[static_cast<std::size_t>(i * width + head * s.head_dim)];
        std::vector<double> p(static_cast<std::size_t>(i - segment.begin + 1), 0.0);
        double sum = 0;
        for (int j = segment.begin; j <= i; j++) {
          const int at = j - segment.begin;
          if (at >= view.prefix_end && at < view.own_begin) continue;
          const float* k =
              &qkv[static_cast<std::size_t>(j * width + (s.n_heads + head / shared) * s.head_dim)];
          double score = 0;
          for (int d = 0; d < s.head_dim; d++) score += static_cast<double>(q[d]) * k[d];
          p[static_cast<std::size_t>(at)] = std::exp(score / std::sqrt(s.head_dim));
          sum += p[static_cast<std::size_t>(at)];
        }
        for (int j = segment.begin; j <= i; j++) {
          const float* v = &qkv[static_cast<std::size_t>(
              j * width + (s.n_heads + s.n_kv_heads + head / shared) * s.head_dim)];
          for (int d = 0; d < s.head_dim; d++) {
            out[static_cast<std::size_t>(i * s.out_width() + head * s.head_dim + d)] +=
                static_cast<float>(p[static_cast<std::size_t>(j - segment.begin)] / sum * v[d]);
          }
        }
      }
    }
  }
  return out;
}

struct AttentionCase {
  AttentionShape shape;
  std::vector<Segment> segments;
  std::vector<RowView> views;
  int rows;
};

// Texts with gaps between and around them. The last case is a text with two chains, as in
// consistency training: rows 8-10 are a chain after row 3, rows 11-12 a chain after row 5.
std::vector<AttentionCase> attention_cases() {
  AttentionCase chains{{2, 1, 32}, {{0, 13}}, std::vector<RowView>(13), 13};
  for (std::size_t i = 8; i < 11; i++) chains.views[i] = {4, 8};
  for (std::size_t i = 11; i < 13; i++) chains.views[i] = {6, 11};
  return {{{2, 2, 16}, {{0, 5}, {5, 6}, {8, 29}}, {}, 30},
          {{4, 2, 32}, {{1, 40}}, {}, 40},
          {{1, 1, 48}, {{0, 18}}, {}, 18},
          chains};
}

TEST_P(TrainOpsOf, attention_matches_the_definition) {
  for (const AttentionCase& c : attention_cases()) {
    const auto qkv = spread(static_cast<std::size_t>(c.rows * c.shape.qkv_width()), 10);
    std::vector<float> out(static_cast<std::size_t>(c.rows * c.shape.out_width()), 0.0f);
    std::vector<float> lse(static_cast<std::size_t>(c.rows * c.shape.n_heads));
    std::vector<float> scratch(static_cast<std::size_t>(attention_scratch(c.shape, c.rows)));
    ops().attention(qkv.data(), c.segments.data(), static_cast<int>(c.segments.size()),
                    c.views.empty() ? nullptr : c.views.data(), out.data(), lse.data(), c.shape,
                    scratch.data());
    const auto expected = plain_attention(qkv, c.segments, c.views, c.shape, c.rows);
    for (std::size_t i = 0; i < out.size(); i++) ASSERT_NEAR(out[i], expected[i], 3e-6) << i;
  }
}

TEST_P(TrainOpsOf, attention_backward_is_its_derivative) {
  for (const AttentionCase& c : attention_cases()) {
    auto qkv = spread(static_cast<std::size_t>(c.rows * c.shape.qkv_width()), 11);
    for (float& x : qkv) x *= 1.5f;
    const auto d = spread(static_cast<std::size_t>(c.rows * c.shape.out_width()), 12);
    std::vector<float> out(d.size(), 0.0f), d_qkv(qkv.size(), 0.0f);
    std::vector<float> lse(static_cast<std::size_t>(c.rows * c.shape.n_heads));
    std::vector<float> scratch(static_cast<std::size_t>(attention_scratch(c.shape, c.rows)));
    const RowView* views = c.views.empty() ? nullptr : c.views.data();
    const int n_segments = static_cast<int>(c.segments.size());
    const auto loss = [&] {
      ops().attention(qkv.data(), c.segments.data(), n_segments, views, out.data(), lse.data(),
                      c.shape, scratch.data());
      return dot(out, d);
    };
    loss();
    ops().attention_backward(qkv.data(), c.segments.data(), n_segments, views, out.data(), d.data(),
                             lse.data(), d_qkv.data(), c.shape, scratch.data());
    expect_gradient(qkv, d_qkv, loss, "qkv", 7);
  }
}

TEST_P(TrainOpsOf, bf16_attention_agrees_with_f32) {
  const AttentionCase c = attention_cases().back();
  const auto n_in = static_cast<std::size_t>(c.rows * c.shape.qkv_width());
  const auto n_out = static_cast<std::size_t>(c.rows * c.shape.out_width());
  std::vector<Bf16> qkv(n_in), d_out(n_out), out(n_out), d_qkv(n_in);
  const auto& bf16 = GetParam()->bf16;
  bf16.convert(spread(n_in, 24).data(), qkv.data(), static_cast<std::int64_t>(n_in));
  bf16.convert(spread(n_out, 25).data(), d_out.data(), static_cast<std::int64_t>(n_out));
  const auto widened = [](const std::vector<Bf16>& x) {
    std::vector<float> y;
    for (const Bf16 v : x) y.push_back(kernels::f32_from_bf16(v.bits));
    return y;
  };
  std::vector<float> lse(static_cast<std::size_t>(c.rows * c.shape.n_heads)), lse32 = lse;
  std::vector<float> scratch(static_cast<std::size_t>(attention_scratch(c.shape, c.rows)));
  const std::vector<float> qkv32 = widened(qkv), d_out32 = widened(d_out);
  std::vector<float> out32(n_out, 0.0f), d_qkv32(n_in, 0.0f);
  bf16.attention(qkv.data(), c.segments.data(), 1, c.views.data(), out.data(), lse.data(), c.shape,
                 scratch.data());
  ops().attention(qkv32.data(), c.segments.data(), 1, c.views.data(), out32.data(), lse32.data(),
                  c.shape, scratch.data());
  const std::vector<float> found = widened(out);
  // One rounding to 8 bits of outputs up to 1.
  for (std::size_t i = 0; i < n_out; i++) ASSERT_NEAR(found[i], out32[i], 0x1p-8) << i;
  bf16.attention_backward(qkv.data(), c.segments.data(), 1, c.views.data(), out.data(),
                          d_out.data(), lse.data(), d_qkv.data(), c.shape, scratch.data());
  ops().attention_backward(qkv32.data(), c.segments.data(), 1, c.views.data(), out32.data(),
                           d_out32.data(), lse32.data(), d_qkv32.data(), c.shape, scratch.data());
  const std::vector<float> d_found = widened(d_qkv);
  for (std::size_t i = 0; i < n_in; i++)
    ASSERT_NEAR(d_found[i], d_qkv32[i], 0x1p-7 * (1 + std::abs(d_qkv32[i]))) << i;
}

TEST_P(TrainOpsOf, bf16_matches_f32_within_rounding) {
  constexpr int kRows = 4, kHidden = 64;
  const auto wide = spread(kRows * 2 * kHidden, 13);
  std::vector<Bf16> narrow(wide.size()), act(kRows * kHidden);
  std::vector<float> expected(kRows * kHidden), rounded(wide.size());
  GetParam()->bf16.convert(wide.data(), narrow.data(), static_cast<std::int64_t>(wide.size()));
  for (std::size_t i = 0; i < wide.size(); i++) {
    EXPECT_EQ(narrow[i].bits, kernels::bf16_from_f32(wide[i]));
    rounded[i] = kernels::f32_from_bf16(narrow[i].bits);
  }
  ops().swiglu(rounded.data(), expected.data(), kRows, kHidden);
  GetParam()->bf16.swiglu(narrow.data(), act.data(), kRows, kHidden);
  for (std::size_t i = 0; i < expected.size(); i++) {
    // One rounding to 8 bits: 2^-9 relative.
    EXPECT_NEAR(kernels::f32_from_bf16(act[i].bits), expected[i], std::abs(expected[i]) * 0x1p-8);
  }
}

TEST_P(TrainOpsOf, adamw_matches_the_definition_on_odd_sizes) {
  constexpr int kN = 37;
  auto w = spread(kN, 14), m = spread(kN, 15), v = spread(kN, 16), g = spread(kN, 17);
  for (float& x : v) x = std::abs(x);
  const auto w0 = w, m0 = m, v0 = v, g0 = g;
  AdamStep s;
  s.lr = 0.01f;
  s.weight_decay = 0.1f;
  s.gradient_scale = 0.5f;
  s.correction1 = 1.5f;
  s.correction2 = 2.5f;
  GetParam()->parameters.adamw(w.data(), m.data(), v.data(), g.data(), kN, s);
  for (int i = 0; i < kN; i++) {
    const double gradient = 0.5 * g0[i];
    const double mean = 0.9 * m0[i] + 0.1 * gradient,
                 square = 0.95 * v0[i] + 0.05 * gradient * gradient;
    const double expected =
        w0[i] - 0.01 * (mean * 1.5 / (std::sqrt(square * 2.5) + 1e-8) + 0.1 * w0[i]);
    EXPECT_NEAR(w[i], expected, 1e-6);
    EXPECT_NEAR(m[i], mean, 1e-6);
    EXPECT_NEAR(v[i], square, 1e-6);
    EXPECT_EQ(g[i], 0.0f);
  }
}

TEST_P(TrainOpsOf, reduce_sums_the_parts_and_clears_the_others) {
  constexpr int kN = 8192 + 21;
  auto a = spread(kN, 18), b = spread(kN, 19), c = spread(kN, 20);
  std::vector<float> expected(kN);
  double squares = 0;
  for (int i = 0; i < kN; i++) {
    expected[i] = a[i] + b[i] + c[i];
    squares += static_cast<double>(expected[i]) * expected[i];
  }
  float* parts[] = {a.data(), b.data(), c.data()};
  EXPECT_NEAR(GetParam()->parameters.reduce(parts, 3, 0, kN), squares, squares * 1e-6);
  EXPECT_EQ(a, expected);
  EXPECT_EQ(b, std::vector<float>(kN, 0.0f));
  EXPECT_EQ(c, std::vector<float>(kN, 0.0f));
}

}  // namespace
}  // namespace engine
