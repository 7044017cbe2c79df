// Ranking of tokens, and copies, on CUDA devices.
#include "kernels/error.h"
#include "tests/kernels/cuda/cuda_kit.h"
#include "tests/kernels/rank_scene.h"

namespace kernels::test {
namespace {

struct RankCase {
  std::string device;
  int n_valid, k;
};
std::vector<RankCase> rank_cases() {
  std::vector<RankCase> all;
  for (const std::string& device : cuda_devices_here())
    for (const auto& [n_valid, k] : std::vector<std::pair<int, int>>{
             {1, 1}, {2, 3}, {17, 4}, {256, 64}, {301, 1}, {301, 400}, {1000, 10}, {1000, 700}})
      all.push_back({device, n_valid, k});
  return all;
}
std::string name_of_rank_case(const ::testing::TestParamInfo<RankCase>& info) {
  return as_test_name(info.param.device + "_" + std::to_string(info.param.n_valid) + "_" +
                      std::to_string(info.param.k));
}

class CudaRank : public ::testing::TestWithParam<RankCase> {};

TEST_P(CudaRank, likeliest_first_and_ties_by_lowest_id) {
  const auto& [name, n_valid, k] = GetParam();
  const OpenedCuda device(name);
  const RankScene scene = rank_scene(n_valid, k, std::uint32_t(n_valid + k));
  expect_naive_ranks(*device, scene);
  expect_naive_tokens(*device, scene);
}

TEST_P(CudaRank, a_row_alone_has_the_same_bits) {
  const auto& [name, n_valid, k] = GetParam();
  const OpenedCuda device(name, emulation::Watch::Once);
  const RankScene scene = rank_scene(n_valid, k, std::uint32_t(n_valid + k));
  const RanksFound many = ranks(*device, scene);
  for (std::size_t r = 0; r < scene.rows.size(); r++) {
    RankScene one = scene;
    one.logits = scene.row(r);
    one.vocab = one.stride = n_valid;
    one.rows = {scene.rows[r]};
    const RanksFound alone = ranks(*device, one);
    ASSERT_EQ(alone.rankings[0].n, many.rankings[r].n);
    ASSERT_EQ(alone.rankings[0].sum, many.rankings[r].sum);
    for (int i = 0; i < alone.rankings[0].n; i++)
      ASSERT_EQ(alone.tokens[i].id, many.tokens[r * std::size_t(k) + i].id);
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, CudaRank, ::testing::ValuesIn(rank_cases()), name_of_rank_case);

class CudaRankLimits : public OnEachCuda {};

TEST_P(CudaRankLimits, the_maximum_number_of_tokens_is_sorted) {
  const OpenedCuda device(GetParam(), emulation::Watch::Once);
  RankScene scene;
  scene.vocab = scene.n_valid = scene.stride = kMaxRanked + 700;
  scene.k = kMaxRanked;
  scene.logits = normal_values(scene.stride, 3);
  scene.rows.resize(1);
  expect_naive_ranks(*device, scene);
  scene.k++;
  EXPECT_THROW(ranks(*device, scene), ContractError);
}
INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaRankLimits,
                         ::testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

class CudaRowCopies : public OnEachCuda {};

TEST_P(CudaRowCopies, leave_out_the_bytes_between_rows) {
  const OpenedCuda device(GetParam());
  expect_plain_copies(*device);
}
INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaRowCopies,
                         ::testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

// 5 MB in rows of 40 KB, more than the first wait covers.
TEST(CudaCopies, many_rows_are_copied_with_one_wait) {
  const OpenedCuda device("cuda:emulated", emulation::Watch::Once);
  constexpr int kRows = 128, kWidth = 10000, kStride = 10007;
  const auto values = normal_values(std::size_t(kRows) * kStride, 4);
  const DeviceFloats there(*device, values);
  std::vector<float> found(std::size_t(kRows) * kWidth);
  std::vector<void*> to;
  for (int r = 0; r < kRows; r++) to.push_back(&found[std::size_t(r) * kWidth]);
  for (int i = 0; i < 2; i++) {
    const std::int64_t waits = emulation::calls_of("cudaStreamSynchronize"),
                       bytes = emulation::bytes_to_host(),
                       taken = emulation::calls_of("cudaMallocHost");
    device->ops().download_rows(*device, to.data(), there.data(), kWidth * 4, kStride * 4, kRows);
    EXPECT_EQ(emulation::calls_of("cudaStreamSynchronize") - waits, 1);
    EXPECT_EQ(emulation::bytes_to_host() - bytes, std::int64_t{4} * kRows * kWidth);
    EXPECT_EQ(emulation::calls_of("cudaMallocHost") - taken, i == 0 ? 1 : 0)
        << "the buffer is kept";
  }
  for (int r = 0; r < kRows; r++)
    for (int i = 0; i < kWidth; i++)
      ASSERT_EQ(found[std::size_t(r) * kWidth + i], values[std::size_t(r) * kStride + i]);
}

// Queued kernels use the copied memory before and after the copy.
TEST(CudaCopies, device_copies_do_not_wait_and_keep_their_order) {
  const OpenedCuda device("cuda:emulated");
  const DeviceFloats x(*device, {1, 2}), y(*device, {0, 0});
  const Ops& ops = device->ops();
  const std::int64_t waits = emulation::calls_of("cudaStreamSynchronize"),
                     bytes = emulation::bytes_to_host() + emulation::bytes_to_device();
  ops.copy(*device, y.data(), x.data(), 8);  // 1, 2
  ops.add(*device, x.data(), y.data(), 2);   // 2, 4
  ops.copy(*device, x.data(), y.data(), 8);
  ops.add(*device, x.data(), y.data(), 2);  // 4, 8
  EXPECT_EQ(emulation::calls_of("cudaStreamSynchronize") - waits, 0);
  EXPECT_EQ(emulation::bytes_to_host() + emulation::bytes_to_device() - bytes, 0);
  EXPECT_EQ(x.read(), (std::vector<float>{2, 4}));
  EXPECT_EQ(y.read(), (std::vector<float>{4, 8}));
}

}  // namespace
}  // namespace kernels::test
