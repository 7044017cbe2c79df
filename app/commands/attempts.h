// Runs several attempts, each even if another failed, and reports every failure.
#pragma once

#include <exception>
#include <functional>

namespace app {

class Attempts {
 public:
  /// Runs it. The first failure is kept for rethrow(); of a later one the message is printed now. A
  /// reader of standard output that has gone is kept only where nothing else failed.
  void run(const std::function<void()>& attempt);
  /// Adds a failure that was caught before; null: there is none.
  void add(std::exception_ptr failure);
  /// @throws  the first failure, if there is one
  void rethrow() const;

 private:
  std::exception_ptr first_;
  bool first_is_closed_output_ = false;
};

}  // namespace app
