// The sheet Settings, and undo and redo.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/files/files.h"
#include "ui/prepare/figure.h"
#include "ui/settings/layout_presets.h"
#include "ui/settings/recorded_layout.h"
#include "ui/shell/catalog.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/font_file.h"
#include "ui/widgets/fonts.h"
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

// Draws a choice among the values of an enumeration.
template <class Choice, std::size_t n>
void choice(const char* id, const std::array<const char*, n>& labels, Choice& value) {
  int index = static_cast<int>(value);
  if (combo(id, index, labels)) value = static_cast<Choice>(index);
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
  if (begin_sheet("##settings", {px(640), px(480)}, overlay_begins_)) {
    heading("Settings");
    ImGui::SameLine(right_edge() - px(60));
    if (button("Close###close_settings")) settings_sheet_ = false;
    const std::string saved =
        folder_.empty() ? std::string("Changes are not saved in this window.")
                        : "Changes are saved in " + (folder_ / "settings.txt").string() + ".";
    if (overlay_begins_) desktop_animates_ = desktop_animates();
    if (overlay_begins_) font_typed_.reset(), font_refused_ = why_not_font(settings_.text_font);
    const std::string font = font_words();
    draw_setting_rows(ImGui::GetFrameHeightWithSpacing() + height_of(saved) +
                      (font.empty() ? 0 : height_of(font)));
    if (!font.empty()) wrapped(font, theme().warn);
    if (link("Keys...###to_keys")) show_overlay(help_);
    ImGui::SameLine();
    if (link("Reset the layout###to_layout")) perform(Action::ResetLayout);
    ImGui::SameLine();
    if (link("Restore all defaults###defaults")) {
      // The panels stay where they are.
      Settings defaults;
      defaults.layout = settings_.layout;
      choose(settings_, defaults);
      font_typed_.reset(), font_refused_.clear();
      keys_ = bound_keys(settings_.keys);
      style_is_stale_ = true;
    }
    explained(
        "Restores the defaults of this sheet and of the keys; the layout stays. Ctrl+Z undoes it.");
    wrapped(saved, theme().dim);
  }
  ImGui::End();
}

// Draws the rows above the foot of the sheet. In a small window they scroll; the rows that are shown first are whole.
void Shell::draw_setting_rows(float foot) {
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(6), px(2)));
  const float high = std::floor(ImGui::GetFrameHeight()) + 2 * ImGui::GetStyle().CellPadding.y;
  const float n_rows = std::floor(
      (ImGui::GetContentRegionAvail().y - foot - ImGui::GetStyle().ItemSpacing.y) / high);
  ImGui::BeginChild("rows", {0, std::max(1.0f, n_rows) * high});
  if (ImGui::BeginTable("settings", 2)) {
    ImGui::TableSetupColumn("name", ImGuiTableColumnFlags_WidthFixed, px(200));
    ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
    appearance_rows();
    limit_rows();
    ImGui::EndTable();
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

// The field of the font. A file that cannot be used stays in the field, and the setting keeps its value.
void Shell::font_row() {
  row("Font of the interface");
  std::string path = font_typed_.value_or(settings_.text_font);
  text_line("##text_font", "automatic", path);
  if (ImGui::IsItemEdited()) font_typed_ = path;
  if (ImGui::IsItemDeactivatedAfterEdit()) {
    font_refused_ = why_not_font(path);
    if (font_refused_.empty()) {
      settings_.text_font = path;
      font_typed_.reset();
    }
  }
  explained(
      "The path of a .ttf or .otf file. Characters that it lacks come from the program's own "
      "fonts.");
}

// Returns what the sheet says about the chosen font; empty if it is in use.
std::string Shell::font_words() const {
  if (!font_refused_.empty()) return font_refused_ + ". The font is not used.";
  if (settings_.text_font == loaded_text_font()) return "";
  return "The font changes at the next start of the program.";
}

void Shell::appearance_rows() {
  std::array<const char*, kThemes.size()> labels{};
  std::ranges::transform(kThemes, labels.begin(), &NamedTheme::label);
  row("Colours");
  int shown = static_cast<int>(settings_.theme);
  if (combo("##theme", shown, labels)) set_theme(static_cast<ThemeName>(shown));
  row("Size of texts and buttons");
  int percent = settings_.scale_percent;
  if (slider("##scale", percent, 50, 300, "%d %%")) pending_scale_ = percent;
  // The scale also changes the size of the sheet; applying it during a drag would move the slider away from the mouse.
  if (!ImGui::IsItemActive() && pending_scale_) scale(*std::exchange(pending_scale_, std::nullopt));
  font_row();
  row("Motion");
  const std::array motions{desktop_animates_ ? "as the desktop: full" : "as the desktop: none",
                           "full", "reduced: ten moves a second", "none: two jumps a second"};
  choice("##motion", motions, settings_.motion);
  explained(
      "The desktop's setting is gtk-enable-animations. Applies to the playing view, to held keys "
      "(W, S, A, D) and to tabs. Everything else changes "
      "at once.");
  row("Durations");
  static constexpr std::array kUnits{"short: 5.81 ms", "full: 5,812,345 ns"};
  choice("##units", kUnits, settings_.units);
  row("Layout of Live and Compare");
  const LayoutPreset& preset = preset_named(settings_.layout);
  if (ImGui::BeginCombo("##layout", preset.label)) {
    for (const LayoutPreset& one : layout_presets()) {
      if (selectable(one.label, &one == &preset)) use_layout(one);
      explained(one.help);
    }
    ImGui::EndCombo();
  }
  row("Marks in token cells");
  tick("###marks_setting", settings_.marks);
  row("Text without cells");
  tick("###flow_setting", settings_.flowing_text);
  row("Spaces of tokens as dots");
  tick("###spaces_setting", settings_.space_dots);
}

void Shell::limit_rows() {
  row("Maximum frames per second");
  slider("##fps", settings_.frames_per_second, 10, 240, "%d");
  explained("Fewer leave more processor time to the engine.");
  row("Memory for details of steps");
  const std::string automatic =
      fmt::format("automatic: {} MB", payload_limit({}, catalog_.memory_bytes) >> 20);
  slider("##payload", settings_.payload_mb, 0, 4096,
         settings_.payload_mb > 0 ? "%d MB" : automatic.c_str(), ImGuiSliderFlags_Logarithmic);
  explained(
      "Probabilities, states of blocks and n-grams of the session. When it is full, the oldest "
      "steps lose them; steps, tokens and times are always kept. Automatic is a quarter of the "
      "memory that was available at the start; the panel Machine shows how much is used.");
  row("Folder for files");
  text_line("##save_folder", documents_folder().string().c_str(), settings_.save_folder);
  explained("Suggested for recordings, exports and pictures.");
}

// Applies the style of durations; texts that were prepared in the other style are prepared again.
void Shell::follow_units() {
  if (unit_style() == settings_.units) return;
  set_unit_style(settings_.units);
  states_.units_changed();
}

void Shell::use_layout(const LayoutPreset& preset) {
  watch_layout();
  settings_.layout = preset.word;
  preset_changed_ = preset_pressed_ = true;
  layout_is_of_document_ = false;
  layout_change_ = LayoutChange::Preset;
}

// Adds the change of the layout that follows to the history.
void Shell::watch_layout() {
  layout_pressed_ = layout_text();
  docked_pressed_ = docked_;
  layout_settles_ = kFramesToSettle;
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
  // A preset changes a setting and the layout; both are one step of the history.
  if (layout_settles_ > 1) {
    --layout_settles_;
    return;
  }
  std::string layout = history_.now() ? history_.now()->layout : "";
  if (std::exchange(layout_settles_, 0) == 1 && !layout_pressed_.empty()) {
    const std::string now = layout_text();
    const bool by_preset = std::exchange(preset_pressed_, false);
    const bool by_user = by_preset || docked_pressed_ == docked_;
    if (by_user && !is_same_layout(layout_pressed_, now)) {
      history_.know_layout(layout_pressed_);
      layout = now;
      // Columns of tables belong to the layout too, but not to that of a document.
      if (!by_preset && !is_same_layout(recorded_layout(layout_pressed_), recorded_layout(now)))
        layout_change_ = LayoutChange::Moved;
    }
    layout_pressed_.clear();
  }
  history_.take({to_text(chosen_part(settings_)), notes_to_save(), std::move(layout),
                 shows_layout_of_document()});
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
  const std::string preset = settings_.layout;
  if (from_text(wanted->settings, chosen, ignored)) choose(settings_, chosen);
  // If the history has no panel positions for this change, the panels are rebuilt from the preset.
  if (settings_.layout != preset && wanted->layout == before.layout) preset_changed_ = true;
  // Temporary marks are not part of the history.
  std::vector<Bookmark> passing = notes_.bookmarks;
  std::erase_if(passing, [](const Bookmark& b) { return b.kind != Bookmark::Kind::Passing; });
  notes_ = wanted->notes;
  notes_.bookmarks.insert(notes_.bookmarks.end(), passing.begin(), passing.end());
  layout_is_of_document_ = wanted->is_of_document;
  if (wanted->layout != before.layout && !wanted->layout.empty()) {
    layout_to_load_ = wanted->layout;
    layout_change_ = LayoutChange::Moved;
  }
  keys_ = bound_keys(settings_.keys);
  font_typed_.reset();
  font_refused_ = why_not_font(settings_.text_font);
  style_is_stale_ = true;
  say(fmt::format("{}: {}", back ? "Undone" : "Done again", changed_words(before, *wanted)));
}

}  // namespace ui
