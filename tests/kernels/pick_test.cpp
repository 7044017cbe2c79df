// Philox, Gumbel noise, filters and the choice of tokens.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "kernels/philox.h"
#include "kernels/sampling.h"
#include "tests/kernels/kernel_test_support.h"

namespace kernels::test {
namespace {

using Counter = std::array<std::uint32_t, 4>;
const float kInf = std::numeric_limits<float>::infinity();

TEST(Philox, gives_the_authors_known_answers) {
  // Random123's kat_vectors, philox4x32 10: counter, key, result.
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~std::uint64_t{0}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(std::uint64_t{0x299f31d0} << 32 | 0xa4093822,
                   {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

Picked pick_one(Device& device,
                const std::vector<float>& logits,
                const PickRow& row,
                int n_valid = 0) {
  Picked picked;
  const int vocab = int(logits.size());
  Guarded row_logits(logits);
  device.ops().pick(device, row_logits.data(), vocab, 1, vocab, n_valid ? n_valid : vocab, &row,
                    &picked);
  return picked;
}

TEST(Pick, argmax_ties_go_to_the_lowest_id) {
  for_each_device([](Device& device) {
    for (const int vocab : {1, 2, 15, 16, 17, 100, 1000}) {
      auto logits = normal_values(vocab, vocab);
      const Picked picked = pick_one(device, logits, {});
      const auto best = std::max_element(logits.begin(), logits.end());
      ASSERT_EQ(picked.id, best - logits.begin());
      ASSERT_EQ(picked.score, *best);
      ASSERT_EQ(picked.logit, *best);
      double sum = 0;
      for (const float x : logits) sum += std::exp(double(x) - *best);
      ASSERT_NEAR(picked.logp, -std::log(sum), 1e-5);  // vocab terms in f32, 2^-22 each
      if (vocab < 17) continue;
      logits[vocab - 1] = logits[9] = logits[4] = 7;
      const Picked tie = pick_one(device, logits, {});
      ASSERT_EQ(tie.id, 4);
      ASSERT_EQ(tie.margin, 0);
      logits[4] = logits[vocab - 1] = 6.5;
      ASSERT_EQ(pick_one(device, logits, {}).margin, 0.5f);
    }
  });
}

TEST(Pick, padding_tokens_are_never_chosen) {
  for_each_device(
      [](Device& device) {
        std::vector<float> logits(70, 0);
        logits[5] = 1;
        logits[66] = 9;
        logits[69] = NAN;
        for (const float temperature : {0.f, 1e-3f}) {
          PickRow row;
          row.temperature = temperature;
          ASSERT_EQ(pick_one(device, logits, row, 66).id, 5);
        }
      },
      {1});
}

TEST(Pick, non_finite_logits_are_named) {
  for_each_device(
      [](Device& device) {
        for (const float temperature : {0.f, 0.7f}) {
          PickRow row;
          row.temperature = temperature;
          for (const int vocab : {3, 40, 1000}) {
            for (const float bad : {NAN, kInf}) {
              std::vector<float> logits(vocab, 1);
              logits[vocab - 1] = logits[vocab / 2] = bad;
              const Picked picked = pick_one(device, logits, row);
              ASSERT_EQ(picked.id, -1);
              ASSERT_EQ(picked.bad_index, vocab / 2);
            }
            std::vector<float> logits(vocab, -kInf);
            ASSERT_EQ(pick_one(device, logits, row).id, -1);
            logits[1] = -3;
            ASSERT_EQ(pick_one(device, logits, row).id, 1);
            ASSERT_EQ(pick_one(device, logits, row).logp, 0);
          }
        }
      },
      {1});
}

struct Best {
  int id = -1;
  double score = -kInf, second = -kInf;
};
Best exact_choice(const std::vector<float>& kept, const PickRow& row) {
  Best best;
  for (int id = 0; id < int(kept.size()); id++) {
    if (kept[id] == -kInf) continue;
    const double score = double(kept[id]) / row.temperature +
                         gumbel_from_bits(random_bits(row.seed, row.stream, row.position, id));
    if (score > best.score) {
      best.second = best.score;
      best = {id, score, best.second};
    } else {
      best.second = std::max(best.second, score);
    }
  }
  return best;
}

TEST(Pick, sampling_equals_the_gumbel_max_formula) {
  for_each_device(
      [](Device& device) {
        for (const int vocab : {3, 64, 130, 4099}) {
          for (const float spread : {0.01f, 1.f, 6.f}) {
            const auto logits = normal_values(vocab, vocab, spread);
            for (int i = 0; i < 24; i++) {
              PickRow row;
              row.temperature = i % 3 == 0 ? 1 : i % 3 == 1 ? 0.3f : 2.5f;
              row.seed = 0x123456789abcull * (i + 1);
              row.stream = i % 4;
              row.position = i * 1000;
              const Best best = exact_choice(logits, row);
              const Picked picked = pick_one(device, logits, row);
              ASSERT_EQ(picked.id, best.id)
                  << "vocab " << vocab << " spread " << spread << " draw " << i;
              ASSERT_FLOAT_EQ(picked.score, float(best.score));
              ASSERT_NEAR(picked.margin, best.score - best.second,
                          1e-6 * (1 + std::fabs(best.score)));
              const auto distribution = filtered_distribution(logits, vocab, row);
              ASSERT_NEAR(picked.logp, std::log(distribution[picked.id]), 2e-5);
              ASSERT_EQ(picked.logit, logits[picked.id]);
            }
          }
        }
      },
      {1, 2});
}

TEST(Pick, sampling_follows_the_distribution) {
  const auto device = open_cpu(2);
  const std::vector<float> logits = {1, 0, 2, -1, 0.5f, -kInf, 1.5f};
  PickRow row;
  row.temperature = 0.8f;
  row.top_p = 0.95f;
  const auto distribution = filtered_distribution(logits, 7, row);
  constexpr int kDraws = 20000;
  std::vector<PickRow> rows(kDraws, row);
  std::vector<Picked> picked(kDraws);
  std::vector<float> all;
  for (int i = 0; i < kDraws; i++) {
    rows[i].position = i;
    all.insert(all.end(), logits.begin(), logits.end());
  }
  device->ops().pick(*device, all.data(), 7, kDraws, 7, 7, rows.data(), picked.data());
  std::vector<int> count(7);
  for (const Picked& p : picked) count[p.id]++;
  double chi_square = 0;
  int n_kept = 0;
  for (int id = 0; id < 7; id++) {
    if (distribution[id] == 0) {
      EXPECT_EQ(count[id], 0);
      continue;
    }
    const double expected = distribution[id] * kDraws;
    chi_square += (count[id] - expected) * (count[id] - expected) / expected;
    n_kept++;
  }
  EXPECT_GT(n_kept, 3);
  EXPECT_LT(chi_square, 30);  // at most 6 degrees of freedom: p < 4e-5
}

// A naive second implementation of the filters.
std::vector<double> naive_distribution(std::vector<float> logits, const PickRow& row) {
  const int n = int(logits.size());
  std::map<int, bool> seen;
  for (int i = 0; i < row.n_history; i++) seen[row.history[i]] = true;
  for (const auto& [id, yes] : seen)
    if (row.repetition_penalty != 1)
      logits[id] = logits[id] < 0 ? logits[id] * row.repetition_penalty
                                  : logits[id] / row.repetition_penalty;
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  if (row.top_k > 0 && row.top_k < n) order.resize(row.top_k);
  const auto p = [&](int id) {
    return std::exp((double(logits[id]) - logits[order[0]]) / row.temperature);
  };
  double total = 0, sum = 0;
  for (const int id : order) total += p(id);
  std::vector<double> distribution(n, 0);
  for (const int id : order) {
    const bool crossed = row.top_p < 1 && sum >= row.top_p * total;
    sum += p(id);
    if (!crossed && p(id) >= row.min_p) distribution[id] = p(id);
  }
  total = std::accumulate(distribution.begin(), distribution.end(), 0.0);
  for (double& x : distribution) x /= total;
  return distribution;
}

TEST(Filters, keep_the_tokens_of_a_naive_implementation) {
  std::mt19937 random(21);
  const std::vector<std::int32_t> history = {3, 3, 50, 7, 299, 0};
  for (int i = 0; i < 200; i++) {
    const int vocab = i % 2 ? 300 : 900;
    auto logits = normal_values(vocab, i, i % 5 ? 2.f : 0.05f);
    if (i % 4 == 0)
      for (float& x : logits) x = std::round(x);  // many ties
    PickRow row;
    row.temperature = 0.5f + float(random() % 100) / 50;
    if (i % 3) row.top_k = int(random() % (vocab + 10));
    if (i % 5) row.top_p = float(random() % 1000) / 1000;
    if (i % 7 == 0) row.min_p = float(random() % 100) / 200;
    if (i % 2) row.repetition_penalty = 1.3f;
    row.history = history.data();
    row.n_history = int(history.size());
    const auto distribution = filtered_distribution(logits, vocab, row),
               naive = naive_distribution(logits, row);
    for (int id = 0; id < vocab; id++)
      ASSERT_NEAR(distribution[id], naive[id], 1e-12) << "case " << i << " token " << id;
  }
}

TEST(Filters, the_choice_is_the_best_of_the_kept_tokens) {
  for_each_device(
      [](Device& device) {
        const std::vector<std::int32_t> history = {1, 2, 3, 77};
        for (int i = 0; i < 60; i++) {
          const auto logits = normal_values(600, 100 + i, 2);
          PickRow row;
          row.temperature = i % 6 == 0 ? 0 : 0.9f;
          row.top_k = i % 2 ? 40 : 0;
          row.top_p = i % 3 ? 0.9f : 1;
          row.min_p = i % 4 ? 0 : 0.05f;
          row.repetition_penalty = i % 5 ? 1 : 1.2f;
          row.history = history.data();
          row.n_history = 4;
          row.seed = i;
          std::vector<float> kept;
          ASSERT_TRUE(filter_logits(logits, 600, row, kept));
          const Picked picked = pick_one(device, logits, row);
          const int expected = row.temperature == 0
                                   ? int(std::max_element(kept.begin(), kept.end()) - kept.begin())
                                   : exact_choice(kept, row).id;
          ASSERT_EQ(picked.id, expected) << "case " << i;
          ASSERT_EQ(picked.bad_index, -1);
        }
      },
      {2});
}

TEST(Filters, a_single_kept_token_is_certain) {
  const auto device = open_cpu(1);
  const auto logits = normal_values(200, 22);
  PickRow row;
  row.temperature = 5;
  row.top_k = 1;
  const Picked picked = pick_one(*device, logits, row);
  EXPECT_EQ(picked.id, std::max_element(logits.begin(), logits.end()) - logits.begin());
  EXPECT_EQ(picked.logp, 0);
  EXPECT_EQ(picked.margin, kInf);
}

}  // namespace
}  // namespace kernels::test
