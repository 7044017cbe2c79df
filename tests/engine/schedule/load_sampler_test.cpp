// What samples say of a GPU, over a driver's library of our own.
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/load_sampler.h"
#include "tests/kernels/cuda/fake_nvml.h"

namespace engine {
namespace {

using kernels::test::FakeNvml;

/// A device that computes nothing, named and watched as a GPU is.
class WatchedDevice : public kernels::Device {
 public:
  explicit WatchedDevice(kernels::GpuSource source) : Device(kernels::cpu_ops()) {
    set_monitor(std::make_shared<kernels::GpuMonitor>(std::move(source)));
  }
  std::string name() const override { return "cuda:0"; }
};

/// The sample that a run tells whose device's monitor has been asked `until` it has an answer.
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

TEST(LoadSampler, a_gpus_sample_is_what_its_driver_tells) {
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
  EXPECT_EQ(sample.thread_busy_percent.size(), 1u) << "the engine's own share of the time";
}

TEST(LoadSampler, a_driver_that_is_not_there_is_the_reason_and_not_the_processors_time) {
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
