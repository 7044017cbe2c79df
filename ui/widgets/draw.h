// The shapes and controls that panels use. Needs a Dear ImGui frame.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <imgui.h>

#include "ui/prepare/figure.h"
#include "ui/widgets/theme.h"

namespace ui {

/// Returns the current theme.
const Theme& theme();
/// Sets colours, spacing and sizes of the current context.
void apply_theme(ThemeName name, float scale);
/// Converts pixels at 100 % to pixels at the user's scale.
float px(float at_100_percent);
/// The least width and height of an item that can be clicked, px at 100 %.
inline constexpr float kLeastTarget = 24;
/// Returns the vertical padding with which a line of the current font has the least height of a target.
float target_padding();

/// Returns a colour for Dear ImGui.
ImU32 colour(Rgb rgb, float alpha = 1);
/// Returns the fill of a meaning in the current theme.
Rgb fill_of(Mean mean);

/// Options for drawing a token cell.
struct CellFlags {
  bool lit = false;     // highlighted by the selection
  bool locked = false;  // selected by a click
  bool marks = true;
  bool diverged = false;
  bool dim = false;    // the text is grey
  bool quiet = false;  // of an earlier step: the fill is a tint, and the border is a line below
  bool tight = false;  // the box is as wide as the text: no padding, no mark
  bool elide = false;  // a text that is wider than the box ends in an ellipsis
  Mean origin = Mean::Prefix;      // an accepted token's corner shows how it was proposed
  const Rgb* lens_fill = nullptr;  // the colour of a lens instead of the meaning's fill
  const char* mark = nullptr;      // replaces the meaning's mark
};
/// Sets whether token cells show spaces as dots.
void show_space_dots(bool shown);
/// Opacity of the stroke through a rejected token.
inline constexpr float kStroke = 0.5f;
/// Draws a token in the monospaced font, clipped to its box.
void token_cell(ImDrawList* list,
                ImVec2 min,
                ImVec2 max,
                const std::string& text,
                Mean mean,
                const CellFlags& flags);
/// Draws a thin vertical bar from `top` to `foot`. With `tick` != 0 (px; positive: to the right) it is a bracket.
void text_bar(ImDrawList* list, ImVec2 top, float foot, float tick, Rgb rgb);
/// Fills a rectangle with diagonal lines.
void hatch(ImDrawList* list, ImVec2 min, ImVec2 max, ImU32 ink, float apart, float thickness);
/// Draws the outline of a rectangle with dashes.
void dashed_rect(
    ImDrawList* list, ImVec2 min, ImVec2 max, ImU32 ink, float dash, float gap, float thickness);

/// Scrolls the window by the smallest distance that makes a part of it visible in the next frame.
void bring_into_view(ImVec2 min, ImVec2 max);

/// Returns the right end of the window's content, relative to the window, px.
float right_edge();
/// Returns the distance from the cursor to the right end of the visible part, also in a window that is scrolled sideways, px.
float room_in_view();
/// Returns the text for lines of a width in the current font: a line that would end after a dot within a word (".pdrun", "training.jsonl") ends
/// before the word, by a line feed in place of a blank. A word that is longer than a line is not kept whole.
std::string whole_words(std::string text, float width);
/// Draws text on one line, or wrapped by ImGui::PushTextWrapPos().
void words(const std::string& text, Rgb rgb);
/// Draws a small grey label.
void small_label(const std::string& text);
/// Draws a small grey label that wraps at the window's edge.
void small_wrapped(const std::string& text);
/// Draws text that wraps at the window's edge.
void wrapped(const std::string& text, Rgb rgb);
/// Returns the text shortened to a width in the current font, with "..." at its end.
std::string elided(const std::string& text, float width);
/// Draws text shortened to a width; if it was shortened, the tooltip has all of it.
void words_within(const std::string& text, Rgb rgb, float width);
/// Draws the first of several forms that fits into a width, else the last one shortened; the tooltip has the first form.
/// @param forms  longest first, not empty
void words_within(std::span<const std::string> forms, Rgb rgb, float width);
/// Draws a label in a row at the left edge of the window's visible part, over content that is scrolled under it.
/// @param row   the upper left corner of the row on the screen, which may be scrolled out of view
/// @param size  of the label, px
void label_at_left_edge(const std::string& text, ImVec2 row, ImVec2 size);
/// Moves the cursor to the left edge of the window's visible part.
void to_left_edge();
/// Draws the letter of a figure's truth after the last item; its tooltip explains the letter.
void truth_sign(Truth truth);
/// Draws a grey label at the left with the letter of its truth, and a value at the right edge, or below if both do not fit on a line.
void label_value(const char* label, const std::string& value, Truth truth = Truth::Measured);
/// The same for a figure, with its formula as the tooltip.
/// @return whether it was clicked, to select its steps
bool label_value(const Figure& figure);
/// Puts an invisible button over a figure that has steps, with its formula as the tooltip; another figure has the tooltip alone.
/// @return whether it was clicked and has steps
bool figure_button(const Figure& figure, ImVec2 size);
/// Returns the label of a figure shortened to a width in the current font: "tok/step" for "tokens / step", "vs run 1" for
/// "speedup vs run 1", else with "..." at its end.
std::string label_within(const std::string& label, float width);
/// Draws a label, a large number and a line of recent values; otherwise works like label_value().
bool big_number(const Figure& figure, std::span<const float> recent, float width);
/// Draws recent values >= 0, oldest first, as a line without axes; the tooltip has the value under the mouse.
/// @param top  upper end of the scale, which begins at 0; 0: the scale runs from the lowest to the highest value
void sparkline(
    const std::string& id, std::span<const float> values, ImVec2 size, Rgb rgb, float top = 0);
/// Shows a tooltip with the formula of a figure and its numbers.
void formula_tooltip(const Figure& figure);
/// Shows a tooltip with text that wraps.
void tooltip(const std::string& text);
/// Draws a horizontal bar that is filled up to a share.
void share_bar(float share, ImVec2 size, Rgb fill);

/// Draws a button.
/// @param why  the tooltip, also while the button is disabled
bool button(const char* label, bool primary = false, bool enabled = true, const char* why = "");
/// Continues the row of buttons if a button with this label fits into it; otherwise the next button begins another row.
void continue_row(const char* label);
/// Draws a button that looks like a link.
bool link(const char* label);
/// Works like ImGui::Selectable(); it has the least height of a target.
bool selectable(const char* label,
                bool selected = false,
                ImGuiSelectableFlags flags = 0,
                ImVec2 size = {0, 0});
/// Works like ImGui::MenuItem(); it has the least height of a target.
bool menu_item(const char* label,
               const char* keys = nullptr,
               bool selected = false,
               bool enabled = true);
/// Works like ImGui::Combo(); the items of its list have the least height of a target.
bool combo(const char* id, int& index, std::span<const char* const> names);
/// While an object exists, fields have a border in its colour; on a light card their background alone is too faint.
class FrameLines {
 public:
  /// Adds the border.
  explicit FrameLines(Rgb rgb);
  ~FrameLines();
  FrameLines(const FrameLines&) = delete;
  FrameLines& operator=(const FrameLines&) = delete;
};
/// Draws a checkbox. @return whether it was changed
bool tick(const char* label, bool& on);
/// Draws a text field with one line.
/// @return as ImGui::InputText
bool text_line(const char* id, const char* hint, std::string& text, ImGuiInputTextFlags flags = 0);
/// Draws a text field with several lines, wrapped between words.
bool text_area(const char* id, std::string& text, ImVec2 size);
/// Draws a choice that looks like text with a small arrow. @return whether its list is open; then ImGui::EndCombo() ends it
bool begin_quiet_choice(const char* id, const std::string& shown);
/// Draws such a choice with its list. @return whether the index has changed
bool quiet_choice(const char* id,
                  const char* prefix,
                  std::span<const char* const> names,
                  int& index);

/// The kinds of sketches: small faint drawings of the content to come, for empty panels.
enum class Sketch : std::uint8_t {
  None,
  Cells,       ///< rows of token cells
  Staircase,   ///< states of a block, each with more tokens that are final
  Bars,        ///< lanes of a timeline
  Tree,        ///< a tree that grows to the right
  Triangle,    ///< a causal attention mask
  Histograms,  ///< two distributions
  Columns,     ///< labels with values
  Curve,       ///< a chart
  Lines,       ///< the entries of a list
};
constexpr int kSketches = 10;

/// Size of a sketch in pixels at 100 %.
constexpr float kSketchWidth = 132, kSketchHeight = 46;
/// Opacity of a sketch, whose colour is the theme's dim one.
constexpr float kSketchAlpha = 0.3f;

/// Draws a sketch without text.
/// @param at  the upper left corner
void draw_sketch(ImDrawList* list, Sketch kind, ImVec2 at);

/// Draws a sentence in the middle of an empty panel.
/// @param sketch    drawn below the sentence and the controls if there is room for it
/// @param high      height of the controls, px
/// @param controls  draws controls below the sentence; may be empty
void empty_state(const std::string& sentence,
                 Sketch sketch = Sketch::None,
                 float high = 0,
                 const std::function<void()>& controls = {});

/// Flags for windows that the user cannot move.
constexpr ImGuiWindowFlags kFixedWindow =
    ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
    ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus;
/// Begins a bar across the window; ImGui::End() ends it.
void begin_bar(const char* name, ImVec2 at, ImVec2 size, ImVec2 padding);

constexpr float kWorkBar = 36;
/// Draws a bar of height kWorkBar across the window with the progress of an operation and a button to cancel it.
/// @param fraction  progress, 0 to 1
/// @return whether `cancel` was pressed
bool work_bar(const char* id,
              float top,
              const std::string& what,
              double fraction,
              const std::string& detail,
              const char* cancel,
              const char* why_cancel);

/// Begins a card: a child window with rounded corners and a thin border.
/// @param grows  the card has the height of its content
bool begin_card(const char* id, ImVec2 size, bool padded = true, bool grows = false);
/// Ends the card.
void end_card();

}  // namespace ui
