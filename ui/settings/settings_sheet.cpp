// The sheet Settings, and undo and redo.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/files/files.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/sheet.h"

namespace ui {
namespace {

// Begins a row of the sheet: its label, and the width of its field.
void row(const char* label) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::AlignTextToFramePadding();
  words(label, theme().dim);
  ImGui::TableNextColumn();
  ImGui::SetNextItemWidth(-FLT_MIN);
}

void explained(const char* why) {
  if (ImGui::IsItemHovered()) tooltip(why);
}

// Draws a slider for a whole number. @return whether it was changed
bool slider(const char* id,
            int& value,
            int least,
            int most,
            const char* format,
            ImGuiSliderFlags flags = 0) {
  return ImGui::SliderInt(id, &value, least, most, format, flags | ImGuiSliderFlags_AlwaysClamp);
}

}  // namespace

void Shell::draw_settings() {
  if (begin_sheet("##settings", {px(640), px(376)}, overlay_begins_)) {
    heading("Settings");
    ImGui::SameLine(right_edge() - px(60));
    if (button("Close###close_settings")) settings_sheet_ = false;
    if (ImGui::BeginTable("settings", 2)) {
      ImGui::TableSetupColumn("name", ImGuiTableColumnFlags_WidthFixed, px(190));
      ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
      appearance_rows();
      limit_rows();
      ImGui::EndTable();
    }
    if (link("Keys...###to_keys")) show_overlay(help_);
    ImGui::SameLine();
    if (link("Reset the layout###to_layout")) perform(Action::ResetLayout);
    ImGui::SameLine();
    if (link("Restore all defaults###defaults")) {
      choose(settings_, {});
      keys_ = bound_keys(settings_.keys);
      style_is_stale_ = true;
    }
    explained("Restores the defaults of this sheet and of the keys. Ctrl+Z undoes it.");
    wrapped(folder_.empty() ? std::string("Changes are not saved in this window.")
                            : "Changes are saved in " + (folder_ / "settings.txt").string() + ".",
            theme().dim);
  }
  ImGui::End();
}

void Shell::appearance_rows() {
  std::array<const char*, kThemes.size()> labels{};
  std::ranges::transform(kThemes, labels.begin(), &NamedTheme::label);
  row("Colours");
  int shown = static_cast<int>(settings_.theme);
  if (ImGui::Combo("##theme", &shown, labels.data(), static_cast<int>(labels.size())))
    set_theme(static_cast<ThemeName>(shown));
  row("Size of texts and buttons");
  int percent = settings_.scale_percent;
  if (slider("##scale", percent, 50, 300, "%d %%")) pending_scale_ = percent;
  // The scale also changes the size of the sheet; applying it during a drag would move the slider away from the mouse.
  if (!ImGui::IsItemActive() && pending_scale_) scale(*std::exchange(pending_scale_, std::nullopt));
  row("Marks in token cells");
  tick("###marks_setting", settings_.marks);
  row("Text without cells");
  tick("###flow_setting", settings_.flowing_text);
}

void Shell::limit_rows() {
  row("Maximum frames per second");
  slider("##fps", settings_.frames_per_second, 10, 240, "%d");
  explained("Fewer leave more processor time to the engine.");
  row("Memory for details of steps");
  slider("##payload", settings_.payload_mb, 1, 4096, "%d MB", ImGuiSliderFlags_Logarithmic);
  explained(
      "Probabilities, states of blocks and n-grams of the session. When it is full, the oldest "
      "steps lose them; steps, tokens and times "
      "are always kept.");
  row("Folder for files");
  text_line("##save_folder", documents_folder().string().c_str(), settings_.save_folder);
  explained("Suggested for recordings, exports and pictures.");
}

// Adds a change to the history when the user has finished it: no mouse button is down and no item is active.
void Shell::follow_arrangement() {
  const bool is_down = ImGui::IsMouseDown(ImGuiMouseButton_Left);
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left))
    layout_pressed_ = layout_text(), docked_pressed_ = docked_;
  if (is_down || ImGui::IsAnyItemActive()) {
    layout_settles_ = kFramesToSettle;
    return;
  }
  std::string layout = history_.now() ? history_.now()->layout : "";
  if (layout_settles_ > 0 && --layout_settles_ == 0 && !layout_pressed_.empty()) {
    const std::string now = layout_text();
    if (docked_pressed_ == docked_ && !is_same_layout(layout_pressed_, now)) {
      history_.know_layout(layout_pressed_);
      layout = now;
    }
    layout_pressed_.clear();
  }
  history_.take({to_text(chosen_part(settings_)), notes_to_save(), std::move(layout)});
}

void Shell::go_through_history(bool back) {
  const Arrangement before = history_.now() ? *history_.now() : Arrangement{};
  const std::optional<Arrangement> wanted = back ? history_.undo() : history_.redo();
  if (!wanted) {
    say(back ? "There is nothing to undo." : "There is nothing to redo.");
    return;
  }
  Settings chosen;
  std::string ignored;
  if (from_text(wanted->settings, chosen, ignored)) choose(settings_, chosen);
  // Temporary marks are not part of the history.
  std::vector<Bookmark> passing = notes_.bookmarks;
  std::erase_if(passing, [](const Bookmark& b) { return b.kind != Bookmark::Kind::Passing; });
  notes_ = wanted->notes;
  notes_.bookmarks.insert(notes_.bookmarks.end(), passing.begin(), passing.end());
  if (wanted->layout != before.layout && !wanted->layout.empty()) layout_to_load_ = wanted->layout;
  keys_ = bound_keys(settings_.keys);
  style_is_stale_ = true;
  say(fmt::format("{}: {}", back ? "Undone" : "Done again", changed_words(before, *wanted)));
}

}  // namespace ui
