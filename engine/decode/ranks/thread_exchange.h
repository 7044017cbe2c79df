// An exchange between threads of one process. Each pair of ranks has a message queue per direction.
// Sending never blocks, so a rank may run ahead of the others until it needs their data.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/decode/ranks/exchange.h"

namespace engine {

/// Thrown by calls of an exchange that close() ended. It marks the normal end of a run, not an
/// error.
struct ExchangeClosed {};

/// The endpoints of all ranks (Exchange), and the message queues between them.
class ThreadExchange {
 public:
  /// @param n_ranks  at least 1
  explicit ThreadExchange(int n_ranks);
  ~ThreadExchange();
  ThreadExchange(const ThreadExchange&) = delete;
  ThreadExchange& operator=(const ThreadExchange&) = delete;

  /// The endpoint of a rank. Only the thread of that rank may use it.
  Exchange& of(int rank);

  /// Ends the exchange with an exception, which every waiting or later call throws. Any thread may
  /// call it; only the first call of fail() or close() has an effect.
  void fail(std::exception_ptr why);
  /// Ends the exchange in the same way, with the exception ExchangeClosed.
  void close();
  /// True after fail() or close().
  bool ended() const;
  /// Throws the exception that ended the exchange, if any.
  void check() const;

 private:
  class End;
  void end(std::exception_ptr why);
  void send(int from, int to, Numbers numbers);
  Numbers receive(int from, int to);
  std::deque<Numbers>& queue(int from, int to) {
    return queues_[static_cast<std::size_t>(from * n_ranks_ + to)];
  }

  int n_ranks_;
  std::vector<std::unique_ptr<End>> ends_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable sent_;
  std::vector<std::deque<Numbers>> queues_;  // [n_ranks, n_ranks] from, to
  std::exception_ptr why_ended_;             // null: not ended
};

}  // namespace engine
