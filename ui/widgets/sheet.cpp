#include "ui/widgets/sheet.h"

#include <algorithm>

#include "ui/widgets/area.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {

bool begin_sheet(const char* name, ImVec2 size, bool focus) {
  const Area area = frame_area();
  size = {std::min(size.x, area.wide() - px(40)), std::min(size.y, area.high() - px(90))};
  ImGui::SetNextWindowPos({area.min.x + (area.wide() - size.x) / 2, area.min.y + px(64)});
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

float begin_sentence_bar(const char* name, float bottom, const std::string& sentence, float room) {
  constexpr float kHigh = 46, kLarge = 18, kSmall = 14, kMargin = 16;
  const Area area = frame_area();
  const float top = bottom - px(kHigh), wide = area.wide() - 2 * px(kMargin) - room;
  begin_bar(name, {area.min.x, top}, {area.wide(), px(kHigh)}, {px(kMargin), px(10)});
  ImGui::PushFont(fonts().bold, kLarge);
  const bool fits = ImGui::CalcTextSize(sentence.c_str()).x <= wide;
  ImGui::PopFont();
  ImGui::PushFont(fonts().bold, fits ? kLarge : kSmall);
  words_within(sentence, theme().bright, wide);
  ImGui::PopFont();
  ImGui::SameLine(area.wide() - px(kMargin) - room);
  return top;
}

void heading(const char* text) {
  ImGui::PushFont(fonts().bold, 17);
  words(text, theme().bright);
  ImGui::PopFont();
}

float height_of(const std::string& text) {
  const float wide = ImGui::GetContentRegionAvail().x;
  return ImGui::CalcTextSize(whole_words(text, wide).c_str(), nullptr, false, wide).y +
         ImGui::GetStyle().ItemSpacing.y;
}

}  // namespace ui
