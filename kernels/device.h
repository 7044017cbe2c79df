// A device: its table of operations, and what they need to run (threads here, streams elsewhere).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ops.h"

namespace kernels {

class GpuMonitor;  // kernels/cuda/monitor/gpu_monitor.h

class Device {
 public:
  virtual ~Device() = default;
  const Ops& ops() const { return ops_; }
  /// "cpu", "cuda:0".
  virtual std::string name() const = 0;
  /// Threads that share the work of one operation; 1 where that means nothing.
  virtual int n_threads() const { return 1; }
  /// Nanoseconds a thread has spent at work since the device was opened. From any thread.
  virtual std::int64_t busy_ns(int /*thread*/) const { return 0; }
  /// Kernels and graphs of kernels given to a GPU's driver since the device was opened. By the
  /// thread that calls its operations.
  virtual std::int64_t n_launches() const { return 0; }
  /// The kernels among them, those in graphs each for itself.
  virtual std::int64_t n_kernels() const { return 0; }
  /// What was asked for since something was waited for or written comes but once, as the rows of a
  /// prompt do: nothing need be kept for its coming again.
  virtual void work_comes_once() {}
  /// Rows of a block of a prompt, whose products are made together and have bits of their own
  /// (Ops::matmul_blocks); 0: a prompt's rows have a step's bits. One answer for all of its life.
  /// @throws Error(Resources or Device)  what makes such products refuses
  virtual int prompt_block() { return 0; }
  /// What makes them: "cuBLAS 130100"; empty: there are none. Asked for after prompt_block().
  virtual std::string prompt_products() const { return {}; }
  /// What operations bring to the host (kernels/ops.h, "answers") need not be there before
  /// deliver_answers(), which waits once for all of it. Until then the memory that it is read from
  /// keeps its values, and where it goes stays. As AnswersTogether asks; a device that waits for
  /// nothing brings it at once.
  virtual void hold_answers() {}
  virtual void deliver_answers() {}
  /// Those that are held come no more.
  virtual void drop_answers() noexcept {}
  /// Why it answers no call any more, whatever is asked of it; empty: it does.
  virtual std::string failure() const { return {}; }
  /// Bytes of its own memory that may still be had; none where it computes in the host's.
  virtual std::optional<std::int64_t> free_bytes() { return std::nullopt; }
  /// Of a GPU: what its driver tells, once it is started; it ends with the device. Null: none.
  GpuMonitor* monitor() const { return monitor_.get(); }
  void watched_by(std::shared_ptr<GpuMonitor> monitor) { monitor_ = std::move(monitor); }
  /// What a GPU is, as its driver says: "NVIDIA H200". Empty: it is none.
  const std::string& title() const { return title_; }
  void titled(std::string title) { title_ = std::move(title); }

 protected:
  explicit Device(const Ops& ops) : ops_(ops) {}

 private:
  const Ops& ops_;
  std::shared_ptr<GpuMonitor> monitor_;
  std::string title_;
};

/// Answers of a device that come together, if deliver() is reached.
class AnswersTogether {
 public:
  explicit AnswersTogether(Device& device) : device_(device) { device_.hold_answers(); }
  AnswersTogether(const AnswersTogether&) = delete;
  AnswersTogether& operator=(const AnswersTogether&) = delete;
  ~AnswersTogether() { device_.drop_answers(); }
  void deliver() { device_.deliver_answers(); }

 private:
  Device& device_;
};

/// The best table this processor runs, chosen once, or the one CPU_OPS names in the environment.
/// @throws Error(Usage)  if CPU_OPS names a table that is unknown or cannot run here
const Ops& cpu_ops();
/// Every table this processor can run, scalar first.
std::span<const Ops* const> all_cpu_ops();

/// @param n_threads  0: as many as the process may use
std::unique_ptr<Device> open_cpu(int n_threads = 0, const Ops& ops = cpu_ops());

/// True for the names of the CPU: "cpu" and "auto".
bool is_cpu(const std::string& name);
/// Opens a device other than the CPU by the name that a user chose.
/// @throws Error(Usage)   for a name that is not cuda:N
/// @throws Error(Device)  if it is not available
std::unique_ptr<Device> open_gpu(const std::string& name);
/// Notes of a device since the last call, one line each: for example that kernels were launched one
/// by one because memory for a graph was short. Empty for a CPU.
std::vector<std::string> take_notes_of(Device& device);

/// Memory on a device that frees itself. Not copyable; a moved-from buffer is empty.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// @param what  as of Ops::allocate
  DeviceBuffer(Device& device, std::int64_t bytes, const char* what)
      : device_(&device), data_(device.ops().allocate(device, bytes, what)), bytes_(bytes) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (data_) device_->ops().release(*device_, data_);
  }

  void* data() const { return data_; }
  float* f32() const { return static_cast<float*>(data_); }
  std::int64_t bytes() const { return bytes_; }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace kernels
