// Waits for the effects of work on another thread, without fixed delays.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace waiting {

/// Repeats `turn` until `done`, for two minutes at most.
/// @return whether `done` became true
inline bool until(const std::function<bool()>& done, const std::function<void()>& turn) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!done() && std::chrono::steady_clock::now() < end) {
    turn();
    std::this_thread::yield();
  }
  return done();
}

/// Doubles the amount of work until `seen` observes something while the work is in progress. This does not
/// depend on the speed of the machine.
/// @param seen  works on this many tokens; returns whether it was observed
/// @return whether it was observed
inline bool in_the_midst_of(int n_tokens, const std::function<bool(int n_tokens)>& seen) {
  for (int i = 0; i < 6; ++i, n_tokens *= 2)
    if (seen(n_tokens)) return true;
  return false;
}

}  // namespace waiting
