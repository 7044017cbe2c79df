// An exchange between threads of one process: each rank has a box for what every other tells it.
// Telling never waits, so a rank may be ahead of the others by what it need not hear of them.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/decode/guess/exchange.h"

namespace engine {

/// What ends a call whose exchange is closed; no failure of its own.
struct ExchangeClosed {};

class ThreadExchange {
 public:
  explicit ThreadExchange(int n_ranks);
  ~ThreadExchange();
  ThreadExchange(const ThreadExchange&) = delete;
  ThreadExchange& operator=(const ThreadExchange&) = delete;

  /// A rank's end, for its thread.
  Exchange& of(int rank);

  // From any thread; the first call counts. Calls that wait, and all that come, end with it:
  /// with `why`.
  void fail(std::exception_ptr why);
  /// with ExchangeClosed.
  void close();
  bool ended() const;
  /// Throws what ended it, if something has.
  void check() const;

 private:
  class End;
  void end(std::exception_ptr why);
  void tell(int from, int to, Numbers numbers);
  Numbers hear(int from, int to);
  std::deque<Numbers>& box(int from, int to) {
    return boxes_[static_cast<std::size_t>(from * n_ranks_ + to)];
  }

  int n_ranks_;
  std::vector<std::unique_ptr<End>> ends_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable told_;
  std::vector<std::deque<Numbers>> boxes_;  // [n_ranks, n_ranks] from, to
  std::exception_ptr why_ended_;            // null: it goes on
};

}  // namespace engine
