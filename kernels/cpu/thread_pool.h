// Threads that share the work of one operation. A waiting thread spins for some microseconds, because the next operation
// usually follows within that time, and then sleeps, so an idle program uses no processor time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace kernels::cpu {

/// A pool of threads for one caller at a time.
class ThreadPool {
 public:
  /// @param n_threads  at least 1, the caller of `run` included
  /// @throws Error(Resources)  if a thread cannot be started
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Number of threads that share the next task: n_made(), or the argument of the last
  /// share_among().
  int n_threads() const { return n_at_work_.load(std::memory_order_relaxed); }
  /// Number of threads of the pool, including the caller of `run`.
  int n_made() const { return n_threads_; }
  /// Sets the number of threads that share each later task; the others sleep. The caller of `run` calls it between two
  /// tasks.
  void share_among(int n_threads);

  /// Calls work(thread) once on each of n_threads() threads and returns when all have finished. Thread 0 is the caller. One
  /// caller at a time; work must not throw.
  template <class Work>
  void run(Work&& work) {
    using Plain = std::remove_reference_t<Work>;
    run_task([](void* context, int thread) { (*static_cast<Plain*>(context))(thread); },
             const_cast<void*>(static_cast<const void*>(&work)));
  }
  /// Inside `work`: returns when every thread has called it.
  void barrier();

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
  void wait_for_task(int thread, std::uint64_t seen);
  template <class Ready>
  void wait_until(std::condition_variable& bell, std::atomic<int>& n_asleep, const Ready& ready);

  const int n_threads_;
  Task task_ = nullptr;
  void* context_ = nullptr;
  std::atomic<int> n_at_work_;  // written under the mutex
  // Number of tasks so far, and in the low bits the number of threads that share the last one. Both
  // are in one word, so a thread that does not share a task cannot mistake the task for its own.
  alignas(64) std::atomic<std::uint64_t> round_{0};
  alignas(64) std::atomic<int> n_left_{0};
  alignas(64) std::atomic<int> n_at_barrier_{0};
  alignas(64) std::atomic<std::uint32_t> barrier_round_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int> workers_asleep_{0};
  std::atomic<int> caller_asleep_{0};
  std::mutex mutex_;
  std::condition_variable work_bell_;
  std::condition_variable left_out_bell_;
  std::condition_variable done_bell_;
  std::unique_ptr<Counter[]> counters_;
  std::vector<std::thread> threads_;
};

}  // namespace kernels::cpu
