#include "kernels/cpu/thread_pool.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "kernels/error.h"

namespace kernels::cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(60);
constexpr int kPausesPerLook = 32;  // between two reads of the clock

// A state is one word, so a thread enters a task only while it is open: the task's number, then the number of threads that may
// enter (0: closed), of those that entered, and of those that left.
constexpr int kCountBits = 11;  // a pool has at most 1024 threads
constexpr std::uint64_t kMostCount = (1u << kCountBits) - 1;
constexpr std::uint64_t kOneLeft = 1, kOneEntered = 1u << kCountBits;
constexpr std::uint64_t kShareMask = kMostCount << 2 * kCountBits;

std::uint64_t task_number(std::uint64_t state) {
  return state >> 3 * kCountBits;
}
int n_sharing(std::uint64_t state) {
  return static_cast<int>(state >> 2 * kCountBits & kMostCount);
}
bool all_left(std::uint64_t state) {
  return (state >> kCountBits & kMostCount) == (state & kMostCount);
}
std::uint64_t open_state(std::uint64_t number, int n_threads) {
  return number << 3 * kCountBits | static_cast<std::uint64_t>(n_threads) << 2 * kCountBits;
}

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

ThreadPool::ThreadPool(int n_threads, std::vector<std::vector<int>> nodes)
    : n_threads_(n_threads),
      nodes_(n_threads, std::move(nodes)),
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
  // Between two tasks only the caller changes the state.
  state_.store(open_state(task_number(state_.load()) + 1, n));
  wake_workers();
  do_part(0);
  const std::uint64_t last = state_.fetch_and(~kShareMask);  // closes the task
  if (!all_left(last)) wait_for_workers();
}

// A thread counts itself as asleep before it checks the state for the last time, and the caller checks for sleepers after it
// has opened a task. Both are sequentially consistent, so at least one of them sees the other.
void ThreadPool::wake_workers() {
  if (workers_asleep_.load() == 0 || workers_asleep_.exchange(0) == 0) return;
  { const std::lock_guard lock(mutex_); }
  work_bell_.notify_all();
}

void ThreadPool::wait_for_workers() {
  const auto done = [this] { return all_left(state_.load()); };
  if (spin_until(done)) return;
  std::unique_lock lock(mutex_);
  caller_asleep_.store(true);
  done_bell_.wait(lock, done);
  caller_asleep_.store(false);
}

void ThreadPool::share_among(int n_threads) {
  ensure(n_threads >= 1 && n_threads <= n_threads_, "share_among: a pool has no more threads");
  {
    const std::lock_guard lock(mutex_);
    n_at_work_.store(n_threads);
  }
  left_out_bell_.notify_all();
}

/// Enters the current task, if it is open to this thread and not the task `seen`, and sets `seen`.
bool ThreadPool::enter(int thread, std::uint64_t& seen) {
  std::uint64_t state = state_.load();
  while (task_number(state) != seen && thread < n_sharing(state))
    if (state_.compare_exchange_weak(state, state + kOneEntered)) {
      seen = task_number(state);
      return true;
    }
  return false;
}

void ThreadPool::leave() {
  const std::uint64_t state = state_.fetch_add(kOneLeft) + kOneLeft;
  if (n_sharing(state) > 0 || !all_left(state) || !caller_asleep_.load()) return;
  { const std::lock_guard lock(mutex_); }
  done_bell_.notify_one();
}

/// Sleeps until a task is open or the pool stops; it may return earlier. A thread that shares no tasks sleeps on another condition
/// variable, which tasks do not signal.
void ThreadPool::sleep_until_task(int thread, std::uint64_t seen) {
  const auto left_out = [this, thread] { return thread >= n_at_work_.load(); };
  std::unique_lock lock(mutex_);
  if (left_out()) {
    left_out_bell_.wait(lock, [&] { return stopping_.load() || !left_out(); });
    return;
  }
  workers_asleep_.fetch_add(1);
  const std::uint64_t state = state_.load();
  const bool open = task_number(state) != seen && thread < n_sharing(state);
  if (!open && !stopping_.load()) work_bell_.wait(lock);
}

/// @return  true in a task that this thread has entered, false if the pool stops
bool ThreadPool::wait_for_task(int thread, std::uint64_t& seen) {
  bool entered = false;
  const auto ready = [&] {
    entered = enter(thread, seen);
    return entered || stopping_.load(std::memory_order_relaxed);
  };
  while (!spin_until(ready)) sleep_until_task(thread, seen);
  return entered;
}

void ThreadPool::worker(int thread) {
  nodes_.keep_on_node(thread);
  for (std::uint64_t seen = 0; wait_for_task(thread, seen);) {
    do_part(thread);
    leave();
  }
}

// The parts are short. If a thread is preempted in one of them, yielding helps it to continue.
void PhaseParts::wait() const {
  const auto done = [this] { return n_done_.load() == n_; };
  while (!spin_until(done)) std::this_thread::yield();
}

std::int64_t ThreadPool::busy_ns(int thread) const {
  ensure(thread >= 0 && thread < n_threads_, "busy_ns: no such thread");
  return counters_[thread].busy_ns.load(std::memory_order_relaxed);
}

}  // namespace kernels::cpu
