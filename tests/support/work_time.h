// Processor time of the calling thread, so that a busy machine does not fail a test of a time
// budget.
#pragma once

#include <algorithm>
#include <ctime>

namespace test {

/// Milliseconds of processor time that this thread has used.
inline double worked_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// Milliseconds of processor time that `work` takes.
template <class Work>
double worked_ms(const Work& work) {
  const double begun = worked_ms();
  work();
  return worked_ms() - begun;
}

/// The least of `n` measurements: other load on the machine can only add time.
template <class Work>
double least_worked_ms(int n, const Work& work) {
  double least = worked_ms(work);
  for (int i = 1; i < n; ++i) least = std::min(least, worked_ms(work));
  return least;
}

/// Allowed slowdown of a loop by a sanitizer or a build without optimisation.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kSlower = 40;
#elif !defined(__OPTIMIZE__)
inline constexpr double kSlower = 10;
#else
inline constexpr double kSlower = 1;
#endif

}  // namespace test
