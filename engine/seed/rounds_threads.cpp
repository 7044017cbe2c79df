#include "engine/seed/rounds_threads.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/event/clock.h"

namespace engine {
namespace {

/// Time between calls of between() while the target's thread waits for a draft.
constexpr std::chrono::milliseconds kWaitPeriod{100};

/// Overlapped: the caller's thread verifies and the others draft. In turn: the caller's thread does
/// both, so no branch is handed to another thread, and the others sleep.
class RoundsThreads {
 public:
  RoundsThreads(Rounds& rounds, RoundsWork& work) : rounds_(rounds), work_(work) {}
  ~RoundsThreads() { join(); }
  RoundsThreads(const RoundsThreads&) = delete;
  RoundsThreads& operator=(const RoundsThreads&) = delete;

  void run(const std::function<bool()>& stop, const std::function<void()>& between) {
    start();
    verify(stop, between);
    join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void start() {
    try {
      for (int drafter = 0; drafter < rounds_.n_drafters(); drafter++)
        drafting_.emplace_back([this, drafter] { draft(drafter); });
    } catch (const std::system_error& error) {
      throw Error(ErrorCode::Resources, "threads: cannot start drafting thread " +
                                            std::to_string(drafting_.size() + 1) + " of " +
                                            std::to_string(rounds_.n_drafters()) + " (" +
                                            error.what() + "); use fewer drafters");
    }
  }

  /// Ends the drafting threads after their current drafts.
  void join() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    to_draft_.notify_all();
    for (std::thread& thread : drafting_) thread.join();
    drafting_.clear();
  }

  // The target's thread.
  void verify(const std::function<bool()>& stop, const std::function<void()>& between) {
    const auto stopped = [&] {
      if (between) between();
      return stop && stop();
    };
    int n_active = 0;
    for (int branch = 0; branch < rounds_.n_branches() && !stopped(); branch++)
      n_active += admit(branch);
    while (n_active > 0 && !stopped()) {
      const std::vector<int> branches = next_to_verify(between);
      if (branches.empty()) return;  // a drafting thread has failed
      work_.about_to_verify(overlaps_);
      const std::vector<VerifiedBranch> verified = work_.verify(branches);
      {
        const std::lock_guard lock(mutex_);
        rounds_.verified(verified, now_ns());
        wake_drafters();
      }
      for (const VerifiedBranch& one : verified) {
        if (!one.over) continue;
        work_.end(one.branch);
        n_active--;
        if (!stopped()) n_active += admit(one.branch);
      }
    }
  }

  /// @return  1 if a request took the place, 0 if none is left
  int admit(int branch) {
    const std::optional<Admitted> request = work_.begin(branch);
    if (!request) return 0;
    {
      const std::lock_guard lock(mutex_);
      rounds_.admit(branch, request->run, request->value, now_ns());
      wake_drafters();
    }
    return 1;
  }

  /// Wakes one drafting thread for each branch that may draft, if the models work at the same time;
  /// called under the lock. The other threads, and in turn all of them, stay asleep: they would find
  /// nothing to do and would take a core from a working model.
  void wake_drafters() {
    if (!rounds_.at_once()) return;
    const int n = std::min(rounds_.n_ready(), rounds_.n_drafters());
    for (int i = 0; i < n; i++) to_draft_.notify_one();
  }

  std::vector<int> next_to_verify(const std::function<void()>& between) {
    std::unique_lock lock(mutex_);
    while (!failure_) {
      std::vector<int> branches = rounds_.verify_next(now_ns());
      overlaps_ = rounds_.at_once();
      wake_drafters();  // the mode may have changed
      if (!branches.empty()) return branches;
      if (overlaps_) {
        wait_for_draft(lock, between);
      } else if (const std::optional<int> branch = rounds_.draft_next(now_ns())) {
        lock.unlock();
        work_.about_to_draft(0, *branch, false);
        work_.draft(*branch);
        lock.lock();
        rounds_.drafted(*branch, now_ns());
      } else {
        wait_for_draft(lock, between);  // waits for a draft that began while the models overlapped
      }
    }
    return {};
  }

  // Calls between() now and then, because a draft may take long or hang in its device.
  void wait_for_draft(std::unique_lock<std::mutex>& lock, const std::function<void()>& between) {
    if (to_verify_.wait_for(lock, kWaitPeriod) == std::cv_status::no_timeout || !between) return;
    lock.unlock();
    between();
    lock.lock();
  }

  // A drafting thread. Both the work and the event sink of the bookkeeping may throw.
  void draft(int drafter) {
    try {
      while (const std::optional<int> branch = next_to_draft()) {
        work_.about_to_draft(drafter, *branch, true);
        work_.draft(*branch);
        {
          const std::lock_guard lock(mutex_);
          rounds_.drafted(*branch, now_ns());
        }
        to_verify_.notify_one();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      to_verify_.notify_one();
    }
  }

  std::optional<int> next_to_draft() {
    std::unique_lock lock(mutex_);
    while (!closed_) {
      if (rounds_.at_once())
        if (const std::optional<int> branch = rounds_.draft_next(now_ns())) return branch;
      to_draft_.wait(lock);
    }
    return std::nullopt;
  }

  Rounds& rounds_;
  RoundsWork& work_;
  std::vector<std::thread> drafting_;  // used by the caller's thread alone
  std::mutex mutex_;                   // guards the rounds and the members declared below
  std::condition_variable to_draft_, to_verify_;
  // true if the draft may work during the current verification; only the target's thread uses this
  // member
  bool overlaps_ = true;
  bool closed_ = false;
  std::exception_ptr failure_;  // the first one of a drafting thread
};

}  // namespace

void run_rounds(Rounds& rounds,
                RoundsWork& work,
                const std::function<bool()>& stop,
                const std::function<void()>& between) {
  RoundsThreads(rounds, work).run(stop, between);
}

}  // namespace engine
