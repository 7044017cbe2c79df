#include "ui/widgets/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <implot.h>

#include "ui/prepare/time/curves.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/marker.h"

namespace ui {
namespace {

constexpr float kLineWidth = 1.6f, kMarkerRadius = 3.5f;
constexpr int kMarkerEvery = 70;  // px between the markers of a dense curve

// The marker of a curve, so that curves differ without colour, and its letter in the legend.
struct Marker {
  ImPlotMarker shape;
  char letter;
};
constexpr std::array<Marker, kCurveInks> kMarkers{{{ImPlotMarker_Circle, 'o'},
                                                   {ImPlotMarker_Cross, 'x'},
                                                   {ImPlotMarker_Plus, '+'},
                                                   {ImPlotMarker_Up, '^'},
                                                   {ImPlotMarker_Down, 'v'},
                                                   {ImPlotMarker_Asterisk, '*'}}};

ImVec4 ink(Rgb rgb) {
  return ImGui::ColorConvertU32ToFloat4(colour(rgb));
}

int tick_words(double value, char* buffer, int size, void*) {
  const double rounded = std::abs(value) < 1e-12 ? 0 : value;
  const std::string text =
      std::abs(rounded) >= 1'000 ? value_in_words(rounded) : fmt::format("{:.6g}", rounded);
  return std::snprintf(buffer, static_cast<std::size_t>(size), "%s", text.c_str());
}

int whole_tick_words(double value, char* buffer, int size, void* data) {
  if (std::abs(value - std::round(value)) < 1e-6) return tick_words(value, buffer, size, data);
  buffer[0] = 0;
  return 0;
}

// Extends the axis by the curves, and shows all of it if the user did not choose a part.
void follow(ChartAxis& axis, std::span<const Curve> curves, double bar_width) {
  // Charts of bars share no axis, and bars may disappear.
  if (bar_width > 0) axis.data_min = HUGE_VAL, axis.data_max = -HUGE_VAL;
  for (const Curve& curve : curves) {
    if (curve.x.empty()) continue;
    axis.data_min = std::min(axis.data_min, curve.x.front() - bar_width / 2);
    axis.data_max = std::max(axis.data_max, curve.x.back() + bar_width / 2);
  }
  if (!axis.shows_all || axis.data_min > axis.data_max) return;
  const double half =
      axis.data_max > axis.data_min ? 0 : std::max(std::abs(axis.data_min) / 2, 0.5);
  axis.min = axis.data_min - half;
  axis.max = axis.data_max + half;
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

// Returns the x whose values the legend has; NaN: the newest.
double x_of_values(const ChartAxis& axis, const ChartLook& look) {
  return std::isnan(axis.hovered) && look.marked ? *look.marked : axis.hovered;
}

// Returns the legend's entry of a curve. The part after ### identifies it while its value changes.
std::string entry(const Curve& curve, std::size_t index, double x) {
  const auto i = nearest(curve, std::isnan(x) ? HUGE_VAL : x);
  return fmt::format(" {} {} {}###{}", kMarkers[index % kMarkers.size()].letter, curve.name,
                     i ? value_in_words(curve.y[*i]) : "-", index);
}

// Gives a logarithmic axis of few decades labels at 1, 2 and 5 times the powers of ten; ImPlot labels the powers alone.
void log_ticks(std::span<const Curve> curves) {
  double low = HUGE_VAL, high = 0;
  for (const Curve& curve : curves)
    for (const double y : curve.y) {
      if (!std::isfinite(y) || y <= 0) continue;
      low = std::min(low, y);
      high = std::max(high, y);
    }
  if (low > high || high / low > 1e3) return;
  std::vector<double> ticks;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10)
    for (const double times : {1, 2, 5}) ticks.push_back(times * power);
  ImPlot::SetupAxisTicks(ImAxis_Y1, ticks.data(), static_cast<int>(ticks.size()));
}

void setup_y(std::span<const Curve> curves, bool log) {
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_AutoFit | ImPlotAxisFlags_RangeFit);
  ImPlot::SetupAxisFormat(ImAxis_Y1, tick_words);
  ImPlot::SetupAxisScale(ImAxis_Y1, log ? ImPlotScale_Log10 : ImPlotScale_Linear);
  if (log) return log_ticks(curves);
  const auto negative = [](const Curve& curve) {
    return std::ranges::any_of(curve.y, [](double y) { return y < 0; });
  };
  if (std::ranges::none_of(curves, negative))
    ImPlot::SetupAxisLimitsConstraints(ImAxis_Y1, 0, HUGE_VAL);
}

// Puts the legend above the plot: on one line if it fits, else one entry a line.
void setup_legend(std::span<const Curve> curves, double x, float width) {
  const ImPlotStyle& style = ImPlot::GetStyle();
  float wide = 2 * style.PlotPadding.x;
  for (std::size_t c = 0; c < curves.size(); ++c)
    wide += ImGui::GetTextLineHeight() + style.LegendSpacing.x +
            ImGui::CalcTextSize(entry(curves[c], c, x).c_str(), nullptr, true).x;
  const bool fits = wide < width;
  ImPlot::SetupLegend(fits ? ImPlotLocation_NorthWest : ImPlotLocation_North,
                      ImPlotLegendFlags_Outside | (fits ? ImPlotLegendFlags_Horizontal : 0));
}

void setup(std::span<const Curve> curves, ChartAxis& axis, const ChartLook& look, float width) {
  ImPlot::SetupAxis(ImAxis_X1, *look.x_name ? look.x_name : nullptr);
  ImPlot::SetupAxisLinks(ImAxis_X1, &axis.min, &axis.max);
  ImPlot::SetupAxisFormat(ImAxis_X1, look.whole ? whole_tick_words : tick_words);
  setup_y(curves, look.log);
  if (look.bar_width > 0) ImPlot::SetupAxisFormat(ImAxis_Y1, whole_tick_words);
  setup_legend(curves, x_of_values(axis, look), width);
  ImPlot::SetupFinish();
}

void plot_curve(const Curve& curve,
                std::size_t index,
                const ChartAxis& axis,
                const ChartLook& look) {
  const int columns = std::max(1, static_cast<int>(ImPlot::GetPlotSize().x));
  const std::vector<ChartPoint> points = thinned(curve, axis.min, axis.max, columns, look.log);
  const std::string name = entry(curve, index, x_of_values(axis, look));
  const Rgb rgb = look.ink.value_or(curve_ink(theme(), static_cast<int>(index)));
  ImPlotSpec spec;
  spec.LineColor = spec.FillColor = ink(rgb);
  spec.LineWeight = px(kLineWidth);
  spec.Stride = sizeof(ChartPoint);
  const ChartPoint* first = points.data();
  const int n = static_cast<int>(points.size());
  const double *x = n ? &first->x : nullptr, *y = n ? &first->y : nullptr;
  if (look.bar_width > 0) return ImPlot::PlotBars(name.c_str(), x, y, n, look.bar_width, spec);
  ImPlot::PlotLine(name.c_str(), x, y, n, spec);
  // Of a dense curve only some values have markers; the first is shifted by curve, so that markers of near curves differ.
  const int every = look.dots ? 1 : std::max(1, n * kMarkerEvery / std::max(columns, kMarkerEvery));
  const int begin = look.dots ? 0 : static_cast<int>(index) * every / kCurveInks;
  if (begin >= n) return;
  set_whole_marker(spec, kMarkers[index % kMarkers.size()].shape, px(kMarkerRadius), ink(rgb));
  spec.Stride = static_cast<int>(sizeof(ChartPoint)) * every;
  ImPlot::PlotScatter(name.c_str(), &first[begin].x, &first[begin].y,
                      (n - begin + every - 1) / every, spec);
}

// Marks the values below a level by squares in the colour of failures.
void mark_below(std::span<const Curve> curves, double level) {
  std::vector<ChartPoint> points;
  for (const Curve& curve : curves)
    for (std::size_t i = 0; i < curve.y.size(); ++i)
      if (curve.y[i] < level) points.push_back({curve.x[i], curve.y[i]});
  if (points.empty()) return;
  ImPlotSpec spec;
  spec.Marker = ImPlotMarker_Square;
  spec.MarkerSize = px(5);
  spec.MarkerLineColor = ink(theme().bad);
  spec.MarkerFillColor = ImVec4(0, 0, 0, 0);
  spec.LineColor = ink(theme().bad);
  spec.Stride = sizeof(ChartPoint);
  spec.Flags = ImPlotItemFlags_NoFit | ImPlotItemFlags_NoLegend | ImPlotScatterFlags_NoClip;
  ImPlot::PlotScatter("##below", &points[0].x, &points[0].y, static_cast<int>(points.size()), spec);
}

void line_at(const char* id, double at, Rgb rgb, ImPlotInfLinesFlags flags) {
  ImPlotSpec spec;
  spec.LineColor = ink(rgb);
  spec.LineWeight = px(1);
  spec.Flags = flags | ImPlotItemFlags_NoLegend | ImPlotItemFlags_NoFit;
  ImPlot::PlotInfLines(id, &at, 1, spec);
}

}  // namespace

std::optional<double> draw_chart(const char* id,
                                 std::span<const Curve> curves,
                                 ChartAxis& axis,
                                 const ChartLook& wanted,
                                 ImVec2 size) {
  ChartLook look = wanted;
  const auto positive = [](const Curve& curve) {
    return std::ranges::any_of(curve.y, [](double y) { return y > 0; });
  };
  look.log = look.log && std::ranges::any_of(curves, positive);
  follow(axis, curves, look.bar_width);
  const double min = axis.min, max = axis.max;
  const ImGuiID own_id = ImGui::GetID(id);
  ImGui::PushFont(nullptr, kSmallSize);
  // Margins of a logarithmic axis could reach below 0.
  ImPlot::PushStyleVar(ImPlotStyleVar_FitPadding, ImVec2(0, look.log ? 0 : 0.1f));
  std::optional<double> clicked;
  if (ImPlot::BeginPlot(
          (std::string("##") + id).c_str(), size,
          ImPlotFlags_NoMouseText | (look.bar_width > 0 ? ImPlotFlags_NoLegend : 0))) {
    setup(curves, axis, look, size.x);
    const bool hovered = ImPlot::IsPlotHovered();
    if (const auto x = hovered ? nearest_x(curves, ImPlot::GetPlotMousePos().x) : std::nullopt) {
      axis.hovered = *x;
      axis.hovered_in = own_id;
    } else if (axis.hovered_in == own_id) {
      axis.hovered = NAN;
    }
    if (look.level) line_at("##level", *look.level, theme().dim, ImPlotInfLinesFlags_Horizontal);
    if (look.marked) line_at("##marked", *look.marked, handle_on(theme()), 0);
    for (std::size_t c = 0; c < curves.size(); ++c) plot_curve(curves[c], c, axis, look);
    if (look.level && look.marks_below) mark_below(curves, *look.level);
    if (!std::isnan(axis.hovered)) line_at("##hovered", axis.hovered, theme().faint, 0);
    const float moved = ImGui::GetIO().MouseDragMaxDistanceSqr[ImGuiMouseButton_Left];
    if (hovered && !std::isnan(axis.hovered)) {
      if (look.bar_width == 0)
        tooltip(fmt::format("{} {}", value_in_words(axis.hovered), look.x_name));
      if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) && moved < px(4) * px(4))
        clicked = axis.hovered;
    }
    const bool fits = hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
    ImPlot::EndPlot();
    if (axis.min != min || axis.max != max) axis.shows_all = false;
    if (fits) axis.shows_all = true;
  } else if (axis.hovered_in == own_id) {
    axis.hovered = NAN;
  }
  ImPlot::PopStyleVar();
  ImGui::PopFont();
  return clicked;
}

}  // namespace ui
