#include "kernels/cpu/thread_pool.h"

#include <chrono>
#include <system_error>

#include "kernels/error.h"

namespace kernels::cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(60);
constexpr int kPausesPerLook = 32;  // between two looks at the clock

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Spins until ready() or for kSpin. @return whether it became ready
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
    : n_threads_(n_threads), counters_(std::make_unique<Counter[]>(n_threads)) {
  ensure(n_threads >= 1, "ThreadPool: n_threads is at least 1");
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
  stopping_.store(true);
  {
    const std::lock_guard lock(mutex_);
    round_.fetch_add(1);
  }
  work_bell_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// A sleeper announces itself before it looks one last time, and who makes it ready looks for
// sleepers afterwards; both sequentially consistent, so one of the two sees the other.
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
  if (n_threads_ == 1) return do_part(0);
  n_left_.store(n_threads_ - 1);
  round_.fetch_add(1);
  if (workers_asleep_.load()) {
    { const std::lock_guard lock(mutex_); }
    work_bell_.notify_all();
  }
  do_part(0);
  wait_until(done_bell_, caller_asleep_, [this] { return n_left_.load() == 0; });
}

void ThreadPool::worker(int thread) {
  for (std::uint32_t seen = 0;;) {
    wait_until(work_bell_, workers_asleep_, [this, seen] { return round_.load() != seen; });
    if (stopping_.load()) return;
    seen++;
    do_part(thread);
    if (n_left_.fetch_sub(1) == 1 && caller_asleep_.load()) {
      { const std::lock_guard lock(mutex_); }
      done_bell_.notify_one();
    }
  }
}

void ThreadPool::barrier() {
  if (n_threads_ == 1) return;
  const std::uint32_t round = barrier_round_.load();
  if (n_at_barrier_.fetch_add(1) + 1 == n_threads_) {
    n_at_barrier_.store(0);
    barrier_round_.fetch_add(1);
    return;
  }
  // Everyone is at work, so nobody is waited for long; a thread that was put off the processor
  // gets it back sooner if we give ours.
  const auto passed = [this, round] { return barrier_round_.load() != round; };
  while (!spin_until(passed)) std::this_thread::yield();
}

std::int64_t ThreadPool::busy_ns(int thread) const {
  ensure(thread >= 0 && thread < n_threads_, "busy_ns: no such thread");
  return counters_[thread].busy_ns.load(std::memory_order_relaxed);
}

}  // namespace kernels::cpu
