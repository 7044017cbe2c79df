// Rows to rank, and their ranking by plain loops in double; for the CPU's tests and CUDA's.
#pragma once

#include <limits>
#include <numeric>

#include "tests/kernels/kernel_test_support.h"

namespace kernels::test {

struct NaiveRanking {
  int bad_index = -1;
  double sum = 0;
  std::vector<int> ids;
  std::vector<float> logits;
};

/// Applies penalty and filters of kernels/sampling.h in a naive implementation, then repeatedly takes the
/// best of the remaining tokens.
inline NaiveRanking naive_ranking(std::vector<float> logits, const PickRow& row, int k) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  NaiveRanking naive;
  const int n = int(logits.size());
  for (int id = n - 1; id >= 0; id--)
    if (std::isnan(logits[id]) || logits[id] == kInf) naive.bad_index = id;
  if (naive.bad_index >= 0) return naive;
  std::vector<bool> seen(n);
  for (int i = 0; i < row.n_history && row.repetition_penalty != 1; i++) {
    const int id = row.history[i];
    if (id < 0 || id >= n || seen[id]) continue;
    seen[id] = true;
    logits[id] =
        logits[id] < 0 ? logits[id] * row.repetition_penalty : logits[id] / row.repetition_penalty;
  }
  std::vector<int> order;  // of all tokens
  std::vector<bool> taken(n);
  for (int place = 0; place < n; place++) {
    int best = -1;
    for (int id = 0; id < n; id++)
      if (!taken[id] && (best < 0 || logits[id] > logits[best])) best = id;
    taken[best] = true;
    order.push_back(best);
  }
  const float top = logits[order[0]];
  if (top == -kInf) return naive;
  const bool greedy = row.temperature < 1e-5f;
  const double temperature = greedy ? 1 : row.temperature;
  const auto weight = [&](int id) { return std::exp((double(logits[id]) - top) / temperature); };
  if (!greedy) {
    if (row.top_k > 0 && row.top_k < n) order.resize(row.top_k);
    double total = 0, before = 0;
    for (const int id : order) total += weight(id);
    std::vector<int> kept;
    for (const int id : order) {
      const bool crossed = row.top_p < 1 && before >= double(row.top_p) * total;
      before += weight(id);
      if (!crossed && weight(id) >= row.min_p) kept.push_back(id);
    }
    order = kept;
  }
  for (const int id : order) {
    naive.sum += weight(id);
    if (int(naive.ids.size()) == k || logits[id] == -kInf) continue;
    naive.ids.push_back(id);
    naive.logits.push_back(logits[id]);
  }
  return naive;
}

/// Rows of one width, all ranked in one call.
struct RankScene {
  int vocab = 0, n_valid = 0, stride = 0, k = 0;
  std::vector<float> logits;  // [rows, stride]; large values from n_valid on
  std::vector<PickRow> rows;

  std::vector<float> row(std::size_t r) const {
    const auto begin = logits.begin() + std::ptrdiff_t(r) * stride;
    return {begin, begin + n_valid};
  }
};

/// Rows of every kind: plain, rounded so that many are equal, all equal, with both zeros, with
/// -inf, NaN, +inf, only -inf; with penalties and filters in turn.
inline RankScene rank_scene(int n_valid, int k, std::uint32_t seed) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  static const std::vector<std::int32_t> history = {3, 3, 50, 7, 299, 0, -1, 100000};
  constexpr int kKinds = 8, kRows = 24;
  RankScene scene{.vocab = n_valid + 3,
                  .n_valid = n_valid,
                  .stride = n_valid + 5,
                  .k = k,
                  .logits = {},
                  .rows = {}};
  std::mt19937 random(seed);
  scene.logits.assign(std::size_t(kRows) * scene.stride, 1000.f);
  scene.rows.resize(kRows);
  for (int r = 0; r < kRows; r++) {
    float* logits = &scene.logits[std::size_t(r) * scene.stride];
    const auto values = normal_values(n_valid, seed + std::uint32_t(r), r % 3 ? 2.f : 0.05f);
    std::copy(values.begin(), values.end(), logits);
    const int kind = r % kKinds, some = int(random() % n_valid);
    for (int i = 0; i < n_valid; i++) {
      if (kind == 1) logits[i] = std::round(logits[i]);
      if (kind == 2) logits[i] = i % 2 ? 0.0f : -0.0f;
      if (kind == 3 && i % 3 == 0) logits[i] = -kInf;
      if (kind == 6) logits[i] = -kInf;
    }
    if (kind == 4) logits[some] = logits[n_valid - 1] = NAN;
    if (kind == 5) logits[some] = kInf;
    PickRow& row = scene.rows[r];
    row.temperature = r < kKinds ? 0.0f : 0.5f + float(random() % 100) / 50;
    row.seed = random();
    row.position = random();
    // A greedy row ignores its filters.
    if (r % 2) row.top_k = 1 + int(random() % (n_valid + 10));
    if (r % 5 == 1) row.top_p = float(1 + random() % 999) / 1000;
    if (r % 7 == 2) row.min_p = float(random() % 100) / 200;
    if (r % 3 == 0) continue;
    row.repetition_penalty = 1.3f;
    row.history = history.data();
    row.n_history = int(history.size());
  }
  return scene;
}

struct RanksFound {
  std::vector<Ranking> rankings;
  std::vector<RankedToken> tokens;
};
inline RanksFound ranks(Device& device, const RankScene& scene) {
  const int n_rows = int(scene.rows.size());
  const DeviceFloats there(device, scene.logits);
  RanksFound found{std::vector<Ranking>(n_rows),
                   std::vector<RankedToken>(std::size_t(n_rows) * scene.k)};
  device.ops().rank(device, there.data(), scene.stride, n_rows, scene.vocab, scene.n_valid,
                    scene.rows.data(), scene.k, found.rankings.data(), found.tokens.data());
  return found;
}

inline void expect_naive_ranks(Device& device, const RankScene& scene) {
  const RanksFound found = ranks(device, scene);
  for (std::size_t r = 0; r < scene.rows.size(); r++) {
    SCOPED_TRACE("row " + std::to_string(r) + " of " + std::to_string(scene.n_valid) + ", k " +
                 std::to_string(scene.k));
    const NaiveRanking naive = naive_ranking(scene.row(r), scene.rows[r], scene.k);
    ASSERT_EQ(found.rankings[r].bad_index, naive.bad_index);
    ASSERT_EQ(found.rankings[r].n, int(naive.ids.size()));
    if (naive.ids.empty()) continue;
    // At most a few thousand terms of at most 1, in double.
    ASSERT_NEAR(found.rankings[r].sum, naive.sum, 1e-11 * naive.sum);
    for (std::size_t i = 0; i < naive.ids.size(); i++) {
      const RankedToken& token = found.tokens[r * std::size_t(scene.k) + i];
      ASSERT_EQ(token.id, naive.ids[i]) << "rank " << i;
      ASSERT_EQ(bits_of(token.logit), bits_of(naive.logits[i])) << "rank " << i;
    }
  }
}

/// The tokens alone, without their probabilities.
inline void expect_naive_tokens(Device& device, const RankScene& scene) {
  const int n_rows = int(scene.rows.size());
  const DeviceFloats there(device, scene.logits);
  std::vector<RankedToken> tokens(std::size_t(n_rows) * scene.k, RankedToken{7, 7});
  device.ops().rank(device, there.data(), scene.stride, n_rows, scene.vocab, scene.n_valid,
                    scene.rows.data(), scene.k, nullptr, tokens.data());
  for (std::size_t r = 0; r < scene.rows.size(); r++) {
    SCOPED_TRACE("row " + std::to_string(r) + " of " + std::to_string(scene.n_valid) + ", k " +
                 std::to_string(scene.k));
    const NaiveRanking naive = naive_ranking(scene.row(r), scene.rows[r], scene.k);
    for (std::size_t i = 0; i < std::size_t(scene.k); i++) {
      const RankedToken& token = tokens[r * std::size_t(scene.k) + i];
      ASSERT_EQ(token.id, i < naive.ids.size() ? naive.ids[i] : -1) << "rank " << i;
      if (i >= naive.ids.size()) continue;
      ASSERT_EQ(bits_of(token.logit), bits_of(naive.logits[i])) << "rank " << i;
    }
  }
}

/// Expects that rows with gaps between them are copied without the gaps, each to its place, and
/// that copies within the device and sums of rows run in the order of the calls.
inline void expect_plain_copies(Device& device) {
  for (const auto& [n_rows, width, stride] :
       {std::array{1, 1, 1}, {3, 7, 7}, {5, 33, 40}, {2, 1, 9}}) {
    const auto values = normal_values(std::size_t(n_rows) * stride, std::uint32_t(width));
    const DeviceFloats from(device, values), copy(device, std::vector<float>(values.size())),
        sum(device, values);
    device.ops().copy(device, copy.data(), from.data(), std::int64_t(values.size()) * 4);
    device.ops().add(device, copy.data(), sum.data(), std::int64_t(values.size()));
    device.ops().copy(device, copy.data(), sum.data(), std::int64_t(values.size()) * 4);
    std::vector<Guarded> rows;
    std::vector<void*> to(n_rows);
    for (int r = 0; r < n_rows; r++) rows.emplace_back(std::size_t(width));
    for (int r = 0; r < n_rows; r++) to[r] = rows[n_rows - 1 - r].data();
    device.ops().download_rows(device, to.data(), copy.data(), width * 4, stride * 4, n_rows);
    for (int r = 0; r < n_rows; r++) {
      ASSERT_TRUE(rows[r].intact());
      for (int i = 0; i < width; i++) {
        const float expected = 2 * values[std::size_t(n_rows - 1 - r) * stride + i];
        ASSERT_EQ(bits_of(rows[r][i]), bits_of(expected)) << r << " " << i;
      }
    }
    ASSERT_EQ(from.read(), values);
  }
}

}  // namespace kernels::test
