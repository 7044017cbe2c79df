// The device queues kernels until a result is needed. This has no visible effect on host writes, frees and
// graphs; faults are reported at a later call.
#include <cstdlib>
#include <cstring>
#include <optional>

#include <gmock/gmock.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include "kernels/cuda/side.h"
#include "kernels/emulation/emulation.h"
#include "kernels/error.h"
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Normalises rows of 8 on the device and waits for the result.
std::vector<float> normed(const std::vector<float>& values) {
  const auto device = open_cuda("cuda:emulated");
  const DeviceFloats x(*device, values), w(*device, std::vector<float>(8, 1)),
      y(*device, std::vector<float>(values.size()));
  device->ops().rms_norm(*device, x.data(), w.data(), y.data(), int(values.size()) / 8, 8, 1e-5f);
  return y.read();
}

class HeldBack : public ::testing::Test {
 protected:
  /// Queues y = norm(x).
  void norm(const DeviceFloats& x, const DeviceFloats& y) {
    device_->ops().rms_norm(*device_, x.data(), ones_.data(), y.data(), 2, 8, 1e-5f);
  }
  OpenedCuda device_{"cuda:emulated"};
  const std::vector<float> a_ = normal_values(16, 1), b_ = normal_values(16, 2);
  const DeviceFloats ones_{*device_, std::vector<float>(8, 1)}, x_{*device_, a_},
      y_{*device_, std::vector<float>(16)}, z_{*device_, std::vector<float>(16)};
};

TEST_F(HeldBack, host_writes_come_after_kernels_that_read_old_data) {
  norm(x_, y_);
  device_->ops().upload(*device_, x_.data(), b_.data(), 16 * 4);
  norm(x_, z_);
  EXPECT_EQ(y_.read(), normed(a_));
  EXPECT_EQ(z_.read(), normed(b_));
}

TEST_F(HeldBack, host_writes_over_kernel_results_remain) {
  norm(x_, y_);
  device_->ops().upload(*device_, y_.data(), b_.data(), 16 * 4);
  EXPECT_EQ(y_.read(), b_);
}

// The device may read host memory late, at the wait; the source of the upload is freed by then.
// CU18.
TEST_F(HeldBack, the_source_of_an_upload_may_be_freed_at_once) {
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t n = 16 * sizeof(float);
  for (int i = 0; i < 40; i++) {
    void* const page =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    const std::vector<float>& values = i % 2 == 0 ? b_ : a_;
    std::memcpy(page, values.data(), n);
    device_->ops().upload(*device_, x_.data(), page, n);
    ASSERT_EQ(munmap(page, bytes), 0);  // a read of it is a fault
    norm(x_, y_);
    EXPECT_EQ(y_.read(), normed(values));
  }
}

TEST_F(HeldBack, memory_is_freed_after_the_kernels_that_use_it) {
  {
    const DeviceFloats passing(*device_, b_);
    norm(passing, y_);
  }
  EXPECT_EQ(y_.read(), normed(b_));
}

TEST_F(HeldBack, other_copies_do_not_flush_the_queue) {
  norm(x_, y_);
  const std::int64_t before = device_->n_launches();
  device_->ops().upload(*device_, z_.data(), b_.data(), 16 * 4);
  EXPECT_EQ(device_->n_launches(), before);
  float one = 0;
  device_->ops().download(*device_, &one, z_.data(), 4);
  EXPECT_EQ(one, b_[0]);
  EXPECT_EQ(device_->n_launches(), before + 1);
  EXPECT_EQ(open_cpu(1)->n_launches(), 0);
}

TEST_F(HeldBack, each_kernel_keeps_the_list_of_its_call) {
  std::vector<float> rows(64 * 8);
  for (std::size_t i = 0; i < rows.size(); i++) rows[i] = float(i / 8);
  const PackedOnDevice table = pack_on_device(*device_, rows, 64, 8, DType::F32);
  const std::int32_t ids[3][2] = {{3, 60}, {7, 9}, {3, 60}};
  const DeviceFloats out(*device_, std::vector<float>(3 * 16));
  for (int i = 0; i < 3; i++)
    device_->ops().embed(*device_, table.matrix, ids[i], 2, out.data() + i * 16);
  const auto found = out.read();
  for (std::size_t i = 0; i < 6; i++) EXPECT_EQ(found[i * 8 + 5], float(ids[i / 2][i % 2])) << i;
}

// Scratch memory that grows is a new buffer, and the smaller one is freed.
TEST_F(HeldBack, scratch_memory_may_grow_during_a_step) {
  struct Product {
    int n, k;
    std::vector<float> y;
  };
  std::vector<Product> products = {{40, 24, {}}, {80, 500, {}}, {300, 2000, {}}, {40, 24, {}}};
  for (const bool waits : {true, false}) {
    const OpenedCuda device("cuda:emulated", emulation::Watch::Once);
    std::vector<PackedOnDevice> weights;
    std::vector<DeviceFloats> x, y;
    for (const auto& [n, k, expected] : products) {
      weights.push_back(
          pack_on_device(*device, normal_values(std::size_t(n) * k, 3), n, k, DType::BF16));
      x.emplace_back(*device, normal_values(std::size_t(3) * k, 4));
      y.emplace_back(*device, std::vector<float>(std::size_t(3) * n));
    }
    static_cast<void>(x[0].read());
    for (std::size_t i = 0; i < products.size(); i++) {
      const auto& [n, k, expected] = products[i];
      device->ops().matmul(*device, weights[i].matrix, x[i].data(), k, 3, y[i].data(), n, nullptr,
                           false);
      if (waits) products[i].y = y[i].read();
    }
    for (std::size_t i = 0; i < products.size(); i++) EXPECT_EQ(y[i].read(), products[i].y) << i;
  }
  EXPECT_EQ(products[0].y, products[3].y);
}

TEST_F(HeldBack, after_a_failed_launch_every_call_names_it) {
  norm(x_, y_);
  emulation::fail_call(1);
  const auto download = [&] { static_cast<void>(y_.read()); };
  const std::string message = refusal(download, ErrorCode::Device);
  emulation::fail_call(0);
  EXPECT_THAT(message, HasSubstr("cuda:emulated: rms_norm (grid 2 x 1 x 1, block 32 x 1 x 1, "));
  EXPECT_EQ(refusal(download, ErrorCode::Device), message) << "the result is lost";
}

TEST_F(HeldBack, a_launch_failing_during_a_free_is_reported_next) {
  {
    const DeviceFloats passing(*device_, b_);
    norm(passing, y_);
    emulation::fail_call(1);
  }
  emulation::fail_call(0);
  EXPECT_THAT(refusal([&] { static_cast<void>(y_.read()); }, ErrorCode::Device),
              HasSubstr("cuda:emulated: rms_norm (grid 2 x 1 x 1, block 32 x 1 x 1, "));
}

// CU14.
TEST_F(HeldBack, without_a_graph_kernels_run_one_by_one_with_one_note) {
  const auto four = [&] {
    for (int i = 0; i < 4; i++) norm(x_, y_);
    return y_.read();
  };
  four();
  for (int i = 0; i < 2; i++) {
    emulation::before_calls([](const std::string& name) {
      if (name == "cudaGraphLaunch") emulation::fail_call_for_memory(1);
    });
    EXPECT_EQ(four(), normed(a_));
    emulation::before_calls({});
    emulation::fail_call(0);
    const std::vector<std::string> notes = take_notes_of(*device_);
    ASSERT_EQ(notes.size(), i == 0 ? 1u : 0u);
    if (i == 0) {
      EXPECT_THAT(notes[0], AllOf(HasSubstr("cuda:emulated: cudaGraphLaunch of 4 kernels"),
                                  HasSubstr("cudaErrorMemoryAllocation"), HasSubstr("are free"),
                                  HasSubstr("one by one"), Not(HasSubstr("\n"))));
    }
    EXPECT_EQ(device_->failure(), "");
  }
  const std::int64_t before = device_->n_launches();
  EXPECT_EQ(four(), normed(a_));
  EXPECT_EQ(device_->n_launches(), before + 1) << "memory is available again";
  EXPECT_TRUE(take_notes_of(*open_cpu(1)).empty());
}

// A repeated graph never uses the pointers of an earlier launch: each kernel passes its own, and the graph
// is updated where they differ. The device detects a pointer that the caller kept too long.
// CU15.
TEST_F(HeldBack, moved_memory_updates_the_graph_freed_memory_is_refused) {
  const auto four = [&](const float* from) {
    for (int i = 0; i < 4; i++)
      device_->ops().rms_norm(*device_, from, ones_.data(), y_.data(), 2, 8, 1e-5f);
    return y_.read();
  };
  std::optional<DeviceFloats> old(std::in_place, *device_, a_);
  const float* const stale = old->data();
  for (int i = 0; i < 2; i++) EXPECT_EQ(four(stale), normed(a_));
  const DeviceFloats moved(*device_, b_);
  old.reset();
  const std::int64_t before = emulation::calls_of("cudaGraphExecKernelNodeSetParams");
  const std::int64_t made = emulation::calls_of("cudaGraphInstantiateWithFlags");
  EXPECT_EQ(four(moved.data()), normed(b_));
  EXPECT_TRUE(emulation::calls_of("cudaGraphExecKernelNodeSetParams") == before + 4 ||
              emulation::calls_of("cudaGraphInstantiateWithFlags") == made + 1);
  try {
    four(stale);
    ADD_FAILURE() << "a kernel used freed memory";
  } catch (const ContractError& e) {  // exit code 70
    EXPECT_THAT(e.what(), HasSubstr("cuda:emulated: rms_norm was launched with freed memory"));
  }
  EXPECT_THAT(refusal([&] { y_.read(); }, ErrorCode::Device), HasSubstr("freed memory"));
}

TEST_F(HeldBack, freed_memory_waits_for_work_that_may_use_it) {
  const auto queries = [] { return emulation::calls_of("cudaStreamQuery"); };
  std::optional<DeviceFloats> passing(std::in_place, *device_, b_);
  norm(*passing, y_);
  std::int64_t before = queries();
  passing.reset();
  EXPECT_EQ(queries(), before + 1);
  EXPECT_EQ(y_.read(), normed(b_));
  passing.emplace(*device_, b_);
  static_cast<void>(passing->read());
  before = queries();
  passing.reset();
  EXPECT_EQ(queries(), before) << "no work is pending";
  passing.emplace(*device_, b_);
  static_cast<void>(passing->read());
  before = queries();
  device_->ops().copy(*device_, y_.data(), passing->data(), 16 * 4);
  passing.reset();
  EXPECT_EQ(queries(), before + 1) << "a device copy is work, too";
  EXPECT_EQ(y_.read(), b_);
}

TEST(CudaDevices, memory_of_endless_work_stays_allocated) {
  const std::int64_t in_use = emulation::memory_in_use();
  {
#if defined(__SANITIZE_ADDRESS__)
    const __lsan::ScopedDisabler what_stays_taken;
#endif
    const auto device = open_cuda("cuda:emulated");
    emulation::work_never_ends(true);
    { const DeviceFloats passing(*device, std::vector<float>(8)); }
    EXPECT_GT(emulation::memory_in_use(), in_use);
    EXPECT_THAT(device->failure(),
                AllOf(HasSubstr("cuda:emulated: cudaStreamQuery"), HasSubstr("cudaErrorNotReady")));
    EXPECT_THAT(refusal([&] { DeviceBuffer(*device, 4, "a test"); }, ErrorCode::Device),
                HasSubstr("cudaErrorNotReady"));
  }
  emulation::work_never_ends(false);
}

// CU10.
TEST_F(HeldBack, a_fault_at_the_end_of_a_step_names_the_graph) {
  for (int step = 0; step < 2; step++) {
    for (int i = 0; i < 4; i++) norm(x_, y_);
    if (step == 0) static_cast<void>(y_.read());
  }
  emulation::before_calls([](const std::string& name) {
    if (name == "cudaStreamSynchronize") emulation::fail_call(1);
  });
  const std::string message = refusal([&] { static_cast<void>(y_.read()); }, ErrorCode::Device);
  emulation::before_calls({});
  emulation::fail_call(0);
  EXPECT_THAT(
      message,
      AllOf(HasSubstr("cuda:emulated: cudaStreamSynchronize: cudaErrorUnknown"),
            HasSubstr("launched since the last wait, the latest first: a graph of 4 "
                      "kernels (rms_norm)"),
            HasSubstr("CUDA_GRAPHS=off"), HasSubstr("CUDA_LAUNCH_BLOCKING=1"),
            HasSubstr("compute-sanitizer"), HasSubstr("--device cpu"), Not(HasSubstr("\n"))));
}

// Two models on one GPU, like SEED's draft and target: each waits only for its own work.
TEST(CudaDevices, each_opened_device_has_its_own_stream) {
  emulation::forget_faults();
  const auto first = open_cuda("cuda:emulated"), second = open_cuda("cuda:emulated");
  const auto norm = [](Device& device, const DeviceFloats& x, const DeviceFloats& y) {
    device.ops().rms_norm(device, x.data(), x.data(), y.data(), 1, 8, 1e-5f);
  };
  const std::vector<float> ones(8, 1), zeros(8);
  const DeviceFloats x(*first, ones), y(*first, zeros), other_x(*second, ones),
      other_y(*second, zeros);
  static_cast<void>(y.read());
  norm(*first, x, y);
  first->ops().upload(*first, x.data(), zeros.data(), 4);  // after it in its stream
  norm(*second, other_x, other_y);
  EXPECT_NEAR(other_y.read()[0], 1, 1e-4);
  EXPECT_EQ(y.data()[0], 0) << "the second device does not wait for the first one's kernel";
  EXPECT_NEAR(y.read()[0], 1, 1e-4);
}

TEST(CudaDevices, after_a_fault_every_call_names_it) {
  const auto device = open_cuda("cuda:emulated");
  emulation::forget_faults();
  const DeviceFloats w(*device, std::vector<float>(8, 1)), y(*device, std::vector<float>(16));
  const DeviceFloats few(*device, std::vector<float>(8));  // the kernel reads 16
  device->ops().rms_norm(*device, few.data(), w.data(), y.data(), 2, 8, 1e-5f);
  float first = 0;
  const auto download = [&] { device->ops().download(*device, &first, y.data(), 4); };
  const std::string message = refusal(download, ErrorCode::Device);
  EXPECT_THAT(message, AllOf(HasSubstr("cudaErrorIllegalAddress"), HasSubstr("kernel rms_norm"),
                             HasSubstr("launched since the last wait"), HasSubstr("--device cpu")));
  EXPECT_EQ(refusal(download, ErrorCode::Device), message);
  EXPECT_EQ(refusal([&] { DeviceBuffer(*device, 4, "a test"); }, ErrorCode::Device), message);
  emulation::forget_faults();
}

}  // namespace
}  // namespace kernels::test
