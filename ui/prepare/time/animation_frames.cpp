#include "ui/prepare/time/animation_frames.h"

#include <algorithm>
#include <cmath>

#include "ui/prepare/time/run_times.h"

namespace ui {
namespace {

// Returns the ends of the runs' steps in (from, to], in order.
std::vector<double> ends_of_steps(std::span<const RunTimes* const> runs, double from, double to) {
  std::vector<double> ends;
  for (const RunTimes* run : runs)
    for (const StepSpan& step : run->steps)
      if (step.compute1 > from && step.compute1 <= to) ends.push_back(step.compute1);
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

}  // namespace

std::vector<AnimationFrame> animation_frames(std::span<const RunTimes* const> runs,
                                             const AnimationPlan& plan) {
  std::vector<AnimationFrame> frames;
  if (plan.pace == Pace::Step) {
    const std::vector<double> ends = ends_of_steps(runs, plan.from, plan.to);
    const std::size_t every = ends.size() / kMaxAnimationFrames + 1;
    const int ms = plan.ms_per_step * static_cast<int>(every);
    frames.push_back({plan.from, ms});
    // Counted from the end, so that the last step is shown.
    for (std::size_t i = ends.empty() ? 0 : (ends.size() - 1) % every; i < ends.size(); i += every)
      frames.push_back({ends[i], ms});
  } else {
    const auto n = static_cast<std::size_t>(std::clamp(std::lround(plan.seconds * plan.fps), 2L,
                                                       static_cast<long>(kMaxAnimationFrames)));
    const int ms =
        std::max(10, static_cast<int>(std::lround(plan.seconds * 1000 / static_cast<double>(n))));
    for (std::size_t i = 0; i < n; ++i)
      frames.push_back(
          {plan.from + (plan.to - plan.from) * static_cast<double>(i) / static_cast<double>(n - 1),
           ms});
  }
  frames.back().ms += kLastFrameMs;
  return frames;
}

}  // namespace ui
