// Runs several attempts. A failed attempt does not prevent the next ones, and every failure is
// reported.
#pragma once

#include <exception>
#include <functional>

namespace app {

/// Collects the failures of several attempts.
class Attempts {
 public:
  /// Runs an attempt. Keeps the first failure for rethrow() and prints the message of any other.
  /// OutputClosed is kept only if nothing else failed.
  void run(const std::function<void()>& attempt);
  /// Adds a failure that was already caught; null: none.
  void add(std::exception_ptr failure);
  /// Throws the first failure, if any.
  void rethrow() const;

 private:
  std::exception_ptr first_;
  bool first_is_closed_output_ = false;
};

}  // namespace app
