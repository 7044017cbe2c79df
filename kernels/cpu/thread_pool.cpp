#include "kernels/cpu/thread_pool.h"

#include <chrono>
#include <system_error>

#include "kernels/error.h"

namespace kernels::cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(60);
constexpr int kPausesPerLook = 32;  // between two reads of the clock
// low bits of `round_` that hold the number of threads that share the task
constexpr int kShareBits = 16;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Spins until ready(), at most kSpin. @return  ready()
template <class Ready>
bool spin_until(const Ready& ready) {
  Clock::time_point give_up{};
  while (true) {
    for (int i = 0; i < kPausesPerLook; i++) {
      if (ready()) return true;
      pause_briefly();
    }
    const Clock::time_point now = Clock::now();
    if (give_up == Clock::time_point{}) give_up = now + kSpin;
    if (now >= give_up) return false;
  }
}

}  // namespace

ThreadPool::ThreadPool(int n_threads)
    : n_threads_(n_threads),
      n_at_work_(n_threads),
      counters_(std::make_unique<Counter[]>(n_threads)) {
  ensure(n_threads >= 1, "ThreadPool: n_threads must be at least 1");
  try {
    for (int i = 1; i < n_threads; i++) threads_.emplace_back([this, i] { worker(i); });
  } catch (const std::system_error& error) {
    stop();
    throw Error(ErrorCode::Resources,
                "threads: cannot start thread " + std::to_string(threads_.size() + 2) + " of " +
                    std::to_string(n_threads) + " (" + error.what() + "); ask for fewer");
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
  }
  work_bell_.notify_all();
  left_out_bell_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// A thread announces its sleep before it checks ready() for the last time, and the waking thread
// checks for sleepers after it has made the condition true. Both are sequentially consistent, so at
// least one of them sees the other.
template <class Ready>
void ThreadPool::wait_until(std::condition_variable& bell,
                            std::atomic<int>& n_asleep,
                            const Ready& ready) {
  if (spin_until(ready)) return;
  std::unique_lock lock(mutex_);
  n_asleep.fetch_add(1);
  bell.wait(lock, ready);
  n_asleep.fetch_sub(1);
}

void ThreadPool::do_part(int thread) {
  const Clock::time_point begin = Clock::now();
  task_(context_, thread);
  const auto busy = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
  counters_[thread].busy_ns.fetch_add(busy.count(), std::memory_order_relaxed);
}

void ThreadPool::run_task(Task task, void* context) {
  task_ = task;
  context_ = context;
  const int n = n_threads();
  if (n == 1) return do_part(0);
  n_left_.store(n - 1);
  round_.store(((round_.load() >> kShareBits) + 1) << kShareBits | static_cast<std::uint64_t>(n));
  if (workers_asleep_.load()) {
    { const std::lock_guard lock(mutex_); }
    work_bell_.notify_all();
  }
  do_part(0);
  wait_until(done_bell_, caller_asleep_, [this] { return n_left_.load() == 0; });
}

void ThreadPool::share_among(int n_threads) {
  ensure(n_threads >= 1 && n_threads <= n_threads_, "share_among: a pool has no more threads");
  {
    const std::lock_guard lock(mutex_);
    n_at_work_.store(n_threads);
  }
  left_out_bell_.notify_all();
}

/// Returns when this thread shares a task or the pool stops. A thread that shares no tasks sleeps on another condition
/// variable, which tasks do not signal.
void ThreadPool::wait_for_task(int thread, std::uint64_t seen) {
  const auto ready = [this, thread, seen] {
    const std::uint64_t round = round_.load();
    const auto n = static_cast<int>(round & ((1u << kShareBits) - 1));
    return stopping_.load() || (round != seen && thread < n);
  };
  const auto left_out = [this, thread] { return thread >= n_at_work_.load(); };
  while (!spin_until(ready)) {
    std::unique_lock lock(mutex_);
    if (left_out()) {
      left_out_bell_.wait(lock, [&] { return stopping_.load() || !left_out(); });
      continue;
    }
    workers_asleep_.fetch_add(1);
    work_bell_.wait(lock, [&] { return ready() || left_out(); });
    workers_asleep_.fetch_sub(1);
  }
}

void ThreadPool::worker(int thread) {
  for (std::uint64_t seen = 0;;) {
    wait_for_task(thread, seen);
    if (stopping_.load()) return;
    seen = round_.load();  // the next task begins when this part is done
    do_part(thread);
    if (n_left_.fetch_sub(1) == 1 && caller_asleep_.load()) {
      { const std::lock_guard lock(mutex_); }
      done_bell_.notify_one();
    }
  }
}

void ThreadPool::barrier() {
  const int n = n_threads();
  if (n == 1) return;
  const std::uint32_t round = barrier_round_.load();
  if (n_at_barrier_.fetch_add(1) + 1 == n) {
    n_at_barrier_.store(0);
    barrier_round_.fetch_add(1);
    return;
  }
  // All threads work, so the wait is short; yielding helps a preempted thread to continue.
  const auto passed = [this, round] { return barrier_round_.load() != round; };
  while (!spin_until(passed)) std::this_thread::yield();
}

std::int64_t ThreadPool::busy_ns(int thread) const {
  ensure(thread >= 0 && thread < n_threads_, "busy_ns: no such thread");
  return counters_[thread].busy_ns.load(std::memory_order_relaxed);
}

}  // namespace kernels::cpu
