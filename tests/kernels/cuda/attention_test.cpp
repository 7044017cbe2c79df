// Attention on CUDA devices over random trees: against a double loop, and bit for bit wherever a
// position is stored and in any batch.
#include <numeric>

#include "tests/kernels/attention_scene.h"
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

using emulation::Watch;

struct AttentionCase {
  std::string device;
  DType dtype;
  Heads heads;
  int window;
};
std::vector<AttentionCase> cases_of(const std::vector<Heads>& layouts,
                                    const std::vector<int>& windows) {
  std::vector<AttentionCase> all;
  for (const std::string& device : cuda_devices_here())
    for (const DType dtype : kAllDTypes)
      for (const Heads& heads : layouts)
        for (const int window : windows) all.push_back({device, dtype, heads, window});
  return all;
}
std::string name_of_case(const ::testing::TestParamInfo<AttentionCase>& info) {
  const AttentionCase& c = info.param;
  return as_test_name(c.device + "_" + name_of(c.dtype) + "_heads_" +
                      std::to_string(c.heads.n_heads) + "_" + std::to_string(c.heads.n_kv_heads) +
                      "_" + std::to_string(c.heads.head_dim) + "_window_" +
                      std::to_string(c.window));
}

class CudaAttention : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(CudaAttention, equals_a_double_loop_over_ragged_sequences_and_trees) {
  const auto& [name, dtype, heads, window] = GetParam();
  const OpenedCuda device(name, window == 64 ? Watch::Orders : Watch::Once);
  const Scene scene = ragged_scene(heads, dtype, 60);
  Forward forward(*device, scene, rows_of(scene), prefixes_of(scene), window);
  forward.softcap = window == 64 ? 1.5f : 0;
  const std::vector<float> out = forward.attend();
  const std::size_t width = heads.n_heads * heads.head_dim;
  SquaredError error;
  for (std::size_t r = 0; r < out.size() / width; r++) {
    const std::vector<double> exact = forward.exact(r, window);
    // Scores near 1 have errors of head_dim 2^-24 sum |terms| ~ 1e-5, and so do the weights; a
    // weighted mean of values below 5 has five times that error.
    for (std::size_t i = 0; i < width; i++) {
      ASSERT_NEAR(out[r * width + i], exact[i], 5e-5) << r;
      error.add(out[r * width + i], exact[i]);
    }
  }
  ASSERT_LT(error.normalized(), kMostSquaredError);
}
INSTANTIATE_TEST_SUITE_P(Layouts,
                         CudaAttention,
                         ::testing::ValuesIn(cases_of({{4, 4, 64}, {6, 2, 20}, {4, 1, 48}},
                                                      {0, 5, 64, 100})),
                         name_of_case);
// 200 dimensions pass through shared memory in two slabs, in f32 in four.
INSTANTIATE_TEST_SUITE_P(Wide,
                         CudaAttention,
                         ::testing::ValuesIn(cases_of({{2, 1, 200}}, {0, 64})),
                         name_of_case);

class CudaAttentionWeights : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(CudaAttentionWeights, equal_a_double_loop) {
  const auto& [name, dtype, heads, window] = GetParam();
  const OpenedCuda device(name);
  const Scene scene = ragged_scene(heads, dtype, 60);
  const std::vector<RowOf> rows = rows_of(scene);
  Forward forward(*device, scene, rows, prefixes_of(scene), window);
  forward.softcap = window > 0 ? 0.7f : 0;
  for (std::size_t r = 0; r < rows.size(); r += 9) {
    const std::vector<float> found = forward.weights(int(r));
    const auto seen = forward.seen_by(r, window);
    std::vector<double> mean(std::max(seen.size(), found.size()));
    for (int head = 0; head < heads.n_heads; head++) {
      const std::vector<double> weight = forward.exact_weights(r, head, seen);
      for (std::size_t i = 0; i < seen.size(); i++) mean[i] += weight[i] / heads.n_heads;
    }
    for (std::size_t i = 0; i < found.size(); i++)  // from the row itself upwards
      ASSERT_NEAR(found[found.size() - 1 - i], mean[i], 1e-6) << "row " << r;
  }
}
INSTANTIATE_TEST_SUITE_P(Layouts,
                         CudaAttentionWeights,
                         ::testing::ValuesIn(cases_of({{4, 4, 64}, {6, 2, 20}}, {0, 5, 100})),
                         name_of_case);

using Bits = std::vector<std::uint32_t>;
Bits row_of(const std::vector<float>& out, std::size_t r, std::size_t width) {
  Bits bits(width);
  std::memcpy(bits.data(), &out[r * width], 4 * width);
  return bits;
}
/// The result of a row with only its ancestors.
Bits alone(Device& device, const Scene& scene, const RowOf& row, int window) {
  const Scene apart{scene.heads, scene.dtype, {scene.seqs[row.seq]}};
  const Scene::Seq& seq = apart.seqs[0];
  std::vector<RowOf> chain;
  for (int i = row.node; i >= seq.n_prefix; i = seq.nodes[i].parent) chain.push_back({0, i});
  const auto out = Forward(device, apart, chain, {seq.n_prefix}, window).attend();
  return row_of(out, 0, scene.heads.n_heads * scene.heads.head_dim);
}

class CudaAttentionRows : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(CudaAttentionRows, are_batch_invariant) {
  const auto& [name, dtype, heads, window] = GetParam();
  const OpenedCuda device(name, Watch::Once);
  const Scene scene = ragged_scene(heads, dtype, 70);
  const std::size_t width = heads.n_heads * heads.head_dim;
  const auto rows = rows_of(scene);
  const auto all = Forward(*device, scene, rows, prefixes_of(scene), window).attend();
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  std::vector<RowOf> shuffled;
  for (const std::size_t i : order) shuffled.push_back(rows[i]);
  const auto mixed = Forward(*device, scene, shuffled, prefixes_of(scene), window).attend();
  for (std::size_t i = 0; i < order.size(); i++)
    ASSERT_EQ(0, std::memcmp(&mixed[i * width], &all[order[i] * width], 4 * width)) << order[i];
  for (std::size_t r = 0; r < rows.size(); r += 17)
    ASSERT_EQ(alone(*device, scene, rows[r], window), row_of(all, r, width)) << "row " << r;
}

// The rows of a group have more keys in flight than fit beside the cached keys of a chunk.
TEST_P(CudaAttentionRows, are_batch_invariant_without_shared_memory_for_keys) {
  const auto& [name, dtype, heads, window] = GetParam();
  const OpenedCuda device(name, Watch::Once);
  const Scene scene{heads, dtype, {random_seq(heads, dtype, 110, 40, 30, 21)}};
  const auto rows = rows_of(scene);
  const auto all = Forward(*device, scene, rows, {110}, window).attend();
  for (std::size_t r = 0; r < rows.size(); r += 3)
    ASSERT_EQ(alone(*device, scene, rows[r], window),
              row_of(all, r, heads.n_heads * heads.head_dim))
        << "row " << r;
}
INSTANTIATE_TEST_SUITE_P(
    Layouts,
    CudaAttentionRows,
    ::testing::ValuesIn(cases_of({{4, 2, 36}, {5, 1, 17}, {2, 2, 64}, {2, 1, 200}}, {0, 50})),
    name_of_case);

class CudaAttentionStorage : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(CudaAttentionStorage, cached_and_in_flight_positions_count_the_same) {
  const auto& [name, dtype, heads, window] = GetParam();
  const OpenedCuda device(name, Watch::Once);
  const Scene scene{heads, dtype, {random_seq(heads, dtype, 150, 1, 100, 15)}};
  const std::size_t width = heads.n_heads * heads.head_dim;
  const auto all_cached = Forward(*device, scene, {{0, 150}}, {150}, window).attend();
  for (const int n_cached : {149, 130, 128, 127, 64, 63, 1, 0}) {
    std::vector<RowOf> rows;
    for (int i = n_cached; i <= 150; i++) rows.push_back({0, i});
    const auto out = Forward(*device, scene, rows, {n_cached}, window).attend();
    ASSERT_EQ(0, std::memcmp(&out[(rows.size() - 1) * width], all_cached.data(), 4 * width))
        << n_cached << " cached";
  }
}

/// Overwrites keys and values of one node of a tree (chain: 50) or of a chain (100). Expects the
/// same bits in all rows that do not attend to it; some share products with rows that do.
void expect_unseen(Device& device, const AttentionCase& of, int chain, float poison) {
  Scene scene{of.heads, of.dtype, {random_seq(of.heads, of.dtype, 70, 30, chain, 16)}};
  auto& nodes = scene.seqs[0].nodes;
  const auto rows = rows_of(scene);
  const std::size_t width = of.heads.n_heads * of.heads.head_dim;
  const auto clean = Forward(device, scene, rows, {70}, 0).attend();
  const int poisoned = 84;
  for (auto* values : {&nodes[poisoned].k, &nodes[poisoned].v})
    std::fill(values->begin(), values->end(), poison);
  const auto out = Forward(device, scene, rows, {70}, 0).attend();
  int n_blind = 0;
  for (std::size_t r = 0; r < rows.size(); r++) {
    bool sees = false;
    for (int i = rows[r].node; i >= 0; i = nodes[i].parent) sees |= i == poisoned;
    ASSERT_EQ(std::memcmp(&out[r * width], &clean[r * width], 4 * width) != 0, sees) << r;
    n_blind += !sees;
  }
  ASSERT_GT(n_blind, 5);
}

TEST_P(CudaAttentionStorage, masked_rows_may_be_nan) {
  const OpenedCuda device(GetParam().device);
  for (const int chain : {50, 100}) expect_unseen(*device, GetParam(), chain, kNan);
}

TEST_P(CudaAttentionStorage, masked_rows_may_be_large) {
  const OpenedCuda device(GetParam().device, Watch::Once);
  const float large = GetParam().dtype == DType::F16 ? 60'000.0f : 1e30f;
  for (const int chain : {50, 100}) expect_unseen(*device, GetParam(), chain, large);
}
INSTANTIATE_TEST_SUITE_P(Layouts,
                         CudaAttentionStorage,
                         ::testing::ValuesIn(cases_of({{4, 2, 64}, {2, 1, 31}, {9, 1, 136}},
                                                      {0, 50})),
                         name_of_case);

}  // namespace
}  // namespace kernels::test
