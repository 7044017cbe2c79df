// Waiting for what is done on another thread: for its signs, never for a time to pass.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace waiting {

/// Does `turn` again and again until `done`; gives up after two minutes, when something hangs.
/// @return whether it came
inline bool until(const std::function<bool()>& done, const std::function<void()>& turn) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!done() && std::chrono::steady_clock::now() < end) {
    turn();
    std::this_thread::yield();
  }
  return done();
}

/// Tries with twice the work each time until what has to happen in the midst of it was seen:
/// however quick the machine, some of it is long enough.
/// @param seen  of so many tokens; ends with whether it was there in time
/// @return whether it ever was
inline bool in_the_midst_of(int n_tokens, const std::function<bool(int n_tokens)>& seen) {
  for (int i = 0; i < 6; ++i, n_tokens *= 2)
    if (seen(n_tokens)) return true;
  return false;
}

}  // namespace waiting
