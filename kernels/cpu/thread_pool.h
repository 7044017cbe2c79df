// Threads that share the work of one operation. The caller never waits for a thread that has not begun, because a loaded machine
// may run that thread milliseconds later. A waiting thread spins for some microseconds, because the next operation usually follows
// within that time, and then sleeps, so an idle program uses no processor time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/cpu/memory/numa_nodes.h"

namespace kernels::cpu {

/// A pool of threads for one caller at a time.
class ThreadPool {
 public:
  /// @param n_threads  at least 1, the caller of `run` included
  /// @param nodes      processors of each NUMA node (read_numa_nodes()); each thread but the caller is kept on its node
  /// @throws Error(Resources)  if a thread cannot be started
  explicit ThreadPool(int n_threads, std::vector<std::vector<int>> nodes = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Number of threads that share the next task: n_made(), or the argument of the last
  /// share_among().
  int n_threads() const { return n_at_work_.load(std::memory_order_relaxed); }
  /// Number of threads of the pool, including the caller of `run`.
  int n_made() const { return n_threads_; }
  /// The NUMA nodes of the threads.
  const ThreadNodes& nodes() const { return nodes_; }
  /// Sets the number of threads that share each later task; the others sleep. The caller of `run` calls it between two
  /// tasks.
  void share_among(int n_threads);

  /// Calls work(0) on the caller, and work(thread) at most once on each other of n_threads() threads that becomes free before
  /// work(0) returns. Returns when all that began have finished. So work(0) must not rely on other threads: each thread takes
  /// pieces of the work until none is left.
  /// One caller at a time; work must not throw.
  template <class Work>
  void run(Work&& work) {
    using Plain = std::remove_reference_t<Work>;
    run_task([](void* context, int thread) { (*static_cast<Plain*>(context))(thread); },
             const_cast<void*>(static_cast<const void*>(&work)));
  }
  /// Nanoseconds that a thread has worked since the pool was made. Any thread may call it.
  std::int64_t busy_ns(int thread) const;

 private:
  using Task = void (*)(void* context, int thread);
  struct alignas(64) Counter {
    std::atomic<std::int64_t> busy_ns{0};
  };

  void run_task(Task task, void* context);
  void do_part(int thread);
  void worker(int thread);
  void stop();
  void wake_workers();
  bool enter(int thread, std::uint64_t& seen);
  void leave();
  bool wait_for_task(int thread, std::uint64_t& seen);
  void sleep_until_task(int thread, std::uint64_t seen);
  void wait_for_workers();

  const int n_threads_;
  const ThreadNodes nodes_;
  Task task_ = nullptr;
  void* context_ = nullptr;
  std::atomic<int> n_at_work_;  // written under the mutex
  // The task's number and the numbers of threads that may enter it, have entered it and have left it (thread_pool.cpp)
  alignas(64) std::atomic<std::uint64_t> state_{0};
  alignas(64) std::atomic<bool> stopping_{false};
  std::atomic<int> workers_asleep_{0};
  std::atomic<int> caller_asleep_{0};
  std::mutex mutex_;
  std::condition_variable work_bell_;
  std::condition_variable left_out_bell_;
  std::condition_variable done_bell_;
  std::unique_ptr<Counter[]> counters_;
  std::vector<std::thread> threads_;
};

/// The parts of a phase of a task that must be complete before the next phase begins.
class PhaseParts {
 public:
  explicit PhaseParts(int n) : n_(n) {}
  /// Every thread of the task calls it. Calls work(part) for parts that no thread has taken, and returns when all are done.
  template <class Work>
  void finish(const Work& work) {
    for (int part = next_.fetch_add(1); part < n_; part = next_.fetch_add(1)) {
      work(part);
      n_done_.fetch_add(1);
    }
    wait();
  }

 private:
  void wait() const;
  const int n_;
  std::atomic<int> next_{0}, n_done_{0};
};

}  // namespace kernels::cpu
