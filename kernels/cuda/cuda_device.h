// A GPU, real or emulated: one stream, scratch memory that only grows, pinned host buffers for copies, and one place
// that checks the result of every CUDA call. One thread at a time may call its operations.
//   kernels  are collected and launched together, as a CUDA graph if their list repeats (graphs.h). The device launches
//            them before it waits or downloads, and before the host writes or frees memory that they use
//   uploads  enter the stream immediately, before the collected kernels, which do not use the memory that an upload
//            writes
#pragma once

#include <atomic>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "kernels/cuda/attention_lists.h"
#include "kernels/cuda/graphs.h"
#include "kernels/cuda/platform.h"
#include "kernels/device.h"
#include "kernels/error.h"

namespace kernels::DECOSCOPE_GPU {

class Products;  // train/products.h
enum class ProductsOf;

/// Uses of scratch memory. If one operation needs two memories at the same time, they have
/// different uses.
enum class Use {
  Rows,
  Unpacked,
  Partials,
  Done,
  Ids,
  Plan,
  LastPlan = Plan + AttentionPlans::kMost - 1,
  Commit,
  Pick,
  Rank,
  Distributions,
  Gather,
  Count
};

/// The device of the CUDA tables.
class CudaDevice final : public Device {
 public:
  /// Opens GPU `ordinal`.
  /// @throws Error(Device or Resources)
  CudaDevice(int ordinal, const Ops& ops);
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override;
  std::string name() const override { return name_; }
  /// Sum of the times from the first launch after a wait to the end of the next wait.
  std::int64_t busy_ns(int) const override { return busy_ns_; }
  std::string failure() const override { return broken_; }
  std::optional<std::int64_t> free_bytes() override;
  /// "900 MB of 16000 MB are free", or the reason why the driver gives no number.
  std::string memory_text() const;

  std::int64_t n_launches() const override { return graphs_.n_launched(); }
  std::int64_t n_kernels() const override { return n_kernels_; }
  void skip_graph_cache() override { skips_graph_cache_ = !pending_.empty(); }
  /// Pending warnings, one line each: what the device did differently from its settings since the last call.
  std::vector<std::string> take_notes();
  /// Pending warnings of closed devices, with failures that no call has reported.
  static std::vector<std::string> take_notes_of_closed();
  /// Adds a warning; the device's name is put before it.
  void note(const std::string& words) { notes_.push_back(name_ + ": " + words); }

  /// Collects a kernel for the next launch. If that launch fails, the call that caused it throws Error(Device) with
  /// the kernel's name, and so does every later call.
  template <class... P, class... A>
  void launch(const char* kernel_name,
              void (*kernel)(P...),
              dim3 grid,
              dim3 block,
              std::size_t shared_bytes,
              A... arguments) {
    expect_usable();
    prepare(handle_of(kernel_name, kernel));
    pending_.add(kernel_name, kernel, grid, block, shared_bytes, arguments...);
    if (pending_.size() == kMostPending) launch_pending();
  }

  /// The same for a kernel in which every thread calls wait_for_earlier(). In a graph such a kernel
  /// may start while the previous kernel still runs (programmatic dependent launch).
  template <class... P, class... A>
  void launch_early(const char* kernel_name,
                    void (*kernel)(P...),
                    dim3 grid,
                    dim3 block,
                    std::size_t shared_bytes,
                    A... arguments) {
    launch(kernel_name, kernel, grid, block, shared_bytes, arguments...);
    if (!pending_.empty()) pending_.latest_is_early();
  }

  /// The stream, for a library call that adds kernels to it. Error messages call that work `name`.
  cudaStream_t stream_for(const char* name);
  /// The matrix library for whole blocks. The first call opens it.
  /// @throws Error(Device)  if cuBLAS is not installed
  Products& products(ProductsOf whose);
  /// Limits the memory in which prompts.cu reorders weights, for tests. The memory always holds at
  /// least 64 outputs.
  void limit_slab(std::int64_t bytes) { slab_bytes_ = bytes; }
  /// The limit set by limit_slab(), in bytes.
  std::int64_t slab_bytes() const { return slab_bytes_; }

  /// Device memory. If there is no room, waits for the stream, frees all cached graphs and tries once more.
  /// @param what  purpose, as in Ops::allocate
  void* allocate(std::int64_t bytes, const char* what);
  /// Waits for the work that may use the memory, then frees it. If that work does not end, the memory stays allocated.
  void release(void* data);
  /// Copies host memory to the device through pinned memory; the host memory may change afterwards.
  void upload(void* to, const void* from_host, std::int64_t bytes);
  /// Waits for all earlier work and copies to the host.
  void download(void* to_host, const void* from, std::int64_t bytes);
  /// Requests the result of an operation for the host.
  void request_download(void* to_host, const void* from, std::int64_t bytes);
  /// Requests the first row_bytes of each row; rows begin stride_bytes apart, row r goes to to_host[r].
  void request_rows(void* const* to_host,
                    const void* from,
                    std::int64_t row_bytes,
                    std::int64_t stride_bytes,
                    int n_rows);
  /// Downloads all requested results with one wait, unless downloads are deferred.
  void finish_unless_deferred();
  int prompt_block() override;
  std::string prompt_products() const override;
  void defer_downloads() override;
  void finish_downloads() override;
  void cancel_downloads() noexcept override;
  /// Copies within device memory, after all earlier work, without a wait.
  void copy(void* to, const void* from, std::int64_t bytes);
  /// Sets bytes to 0, after all earlier work, without a wait.
  void clear(void* data, std::int64_t bytes);

  /// Streaming multiprocessors of the GPU.
  int n_multiprocessors() const { return n_multiprocessors_; }
  /// Bytes of shared memory that a block may have, static and dynamic together.
  int most_shared() const { return most_shared_; }

  /// Memory of this device that only grows.
  /// @param cleared  new memory is set to 0
  void* scratch(Use use, std::int64_t bytes, bool cleared = false);
  /// A device copy of a host list. Uploads it only if it differs from the list of the last call
  /// with this `use`.
  const int* device_list(Use use, std::span<const int> list);
  /// The attention lists of the forward in progress.
  AttentionPlans& attention_plans() { return attention_plans_; }

 private:
  static constexpr std::int64_t kHalfBytes = 4 << 20;  // of pinned memory for uploads
  static constexpr const char* kForCopiesBack = "copies from the device";
  static constexpr std::size_t kMostPending = 4096;
  struct ScratchMemory {
    void* data = nullptr;
    std::int64_t bytes = 0;
    std::vector<int> host;  // the list that device_list() uploaded last
  };
  struct Half {  // one of two pinned buffers for uploads
    char* data = nullptr;
    cudaEvent_t copied = nullptr;
    bool pending = false;
  };

  struct Requested {  // rows of device memory to download
    const char* from;
    std::int64_t row_bytes, stride_bytes;
    int n_rows;
    std::size_t to;  // index of the first row's target in requested_to_
  };
  struct Copied {  // rows of a Requested that were copied to download_buffer_
    const Requested* of;
    int first, n;
    std::int64_t at;  // offset there
  };
  struct Graph {  // a launched graph: its kernels in launched_
    std::size_t begin, end;
  };

  /// Allocates device memory; returns null if there is no room.
  void* try_allocate(std::int64_t bytes);
  void expect_usable();
  void begin_work();
  void launch_pending();
  void check_memory_of_pending();
  bool stream_finishes();
  void launch_pending_that_use(const void* place);
  int attribute(cudaDeviceAttr which);
  bool can_begin_early();
  void prepare(const void* kernel);
  void wait();
  void check(cudaError_t error, const char* call);
  [[noreturn]] void fail(cudaError_t error, const std::string& call, bool for_good);
  void note_free(cudaError_t error, const char* call);
  std::string failure_of(cudaError_t error, const std::string& call) const;
  std::string launched_text() const;
  void open();
  void close() noexcept;
  void free_all();
  char* staging(std::int64_t bytes);
  /// Pinned host memory.  @param what  purpose, as in Ops::allocate
  char* pinned(std::int64_t bytes, const char* what);
  char* try_pinned(std::int64_t bytes, const char* what, std::string& refusal);
  void grow_download_buffer(std::int64_t bytes);
  void download_requested();
  std::int64_t copy_to_buffer(const Requested& one, int first, int n, std::int64_t at);
  void take_copied();
  std::string text_with_memory(cudaError_t error) const;

  std::string name_;
  int ordinal_;
  int n_multiprocessors_ = 1;
  int most_shared_ = 0;  // bytes of a block, static objects and dynamic memory together
  cudaStream_t stream_ = nullptr;
  Half halves_[2];
  int half_ = 0;
  std::int64_t half_used_ = 0;
  char* download_buffer_ = nullptr;  // pinned
  std::int64_t download_buffer_bytes_ = 0;
  bool download_buffer_is_refused_ = false;  // the driver refused to allocate a larger buffer
  bool defers_downloads_ = false;
  std::vector<Requested> requested_;
  std::vector<char*> requested_to_;
  std::vector<Copied> copied_;
  ScratchMemory scratch_[static_cast<int>(Use::Count)];
  AttentionPlans attention_plans_;
  // the deleter is a function, because Products is incomplete in this header
  std::unique_ptr<Products, void (*)(Products*)> products_ = {nullptr, nullptr};
  bool prompts_by_products_;         // the environment variable CUDA_PROMPTS
  std::optional<int> prompt_block_;  // once it is known
  std::int64_t slab_bytes_ = 64 << 20;
  std::unordered_set<const void*> prepared_;  // kernels with their attributes set
  std::map<const char*, std::int64_t, std::greater<>> allocated_;  // address to bytes
  // freed memory: address to bytes; used only if kRemembersFreed
  std::map<const char*, std::int64_t, std::greater<>> freed_;
  Launches pending_;  // collected kernels
  bool skips_graph_cache_ = false;
  KernelGraphs graphs_;
  std::int64_t n_kernels_ = 0;         // launched
  std::vector<const char*> launched_;  // since the last wait
  std::vector<Graph> in_graphs_;       // the graphs among them
  bool at_work_ = false;               // the stream received work since the last wait
  bool hangs_ = false;                 // true: that work did not end in time
  std::int64_t begun_ns_ = 0;          // when it began; 0: none
  std::atomic<std::int64_t> busy_ns_{0};
  std::string broken_;        // the first permanent failure; every later call throws it
  bool is_reported_ = false;  // true: a call has thrown this failure
  std::vector<std::string> notes_;
  bool reported_graphs_ = false;  // true: the warning about refused graphs was added
};

/// Casts the Device of a CUDA table to its class.
inline CudaDevice& cuda_of(Device& device) {
  return static_cast<CudaDevice&>(device);
}

/// ceil(a / b).
constexpr int blocks_for(std::int64_t a, int b) {
  return static_cast<int>((a + b - 1) / b);
}

// Groups of operations, one file each. Each function fills its part of a table.
/// cuda_device.cu
void add_memory_ops(Ops& ops);
/// matmul.cu
void add_matrix_ops(Ops& ops);
/// rows.cu
void add_row_ops(Ops& ops);
/// cache.cu
void add_cache_ops(Ops& ops);
/// attention.cu
void add_attention_ops(Ops& ops);
/// pick.cu
void add_pick_ops(Ops& ops);
/// distributions.cu
void add_distribution_ops(Ops& ops);
/// prompts.cu
void add_prompt_ops(Ops& ops);

// Parts of error messages.
/// The end of a message about a failure.
inline constexpr const char* kKeptWords = "; earlier results are kept";

/// "900 MB", rounded up.
inline std::string megabytes(std::int64_t bytes) {
  return std::to_string(bytes / 1'000'000 + 1) + " MB";
}
/// "900 MB of 16000 MB are free".
inline std::string free_memory_text(std::int64_t free, std::int64_t total) {
  return megabytes(free) + " of " + megabytes(total) + " are free";
}
/// Free memory of the host according to Linux: "of the host's memory 900 MB of 16000 MB are free".
inline std::string host_memory_text() {
  std::ifstream lines("/proc/meminfo");  // "MemAvailable:  12345 kB"
  std::int64_t free = -1, total = -1, kib = 0;
  std::string name, unit;
  while (lines >> name >> kib && std::getline(lines, unit)) {
    if (name == "MemTotal:") total = kib * 1024;
    if (name == "MemAvailable:") free = kib * 1024;
  }
  if (free < 0 || total < 0) return "how much of the host's memory is free is not known";
  return "of the host's memory " + free_memory_text(free, total);
}
/// "cudaErrorUnknown (unknown error)".
inline std::string error_text(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")";
}

}  // namespace kernels::DECOSCOPE_GPU
