#include "ui/panels/setup_rows.h"

#include <algorithm>
#include <cfloat>

#include <fmt/format.h>

#include "ui/draw.h"
#include "ui/files.h"
#include "ui/setup_form.h"
#include "ui/theme.h"

namespace ui {
namespace {

// Lists what lies beside what was typed so far. @return whether a file was chosen
bool browse(std::string& path, std::string_view ending) {
  if (!ImGui::BeginPopup("browse")) return false;
  bool chosen = false;
  for (const FileEntry& entry : entries_near(path, ending)) {
    if (!ImGui::Selectable((entry.shown + "##" + entry.path).c_str(), false,
                           ImGuiSelectableFlags_NoAutoClosePopups))
      continue;
    path = entry.path;
    chosen = !entry.is_folder;
  }
  if (chosen) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
  return chosen;
}

}  // namespace

void row_label(const char* label, const std::string& help) {
  ImGui::AlignTextToFramePadding();
  words(label, theme().dim);
  if (!help.empty() && ImGui::IsItemHovered()) tooltip(help);
  const float left = ImGui::GetCursorPosX(), words_end = left + ImGui::GetItemRectSize().x;
  ImGui::SameLine(std::max(ImGui::GetContentRegionAvail().x * 0.52f, words_end + px(8)));
  ImGui::SetNextItemWidth(-FLT_MIN);
}

bool below_zero_tick(const std::string& meaning, std::string& value) {
  bool below = value.starts_with('-');
  if (tick("##below_zero", below)) value = below ? "-1" : "0";
  if (ImGui::IsItemHovered()) tooltip("ticked: " + meaning);
  ImGui::SameLine(0, px(6));
  if (below) {
    ImGui::AlignTextToFramePadding();
    words(meaning, theme().text);
    return false;
  }
  ImGui::SetNextItemWidth(-FLT_MIN);
  return true;
}

int within(int value, engine::Bounds of) {
  return static_cast<int>(std::clamp<std::int64_t>(value, of.low, of.high));
}

void whole_row(
    const char* label, const char* id, int& value, engine::Bounds of, const std::string& help) {
  row_label(label, help);
  ImGui::InputInt(id, &value, 1, 10);
  value = within(value, of);
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayNormal))
    tooltip(fmt::format("{}; {} to {}", help, of.low, of.high));
}

void file_row(const char* label,
              const char* id,
              const char* hint,
              std::string& path,
              const std::string& help) {
  ImGui::PushID(id);
  row_label(label, help);
  if (ImGui::Button("Browse...", {-FLT_MIN, 0})) ImGui::OpenPopup("browse");
  browse(path, ".jsonl");
  ImGui::SetNextItemWidth(-FLT_MIN);
  text_line("##path", hint, path);
  if (ImGui::IsItemHovered()) tooltip(path.empty() ? help : path);
  if (const std::string why = why_no_file(path); !why.empty()) wrapped(why, theme().warn);
  ImGui::PopID();
}

void greyed_row(const char* label, const std::string& value, const std::string& why) {
  row_label(label, why);
  ImGui::AlignTextToFramePadding();
  words(value, theme().dim);
  if (ImGui::IsItemHovered()) tooltip(why);
}

}  // namespace ui
