// Threads that share the work of one operation. A waiting thread spins for some microseconds, as
// the next operation is usually that near, then sleeps: an idle program uses no processor time.
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

class ThreadPool {
 public:
  /// @param n_threads  at least 1, the caller of `run` included
  /// @throws Error(Resources)  if a thread cannot be started
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// That share the next task; as many as were made unless share_among() said otherwise.
  int n_threads() const { return n_at_work_.load(std::memory_order_relaxed); }
  int n_made() const { return n_threads_; }
  /// Tasks from the next one on are shared by so many of the threads; the others sleep. The caller
  /// of `run` calls it, between two tasks.
  void share_among(int n_threads);

  /// Calls work(thread) once for each of n_threads(), 0 being the caller, and returns when all are
  /// done. One caller at a time; work must not throw.
  template <class Work>
  void run(Work&& work) {
    using Plain = std::remove_reference_t<Work>;
    run_task([](void* context, int thread) { (*static_cast<Plain*>(context))(thread); },
             const_cast<void*>(static_cast<const void*>(&work)));
  }
  /// Inside `work`: returns when every thread has come here.
  void barrier();

  /// Nanoseconds that a thread has spent in work since the pool was made. From any thread.
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
  // Tasks begun so far, and in the low bits the threads that share the last: one word, so that a
  // thread left out of a task never takes it for its own.
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
