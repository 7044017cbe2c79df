#include "engine/seed/rounds_threads.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "engine/event/clock.h"

namespace engine {
namespace {

/// Time between calls of between() while the target's thread waits for a draft.
constexpr std::chrono::milliseconds kWaitPeriod{100};

/// Overlapped: the caller's thread verifies and the other one drafts. In turn: the caller's thread
/// does both, so no branch is handed to another thread, and the other thread sleeps.
class TwoThreads {
 public:
  TwoThreads(Rounds& rounds, RoundsWork& work) : rounds_(rounds), work_(work) {}

  void run(const std::function<bool()>& stop, const std::function<void()>& between) {
    std::thread drafting = started();
    try {
      verify(stop, between);
    } catch (...) {
      close();
      drafting.join();
      throw;
    }
    close();
    drafting.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::thread started() {
    try {
      return std::thread([this] { draft(); });
    } catch (const std::system_error& error) {
      throw Error(ErrorCode::Resources, std::string("threads: cannot start the one that drafts (") +
                                            error.what() + "); use a decoder that needs none");
    }
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
      if (branches.empty()) return;  // the other thread has failed
      work_.about_to_verify(overlaps_);
      const std::vector<VerifiedBranch> verified = work_.verify(branches);
      {
        const std::lock_guard lock(mutex_);
        rounds_.verified(verified, now_ns());
        wake_if_at_once();
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
      wake_if_at_once();
    }
    return 1;
  }

  /// Wakes the drafting thread if the models work at the same time; called under the lock. In turn
  /// the thread stays asleep: it would find nothing to do and would take a core from the working
  /// model.
  void wake_if_at_once() {
    if (rounds_.at_once()) to_draft_.notify_one();
  }

  std::vector<int> next_to_verify(const std::function<void()>& between) {
    std::unique_lock lock(mutex_);
    while (!failure_) {
      std::vector<int> branches = rounds_.verify_next(now_ns());
      overlaps_ = rounds_.at_once();
      wake_if_at_once();  // the mode may have changed
      if (!branches.empty()) return branches;
      if (overlaps_) {
        wait_for_draft(lock, between);
      } else if (const std::optional<int> branch = rounds_.draft_next(now_ns())) {
        lock.unlock();
        work_.about_to_draft(false);
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

  // The drafting thread. Both the work and the event sink of the bookkeeping may throw.
  void draft() {
    try {
      while (const std::optional<int> branch = next_to_draft()) {
        work_.about_to_draft(true);
        work_.draft(*branch);
        {
          const std::lock_guard lock(mutex_);
          rounds_.drafted(*branch, now_ns());
        }
        to_verify_.notify_one();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
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

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    to_draft_.notify_one();
  }

  Rounds& rounds_;
  RoundsWork& work_;
  std::mutex mutex_;  // guards the rounds and the members declared below
  std::condition_variable to_draft_, to_verify_;
  // true if the draft may work during the current verification; only the target's thread uses this
  // member
  bool overlaps_ = true;
  bool closed_ = false;
  std::exception_ptr failure_;  // of the drafting thread
};

}  // namespace

void run_rounds(Rounds& rounds,
                RoundsWork& work,
                const std::function<bool()>& stop,
                const std::function<void()>& between) {
  TwoThreads(rounds, work).run(stop, between);
}

}  // namespace engine
