#include "ui/widgets/sheet.h"

#include <algorithm>

#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {

bool begin_sheet(const char* name, ImVec2 size, bool focus) {
  const ImGuiViewport* main = ImGui::GetMainViewport();
  size = {std::min(size.x, main->Size.x - px(40)), std::min(size.y, main->Size.y - px(90))};
  ImGui::SetNextWindowPos({main->Pos.x + (main->Size.x - size.x) / 2, main->Pos.y + px(64)});
  ImGui::SetNextWindowSize(size);
  if (focus) ImGui::SetNextWindowFocus();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(16), px(14)));
  ImGui::PushStyleColor(ImGuiCol_Border, colour(theme().faint));
  const bool open = ImGui::Begin(name, nullptr,
                                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                     ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(2);
  return open;
}

void heading(const char* text) {
  ImGui::PushFont(fonts().bold, 17);
  words(text, theme().bright);
  ImGui::PopFont();
}

}  // namespace ui
