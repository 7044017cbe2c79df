// The CPU as a device: a pool of threads, scratch memory that grows and stays, one table of loops.
// One thread at a time may call its operations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/device.h"

namespace kernels::cpu {

/// One instruction set: its public table and the loops behind it. The table's functions use the
/// loops of the device they are called with.
struct InstructionSet {
  Ops ops;
  const CpuKernels* kernels;
};
/// The set whose table this is. @throws ContractError  if it is not a CPU table of this processor
const InstructionSet& set_of(const Ops& ops);
/// Fills a table with the CPU's operations.
Ops make_ops(const char* name);

/// 64-byte aligned memory that only grows.
class Scratch {
 public:
  Scratch() = default;
  Scratch(Scratch&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
  }
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();
  /// @param bytes  0: what was asked for last
  char* at_least(std::int64_t bytes);

 private:
  char* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

class CpuDevice final : public Device {
 public:
  CpuDevice(int n_threads, const InstructionSet& set);
  std::string name() const override { return "cpu"; }
  int n_threads() const override { return own_pool_.n_made(); }
  std::int64_t busy_ns(int thread) const override { return own_pool_.busy_ns(thread); }
  /// The threads of the next operation.
  ThreadPool& pool() { return *pool_; }
  ThreadPool& own_pool() { return own_pool_; }
  /// @param from  whose threads; this one: its own
  void work_on_threads_of(CpuDevice& from);

  const CpuKernels& kernels;
  Scratch shared;
  std::vector<Scratch> own;  // by thread

 private:
  ThreadPool own_pool_;
  ThreadPool* pool_ = &own_pool_;
};

inline CpuDevice& cpu_of(Device& device) {
  return static_cast<CpuDevice&>(device);
}

/// 64-byte aligned; big blocks on huge pages. @throws Error(Resources)
void* allocate_bytes(std::int64_t bytes, const char* what = "");
void free_bytes(void* data);

// The groups of operations, one file each.
void add_memory_ops(Ops& ops);
void add_matrix_ops(Ops& ops);
void add_row_ops(Ops& ops);
void add_cache_ops(Ops& ops);
void add_attention_ops(Ops& ops);
void add_attention_weights_ops(Ops& ops);
void add_pick_ops(Ops& ops);

/// Calls work(begin, end, thread) over [0, n) cut in blocks: in place when `cost_ns` (roughly, of
/// the whole) is not worth waking others, else on all threads, blocks to whoever is free.
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
