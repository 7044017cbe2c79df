#include "ui/widgets/draw.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <imgui_internal.h>
#include <implot.h>

#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "ui/prepare/time/curves.h"
#include "ui/widgets/area.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/marker.h"

namespace ui {
namespace {

const Theme* current = &kDark;
float current_scale = 1;

ImVec4 vec(Rgb c, float alpha = 1) {
  return ImGui::ColorConvertU32ToFloat4(colour(c, alpha));
}

void set_colours(ImGuiStyle& style, const Theme& t) {
  ImVec4* c = style.Colors;
  for (int i = 0; i < ImGuiCol_COUNT; ++i) c[i] = vec(t.card);
  c[ImGuiCol_Text] = vec(t.text);
  c[ImGuiCol_TextDisabled] = vec(t.dim);
  c[ImGuiCol_WindowBg] = vec(t.card);
  c[ImGuiCol_ChildBg] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_PopupBg] = vec(t.card);
  c[ImGuiCol_Border] = vec(t.line);
  c[ImGuiCol_BorderShadow] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_FrameBg] = vec(t.field);
  c[ImGuiCol_FrameBgHovered] = vec(t.button);
  c[ImGuiCol_FrameBgActive] = vec(t.button_hot);
  c[ImGuiCol_ScrollbarBg] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_ScrollbarGrab] = vec(t.overview);
  c[ImGuiCol_ScrollbarGrabHovered] = vec(t.faint);
  c[ImGuiCol_ScrollbarGrabActive] = vec(t.dim);
  const Rgb handle = handle_on(t);
  c[ImGuiCol_CheckMark] = vec(handle);
  c[ImGuiCol_SliderGrab] = vec(handle);
  c[ImGuiCol_SliderGrabActive] = vec(t.bright);
  c[ImGuiCol_Button] = vec(t.button);
  c[ImGuiCol_ButtonHovered] = vec(t.button_hot);
  c[ImGuiCol_ButtonActive] = vec(t.outlines ? t.button_hot : t.line);
  c[ImGuiCol_Header] = vec(t.button);
  c[ImGuiCol_HeaderHovered] = vec(t.button_hot);
  c[ImGuiCol_HeaderActive] = vec(t.button_hot);
  // The separators between docked cards have the background colour.
  c[ImGuiCol_Separator] = vec(t.ground);
  c[ImGuiCol_SeparatorHovered] = vec(t.line);
  c[ImGuiCol_SeparatorActive] = vec(t.faint);
  c[ImGuiCol_ResizeGrip] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_ResizeGripHovered] = vec(t.line);
  c[ImGuiCol_TabHovered] = vec(t.button);
  c[ImGuiCol_TabSelectedOverline] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_TabDimmedSelectedOverline] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_DockingPreview] = vec(t.accent, 0.5f);
  c[ImGuiCol_DockingEmptyBg] = vec(t.ground);
  c[ImGuiCol_TableBorderLight] = vec(t.line);
  c[ImGuiCol_TableBorderStrong] = vec(t.line);
  c[ImGuiCol_TableRowBg] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_TableRowBgAlt] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_TextSelectedBg] = vec(t.accent, 0.45f);
  c[ImGuiCol_InputTextCursor] = vec(t.bright);
  c[ImGuiCol_DragDropTarget] = vec(t.accent);
  c[ImGuiCol_NavCursor] = vec(handle);
  c[ImGuiCol_ModalWindowDimBg] = ImVec4(0, 0, 0, 0.45f);
  c[ImGuiCol_MenuBarBg] = vec(t.bar);
}

// Returns the style of charts in the current theme.
ImPlotStyle plot_style() {
  ImPlotStyle style;
  const auto scaled = [](float x, float y) { return ImVec2(px(x), px(y)); };
  style.PlotMinSize = scaled(80, 60);
  style.MajorTickLen = style.MinorTickLen = scaled(4, 4);
  style.PlotPadding = scaled(18, 4);  // room for half a label beyond the axis
  style.LabelPadding = scaled(4, 3);
  style.LegendPadding = scaled(2, 2);
  style.LegendInnerPadding = ImVec2(0, 0);
  style.LegendSpacing = scaled(10, 1);
  style.AnnotationPadding = scaled(2, 2);
  style.MinorAlpha = 0.4f;
  ImVec4* c = style.Colors;
  for (const ImPlotCol clear : {ImPlotCol_FrameBg, ImPlotCol_PlotBg, ImPlotCol_LegendBg,
                                ImPlotCol_LegendBorder, ImPlotCol_AxisBg})
    c[clear] = ImVec4(0, 0, 0, 0);
  c[ImPlotCol_PlotBorder] = c[ImPlotCol_AxisGrid] = vec(current->line);
  c[ImPlotCol_LegendText] = c[ImPlotCol_InlayText] = c[ImPlotCol_TitleText] = vec(current->text);
  c[ImPlotCol_AxisText] = vec(current->dim);
  c[ImPlotCol_AxisTick] = vec(current->faint);
  c[ImPlotCol_Selection] = vec(handle_on(*current));
  return style;
}

}  // namespace

const Theme& theme() {
  return *current;
}

float px(float at_100_percent) {
  return at_100_percent * current_scale;
}

float target_padding() {
  return std::max(0.0f, (px(kLeastTarget) - ImGui::GetFontSize()) / 2);
}

void apply_theme(ThemeName name, float scale) {
  current = &theme_named(name);
  current_scale = scale;
  ImGuiStyle style;
  style.FontSizeBase = kTextSize;
  style.WindowPadding = {12, 10};
  style.FramePadding = {10, 5};
  style.ItemSpacing = {8, 6};
  style.ItemInnerSpacing = {6, 4};
  style.CellPadding = {6, 4};
  style.WindowRounding = 8;
  style.ChildRounding = 8;
  style.PopupRounding = 8;
  style.FrameRounding = 6;
  style.GrabRounding = 4;
  style.TabRounding = 4;
  style.ScrollbarRounding = 6;
  style.ScrollbarSize = 10;
  style.WindowBorderSize = 0;
  style.PopupBorderSize = 1;
  style.FrameBorderSize = current->outlines ? 1 : 0;
  style.TabBorderSize = 0;
  style.TabBarBorderSize = 0;
  style.TabBarOverlineSize = 0;
  style.DockingSeparatorSize = 8;
  style.WindowMenuButtonPosition = ImGuiDir_Left;
  style.DisabledAlpha = 0.55f;
  style.ScaleAllSizes(scale);
  // Dear ImGui rounds the size of the font and cuts the fraction of the padding; a row of a table still has the least height of a target.
  style.CellPadding.y =
      std::max(style.CellPadding.y, (px(kLeastTarget) - std::round(px(kTextSize))) / 2);
  style.TabMinWidthShrink = FLT_MAX;  // tabs without room scroll; their titles are never cut
  style.FontScaleMain = scale;
  set_colours(style, *current);
  ImGui::GetStyle() = style;
  ImPlot::GetStyle() = plot_style();
}

ImU32 colour(Rgb c, float alpha) {
  return IM_COL32(c.r, c.g, c.b,
                  static_cast<int>(std::lround(std::clamp(alpha, 0.0f, 1.0f) * 255)));
}

void bring_into_view(ImVec2 min, ImVec2 max) {
  ImGui::ScrollToRect(ImGui::GetCurrentWindow(), {min, max},
                      ImGuiScrollFlags_KeepVisibleEdgeX | ImGuiScrollFlags_KeepVisibleEdgeY);
}

float right_edge() {
  return ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
}

float room_in_view() {
  return ImGui::GetCurrentWindow()->InnerClipRect.Max.x - ImGui::GetCursorScreenPos().x;
}

namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

bool is_between_words(char c) {
  return is_blank(c) || c == '\n';
}

// True if a word has a dot before its last character, as file names have. Dear ImGui also wraps after such a dot.
bool has_inner_dot(const std::string& text) {
  for (std::size_t dot = text.find('.'); dot != std::string::npos; dot = text.find('.', dot + 1))
    if (dot + 1 < text.size() && !is_between_words(text[dot + 1])) return true;
  return false;
}

void plain_text(const std::string& text) {
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
}

// Draws text in the current colour. Words with dots are not wrapped.
void text_of_words(const std::string& text) {
  const float end = ImGui::GetCurrentWindow()->DC.TextWrapPos;
  if (end < 0 || !has_inner_dot(text)) return plain_text(text);
  plain_text(whole_words(text, ImGui::CalcWrapWidthForPos(ImGui::GetCursorScreenPos(), end)));
}

}  // namespace

std::string whole_words(std::string text, float width) {
  if (!has_inner_dot(text)) return text;
  ImFont* font = ImGui::GetFont();
  const std::size_t size = text.size();
  for (std::size_t line = 0; line < size;) {
    const char* begin = text.data() + line;
    const char* wrap =
        font->CalcWordWrapPosition(ImGui::GetFontSize(), begin, text.data() + size, width);
    std::size_t next = line + static_cast<std::size_t>(wrap - begin);
    if (next >= size) break;
    if (next > line && text[next - 1] == '.' && !is_between_words(text[next])) {
      std::size_t word = next;
      while (word > line && !is_between_words(text[word - 1])) --word;
      if (word > line) {
        text[word - 1] = '\n';
        line = word;
        continue;
      }
    }
    // As Dear ImGui begins the next line.
    while (next < size && is_blank(text[next])) ++next;
    if (next < size && text[next] == '\n') ++next;
    line = std::max(next, line + 1);
  }
  return text;
}

void words(const std::string& text, Rgb rgb) {
  ImGui::PushStyleColor(ImGuiCol_Text, colour(rgb));
  text_of_words(text);
  ImGui::PopStyleColor();
}

void small_label(const std::string& text) {
  ImGui::PushFont(nullptr, kSmallSize);
  words(text, theme().dim);
  ImGui::PopFont();
}

void wrapped(const std::string& text, Rgb rgb) {
  ImGui::PushTextWrapPos(0);
  words(text, rgb);
  ImGui::PopTextWrapPos();
}

void small_wrapped(const std::string& text) {
  ImGui::PushFont(nullptr, kSmallSize);
  wrapped(text, theme().dim);
  ImGui::PopFont();
}

std::string elided(const std::string& text, float width) {
  if (ImGui::CalcTextSize(text.c_str()).x <= width) return text;
  constexpr const char* kDots = "...";
  std::size_t fits = 0, beyond = text.size();  // bytes
  while (beyond - fits > 1) {
    const std::size_t middle = (fits + beyond) / 2;
    const std::string part = text.substr(0, engine::whole_characters(text, middle)) + kDots;
    (ImGui::CalcTextSize(part.c_str()).x <= width ? fits : beyond) = middle;
  }
  return text.substr(0, engine::whole_characters(text, fits)) + kDots;
}

void words_within(const std::string& text, Rgb rgb, float width) {
  words_within({&text, 1}, rgb, width);
}

void words_within(std::span<const std::string> forms, Rgb rgb, float width) {
  const auto fits = [width](const std::string& form) {
    return ImGui::CalcTextSize(form.c_str()).x <= width;
  };
  const auto found = std::ranges::find_if(forms, fits);
  const std::string shown = found != forms.end() ? *found : elided(forms.back(), width);
  words(shown, rgb);
  if (shown != forms.front() && ImGui::IsItemHovered()) tooltip(forms.front());
}

void label_at_left_edge(const std::string& text, ImVec2 row, ImVec2 size) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = row.x + ImGui::GetScrollX();
  if (ImGui::GetScrollX() > 0)
    list->AddRectFilled({ImGui::GetWindowPos().x, row.y}, {x + size.x, row.y + size.y},
                        ImGui::GetColorU32(ImGuiCol_WindowBg));
  list->AddText(fonts().mono, px(kSmallSize), {x, row.y + (size.y - px(kSmallSize)) / 2},
                colour(theme().dim), text.c_str());
}

void to_left_edge() {
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ImGui::GetScrollX());
}

namespace {

void truth_letter(Truth truth) {
  if (truth == Truth::Measured) return;
  ImGui::SameLine(0, px(3));
  ImGui::PushFont(nullptr, kTruthSize);
  words(truth_mark(truth), theme().dim);
  ImGui::PopFont();
}

// Draws a label with its letter and a value. @return whether the label is hovered
bool put_label_and_value(const char* label, const std::string& value, Truth truth) {
  const float right = right_edge(), left = ImGui::GetCursorPosX();
  ImGui::BeginGroup();
  words(label, theme().dim);
  truth_letter(truth);
  ImGui::EndGroup();
  const bool hovered = ImGui::IsItemHovered();
  const float label_end = left + ImGui::GetItemRectSize().x + px(12);
  ImGui::PushFont(fonts().bold, kTextSize);
  const float wide = ImGui::CalcTextSize(value.c_str()).x;
  if (label_end + wide <= right) {
    ImGui::SameLine();
    ImGui::SetCursorPosX(right - wide);
    words(value, theme().bright);
  } else {
    ImGui::SetCursorPosX(std::max(left + px(12), right - wide));
    ImGui::PushTextWrapPos(right);
    words(value, theme().bright);
    ImGui::PopTextWrapPos();
  }
  ImGui::PopFont();
  return hovered;
}

}  // namespace

void truth_sign(Truth truth) {
  truth_letter(truth);
  if (truth != Truth::Measured && ImGui::IsItemHovered()) tooltip(truth_words(truth));
}

bool figure_button(const Figure& figure, ImVec2 size) {
  size = {std::max(1.0f, size.x), std::max(1.0f, size.y)};
  const bool has_steps = figure.step_set != StepSet::None;
  bool pressed = false;
  if (has_steps)
    pressed = ImGui::InvisibleButton(figure.label.c_str(), size);
  else
    ImGui::Dummy(size);
  if (ImGui::IsItemHovered()) {
    formula_tooltip(figure);
    if (has_steps) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  }
  return pressed;
}

void label_value(const char* label, const std::string& value, Truth truth) {
  if (put_label_and_value(label, value, truth) && truth != Truth::Measured)
    tooltip(truth_words(truth));
}

bool label_value(const Figure& figure) {
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const float wide = ImGui::GetContentRegionAvail().x;
  const bool is_target = figure.step_set != StepSet::None;
  const float above = is_target ? target_padding() : 0;
  ImGui::SetCursorScreenPos({min.x, min.y + above});
  ImGui::BeginGroup();
  put_label_and_value(figure.label.c_str(), figure.value, figure.truth);
  ImGui::EndGroup();
  const float high = ImGui::GetItemRectSize().y + 2 * above;
  ImGui::SetCursorScreenPos(min);
  // Targets touch each other.
  ImGui::PushStyleVarY(ImGuiStyleVar_ItemSpacing, is_target ? 0 : ImGui::GetStyle().ItemSpacing.y);
  const bool pressed = figure_button(figure, {wide, high});
  ImGui::PopStyleVar();
  return pressed;
}

void formula_tooltip(const Figure& figure) {
  if (!ImGui::BeginTooltip()) return;
  ImGui::PushFont(fonts().bold, kTextSize);
  words(figure.label + "  " + figure.value, theme().bright);
  ImGui::PopFont();
  ImGui::PushTextWrapPos(px(360));
  words("= " + figure.formula, theme().text);
  words("= " + figure.numbers, theme().dim);
  if (figure.truth != Truth::Measured) words(truth_words(figure.truth), theme().dim);
  if (figure.step_set != StepSet::None) words("Click: select its steps.", theme().dim);
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void tooltip(const std::string& text) {
  if (!ImGui::BeginTooltip()) return;
  ImGui::PushTextWrapPos(px(380));
  text_of_words(text);
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void sparkline(
    const std::string& id, std::span<const float> values, ImVec2 size, Rgb rgb, float top) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  size.x = std::max(size.x, 1.0f);
  if (values.size() < 2) return ImGui::Dummy(size);
  const int last = static_cast<int>(values.size()) - 1;
  double low = top > 0 ? 0 : HUGE_VAL, high = top;
  for (const double value : values)  // a step without compute has an infinite speed
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  low = std::min(low, high);
  const double margin = std::max(0.1 * (high - low), 1e-6 * (1 + high));
  ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, ImVec2(0, 0));
  ImPlot::PushStyleVar(ImPlotStyleVar_PlotBorderSize, 0);
  ImGui::PushItemFlag(ImGuiItemFlags_NoNav, true);
  const bool is_open =
      ImPlot::BeginPlot(("##" + id).c_str(), size,
                        ImPlotFlags_CanvasOnly | ImPlotFlags_NoFrame | ImPlotFlags_NoInputs);
  ImGui::PopItemFlag();
  if (is_open) {
    constexpr ImPlotAxisFlags kBare = ImPlotAxisFlags_NoDecorations;
    ImPlot::SetupAxes(nullptr, nullptr, kBare, kBare);
    ImPlot::SetupAxesLimits(0, last, low - margin, high + margin, ImPlotCond_Always);
    ImPlotSpec spec;
    spec.LineColor = vec(rgb);
    spec.LineWeight = px(1.5f);
    ImPlot::PlotLine("##values", values.data(), last + 1, 1, 0, spec);
    if (ImGui::IsWindowHovered() &&
        ImGui::IsMouseHoveringRect(at, {at.x + size.x, at.y + size.y})) {
      const int i = std::clamp(static_cast<int>(std::lround(ImPlot::GetPlotMousePos().x)), 0, last);
      set_whole_marker(spec, ImPlotMarker_Circle, px(3.5f), vec(rgb));
      ImPlot::PlotScatter("##hovered", &values[static_cast<std::size_t>(i)], 1, 1, i, spec);
      const std::string value = value_in_words(values[static_cast<std::size_t>(i)]);
      tooltip(i == last ? value + ", the newest"
                        : fmt::format("{}, {} before the newest", value, last - i));
    }
    ImPlot::EndPlot();
  }
  ImPlot::PopStyleVar(2);
}

std::string label_within(const std::string& label, float width) {
  if (ImGui::CalcTextSize(label.c_str()).x <= width) return label;
  std::string shorter = label;
  if (shorter.starts_with("tokens / ")) shorter.replace(0, 9, "tok/");
  // The value's "x" already says that it is a ratio; the baseline must stay.
  if (const auto baseline = shorter.find("vs run "); baseline != std::string::npos)
    shorter.erase(0, baseline);
  return elided(shorter, width);
}

bool big_number(const Figure& figure, std::span<const float> recent, float width) {
  ImGui::BeginGroup();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(1)));
  ImGui::PushFont(nullptr, kSmallSize);
  words(label_within(figure.label, width - px(20)), theme().dim);
  ImGui::PopFont();
  truth_letter(figure.truth);
  // A value that would be cut is written smaller.
  ImGui::PushFont(fonts().bold, kBigSize);
  const float wide = ImGui::CalcTextSize(figure.value.c_str()).x;
  ImGui::PopFont();
  const float fits = std::min(1.0f, (width - px(4)) / std::max(wide, 1.0f));
  ImGui::PushFont(fonts().bold, std::max(kSmallSize, kBigSize * fits));
  words(elided(figure.value, width - px(2)), theme().bright);
  ImGui::PopFont();
  if (!recent.empty())
    sparkline(figure.label, recent, {width - px(12), px(18)},
              theme().monochrome ? theme().dim : handle_on(theme()));
  ImGui::PopStyleVar();
  ImGui::EndGroup();
  ImGui::SetCursorScreenPos(ImGui::GetItemRectMin());
  return figure_button(figure, ImGui::GetItemRectSize());
}

void share_bar(float share, ImVec2 size, Rgb fill) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy(size);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float r = size.y / 2;
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, colour(theme().line), r);
  const float filled = std::clamp(share, 0.0f, 1.0f) * size.x;
  if (filled > 0)
    list->AddRectFilled(at, {at.x + std::max(filled, size.y), at.y + size.y}, colour(fill), r);
}

void continue_row(const char* label) {
  const ImGuiStyle& style = ImGui::GetStyle();
  ImGui::PushFont(fonts().bold, kTextSize);
  const float width = ImGui::CalcTextSize(label, nullptr, true).x + 2 * style.FramePadding.x;
  ImGui::PopFont();
  const float begin = ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x + style.ItemSpacing.x;
  if (begin + width <= right_edge()) ImGui::SameLine();
}

bool button(const char* label, bool primary, bool enabled, const char* why) {
  if (primary) {
    ImGui::PushStyleColor(ImGuiCol_Button, colour(theme().accent));
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, colour(theme().accent, 0.85f));
    ImGui::PushStyleColor(ImGuiCol_ButtonActive, colour(theme().accent, 0.7f));
    ImGui::PushStyleColor(ImGuiCol_Text, colour(theme().accent_text));
  } else {
    ImGui::PushStyleColor(ImGuiCol_Border, colour(theme().button_hot));
    ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  }
  ImGui::BeginDisabled(!enabled);
  ImGui::PushFont(fonts().bold, kTextSize);
  const bool pressed = ImGui::Button(label);
  ImGui::PopFont();
  ImGui::EndDisabled();
  if (primary) {
    ImGui::PopStyleColor(4);
  } else {
    ImGui::PopStyleVar();
    ImGui::PopStyleColor();
  }
  if (*why && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) tooltip(why);
  return pressed;
}

bool link(const char* label) {
  ImGui::PushStyleColor(ImGuiCol_Text, colour(theme().name == ThemeName::Light ? theme().accent
                                              : theme().monochrome             ? theme().bright
                                                                   : look(Mean::Guess).fill));
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(0, target_padding()));
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  const bool pressed = ImGui::Button(label);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(2);
  return pressed;
}

namespace {

int grow(ImGuiInputTextCallbackData* data) {
  auto* text = static_cast<std::string*>(data->UserData);
  if (data->EventFlag == ImGuiInputTextFlags_CallbackResize) {
    text->resize(static_cast<std::size_t>(data->BufTextLen));
    data->Buf = text->data();
  }
  return 0;
}

}  // namespace

FrameLines::FrameLines(Rgb rgb) {
  ImGui::PushStyleColor(ImGuiCol_Border, colour(rgb));
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
}

FrameLines::~FrameLines() {
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

bool tick(const char* label, bool& on) {
  const FrameLines lines(theme().faint);
  return ImGui::Checkbox(label, &on);
}

bool text_line(const char* id, const char* hint, std::string& text, ImGuiInputTextFlags flags) {
  const FrameLines lines(theme().line);
  return ImGui::InputTextWithHint(id, hint, text.data(), text.capacity() + 1,
                                  flags | ImGuiInputTextFlags_CallbackResize, grow, &text);
}

bool text_area(const char* id, std::string& text, ImVec2 size) {
  const FrameLines lines(theme().line);
  return ImGui::InputTextMultiline(
      id, text.data(), text.capacity() + 1, size,
      ImGuiInputTextFlags_CallbackResize | ImGuiInputTextFlags_WordWrap, grow, &text);
}

bool begin_quiet_choice(const char* id, const std::string& shown) {
  ImGui::PushStyleColor(ImGuiCol_FrameBg, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, colour(theme().dim));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(4), target_padding()));
  const bool open = ImGui::BeginCombo(id, shown.c_str(), ImGuiComboFlags_WidthFitPreview);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(3);
  return open;
}

bool quiet_choice(const char* id,
                  const char* prefix,
                  std::span<const char* const> names,
                  int& index) {
  bool changed = false;
  if (!begin_quiet_choice(id, std::string(prefix) + names[index])) return false;
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    if (!selectable(names[i], i == index)) continue;
    index = i;
    changed = true;
  }
  ImGui::EndCombo();
  return changed;
}

void empty_state(const std::string& sentence,
                 Sketch sketch,
                 float high,
                 const std::function<void()>& controls) {
  const ImVec2 room = ImGui::GetContentRegionAvail(), at = ImGui::GetCursorScreenPos();
  const float wrap = std::max(std::min(room.x - px(24), px(420)), px(60));
  const ImVec2 size =
      ImGui::CalcTextSize(whole_words(sentence, wrap).c_str(), nullptr, false, wrap);
  const float gap = px(10), below = high + gap + px(kSketchHeight);
  const bool sketched =
      sketch != Sketch::None && room.x >= px(kSketchWidth) && room.y >= size.y + below;
  const float whole = size.y + (sketched ? below : 0);
  ImGui::SetCursorScreenPos(
      {at.x + std::max(0.0f, (room.x - size.x) / 2), at.y + std::max(0.0f, (room.y - whole) / 2)});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + wrap);
  words(sentence, theme().dim);
  ImGui::PopTextWrapPos();
  if (controls) controls();
  if (sketched)
    draw_sketch(ImGui::GetWindowDrawList(), sketch,
                {std::round(at.x + (room.x - px(kSketchWidth)) / 2),
                 std::round(ImGui::GetCursorScreenPos().y + gap)});
}

void begin_bar(const char* name, ImVec2 at, ImVec2 size, ImVec2 padding) {
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, padding);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, ImVec2(1, 1));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, colour(theme().bar));
  ImGui::Begin(name, nullptr, kFixedWindow);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
}

bool work_bar(const char* id,
              float top,
              const std::string& what,
              double fraction,
              const std::string& detail,
              const char* cancel,
              const char* why_cancel) {
  const Area area = frame_area();
  begin_bar(id, {area.min.x, top}, {area.wide(), px(kWorkBar)}, {px(14), px(5)});
  ImGui::AlignTextToFramePadding();
  words(what, theme().text);
  ImGui::SameLine(0, px(12));
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(10));
  share_bar(static_cast<float>(fraction), {px(180), px(5)}, handle_on(theme()));
  ImGui::SameLine(0, px(12));
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(10));
  words(percent(fraction) + (detail.empty() ? "" : ", " + detail), theme().dim);
  ImGui::SameLine(0, px(12));
  const bool pressed = button(cancel, false, true, why_cancel);
  ImGui::End();
  return pressed;
}

bool begin_card(const char* id, ImVec2 size, bool padded, bool grows) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colour(theme().card));
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 1);
  if (!padded) ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  const bool open = ImGui::BeginChild(
      id, size, ImGuiChildFlags_Borders | (grows ? ImGuiChildFlags_AutoResizeY : 0));
  if (!padded) ImGui::PopStyleVar();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  return open;
}

void end_card() {
  ImGui::EndChild();
}

}  // namespace ui
