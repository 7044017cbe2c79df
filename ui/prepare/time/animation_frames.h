// Which states of the view the frames of an animation show, and for how long.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ui {

struct RunTimes;

/// The spacing of the frames of an animation.
enum class Pace : std::uint8_t {
  Step,  ///< one frame for each step of the runs, each equally long
  Time,  ///< frames at equal distances of own compute
};

/// The part of the runs that an animation shows, and its speed.
struct AnimationPlan {
  double from = 0, to = 0;  ///< own compute, ns
  Pace pace = Pace::Step;
  int ms_per_step = 250;  ///< duration of a frame with Pace::Step, at least 10
  double seconds = 10;    ///< duration of the part with Pace::Time
  int fps = 10;  ///< frames a second with Pace::Time, fewer for more than kMaxAnimationFrames
};

/// A frame of an animation.
struct AnimationFrame {
  double at = 0;  ///< playhead: own compute, ns
  int ms = 0;     ///< how long it is shown
};

inline constexpr std::size_t kMaxAnimationFrames = 600;
inline constexpr int kLastFrameMs = 1500;  ///< the last frame is shown this much longer

/// Returns the frames from `from` to `to`, at least one. With Pace::Step the first frame shows `from`, the others the end of a step of any
/// run; of more than kMaxAnimationFrames steps only every second, third, ... is shown, for as much longer.
/// @param runs  the runs that the view shows
std::vector<AnimationFrame> animation_frames(std::span<const RunTimes* const> runs,
                                             const AnimationPlan& plan);

}  // namespace ui
