// The driver's values of a GPU, from a fake library, because few machines have NVML.
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "kernels/cuda/cuda.h"
#include "kernels/error.h"
#include "tests/support/fake_nvml.h"

namespace kernels::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using namespace std::chrono_literals;

class NvmlTest : public ::testing::Test {
 protected:
  void SetUp() override { FakeNvml::reset(); }

  static void until_sampled(const GpuMonitor& monitor, std::uint64_t n) {
    while (monitor.n_samples() < n) std::this_thread::sleep_for(100us);
  }
};
using GpuMonitorTest = NvmlTest;

TEST_F(NvmlTest, a_missing_library_is_reported_in_one_line) {
  std::string reason;
  EXPECT_EQ(Nvml::open(reason, "libno-such-nvml.so.1"), nullptr);
  EXPECT_THAT(reason, HasSubstr("libno-such-nvml.so.1 was not found"));
  EXPECT_THAT(reason, Not(HasSubstr("\n")));
}

TEST_F(NvmlTest, a_foreign_library_is_reported) {
  std::string reason;
  EXPECT_EQ(Nvml::open(reason, "libc.so.6"), nullptr);
  EXPECT_THAT(reason, HasSubstr("libc.so.6: nvmlInit_v2"));
}

TEST_F(NvmlTest, a_failed_init_is_reported_and_not_shut_down) {
  FakeNvml::init_result = FakeNvml::kDriverNotLoaded;
  std::string reason;
  EXPECT_EQ(Nvml::open(FakeNvml::table(), reason), nullptr);
  EXPECT_EQ(reason, "nvmlInit_v2: Driver Not Loaded");
  EXPECT_EQ(FakeNvml::n_shutdowns, 0);
  FakeNvml::init_result = 0;
  Nvml::open(FakeNvml::table(), reason);
  EXPECT_EQ(FakeNvml::n_shutdowns, 1);
}

TEST_F(NvmlTest, missing_library_functions_are_reported) {
  const GpuSource source{
      .open = [](std::string& reason) { return Nvml::open(reason, DECOSCOPE_FAKE_NVML); },
      .identity =
          [] {
            return GpuIdentity{FakeNvml::kSecondUuid, "00000000:3B:00.0"};
          }};
  const GpuLoad load = gpu_load_once(source);
  EXPECT_EQ(load.reason, "");
  EXPECT_THAT(load.values, ElementsAre(64, 32, 2000, 8000, 1200, 5000, -1));
  EXPECT_THAT(load.absent, ElementsAre(Pair("gpu_power_w", "error 13 of NVML")));
}

TEST_F(NvmlTest, a_gpu_is_found_by_uuid_or_bus_never_by_index) {
  FakeNvml::busy = 93;
  const auto busy_of = [](const GpuIdentity& gpu) {
    return gpu_load_once(FakeNvml::source(gpu))[GpuValue::Busy];
  };
  EXPECT_EQ(busy_of({.uuid = FakeNvml::kSecondUuid, .bus_id = {}}), 93);
  EXPECT_EQ(busy_of({.uuid = FakeNvml::kSecondUuid, .bus_id = "00000000:FF:00.0"}), 93);
  EXPECT_EQ(busy_of({.uuid = "GPU-of-another-kind", .bus_id = FakeNvml::kSecondBus}), 93);
  EXPECT_EQ(busy_of({.uuid = {}, .bus_id = FakeNvml::kSecondBus}), 93);
  const GpuLoad none = gpu_load_once(FakeNvml::source({"GPU-1", "00000000:01:00.0"}));
  EXPECT_EQ(none.reason, "NVML has no device GPU-1 at 00000000:01:00.0: Not Found");
  EXPECT_EQ(none[GpuValue::Busy], -1);
  EXPECT_EQ(FakeNvml::n_inits, FakeNvml::n_shutdowns);
}

TEST_F(NvmlTest, a_gpu_unknown_to_cuda_is_reported) {
  GpuSource source = FakeNvml::source();
  source.identity = []() -> GpuIdentity { throw Error(ErrorCode::Device, "cuda:0: gone"); };
  EXPECT_EQ(gpu_load_once(source).reason, "cuda:0: gone");
  for (const CudaDeviceInfo& device : list_cuda()) {
    if (device.available) continue;
    EXPECT_NE(load_of_cuda(device).reason, "") << device.name;
  }
}

TEST_F(GpuMonitorTest, without_power_readings_other_values_remain) {
  FakeNvml::power_result = FakeNvml::kNotSupported;
  FakeNvml::busy = 88;
  GpuMonitor monitor(FakeNvml::source(), 1ms);
  monitor.start();
  until_sampled(monitor, 1);
  const GpuLoad load = monitor.latest();
  EXPECT_EQ(load.reason, "");
  EXPECT_THAT(load.values, ElementsAre(88, 31, 50e9, 150e9, 1980, 2619, -1));
  EXPECT_THAT(load.absent, ElementsAre(Pair("gpu_power_w", "Not Supported")));
  FakeNvml::power_result = 0;
  until_sampled(monitor, monitor.n_samples() + 2);  // one may be in progress
  EXPECT_EQ(monitor.latest()[GpuValue::Power], 412.5);
  EXPECT_THAT(monitor.latest().absent, IsEmpty());
}

TEST_F(GpuMonitorTest, samples_follow_the_gpu_until_it_ends) {
  {
    GpuMonitor monitor(FakeNvml::source(), 1ms);
    EXPECT_EQ(monitor.latest().reason, "the driver has not answered yet");
    EXPECT_EQ(FakeNvml::n_inits, 0) << "NVML is not loaded before start()";
    monitor.start();
    monitor.start();
    for (const unsigned busy : {10u, 60u, 100u}) {
      FakeNvml::busy = busy;
      until_sampled(monitor, monitor.n_samples() + 2);
      EXPECT_EQ(monitor.latest()[GpuValue::Busy], busy);
    }
  }
  EXPECT_EQ(FakeNvml::n_inits, 1);
  EXPECT_EQ(FakeNvml::n_shutdowns, 1);
}

// With a period of an hour, waiting for the next sample would be noticed.
TEST_F(GpuMonitorTest, closing_does_not_wait_for_the_next_sample) {
  std::chrono::steady_clock::time_point closing;
  {
    GpuMonitor never_started(FakeNvml::source(), 1h);
    GpuMonitor monitor(FakeNvml::source(), 1h);
    monitor.start();
    until_sampled(monitor, 1);
    closing = std::chrono::steady_clock::now();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - closing, 10min);
  EXPECT_EQ(FakeNvml::n_inits, 1);
  EXPECT_EQ(FakeNvml::n_shutdowns, 1);
}

TEST_F(GpuMonitorTest, a_reader_does_not_wait_for_the_driver) {
  std::promise<void> let_go;
  const std::shared_future<void> gone = let_go.get_future().share();
  GpuSource source = FakeNvml::source();
  source.identity = [gone]() -> GpuIdentity {
    gone.wait();
    return {.uuid = FakeNvml::kSecondUuid, .bus_id = {}};
  };
  GpuMonitor monitor(source, 1ms);
  monitor.start();
  EXPECT_EQ(monitor.latest().reason, "the driver has not answered yet");
  let_go.set_value();
  until_sampled(monitor, 1);
  EXPECT_EQ(monitor.latest().reason, "");
}

TEST_F(GpuMonitorTest, a_refusal_by_nvml_keeps_its_reason) {
  FakeNvml::init_result = FakeNvml::kDriverNotLoaded;
  GpuMonitor monitor(FakeNvml::source(), 1ms);
  monitor.start();
  while (monitor.latest().reason == "the driver has not answered yet")
    std::this_thread::sleep_for(100us);
  EXPECT_EQ(monitor.latest().reason, "nvmlInit_v2: Driver Not Loaded");
  EXPECT_EQ(monitor.n_samples(), 0u);
}

// The fake library makes all values of a sample equal, so a mix of two samples is noticed.
TEST_F(GpuMonitorTest, threads_read_consistent_samples) {
  static std::atomic<unsigned> count;
  count = 0;
  GpuSource source = FakeNvml::source();
  source.open = [](std::string& reason) {
    NvmlTable table = FakeNvml::table();
    table.busy = [](void*, NvmlUtilization* out) {
      const unsigned now = count++;
      *out = {.gpu = now, .memory = now};
      return 0;
    };
    return Nvml::open(table, reason);
  };
  GpuMonitor monitor(source, 1us);
  monitor.start();
  until_sampled(monitor, 1);
  const auto read = [&] {
    int n_torn = 0;
    while (monitor.n_samples() < 200) {
      const GpuLoad load = monitor.latest();
      n_torn += load[GpuValue::Busy] != load[GpuValue::MemoryBusy];
    }
    return n_torn;
  };
  auto other = std::async(std::launch::async, read);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(other.get(), 0);
}

}  // namespace
}  // namespace kernels::test
