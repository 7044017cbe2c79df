// Load of a GPU. A thread queries the driver every 100 ms, so readers take the latest sample and never wait for the driver.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "kernels/cuda/monitor/nvml.h"

namespace kernels {

/// One sample.
struct GpuLoad {
  // the reason if all values are unknown; empty: some are known
  std::string reason;
  std::array<double, kGpuValues> values;      // indexed by GpuValue; -1: unknown
  std::map<std::string, std::string> absent;  // name of each unknown value, with the reason
  /// A value in its unit (NvmlAnswers); -1: unknown.
  double operator[](GpuValue value) const { return values[static_cast<std::size_t>(value)]; }
};

/// Opens NVML and identifies the GPU. The monitor's thread calls both.
struct GpuSource {
  std::function<std::unique_ptr<Nvml>(std::string& reason)> open;
  std::function<GpuIdentity()> identity;  // @throws Error
};
/// Queries once, on the calling thread.
GpuLoad gpu_load_once(const GpuSource& source);

/// The thread that samples a GPU's load.
class GpuMonitor {
 public:
  /// The thread starts with start().
  explicit GpuMonitor(GpuSource source,
                      std::chrono::nanoseconds period = std::chrono::milliseconds(100));
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;
  /// Ends the thread. If it is querying the driver, waits for that query to finish.
  ~GpuMonitor();

  /// Starts the thread at the first call. If no thread can be started, every sample gives that as
  /// its reason.
  void start();
  /// The latest sample. Any thread may call it; it does not block.
  GpuLoad latest() const;
  /// Number of samples so far.
  std::uint64_t n_samples() const { return version_ / 2; }

 private:
  void run();
  bool waits_on();
  void publish(const NvmlAnswers& answers);
  NvmlAnswers published() const;

  const GpuSource source_;
  const std::chrono::nanoseconds period_;
  // The monitor's thread (or start(), if there is no thread) writes these members before it sets
  // `failed_` or publishes the first sample.
  std::unique_ptr<Nvml> nvml_;
  std::string reason_;
  std::atomic<bool> failed_{false};
  // A sequence lock: odd while the thread writes a sample. A reader that sees a change reads again.
  std::atomic<std::uint64_t> version_{0};
  struct Slot {
    std::atomic<double> value{-1};
    std::atomic<int> code{0};
  };
  std::array<Slot, kGpuValues> latest_;

  std::mutex mutex_;  // of the three below
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace kernels
