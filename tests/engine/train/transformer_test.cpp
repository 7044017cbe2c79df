// Compares the gradients of training with finite differences in f32, and the matrix products of
// every library with plain loops.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/train/core/transformer.h"
#include "engine/train/ops/amx_gemm.h"
#include "engine/train/ops/linear_onednn.h"
#include "kernels/dtype.h"
#include "tests/engine/train/cpu_learner.h"
#include "tests/engine/train/gradient_check.h"
#include "tests/engine/train/small_model.h"
#include "tests/engine/train/two_texts.h"
#include "tests/support/refusal.h"

namespace engine {
namespace {

using test::CpuLearner;
using test::small_model;
using test::spread;
using test::Texts;
using test::two_texts;

TEST(Transformer, gradient_of_every_weight_is_the_derivative) {
  CpuLearner p(small_model());
  const Texts texts = two_texts();
  std::vector<float> gradient, ignored;
  p.loss_and_gradient(texts.rows(), gradient);
  // A prime stride visits every matrix and norm.
  test::expect_gradient(
      p.parameters, gradient, [&] { return p.loss_and_gradient(texts.rows(), ignored); },
      "parameter", 61, 2e-3, 0x1p-8f);
}

TEST(Transformer, texts_do_not_attend_to_each_other) {
  CpuLearner p(small_model());
  Texts texts = two_texts();
  const auto vocab = static_cast<std::size_t>(p.config.vocab_size);
  const std::vector<float> before = p.logits_of(texts.rows());
  for (std::size_t i = 0; i < 13; i++) texts.token[i] = (texts.token[i] + 1) % 64;
  const std::vector<float> after = p.logits_of(texts.rows());
  EXPECT_NE(before[0], after[0]);
  for (std::size_t i = 13 * vocab; i < 28 * vocab; i++) ASSERT_EQ(before[i], after[i]);
}

TEST(Transformer, padding_rows_have_no_gradient) {
  CpuLearner p(small_model());
  Texts texts = two_texts();
  std::vector<float> gradient, other;
  p.loss_and_gradient(texts.rows(), gradient);
  for (std::size_t i = 28; i < 32; i++) texts.token[i] = 1;
  p.loss_and_gradient(texts.rows(), other);
  EXPECT_EQ(gradient, other);
}

// bf16 has 8 bits and a gradient is a sum of many products, so only its direction is compared.
void expect_same_direction(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); i++) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  EXPECT_GT(ab / std::sqrt(aa * bb), 0.999);
  EXPECT_NEAR(std::sqrt(aa / bb), 1.0, 0.02);
}

TEST(Transformer, bf16_gradients_have_the_direction_of_f32) {
  CpuLearner reference(small_model());
  const Texts texts = two_texts();
  std::vector<float> expected, gradient;
  reference.loss_and_gradient(texts.rows(), expected);
  for (const Compute compute : {Compute::Bf16Amx, Compute::Bf16OneDnn}) {
    if (compute == Compute::Bf16Amx && !amx_usable()) continue;
    if (compute == Compute::Bf16OneDnn && !onednn_has_bf16()) continue;
    CpuLearner p(small_model(), compute);
    p.loss_and_gradient(texts.rows(), gradient);
    expect_same_direction(gradient, expected);
  }
}

float wide(float x) {
  return x;
}
float wide(Bf16 x) {
  return kernels::f32_from_bf16(x.bits);
}
template <typename T>
std::vector<T> narrowed(const std::vector<float>& x) {
  std::vector<T> y(x.size());
  train_table().ops<T>().convert(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  return y;
}

// All products of one library, on a shape with several blocks in every direction.
template <typename T>
void expect_right_products(LinearMath<T>& math) {
  constexpr int kRows = 96, kOut = 64, kIn = 160;
  const auto at = [](const auto& v, int row, int column, int width) {
    return static_cast<double>(wide(v[static_cast<std::size_t>(row * width + column)]));
  };
  const auto w = spread(kOut * kIn, 1);
  const auto w_used = narrowed<T>(w), x = narrowed<T>(spread(kRows * kIn, 2)),
             dy = narrowed<T>(spread(kRows * kOut, 3));
  const auto packed = math.make(w.data(), kOut, kIn);
  math.repack(*packed);
  std::vector<T> y(kRows * kOut), dx(kRows * kIn);
  std::vector<float> y32(kRows * kOut, 1.0f), dw(kOut * kIn, 1.0f);
  math.forward(*packed, x.data(), kRows, y.data());
  math.forward_f32(*packed, x.data(), kRows, y32.data(), true);
  math.backward_input(*packed, dy.data(), kRows, dx.data());
  math.backward_weight(*packed, dy.data(), x.data(), kRows, dw.data());
  // A head may have no rows in a step. Their products change nothing; oneDNN divides by zero.
  math.forward(*packed, x.data(), 0, y.data());
  math.forward_f32(*packed, x.data(), 0, y32.data(), true);
  math.backward_input(*packed, dy.data(), 0, dx.data());
  math.backward_weight(*packed, dy.data(), x.data(), 0, dw.data());
  // Sums of at most 160 terms below 1: f32 rounding stays below 1e-5; a bf16 result adds 2^-8 of
  // itself.
  const double narrow = std::is_same_v<T, float> ? 1e-5 : 0x1p-8;
  for (int r = 0; r < kRows; r++) {
    for (int o = 0; o < kOut; o++) {
      double sum = 0;
      for (int i = 0; i < kIn; i++) sum += at(x, r, i, kIn) * at(w_used, o, i, kIn);
      ASSERT_NEAR(at(y, r, o, kOut), sum, 1e-5 + narrow * std::abs(sum));
      ASSERT_NEAR(at(y32, r, o, kOut), sum + 1, 2e-5);
    }
    for (int i = 0; i < kIn; i++) {
      double sum = 0;
      for (int o = 0; o < kOut; o++) sum += at(dy, r, o, kOut) * at(w_used, o, i, kIn);
      ASSERT_NEAR(at(dx, r, i, kIn), sum, 1e-5 + narrow * std::abs(sum));
    }
  }
  for (int o = 0; o < kOut; o++) {
    for (int i = 0; i < kIn; i++) {
      double sum = 1;
      for (int r = 0; r < kRows; r++) sum += at(dy, r, o, kOut) * at(x, r, i, kIn);
      ASSERT_NEAR(at(dw, o, i, kIn), sum, 2e-5);
    }
  }
}

TEST(Linear, products_of_every_library_match_plain_sums) {
  expect_right_products(*linear_math_f32());
  if (amx_usable()) expect_right_products(*linear_math_bf16(Compute::Bf16Amx));
  if (onednn_has_bf16()) expect_right_products(*linear_math_bf16(Compute::Bf16OneDnn));
}

TEST(Parameters, only_norms_have_no_weight_decay) {
  const ModelConfig config = small_model();
  const ParameterLayout layout(config);
  std::int64_t at = 0, undecayed = 0;
  for (const ParameterRun& run : runs_of(layout, config)) {
    EXPECT_EQ(run.begin, at);
    at = run.end;
    if (!run.decays) undecayed += run.end - run.begin;
  }
  EXPECT_EQ(at, layout.n);
  EXPECT_EQ(undecayed, (2 * config.n_layers + 1) * config.dim);
}

TEST(Parameters, other_architectures_are_refused_by_name) {
  ModelConfig config = small_model();
  config.model_type = "qwen3";
  config.qk_norm = true;
  const std::string message = kernels::test::refusal([&] { ParameterLayout layout(config); });
  EXPECT_NE(message.find("model_type qwen3, expected llama or mistral:"), std::string::npos)
      << message;
}

TEST(Parameters, round_trip_through_tensors) {
  const ModelConfig config = small_model();
  std::vector<float> parameters, back;
  initialise(parameters, ParameterLayout(config), config, 0.02f, 3);
  load_tensors(*as_tensors(parameters, config), config, back);
  EXPECT_EQ(parameters, back);
}

}  // namespace
}  // namespace engine
