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
  const double least = unfocused() ? std::max(frame_seconds_, kUnfocusedSeconds) : frame_seconds_;
  if (!quiet()) return least;
  if (!software_) return has_input ? least : std::max(least, kSetSeconds);
  if (has_input) return kAnswerSeconds;
  return std::clamp(cost_ / kQuietShare, kQuietSeconds, kLongestSeconds);
}

}  // namespace ui
