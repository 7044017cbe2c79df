#include "engine/event/timeline/trajectory.h"

#include <algorithm>
#include <numeric>

namespace engine {

TrajectoryCounts count_trajectory(std::span<const std::vector<TokenId>> points,
                                  std::span<const TokenId> eos_ids) {
  ensure(!points.empty(), "a trajectory must have at least its initial guess");
  for (const auto& point : points) {
    ensure(point.size() == points[0].size(), "a trajectory's states must have the same length");
  }
  std::size_t n_points = points.size();
  while (n_points > 2 && points[n_points - 1] == points[n_points - 2]) n_points--;
  const std::vector<TokenId> fixed_point = points[n_points - 1];
  const auto end =
      std::find_first_of(fixed_point.begin(), fixed_point.end(), eos_ids.begin(), eos_ids.end());
  const auto n =
      static_cast<std::size_t>(end - fixed_point.begin()) + (end == fixed_point.end() ? 0 : 1);

  // The iteration in which the end token joins the correct prefix is the last one that counts.
  if (end != fixed_point.end()) {
    const auto is_reached = [&](const std::vector<TokenId>& point) {
      return std::equal(fixed_point.begin(), fixed_point.begin() + static_cast<std::ptrdiff_t>(n),
                        point.begin());
    };
    for (std::size_t t = 1; t < n_points; t++)
      if (is_reached(points[t])) n_points = t + 1;
  }

  TrajectoryCounts counts;
  counts.n_iterations = static_cast<int>(n_points) - 1;
  counts.final_run.assign(n, 0);
  counts.baseline.assign(n, 0);
  counts.stationary.assign(n, false);
  std::size_t front = 0;
  for (std::size_t t = 1; t < n_points; t++) {
    const std::size_t before = front;
    for (std::size_t i = 0; i < n; i++) {
      counts.final_run[i] = points[t][i] == fixed_point[i] ? counts.final_run[i] + 1 : 0;
    }
    while (front < n && points[t][front] == fixed_point[front]) {
      counts.baseline[front] = static_cast<int>(n_points - t);
      front++;
    }
    counts.fast_forward.push_back(static_cast<int>(front - before));
  }
  for (std::size_t i = 0; i < n; i++) {
    counts.stationary[i] = counts.final_run[i] > counts.baseline[i];
    counts.n_stationary += counts.stationary[i];
  }
  if (counts.n_iterations > 0) {
    counts.fast_forward_mean =
        std::accumulate(counts.fast_forward.begin(), counts.fast_forward.end(), 0.0) /
        counts.n_iterations;
  }
  return counts;
}

}  // namespace engine
