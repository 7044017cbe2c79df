// How busy a GPU is, asked of its driver every 100 ms by a thread of its own. Whoever decodes or
// draws takes the latest answer and waits for nothing: the driver may take its time.
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

struct GpuLoad {
  std::string reason;                         // why nothing is known at all; empty: asked
  std::array<double, kGpuValues> values;      // by GpuValue; -1: not known
  std::map<std::string, std::string> absent;  // why, by the name of what this GPU does not tell
  double operator[](GpuValue value) const { return values[static_cast<std::size_t>(value)]; }
};

/// How the monitor comes by NVML and by which GPU it is; called on its thread.
struct GpuSource {
  std::function<std::unique_ptr<Nvml>(std::string& reason)> open;
  std::function<GpuIdentity()> identity;  // @throws Error
};
/// Asks once and waits for the answer.
GpuLoad gpu_load_once(const GpuSource& source);

class GpuMonitor {
 public:
  explicit GpuMonitor(GpuSource source,
                      std::chrono::nanoseconds period = std::chrono::milliseconds(100));
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;
  /// Waits for a question under way and for nothing else.
  ~GpuMonitor();

  /// The thread runs from the first call on; that there is none to be had is a reason too.
  void start();
  /// From any thread, without blocking it.
  GpuLoad latest() const;
  /// Answers so far.
  std::uint64_t n_samples() const { return version_ / 2; }

 private:
  void run();
  bool waits_on();
  void publish(const NvmlAnswers& answers);
  NvmlAnswers published() const;

  const GpuSource source_;
  const std::chrono::nanoseconds period_;
  // Written by the thread (or by start(), for want of one) before `failed_` or the first sample
  // says so, and not after.
  std::unique_ptr<Nvml> nvml_;
  std::string reason_;
  std::atomic<bool> failed_{false};
  // The latest answers: odd while they are written. All are atomic, so a reader that meets the
  // writer reads again.
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
