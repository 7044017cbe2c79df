// The choice of tokens on CUDA devices, against the formula and against the CPU.
#include <limits>

#include "kernels/philox.h"
#include "kernels/sampling.h"
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

const float kInf = std::numeric_limits<float>::infinity();

struct VocabCase {
  std::string device;
  int vocab, kind;
};
std::vector<VocabCase> cases_of(const std::vector<int>& vocabularies, int n_kinds) {
  std::vector<VocabCase> all;
  for (const std::string& device : cuda_devices_here())
    for (const int vocab : vocabularies)
      for (int kind = 0; kind < n_kinds; kind++) all.push_back({device, vocab, kind});
  return all;
}
std::string name_of_case(const ::testing::TestParamInfo<VocabCase>& info) {
  return as_test_name(info.param.device + "_" + std::to_string(info.param.vocab) + "_" +
                      std::to_string(info.param.kind));
}

std::vector<Picked> picks(Device& device,
                          const std::vector<float>& logits,
                          int vocab,
                          int n_valid,
                          const std::vector<PickRow>& rows) {
  const DeviceFloats there(device, logits);
  std::vector<Picked> picked(rows.size());
  device.ops().pick(device, there.data(), std::int64_t(logits.size() / rows.size()),
                    int(rows.size()), vocab, n_valid, rows.data(), picked.data());
  return picked;
}
Picked pick_one(Device& device, const std::vector<float>& logits, const PickRow& row) {
  const int vocab = int(logits.size());
  return picks(device, logits, vocab, vocab, {row})[0];
}

void expect_same_choice(const Picked& found, const Picked& expected) {
  ASSERT_EQ(found.id, expected.id);
  ASSERT_EQ(found.bad_index, expected.bad_index);
  if (found.id < 0) return;
  ASSERT_FLOAT_EQ(found.score, expected.score);
  ASSERT_EQ(found.logit, expected.logit);
  if (std::isinf(expected.margin))
    ASSERT_EQ(found.margin, expected.margin);
  else
    ASSERT_NEAR(found.margin, expected.margin, 2e-6 * (1 + std::fabs(expected.score)));
  ASSERT_NEAR(found.logp, expected.logp, 3e-5);  // the CPU's is an f32 sum
}

class CudaPickGreedy : public ::testing::TestWithParam<VocabCase> {};

TEST_P(CudaPickGreedy, argmax_ties_go_to_the_lowest_id) {
  const auto& [name, vocab, kind] = GetParam();
  const OpenedCuda device(name);
  auto logits = normal_values(vocab, vocab);
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(double(x) - *best);
  const Picked picked = pick_one(*device, logits, {});
  ASSERT_EQ(picked.id, best - logits.begin());
  ASSERT_EQ(picked.score, *best);
  ASSERT_EQ(picked.logit, *best);
  ASSERT_NEAR(picked.logp, -std::log(sum), 1e-6);
  if (vocab < 17) return;
  logits[vocab - 1] = logits[9] = logits[4] = 7;
  ASSERT_EQ(pick_one(*device, logits, {}).id, 4);
  ASSERT_EQ(pick_one(*device, logits, {}).margin, 0);
  logits[4] = logits[vocab - 1] = 6.5;
  ASSERT_EQ(pick_one(*device, logits, {}).margin, 0.5f);
}
INSTANTIATE_TEST_SUITE_P(Vocabularies,
                         CudaPickGreedy,
                         ::testing::ValuesIn(cases_of({1, 2, 17, 256, 1000, 2048, 2049, 6151}, 1)),
                         name_of_case);

class CudaPickBad : public ::testing::TestWithParam<VocabCase> {};

TEST_P(CudaPickBad, non_finite_logits_are_named) {
  const auto& [name, vocab, kind] = GetParam();
  const OpenedCuda device(name);
  PickRow row;
  row.temperature = kind ? 0.7f : 0.0f;
  for (const float bad : {NAN, kInf}) {
    std::vector<float> logits(vocab, 1);
    logits[vocab - 1] = logits[vocab / 2] = bad;
    ASSERT_EQ(pick_one(*device, logits, row).id, -1);
    ASSERT_EQ(pick_one(*device, logits, row).bad_index, vocab / 2);
  }
  std::vector<float> logits(vocab, -kInf);
  ASSERT_EQ(pick_one(*device, logits, row).id, -1);
  logits[1] = -3;
  ASSERT_EQ(pick_one(*device, logits, row).id, 1);
  ASSERT_EQ(pick_one(*device, logits, row).logp, 0);
  logits = std::vector<float>(vocab, 0);
  logits[vocab - 1] = NAN;  // past the valid ones
  logits[0] = 1;
  ASSERT_EQ(picks(*device, logits, vocab, vocab - 1, {row})[0].bad_index, -1);
}
INSTANTIATE_TEST_SUITE_P(Vocabularies,
                         CudaPickBad,
                         ::testing::ValuesIn(cases_of({3, 40, 1000, 5000}, 2)),
                         name_of_case);

class CudaPickSampling : public ::testing::TestWithParam<VocabCase> {};

TEST_P(CudaPickSampling, equals_the_gumbel_max_formula) {
  const auto& [name, vocab, kind] = GetParam();
  const OpenedCuda device(name);
  const auto logits = normal_values(vocab, vocab, kind == 0 ? 0.01f : kind == 1 ? 1.0f : 6.0f);
  for (int i = 0; i < 6; i++) {
    PickRow row;
    row.temperature = i % 3 == 0 ? 1 : i % 3 == 1 ? 0.3f : 2.5f;
    row.seed = 0x123456789abcull * (i + 1);
    row.stream = i % 4;
    row.position = i * 1000;
    int best = -1;
    double best_score = -kInf, second = -kInf;
    for (int id = 0; id < vocab; id++) {
      const double score = double(logits[id]) / row.temperature +
                           gumbel_from_bits(random_bits(row.seed, row.stream, row.position, id));
      if (score > best_score)
        best = id, second = best_score, best_score = score;
      else
        second = std::max(second, score);
    }
    const Picked picked = pick_one(*device, logits, row);
    ASSERT_EQ(picked.id, best) << "draw " << i;
    ASSERT_FLOAT_EQ(picked.score, float(best_score));
    ASSERT_NEAR(picked.margin, best_score - second, 1e-6 * (1 + std::fabs(best_score)));
    ASSERT_NEAR(picked.logp, std::log(filtered_distribution(logits, vocab, row)[picked.id]), 1e-6);
  }
}
INSTANTIATE_TEST_SUITE_P(Vocabularies,
                         CudaPickSampling,
                         ::testing::ValuesIn(cases_of({3, 64, 130, 2053, 4160}, 3)),
                         name_of_case);

class CudaPickDistribution : public ::testing::TestWithParam<VocabCase> {};

// Makes as many draws as the device can make in about a second; each position of a sequence draws
// its own number.
// T4.
TEST_P(CudaPickDistribution, draws_follow_the_distribution) {
  const auto& [name, vocab, kind] = GetParam();
  const OpenedCuda device(name, emulation::Watch::Once);
  constexpr int kRows = 100;
  const int n_draws = is_emulated(*device) ? 2000 : 1'000'000;
  const auto logits = normal_values(vocab, vocab + kind);
  std::vector<float> repeated;
  for (int r = 0; r < kRows; r++) repeated.insert(repeated.end(), logits.begin(), logits.end());
  PickRow asked;
  asked.temperature = kind == 1 ? 0.6f : kind == 3 ? 1.4f : 1;
  asked.top_p = kind == 1 ? 0.9f : 1;
  asked.top_k = kind == 2 ? vocab / 2 : 0;
  asked.min_p = kind == 3 ? 0.1f : 0;
  asked.seed = 77;
  std::vector<int> count(vocab);
  for (int draw = 0; draw < n_draws; draw += kRows) {
    std::vector<PickRow> rows(kRows, asked);
    for (int r = 0; r < kRows; r++) rows[r].position = draw + r;
    for (const Picked& one : picks(*device, repeated, vocab, vocab, rows)) count[one.id]++;
  }
  std::vector<double> distribution = filtered_distribution(logits, vocab, asked);
  double freedom = -1;
  for (int id = 0; id < vocab; id++) {
    freedom += distribution[id] > 0;
    EXPECT_TRUE(distribution[id] > 0 || count[id] == 0) << "token " << id << " is filtered away";
  }
  ASSERT_GT(freedom, 0);
  const auto chi_square = [&] {
    double sum = 0;
    for (int id = 0; id < vocab; id++)
      if (const double expected = n_draws * distribution[id]; expected > 0)
        sum += (count[id] - expected) * (count[id] - expected) / expected;
    return sum;
  };
  // A correct sampler exceeds the limit once in ten thousand runs (Wilson and Hilferty's
  // approximation).
  const double spread = 2 / (9 * freedom);
  const double limit = freedom * std::pow(1 - spread + 3.72 * std::sqrt(spread), 3);
  EXPECT_LT(chi_square(), limit);
  const auto likeliest = std::ranges::max_element(distribution);
  const double rest = 1 - *likeliest, moved = std::min(*likeliest / 2, 8 / std::sqrt(n_draws));
  for (double& p : distribution) p *= (rest + moved) / rest;
  *likeliest = 1 - rest - moved;
  EXPECT_GT(chi_square(), limit) << "a slightly different distribution is detected";
}
INSTANTIATE_TEST_SUITE_P(Vocabularies,
                         CudaPickDistribution,
                         ::testing::ValuesIn(cases_of({5, 32}, 4)),
                         name_of_case);

class CudaPickFilters : public ::testing::TestWithParam<VocabCase> {};

// Compares rows of all kinds with the CPU, whose own tests use a naive implementation.
TEST_P(CudaPickFilters, keep_the_tokens_the_cpu_keeps) {
  const auto& [name, vocab, kind] = GetParam();
  const OpenedCuda device(name);
  const auto cpu = open_cpu(1);
  constexpr int kRows = 6;
  std::mt19937 random(std::uint32_t(vocab + kind));
  static const std::vector<std::int32_t> history = {3, 3, 50, 7, 29, 0, 5000};
  auto logits =
      normal_values(std::size_t(kRows) * vocab, std::uint32_t(kind), kind % 4 ? 2.f : 0.05f);
  if (kind % 3 == 0)
    for (float& x : logits) x = std::round(x);  // many ties
  std::vector<PickRow> rows(kRows);
  for (int r = 0; r < kRows; r++) {
    PickRow& row = rows[r];
    row.temperature = r == 5 ? 0.0f : 0.5f + float(random() % 100) / 50;
    row.seed = random();
    row.position = std::uint32_t(r);
    if (kind % 2) row.top_k = 1 + int(random() % (vocab + 10));
    if (kind % 3) row.top_p = float(random() % 1000) / 1000;
    if (kind % 5 == 0) row.min_p = float(random() % 100) / 200;
    if (r % 2 == 0) continue;
    row.repetition_penalty = 1.3f;
    row.history = history.data();
    row.n_history = int(history.size());
  }
  std::vector<Picked> expected(kRows);
  cpu->ops().pick(*cpu, logits.data(), vocab, kRows, vocab, vocab, rows.data(), expected.data());
  const auto found = picks(*device, logits, vocab, vocab, rows);
  for (int r = 0; r < kRows; r++) {
    SCOPED_TRACE("row " + std::to_string(r));
    expect_same_choice(found[r], expected[r]);
    const std::vector<float> own(&logits[std::size_t(r) * vocab],
                                 &logits[std::size_t(r) * vocab] + vocab);
    const Picked alone = pick_one(*device, own, rows[r]);
    ASSERT_EQ(alone.id, found[r].id);
    ASSERT_EQ(bits_of(alone.score), bits_of(found[r].score));
    ASSERT_EQ(bits_of(alone.logp), bits_of(found[r].logp));
  }
}
// Top-p crosses at the last token that top-k keeps, and the next token shares the first digits of
// its sort key.
TEST_P(CudaPickFilters, keep_at_most_top_k_tokens_for_a_flat_top_p) {
  const auto& [name, vocab, kind] = GetParam();
  const OpenedCuda device(name, emulation::Watch::Once);
  std::vector<float> logits(vocab, 0.75f);
  logits[1 + kind] = 2, logits[20 + kind] = 1, logits[2 + kind] = 0.99f;
  PickRow row{.temperature = 1, .top_k = 2, .top_p = 0.9f};
  for (row.seed = 0; row.seed < 10; row.seed++) {
    const Picked picked = pick_one(*device, logits, row);
    ASSERT_TRUE(picked.id == 1 + kind || picked.id == 20 + kind) << picked.id;
    ASSERT_NEAR(picked.logp, std::log(filtered_distribution(logits, vocab, row)[picked.id]), 1e-6);
  }
}
INSTANTIATE_TEST_SUITE_P(Vocabularies,
                         CudaPickFilters,
                         ::testing::ValuesIn(cases_of({60, 300, 900, 4101}, 8)),
                         name_of_case);

}  // namespace
}  // namespace kernels::test
