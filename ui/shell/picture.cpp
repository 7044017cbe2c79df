// Takes pictures of a panel or of the window.
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "ui/prepare/status.h"
#include "ui/shell/catalog.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

// Number of frames until a requested panel is in front and the dialog is closed.
constexpr int kFramesUntilThere = 4;
constexpr std::array<const char*, 4> kScales{"1x", "2x", "3x", "4x"};

}  // namespace

void Shell::ask_picture(const std::string& path, const std::string& panel, int times) {
  picture_ = Picture{.path = path, .panel = panel, .times = times};
  frames_until_picture_ = kFramesUntilThere;
  if (!panel.empty()) requests_.panel = panel;
  export_dialog_ = false;
  message_until_ = 0;
}

std::optional<Picture> Shell::picture_due() {
  if (!picture_ || frames_until_picture_ > 0) return std::nullopt;
  Picture due = *picture_;
  const ImGuiViewport* main = ImGui::GetMainViewport();
  due.min = {0, 0};
  due.max = main->Size;
  if (!due.panel.empty()) {
    const ImGuiWindow* window =
        ImGui::FindWindowByName(window_name(screen_, due.panel.c_str(), "").c_str());
    if (!window || !window->WasActive) {
      picture_taken("No picture: the panel is not on this screen.");
      return std::nullopt;
    }
    const ImGuiDockNode* node = window->DockNode;
    due.min = node ? node->Pos : window->Pos;
    const ImVec2 size = node ? node->Size : window->Size;
    due.max = {std::min(due.min.x + size.x, main->Size.x),
               std::min(due.min.y + size.y, main->Size.y)};
  }
  Context c = context();
  due.says = caption_words(catalog_.app_version, c.timeline, c.shown_runs());
  return due;
}

void Shell::picture_taken(const std::string& message) {
  picture_.reset();
  export_said_ = message;
  say(message);
}

// Returns the typed path if it names a picture, else a name made from the content.
std::string Shell::picture_path(const std::string& typed) const {
  const std::filesystem::path path(typed);
  if (path.extension() == ".png") return typed;
  const std::string name = picture_panel_.empty() ? "window" : picture_panel_;
  return (path.parent_path() / (name + ".png")).string();
}

void Shell::picture_row() {
  const Panel* chosen = picture_panel_.empty() ? nullptr : panel_named(picture_panel_.c_str());
  ImGui::AlignTextToFramePadding();
  words("Picture of", theme().dim);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(px(170));
  if (ImGui::BeginCombo("##picture_of", chosen ? chosen->title : "the whole window")) {
    if (ImGui::Selectable("the whole window", !chosen)) picture_panel_.clear();
    for (const char* id : panels_of(screen_))
      if (offers(id) && ImGui::Selectable(panel_named(id)->title, picture_panel_ == id))
        picture_panel_ = id;
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  words("at", theme().dim);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(px(64));
  if (ImGui::BeginCombo("##picture_times", kScales[static_cast<std::size_t>(picture_times_ - 1)])) {
    for (int times = 1; times <= static_cast<int>(kScales.size()); ++times)
      if (ImGui::Selectable(kScales[static_cast<std::size_t>(times - 1)], picture_times_ == times))
        picture_times_ = times;
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  if (button("PNG###do_picture", false, screen_ != Screen::Welcome || !chosen,
             "drawn at this size; the file contains a description"))
    ask_picture(picture_path(export_path_.c_str()), picture_panel_, picture_times_);
}

}  // namespace ui
