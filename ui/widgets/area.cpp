#include "ui/widgets/area.h"

#include <algorithm>

namespace ui {
namespace {

Area current;

}  // namespace

Area whole_window() {
  const ImGuiViewport* main = ImGui::GetMainViewport();
  return {main->Pos, {main->Pos.x + main->Size.x, main->Pos.y + main->Size.y}};
}

Area safe_area(const Area& area) {
  constexpr float kMargin = 0.035f;
  const float wide = std::min(area.wide(), area.high() * 16 / 9), high = wide * 9 / 16;
  const ImVec2 middle{(area.min.x + area.max.x) / 2, (area.min.y + area.max.y) / 2};
  const float x = wide * (0.5f - kMargin), y = high * (0.5f - kMargin);
  return {{middle.x - x, middle.y - y}, {middle.x + x, middle.y + y}};
}

Area frame_area() {
  return current.wide() > 0 ? current : whole_window();
}

void set_frame_area(const Area& area) {
  current = area;
}

}  // namespace ui
