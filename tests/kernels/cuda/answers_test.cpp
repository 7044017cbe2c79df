// Results for the host stay on the device until they are requested; one wait copies all of them.
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

class CudaAnswers : public OnEachCuda {
 protected:
  static constexpr int kRows = 3, kVocab = 40;
  struct Answers {
    std::vector<Picked> picked = std::vector<Picked>(kRows);
    std::vector<float> gathered = std::vector<float>(4, -1);
    std::vector<std::vector<float>> rows{std::size_t(kRows), std::vector<float>(kVocab - 3, -1)};
  };
  void enqueue(Answers& answers) {
    const std::int64_t at[] = {5, 119, 40, 0};
    std::vector<void*> to;
    for (auto& row : answers.rows) to.push_back(row.data());
    pick(logits_, answers.picked);
    ops_.gather(*device_, logits_.data(), at, 4, answers.gathered.data());
    ops_.download_rows(*device_, to.data(), logits_.data(), (kVocab - 3) * 4, kVocab * 4, kRows);
  }
  void pick(const DeviceFloats& logits, std::vector<Picked>& picked) {
    const std::vector<PickRow> rows(kRows);
    ops_.pick(*device_, logits.data(), kVocab, kRows, kVocab, kVocab, rows.data(), picked.data());
  }
  void expect_results(const Answers& answers) const {
    for (int r = 0; r < kRows; r++) {
      const auto row = values_.begin() + r * kVocab;
      const auto best = std::max_element(row, row + kVocab);
      EXPECT_EQ(answers.picked[std::size_t(r)].id, best - row);
      EXPECT_EQ(answers.picked[std::size_t(r)].logit, *best);
      EXPECT_TRUE(std::equal(row, row + kVocab - 3, answers.rows[std::size_t(r)].begin()));
    }
    EXPECT_EQ(answers.gathered, (std::vector{values_[5], values_[119], values_[40], values_[0]}));
  }
  static std::int64_t waits() { return emulation::calls_of("cudaStreamSynchronize"); }

  OpenedCuda device_{GetParam()};
  const Ops& ops_ = device_->ops();
  const std::vector<float> values_ = normal_values(kRows * kVocab, 9);
  const DeviceFloats logits_{*device_, values_};
};

TEST_P(CudaAnswers, results_are_copied_together_with_one_wait) {
  Answers alone, together;
  std::int64_t before = waits();
  enqueue(alone);
  EXPECT_TRUE(!is_emulated(*device_) || waits() == before + 3) << "one wait per request";
  expect_results(alone);
  before = waits();
  BatchedDownloads answers(*device_);
  enqueue(together);
  EXPECT_EQ(waits(), before);
  EXPECT_EQ(together.picked[0].id, -1);
  answers.finish();
  EXPECT_TRUE(!is_emulated(*device_) || waits() == before + 1);
  expect_results(together);
  answers.finish();
  EXPECT_TRUE(!is_emulated(*device_) || waits() == before + 1) << "nothing is held any more";
}

TEST_P(CudaAnswers, a_result_is_copied_before_its_memory_is_reused) {
  auto other_values = values_;
  std::reverse(other_values.begin(), other_values.end());
  const DeviceFloats other(*device_, other_values);
  std::vector<Picked> first(kRows), second(kRows);
  BatchedDownloads answers(*device_);
  pick(logits_, first);
  pick(other, second);
  answers.finish();
  for (int r = 0; r < kRows; r++) {
    const auto row = std::size_t(kRows - 1 - r);
    EXPECT_EQ(first[row].id, kVocab - 1 - second[std::size_t(r)].id);
    EXPECT_EQ(first[row].logit, second[std::size_t(r)].logit);
  }
}

TEST_P(CudaAnswers, results_without_a_wait_are_not_copied_later) {
  Answers dropped, next;
  {
    const BatchedDownloads answers(*device_);
    enqueue(dropped);
  }
  enqueue(next);
  expect_results(next);
  EXPECT_EQ(dropped.picked[0].id, -1);
  EXPECT_EQ(dropped.gathered[0], -1);
  EXPECT_EQ(dropped.rows[2][0], -1);
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaAnswers,
                         ::testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

}  // namespace
}  // namespace kernels::test
