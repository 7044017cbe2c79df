#include "ui/panels/results/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "ui/prepare/time/curves.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

constexpr float kLineWidth = 1.6f, kSampleWidth = 22;
// The dash patterns of the curves: lengths of a dash and of a gap, px; {0, 0} is a solid line.
constexpr std::array<std::array<float, 2>, 4> kDashes{{{0, 0}, {7, 4}, {2, 3}, {12, 3}}};

// Draws the line of the curve `index` through the points, with the curve's colour and dash pattern.
void line_through(ImDrawList* list, std::span<const ImVec2> points, int index) {
  const ImU32 ink = colour(curve_ink(theme(), index));
  const auto [on, off] = kDashes[static_cast<std::size_t>(index) % kDashes.size()];
  if (on == 0 || points.size() < 2) {
    list->AddPolyline(points.data(), static_cast<int>(points.size()), ink, px(kLineWidth));
    return;
  }
  // `left`, the remaining length of the dash or gap, stays above 0.01 px: adding less to a float coordinate could have no effect, and the loop would
  // not end.
  bool drawn = true;
  float left = px(on);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const ImVec2 a = points[i - 1], b = points[i];
    const float length = std::hypot(b.x - a.x, b.y - a.y);
    const auto between = [&](float t) {
      return ImVec2{a.x + (b.x - a.x) * t / length, a.y + (b.y - a.y) * t / length};
    };
    for (float t = 0; t < length;) {
      const float to = std::min(length, t + left);
      if (drawn) list->AddLine(between(t), between(to), ink, px(kLineWidth));
      left -= to - t;
      if (left < 0.01f) {
        drawn = !drawn;
        left = px(drawn ? on : off);
      }
      t = to;
    }
  }
}

// The visible range and the rectangle that it is drawn in.
struct Plot {
  ChartRange range;
  ImVec2 min = {}, max = {};

  float x_of(double x) const {
    const double share = (x - range.x0) / (range.x1 - range.x0);
    return min.x + static_cast<float>(std::clamp(share, -0.1, 1.1)) * (max.x - min.x);
  }
  float y_of(double y) const {
    return max.y - static_cast<float>(std::clamp(range.height_of(y), -0.1, 1.1)) * (max.y - min.y);
  }
  double x_at(float pixel) const {
    return range.x0 + (range.x1 - range.x0) * (pixel - min.x) / std::max(1.0f, max.x - min.x);
  }
};

// Draws the names with samples of the lines, and the values at `x` or the newest.
void chart_legend(std::span<const Curve> curves, std::optional<double> x, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushFont(nullptr, kSmallSize);
  const float high = ImGui::GetTextLineHeight();
  float left = 0, top = 0;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    const auto index = x ? nearest(curve, *x) : nearest(curve, HUGE_VAL);
    const std::string said =
        curve.name + (index ? " " + value_in_words(curve.y[*index]) : std::string(" -"));
    const float wide = px(kSampleWidth + 6) + ImGui::CalcTextSize(said.c_str()).x + px(14);
    if (left > 0 && left + wide > width) {
      left = 0;
      top += high + px(2);
    }
    const std::array<ImVec2, 2> sample{{{at.x + left, at.y + top + high / 2},
                                        {at.x + left + px(kSampleWidth), at.y + top + high / 2}}};
    line_through(list, sample, static_cast<int>(i));
    ImGui::SetCursorScreenPos({at.x + left + px(kSampleWidth + 6), at.y + top});
    words(said, theme().text);
    left += wide;
  }
  ImGui::PopFont();
  ImGui::SetCursorScreenPos({at.x, at.y + top + high + px(4)});
}

// Draws grid lines and labels of both axes.
void chart_axes(const Plot& plot, const char* x_name) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float small = px(kSmallSize);
  ImGui::PushFont(nullptr, kSmallSize);
  const auto wide = [](const std::string& text) { return ImGui::CalcTextSize(text.c_str()).x; };
  for (const Tick& tick :
       y_ticks(plot.range, static_cast<int>((plot.max.y - plot.min.y) / px(34)))) {
    const float y = std::round(plot.y_of(tick.at));
    list->AddLine({plot.min.x, y}, {plot.max.x, y}, colour(theme().line));
    list->AddText(nullptr, small, {plot.min.x - wide(tick.words) - px(6), y - small / 2},
                  colour(theme().dim), tick.words.c_str());
  }
  const float name_begins = plot.max.x - wide(x_name);
  for (const Tick& tick :
       x_ticks(plot.range, static_cast<int>((plot.max.x - plot.min.x) / px(90)))) {
    const float x = std::round(plot.x_of(tick.at)), half = wide(tick.words) / 2;
    list->AddLine({x, plot.max.y}, {x, plot.max.y + px(4)}, colour(theme().faint));
    if (x + half < name_begins - px(8))
      list->AddText(nullptr, small, {x - half, plot.max.y + px(5)}, colour(theme().dim),
                    tick.words.c_str());
  }
  list->AddText(nullptr, small, {name_begins, plot.max.y + px(5)}, colour(theme().dim), x_name);
  list->AddRect(plot.min, plot.max, colour(theme().line));
  ImGui::PopFont();
}

void chart_lines(const Plot& plot, std::span<const Curve> curves, bool dots) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect(plot.min, {plot.max.x + px(4), plot.max.y}, true);
  const int columns = std::max(1, static_cast<int>(plot.max.x - plot.min.x));
  for (std::size_t c = 0; c < curves.size(); ++c) {
    std::vector<ImVec2> points;
    for (const ChartPoint& point : thinned(curves[c], plot.range, columns))
      points.push_back({plot.x_of(point.x), plot.y_of(point.y)});
    line_through(list, points, static_cast<int>(c));
    if (!dots && points.size() > 1) continue;
    for (const ImVec2& point : points)
      list->AddCircleFilled(point, px(3), colour(curve_ink(theme(), static_cast<int>(c))));
  }
  list->PopClipRect();
}

// Returns the x of the value nearest to `x` among all curves.
std::optional<double> nearest_x(std::span<const Curve> curves, double x) {
  std::optional<double> found;
  for (const Curve& curve : curves)
    if (const auto i = nearest(curve, x);
        i && (!found || std::abs(curve.x[*i] - x) < std::abs(*found - x)))
      found = curve.x[*i];
  return found;
}

// Draws a vertical line at x.
void upright(const Plot& plot, double x, Rgb rgb) {
  const float at = plot.x_of(x);
  ImGui::GetWindowDrawList()->AddLine({at, plot.min.y}, {at, plot.max.y}, colour(rgb), px(1));
}

}  // namespace

std::optional<double> draw_chart(const char* id,
                                 std::span<const Curve> curves,
                                 const ChartLook& look,
                                 ImVec2 size) {
  ImGui::PushID(id);
  ImGuiStorage* kept = ImGui::GetStateStorage();
  const ImGuiID hovered_id = ImGui::GetID("hovered");
  // Uses the x that was under the mouse in the previous frame, because the legend is drawn before
  // the plot.
  std::optional<double> pointed;
  if (const float at = kept->GetFloat(hovered_id, -1); at >= 0) pointed = at;
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  chart_legend(curves, pointed, size.x);
  Plot plot{.range = range_of(curves, look.log)};
  const float top = ImGui::GetCursorScreenPos().y;
  plot.min = {begin.x + px(58), top};
  plot.max = {std::max(plot.min.x + px(40), begin.x + size.x - px(8)),
              std::max(top + px(40), begin.y + size.y - px(22))};
  ImGui::SetCursorScreenPos(plot.min);
  const bool clicked =
      ImGui::InvisibleButton("plot", {plot.max.x - plot.min.x, plot.max.y - plot.min.y});
  const bool hovered = ImGui::IsItemHovered();
  const auto under_mouse =
      hovered || clicked ? nearest_x(curves, plot.x_at(ImGui::GetMousePos().x)) : std::nullopt;
  chart_axes(plot, look.x_name);
  if (look.marked) upright(plot, *look.marked, handle_on(theme()));
  if (under_mouse) upright(plot, *under_mouse, theme().faint);
  chart_lines(plot, curves, look.dots);
  kept->SetFloat(hovered_id, under_mouse ? static_cast<float>(*under_mouse) : -1);
  if (under_mouse) tooltip(fmt::format("{} {}", value_in_words(*under_mouse), look.x_name));
  ImGui::SetCursorScreenPos({begin.x, std::max(plot.max.y + px(22), begin.y + size.y)});
  ImGui::Dummy({size.x, 0});
  ImGui::PopID();
  return clicked ? under_mouse : std::nullopt;
}

}  // namespace ui
