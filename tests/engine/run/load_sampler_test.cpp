// GPU samples over a fake driver library.
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/load_sampler.h"
#include "tests/support/fake_nvml.h"

namespace engine {
namespace {

using kernels::test::FakeNvml;

/// A device that computes nothing but is named and monitored like a GPU.
class WatchedDevice : public kernels::Device {
 public:
  explicit WatchedDevice(kernels::GpuSource source) : Device(kernels::cpu_ops()) {
    set_monitor(std::make_shared<kernels::GpuMonitor>(std::move(source)));
  }
  std::string name() const override { return "cuda:0"; }
};

/// The sample that a run reports after its device's monitor satisfies `until`.
template <class Until>
Sampled sample_of(const WatchedDevice& device, Until until) {
  struct Last : EventSink {
    void push(Event event) override { sample = std::get<Sampled>(event); }
    Sampled sample;
  } last;
  LoadSampler sampler(device, last);
  while (!until(*device.monitor())) std::this_thread::sleep_for(std::chrono::microseconds(100));
  sampler.end(0);
  return last.sample;
}

TEST(LoadSampler, a_gpu_sample_equals_the_drivers_values) {
  FakeNvml::reset();
  FakeNvml::busy = 77;
  FakeNvml::power_result = FakeNvml::kNotSupported;
  const WatchedDevice device(FakeNvml::source());
  const Sampled sample = sample_of(device, [](const auto& m) { return m.n_samples() > 0; });
  EXPECT_EQ(sample.device, "cuda:0");
  EXPECT_EQ(sample.reason, "");
  EXPECT_EQ(sample.busy_percent, 77);
  EXPECT_EQ(sample.gpu_memory_busy_percent, 31);
  EXPECT_EQ(sample.gpu_memory_used_bytes, 50'000'000'000);
  EXPECT_EQ(sample.gpu_memory_total_bytes, 150'000'000'000);
  EXPECT_EQ(sample.gpu_clock_mhz, 1980);
  EXPECT_EQ(sample.gpu_memory_clock_mhz, 2619);
  EXPECT_EQ(sample.gpu_power_w, -1);
  EXPECT_EQ(sample.absent.at("gpu_power_w"), "Not Supported");
  EXPECT_EQ(sample.thread_busy_percent.size(), 1u) << "the engine thread's load";
}

TEST(LoadSampler, a_missing_driver_is_the_reason_for_no_sample) {
  FakeNvml::reset();
  FakeNvml::init_result = FakeNvml::kDriverNotLoaded;
  const WatchedDevice device(FakeNvml::source());
  const std::string expected = "nvmlInit_v2: Driver Not Loaded";
  const Sampled sample =
      sample_of(device, [&](const auto& m) { return m.latest().reason == expected; });
  EXPECT_EQ(sample.reason, expected);
  EXPECT_EQ(sample.busy_percent, -1);
  EXPECT_EQ(sample.gpu_memory_used_bytes, -1);
  EXPECT_EQ(sample.thread_busy_percent.size(), 1u);
}

}  // namespace
}  // namespace engine
