// A pool of threads that run one task on several parts.
#pragma once

#include <functional>
#include <memory>

namespace engine {

/// The pool.
class Workers {
 public:
  /// @param n  number of threads, including the caller's; uses fewer if the system cannot start
  ///           them
  explicit Workers(int n);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Number of threads, including the caller's.
  int n_threads() const { return n_; }
  /// Calls task(i) for i in [0, n_parts), distributed over the threads, and returns when all are done.
  /// With n_parts <= n_threads() each part has its own thread, the same one in every call.
  /// @throws the exception of the first part that threw
  void run(int n_parts, const std::function<void(int)>& task);

 private:
  struct Shared;
  int n_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace engine
