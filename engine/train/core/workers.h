// A few threads that do the same thing to different parts, and wait for each other.
#pragma once

#include <functional>
#include <memory>

namespace engine {

class Workers {
 public:
  /// @param n  threads, the caller's counted; fewer where the system has no more
  explicit Workers(int n);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int n_threads() const { return n_; }
  /// Calls task(i) for i in [0, n_parts), each on one of the threads, and returns when all are
  /// done. With n_parts <= n_threads() each part has a thread of its own, the same one every time.
  /// @throws whatever a task threw (the first, by part)
  void run(int n_parts, const std::function<void(int)>& task);

 private:
  struct Shared;
  int n_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace engine
