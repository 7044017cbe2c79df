#include "ui/panels/setup/setup_rows.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "ui/files/files.h"
#include "ui/files/setup_form.h"
#include "ui/prepare/option_labels.h"
#include "ui/prepare/recorded_setup.h"
#include "ui/widgets/draw.h"

namespace ui {

namespace {

// A number of four digits with the buttons that change it, px at 100 %.
constexpr float kNarrowestField = 92;
// The beginning of fields, as a share of the row.
constexpr float kFieldColumn = 0.56f;

// Places the field of the next item beside the words of a row, which begin at `left` and end at `words_end`. Beside a long label a field would
// lose its width, so it goes below.
void place_field(float left, float words_end) {
  const float field = std::max(ImGui::GetContentRegionAvail().x * kFieldColumn, words_end + px(8));
  if (right_edge() - field < px(kNarrowestField))
    ImGui::SetCursorPosX(left + px(12));
  else
    ImGui::SameLine(field);
  ImGui::SetNextItemWidth(-FLT_MIN);
}

// Draws a whole label: one that is wider than the row has several lines.
void label_words(const std::string& label, Rgb rgb) {
  ImGui::AlignTextToFramePadding();
  wrapped(label, rgb);
}

// Draws the label of an option, and the option's name beside it if the column of labels has room for both.
void option_words(const std::string& label,
                  const std::string& name,
                  bool is_idle,
                  const std::string& help) {
  constexpr float kBetween = 6;
  const float left = ImGui::GetCursorPosX();
  const float room = ImGui::GetContentRegionAvail().x * kFieldColumn - px(8) - left;
  const auto wide_of = [](const std::string& text) { return ImGui::CalcTextSize(text.c_str()).x; };
  ImGui::BeginGroup();
  label_words(label, is_idle ? theme().dim : theme().text);
  if (name != label && wide_of(label) + px(kBetween) + wide_of(name) <= room) {
    ImGui::SameLine(0, px(kBetween));
    words(name, theme().dim);
  }
  ImGui::EndGroup();
  if (ImGui::IsItemHovered()) tooltip(help);
  place_field(left, left + ImGui::GetItemRectSize().x);
}

}  // namespace

void row_label(const char* label, const std::string& help) {
  label_words(label, theme().dim);
  if (!help.empty() && ImGui::IsItemHovered()) tooltip(help);
  const float left = ImGui::GetCursorPosX();
  place_field(left, left + ImGui::GetItemRectSize().x);
}

namespace {

/// Draws a tick that sets `value` to `special`, with its meaning beside it, or else to `number`.
/// @return  true if the number's field follows
bool special_tick(const char* id,
                  const std::string& meaning,
                  bool is_special,
                  const std::string& special,
                  const std::string& number,
                  std::string& value) {
  if (tick(id, is_special)) value = is_special ? special : number;
  if (ImGui::IsItemHovered()) tooltip("ticked: " + meaning);
  ImGui::SameLine(0, px(6));
  if (is_special) {
    ImGui::AlignTextToFramePadding();
    words(meaning, theme().text);
    return false;
  }
  ImGui::SetNextItemWidth(-FLT_MIN);
  return true;
}

}  // namespace

bool below_zero_tick(const std::string& meaning, std::string& value) {
  return special_tick("##below_zero", meaning, value.starts_with('-'), "-1", "0", value);
}

namespace {

/// Draws the tick of a number that may be "auto". @return  true if the number's field follows
bool auto_tick(const CatalogOption& option, std::string& value) {
  const auto number = std::to_string(static_cast<int>(std::max(option.min, 1.0)));
  return special_tick("##auto", "auto", value == "auto", "auto", number, value);
}

void value_field(std::string& value, const CatalogOption& option) {
  const double low = option.below_zero.empty() ? option.min : std::max(0.0, option.min);
  if (option.type == CatalogOption::Type::Int) {
    int v = std::atoi(value.c_str());
    if (ImGui::InputInt("##value", &v, 1, 4))
      value = std::to_string(static_cast<int>(std::clamp<double>(v, low, option.max)));
    return;
  }
  float v = std::strtof(value.c_str(), nullptr);
  if (ImGui::SliderFloat("##value", &v, static_cast<float>(low), static_cast<float>(option.max),
                         "%.3g"))
    value = fmt::format("{:.4g}", v);
}

constexpr const char* kTreeFile = ".json";

// Draws the choice of a bundled tree by its name, or of a file.
void tree_choice(const CatalogOption& option, std::string& value) {
  const bool is_file = value.ends_with(kTreeFile);
  if (!ImGui::BeginCombo("##value", is_file ? "a file" : value.c_str())) return;
  for (const std::string& choice : option.choices)
    if (selectable(choice.c_str(), choice == value)) value = choice;
  if (selectable("a file###file", is_file) && !is_file) value = std::string("tree") + kTreeFile;
  ImGui::EndCombo();
}

// Lists the files of the folder that was typed. @return whether a file was chosen
bool browse(std::string& path, std::string_view ending) {
  if (!ImGui::BeginPopup("browse")) return false;
  bool chosen = false;
  for (const FileEntry& entry : entries_near(path, {ending})) {
    if (!selectable((entry.shown + "##" + entry.path).c_str(), false,
                    ImGuiSelectableFlags_NoAutoClosePopups))
      continue;
    path = entry.path;
    chosen = !entry.is_folder;
  }
  if (chosen) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
  return chosen;
}

// Draws a field for a path with a button to browse.
void path_line(const char* hint, std::string& path, std::string_view ending) {
  const float browse_wide =
      ImGui::CalcTextSize("Browse...").x + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::SetNextItemWidth(-browse_wide - px(6));
  text_line("##path", hint, path);
  if (ImGui::IsItemHovered() && !path.empty()) tooltip(path);
  ImGui::SameLine(0, px(6));
  if (ImGui::Button("Browse...")) ImGui::OpenPopup("browse");
  browse(path, ending);
}

// Draws the size of a tree, or why the tree is invalid.
void tree_note(const Catalog& catalog,
               const LaneForm& lane,
               const CatalogOption& option,
               const std::string& value) {
  if (!is_tree(option) || !catalog.tree) return;
  const TreeNote note = catalog.tree(lane.decoder, option, value);
  if (!note.refusal.empty()) return wrapped(note.refusal, theme().warn);
  if (note.words.empty()) return;
  small_label(note.words);
}

}  // namespace

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
              const std::string& help,
              std::string_view ending) {
  ImGui::PushID(id);
  row_label(label, help);
  if (ImGui::Button("Browse...", {-FLT_MIN, 0})) ImGui::OpenPopup("browse");
  browse(path, ending);
  ImGui::SetNextItemWidth(-FLT_MIN);
  text_line("##path", hint, path);
  if (ImGui::IsItemHovered()) tooltip(path.empty() ? help : path);
  if (const std::string why = why_no_file(path); !why.empty()) wrapped(why, theme().warn);
  ImGui::PopID();
}

void option_row(LaneForm& lane,
                const Catalog& catalog,
                const CatalogOption& option,
                const std::string& why_idle) {
  std::string& value = lane.options[option.name];
  ImGui::PushID(option.name.c_str());
  const std::string head = label_with_name(lane.decoder, option.name) + "\n";
  option_words(option_label(lane.decoder, option.name), option.name, !why_idle.empty(),
               head + (why_idle.empty() ? option.help : why_idle));
  ImGui::BeginDisabled(!why_idle.empty());
  switch (option.type) {
    case CatalogOption::Type::Int:
      // Another word ("mpi") is for the command line.
      if (std::ranges::find(option.choices, "auto") != option.choices.end() &&
          !auto_tick(option, value))
        break;
      [[fallthrough]];
    case CatalogOption::Type::Float:
      if (option.below_zero.empty() || below_zero_tick(option.below_zero, value))
        value_field(value, option);
      break;
    case CatalogOption::Type::Bool: {
      bool v = value == "true" || value == "1" || value == "on";
      if (tick("##value", v)) value = v ? "true" : "false";
      break;
    }
    case CatalogOption::Type::Choice:
      if (ImGui::BeginCombo("##value", value.c_str())) {
        for (const std::string& choice : option.choices)
          if (selectable(choice.c_str(), choice == value)) value = choice;
        ImGui::EndCombo();
      }
      break;
    case CatalogOption::Type::Counts:
      text_line("##value", "2,2,1", value);
      break;
    case CatalogOption::Type::Tree:
      tree_choice(option, value);
      break;
  }
  ImGui::EndDisabled();
  if (!why_idle.empty()) {
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) tooltip(head + why_idle);
  } else if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayNormal)) {
    tooltip(head +
            (option.type == CatalogOption::Type::Int || option.type == CatalogOption::Type::Float
                 ? fmt::format("{} {:g} to {:g}, default {}.", option.help, option.min, option.max,
                               value_words(option, option.default_value))
                 : fmt::format("{} Default {}.", option.help, option.default_value)));
  }
  const bool is_file = option.type == CatalogOption::Type::Tree && value.ends_with(kTreeFile);
  if (is_file && why_idle.empty())
    path_line("a file with the tree's paths of ranks", value, kTreeFile);
  if (why_idle.empty()) tree_note(catalog, lane, option, value);
  ImGui::PopID();
}

void greyed_row(const char* label, const std::string& value, const std::string& why) {
  row_label(label, why);
  ImGui::AlignTextToFramePadding();
  words(value, theme().dim);
  if (ImGui::IsItemHovered()) tooltip(why);
}

}  // namespace ui
