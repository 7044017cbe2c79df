// The CPU as a device: a pool of threads, scratch memory that only grows, and the loops of one instruction set.
// One thread at a time may call its operations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/device.h"

namespace kernels::cpu {

struct OpTime;  // kernels/cpu/op_times.h

/// An instruction set: its public table of operations and its loops. The tables of all instruction
/// sets have the same functions; a function gets its loops from the device that it is called with.
struct InstructionSet {
  Ops ops;
  const CpuKernels* kernels;
};
/// The instruction set of a table.
/// @throws ContractError  if it is not a CPU table of this processor
const InstructionSet& set_of(const Ops& ops);
/// For tests: adds a copy of the best set with changed loops, as the second of all_cpu_ops(), so that the reference and the
/// default stay. Call it before all_cpu_ops().
void add_changed_set(const char* name, void (*change)(CpuKernels& kernels));
/// A table of the CPU's operations.
Ops make_ops(const char* name);

/// 64-byte aligned memory that only grows.
class Scratch {
 public:
  Scratch() = default;
  /// Takes over the memory of `other`.
  Scratch(Scratch&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
  }
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();
  /// Memory of at least `bytes`; its contents are undefined.
  /// @param bytes  0: returns the memory of the last call
  char* at_least(std::int64_t bytes);

 private:
  char* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// Estimates which weights a cache still holds from the bytes that were multiplied since their last use.
class RecentWeights {
 public:
  RecentWeights();
  /// Notes a multiplication. @return  true if fewer bytes were multiplied since the last one than the caches hold
  bool use(const void* weights, std::int64_t bytes);

 private:
  std::int64_t cache_bytes_;
  std::int64_t n_used_ = 0;                                   // bytes so far
  std::unordered_map<const void*, std::int64_t> used_until_;  // n_used_ after the last use
};

/// The device of the CPU tables.
class CpuDevice final : public Device {
 public:
  /// @param n_threads  at least 1
  /// @param nodes      processors of each NUMA node; empty: one node
  CpuDevice(int n_threads, const InstructionSet& set, std::vector<std::vector<int>> nodes = {});
  std::string name() const override { return "cpu"; }
  int n_threads() const override { return own_pool_.n_made(); }
  std::int64_t busy_ns(int thread) const override { return own_pool_.busy_ns(thread); }
  /// The threads that share the next operation.
  ThreadPool& pool() { return *pool_; }
  /// The threads of this device.
  ThreadPool& own_pool() { return own_pool_; }
  const ThreadPool& own_pool() const { return own_pool_; }
  /// Runs later operations on the threads of `from`. If `from` is this device, they run on its own
  /// threads again.
  void borrow_threads(CpuDevice& from);

  const CpuKernels& kernels;
  RecentWeights recent;
  OpTime* times = nullptr;  // by OpKind, of OpTiming while it lives
  Scratch shared;
  std::vector<Scratch> own;  // one per thread

 private:
  ThreadPool own_pool_;
  ThreadPool* pool_ = &own_pool_;
};

/// Casts the Device of a CPU table to its class.
inline CpuDevice& cpu_of(Device& device) {
  return static_cast<CpuDevice&>(device);
}

/// 64-byte aligned memory. Blocks of at least 16 KiB use huge pages; those up to 8 MiB share them (memory/block_pool.h).
/// @throws Error(Resources)
void* allocate_bytes(std::int64_t bytes, const char* what = "");
/// Frees memory of allocate_bytes().
void free_bytes(void* data);
/// Gives the memory of the whole huge pages in [data, data + bytes) back to the system and leaves its contents undefined. The next
/// write to each page takes memory of the writing thread's NUMA node (first touch).
void drop_huge_pages(void* data, std::int64_t bytes);

// Groups of operations, one file each. Each function fills its part of a table.
/// cpu_device.cpp
void add_memory_ops(Ops& ops);
/// matrix.cpp
void add_matrix_ops(Ops& ops);
/// rows.cpp
void add_row_ops(Ops& ops);
/// cache.cpp
void add_cache_ops(Ops& ops);
/// attention/attention.cpp
void add_attention_ops(Ops& ops);
/// attention/weights.cpp
void add_attention_weights_ops(Ops& ops);
/// pick.cpp
void add_pick_ops(Ops& ops);

/// Calls work(begin, end, thread) for blocks of [0, n). If the estimated total cost is too small to
/// wake threads, the calling thread does all the work; otherwise each free thread takes the next
/// block.
/// @param cost_ns  estimate for all of [0, n)
template <class Work>
void split(CpuDevice& device, int n, std::int64_t cost_ns, const Work& work) {
  if (n <= 0) return;
  const int n_threads = device.pool().n_threads();
  if (n_threads == 1 || n == 1 || cost_ns < 3000) {
    work(0, n, 0);
    return;
  }
  const int block = std::max(1, n / (n_threads * 4));
  std::atomic<int> next{0};
  device.pool().run([&](int thread) {
    for (int begin = next.fetch_add(block); begin < n; begin = next.fetch_add(block))
      work(begin, std::min(n, begin + block), thread);
  });
}

}  // namespace kernels::cpu
