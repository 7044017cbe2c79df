// The remaining time of a long task, for reports of progress.
#pragma once

#include <algorithm>

namespace engine {

/// Estimates the remaining time from the speed so far.
/// @param done     parts done, may exceed `all`
/// @param n_timed  of these, the parts that took `seconds`; the others were done before
/// @return  s; never negative; 0 while the speed is unknown
inline double remaining_seconds(double done, double all, double n_timed, double seconds) {
  return n_timed > 0 && seconds > 0 ? std::max(0.0, all - done) * seconds / n_timed : 0;
}

}  // namespace engine
