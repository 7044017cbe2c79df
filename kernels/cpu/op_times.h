// Times of a CPU device's operations by kind, and of its threads' waiting.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace kernels {
class Device;
}

namespace kernels::cpu {

class CpuDevice;

/// Kinds of operations of a forward.
enum class OpKind { Products, Norms, Rope, Attention, Activation, Cache, Choice, Other };
inline constexpr int kOpKinds = 8;
/// "products", "norms", ...
const char* name_of(OpKind kind);

/// Sums over the operations of one kind.
struct OpTime {
  double ms = 0;
  double waiting_ms =
      0;  // time in which a thread did none of the operation's work, summed over threads
  int n = 0;
};
/// Indexed by OpKind.
using OpTimes = std::array<OpTime, kOpKinds>;

/// Times the operations of a device while this object lives. One at a time per device, which outlives it. The work of each
/// thread is timed as in Device::busy_ns(): it includes barriers inside an operation.
class OpTiming {
 public:
  /// Does nothing unless has_probes(device).
  explicit OpTiming(Device& device);
  OpTiming(const OpTiming&) = delete;
  OpTiming& operator=(const OpTiming&) = delete;
  ~OpTiming();
  /// The times since the last call.
  OpTimes take();

 private:
  CpuDevice* device_;
  OpTimes times_;
};

/// Adds the time of its scope to the device's times, if they are recorded.
class TimedOp {
 public:
  TimedOp(CpuDevice& device, OpKind kind);
  TimedOp(const TimedOp&) = delete;
  TimedOp& operator=(const TimedOp&) = delete;
  ~TimedOp();

 private:
  using Clock = std::chrono::steady_clock;
  CpuDevice* device_ = nullptr;  // null: not recorded
  OpTime* to_ = nullptr;
  Clock::time_point begin_;
  std::int64_t busy_ns_ = 0,
               others_ns_ = 0;  // of the caller and of all other threads, at the start
};

}  // namespace kernels::cpu
