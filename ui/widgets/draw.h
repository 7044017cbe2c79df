// The few shapes panels are made of. Needs a Dear ImGui frame.
#pragma once

#include <span>
#include <string>

#include <imgui.h>

#include "ui/widgets/fonts.h"
#include "ui/prepare/numbers.h"
#include "ui/widgets/theme.h"

namespace ui {

const Theme& theme();
/// Sets colours, spacing and sizes of the current context.
void apply_theme(ThemeName name, float scale);
/// Pixels for `at_100_percent` pixels at the person's scale.
float px(float at_100_percent);

ImU32 colour(Rgb rgb, float alpha = 1);
/// A meaning's fill in the current theme; grey in the monochrome one.
Rgb fill_of(Mean mean);

struct CellFlags {
  bool lit = false;     // the selection points at it
  bool locked = false;  // and was clicked
  bool marks = true;
  bool diverged = false;
  bool dim = false;                // text in grey
  Mean origin = Mean::Prefix;      // of an accepted token: corner tab in this colour
  const Rgb* lens_fill = nullptr;  // a lens's colour in place of the meaning's fill
  const char* mark = nullptr;      // in place of the meaning's own
};
/// A token in the writing font, cut to its box.
void token_cell(ImDrawList* list,
                ImVec2 min,
                ImVec2 max,
                const std::string& text,
                Mean mean,
                const CellFlags& flags);
/// A thin upright bar of the text, between its middle at the top and `foot`; with short ticks to
/// one side it is a bracket. `tick` in pixels, to the right where it is positive; 0: none.
void text_bar(ImDrawList* list, ImVec2 top, float foot, float tick, Rgb rgb);
/// Diagonal lines inside a rectangle.
void hatch(ImDrawList* list, ImVec2 min, ImVec2 max, ImU32 ink, float apart, float thickness);
void dashed_rect(
    ImDrawList* list, ImVec2 min, ImVec2 max, ImU32 ink, float dash, float gap, float thickness);

/// Scrolls the window by no more than shows this part of it, where the next frame has room.
void bring_into_view(ImVec2 min, ImVec2 max);

/// Right end of the window's content, in the window's own pixels.
float right_edge();
void words(const std::string& text, Rgb rgb);
void small_label(const std::string& text);  // grey, small
void wrapped(const std::string& text, Rgb rgb);
/// The beginning of a text that has room in the current font, whole characters and "..." at its
/// end.
std::string elided(const std::string& text, float width);
/// Words in so much room: cut where they have none, and then whole in a tooltip.
void words_within(const std::string& text, Rgb rgb, float width);
/// A small d or h behind what was drawn last, where it was derived or is known in hindsight;
/// hovering says which.
void truth_sign(Truth truth);
/// A grey label at the left, a value at the right edge, on lines of its own where both have no
/// room; a small d or h behind the label of what was derived or is known in hindsight.
void label_value(const char* label, const std::string& value, Truth truth = Truth::Measured);
/// The same of a figure. Hovering shows its formula.
/// @return whether it was clicked, to choose the steps behind it
bool label_value(const Figure& figure);
/// Over a figure drawn at the cursor: its formula while the mouse is there.
/// @return whether it was clicked, and has steps behind it
bool figure_button(const Figure& figure, ImVec2 size);
/// Label, large number, line of recent values; else as label_value.
bool big_number(const Figure& figure, std::span<const float> recent, float width);
/// @param top  of its scale, from 0; 0: the scale is from the lowest value to the highest
void sparkline(std::span<const float> values, ImVec2 size, Rgb rgb, float top = 0);
void formula_tooltip(const Figure& figure);
void tooltip(const std::string& text);
/// A bar of a share, with an unfilled rest.
void share_bar(float share, ImVec2 size, Rgb fill);

bool button(const char* label, bool primary = false, bool enabled = true, const char* why = "");
bool link(const char* label);
/// While it lives, fields have a line of this colour round them: on a light card their ground alone
/// is too faint to be seen.
class FrameLines {
 public:
  explicit FrameLines(Rgb rgb);
  ~FrameLines();
  FrameLines(const FrameLines&) = delete;
  FrameLines& operator=(const FrameLines&) = delete;
};
/// A box to tick. @return whether it was changed
bool tick(const char* label, bool& on);
/// A line of text of any length.
/// @return as ImGui::InputText
bool text_line(const char* id, const char* hint, std::string& text, ImGuiInputTextFlags flags = 0);
/// Several lines, broken between words.
bool text_area(const char* id, std::string& text, ImVec2 size);
/// A choice drawn as words with a small arrow; opens a list. @return whether the index changed
bool quiet_choice(const char* id,
                  const char* prefix,
                  std::span<const char* const> names,
                  int& index);

/// A sentence in the middle of an empty panel, over a faint outline of what will appear.
void empty_state(const std::string& sentence, bool sketch);

/// Windows that stay where they are put.
constexpr ImGuiWindowFlags kFixedWindow =
    ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
    ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus;
/// A bar across the window, ended by ImGui::End().
void begin_bar(const char* name, ImVec2 at, ImVec2 size, ImVec2 padding);

constexpr float kWorkBar = 36;
/// A bar of that height across the window: what is being done, how far it is, and a way to stop it.
/// @param fraction  0 to 1
/// @return whether `cancel` was pressed
bool work_bar(const char* id,
              float top,
              const std::string& what,
              double fraction,
              const std::string& detail,
              const char* cancel,
              const char* why_cancel);

/// A quiet card of its own: 8 px corners, 1 px line.
bool begin_card(const char* id, ImVec2 size, bool padded = true);
void end_card();

}  // namespace ui
