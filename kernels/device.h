// A device: its table of operations and the resources that they use (threads on the CPU, a stream on a GPU).
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

/// A device that runs the operations of its table. One thread at a time may call its operations.
class Device {
 public:
  virtual ~Device() = default;
  /// The operations of this device.
  const Ops& ops() const { return ops_; }
  /// "cpu", "cuda:0".
  virtual std::string name() const = 0;
  /// Threads that share the work of one operation; 1 on a GPU.
  virtual int n_threads() const { return 1; }
  /// Nanoseconds that a thread has worked since the device was opened. Any thread may call it.
  virtual std::int64_t busy_ns(int /*thread*/) const { return 0; }
  /// Launches since the device was opened: single kernels, and graphs of kernels as one launch each. 0 on the CPU.
  virtual std::int64_t n_launches() const { return 0; }
  /// Kernels since the device was opened, each kernel of a graph counted. 0 on the CPU.
  virtual std::int64_t n_kernels() const { return 0; }
  /// Does not cache a CUDA graph for the kernels that now wait to be launched. Call it for kernels
  /// that do not repeat, for example those of a prompt.
  virtual void skip_graph_cache() {}
  /// Number of rows in one block of a prompt. The products of such a block are computed together
  /// and may differ in the last bits from those of a step (Ops::matmul_blocks). 0: a prompt is
  /// computed as in a step. The value stays the same for the life of the device.
  /// @throws Error(Resources or Device)  if the library for these products fails
  virtual int prompt_block() { return 0; }
  /// The library for these products: "cuBLAS 130100"; empty: none. Valid after prompt_block().
  virtual std::string prompt_products() const { return {}; }
  /// Defers the host results of operations (kernels/ops.h, "results") until finish_downloads(),
  /// which waits once for all of them. Until then the source memory keeps its values and the host
  /// memory stays valid. A device that never waits delivers them immediately. Use BatchedDownloads.
  virtual void defer_downloads() {}
  /// Delivers the deferred results and ends the deferral.
  virtual void finish_downloads() {}
  /// Drops the deferred results and ends the deferral.
  virtual void cancel_downloads() noexcept {}
  /// The error after which the device refuses every call; empty: it works.
  virtual std::string failure() const { return {}; }
  /// Free bytes of its own memory; none if it computes in host memory.
  virtual std::optional<std::int64_t> free_bytes() { return std::nullopt; }
  /// Load and memory of a GPU as its driver reports them, once monitoring has started. Null: none. The monitor ends
  /// with the device.
  GpuMonitor* monitor() const { return monitor_.get(); }
  /// Gives the device its monitor.
  void set_monitor(std::shared_ptr<GpuMonitor> monitor) { monitor_ = std::move(monitor); }
  /// The GPU's product name as its driver reports it: "NVIDIA H200". Empty: not a GPU.
  const std::string& title() const { return title_; }
  /// Sets the product name.
  void set_title(std::string title) { title_ = std::move(title); }

 protected:
  explicit Device(const Ops& ops) : ops_(ops) {}

 private:
  const Ops& ops_;
  std::shared_ptr<GpuMonitor> monitor_;
  std::string title_;
};

/// Downloads of several operations with one wait. At the end of the scope, results that finish()
/// did not deliver are dropped; this includes an end by an exception.
class BatchedDownloads {
 public:
  /// Defers the downloads of `device`, which outlives this object.
  explicit BatchedDownloads(Device& device) : device_(device) { device_.defer_downloads(); }
  BatchedDownloads(const BatchedDownloads&) = delete;
  BatchedDownloads& operator=(const BatchedDownloads&) = delete;
  ~BatchedDownloads() { device_.cancel_downloads(); }
  /// Waits once and delivers all results.
  void finish() { device_.finish_downloads(); }

 private:
  Device& device_;
};

/// The best table for this processor, or the one that the environment variable CPU_OPS names. Chosen once.
/// @throws Error(Usage)  if CPU_OPS names an unknown table or one that this processor cannot run
const Ops& cpu_ops();
/// Every table that this processor can run, scalar first.
std::span<const Ops* const> all_cpu_ops();

/// Opens the CPU as a device.
/// @param n_threads  0: all processors that the process may use
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
  /// An empty buffer.
  DeviceBuffer() = default;
  /// Allocates `bytes` on `device`, which outlives the buffer.
  /// @param what  purpose, for error messages (Ops::allocate)
  DeviceBuffer(Device& device, std::int64_t bytes, const char* what)
      : device_(&device), data_(device.ops().allocate(device, bytes, what)), bytes_(bytes) {}
  /// Takes over the memory of `other`.
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

  /// Device pointer; null if empty.
  void* data() const { return data_; }
  /// The same pointer, for f32 data.
  float* f32() const { return static_cast<float*>(data_); }
  /// Size in bytes.
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
