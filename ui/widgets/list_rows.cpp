// Rows of lists and menus that have the least height of a target.
#include <algorithm>

#include "ui/widgets/draw.h"

namespace ui {
namespace {

// Dear ImGui extends a row of a list over the spacing of lines; sets a spacing with which a row has the least height of a target.
// @param high  of the row's text, px
void push_row_spacing(float high) {
  ImGui::PushStyleVarY(ImGuiStyleVar_ItemSpacing,
                       std::max(ImGui::GetStyle().ItemSpacing.y, px(kLeastTarget) - high));
}

}  // namespace

bool selectable(const char* label, bool selected, ImGuiSelectableFlags flags, ImVec2 size) {
  push_row_spacing(size.y > 0 ? size.y : ImGui::GetFontSize());
  const bool pressed = ImGui::Selectable(label, selected, flags, size);
  ImGui::PopStyleVar();
  return pressed;
}

bool menu_item(const char* label, const char* keys, bool selected, bool enabled) {
  push_row_spacing(ImGui::GetFontSize());
  const bool pressed = ImGui::MenuItem(label, keys, selected, enabled);
  ImGui::PopStyleVar();
  return pressed;
}

bool combo(const char* id, int& index, std::span<const char* const> names) {
  push_row_spacing(ImGui::GetFontSize());
  const bool changed = ImGui::Combo(id, &index, names.data(), static_cast<int>(names.size()));
  ImGui::PopStyleVar();
  return changed;
}

}  // namespace ui
