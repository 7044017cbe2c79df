// What a time budget in a test is held against: the processor time of the thread that asks, so that
// a busy machine does not fail the test.
#pragma once

#include <algorithm>
#include <ctime>

namespace test {

/// Milliseconds this thread has worked.
inline double worked_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// Of what is done.
template <class Work>
double worked_ms(const Work& work) {
  const double begun = worked_ms();
  work();
  return worked_ms() - begun;
}

/// Of the cheapest of `n` times it is done: other work on the machine can only add to it.
template <class Work>
double least_worked_ms(int n, const Work& work) {
  double least = worked_ms(work);
  for (int i = 1; i < n; ++i) least = std::min(least, worked_ms(work));
  return least;
}

/// How many times slower a sanitizer, or a build that is not optimised, may make a loop.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kSlower = 40;
#elif !defined(__OPTIMIZE__)
inline constexpr double kSlower = 10;
#else
inline constexpr double kSlower = 1;
#endif

}  // namespace test
