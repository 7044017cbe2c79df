#include "ui/shell/frame_pace.h"

#include <algorithm>
#include <string_view>

namespace ui {

bool draws_in_software(const char* renderer) {
  const std::string_view name = renderer ? renderer : "";
  for (const char* known : {"llvmpipe", "softpipe", "swrast", "SwiftShader", "Software"})
    if (name.find(known) != std::string_view::npos) return true;
  return false;
}

double FramePace::gap(bool has_input) const {
  double least = frame_seconds_;
  if (unfocused())
    least = std::max(least, kUnfocusedSeconds);
  else if (measuring_ && !has_input && since_input_ > kIdleAfter)
    least = std::max(least, kIdleSeconds);
  if (!quiet()) return least;
  if (!software_) return has_input ? least : std::max(least, kSetSeconds);
  if (has_input) return kAnswerSeconds;
  return std::clamp(cost_ / kQuietShare, kQuietSeconds, kLongestSeconds);
}

}  // namespace ui
