#include "ui/panels/results/prompt_scatter.h"

#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <implot.h>

#include "ui/prepare/status.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/marker.h"

namespace ui {
namespace {

// The markers of the lanes. The legend names them, because its icons show only the colours.
struct Marker {
  ImPlotMarker shape;
  const char* name;
};
constexpr std::array<Marker, 5> kMarkers{{{ImPlotMarker_Circle, "circles"},
                                          {ImPlotMarker_Square, "squares"},
                                          {ImPlotMarker_Up, "triangles"},
                                          {ImPlotMarker_Diamond, "diamonds"},
                                          {ImPlotMarker_Cross, "crosses"}}};
constexpr float kReach = 9;  // px at 100 % from a point within which the mouse is over it

struct Point {
  const ScatterLane* lane = nullptr;
  std::size_t index = 0;
};

ImVec4 ink_of(int lane) {
  return ImGui::ColorConvertU32ToFloat4(colour(curve_ink(theme(), lane)));
}

// Returns the point under the mouse, if there is one.
std::optional<Point> point_under_mouse(const std::vector<ScatterLane>& lanes) {
  std::optional<Point> found;
  if (!ImPlot::IsPlotHovered()) return found;
  const ImVec2 mouse = ImGui::GetMousePos();
  float least = px(kReach);
  for (const ScatterLane& lane : lanes)
    for (std::size_t i = 0; i < lane.rows.size(); ++i) {
      const ImVec2 at = ImPlot::PlotToPixels(lane.acceptance_percent[i], lane.speedup[i]);
      const float away = std::hypot(at.x - mouse.x, at.y - mouse.y);
      if (away < least) least = away, found = Point{&lane, i};
    }
  return found;
}

void draw_points(const std::vector<ScatterLane>& lanes) {
  for (const ScatterLane& lane : lanes) {
    ImPlotSpec spec;
    const Marker& marker = kMarkers[static_cast<std::size_t>(lane.lane) % kMarkers.size()];
    spec.LineColor = ink_of(lane.lane);
    spec.LineWeight = px(1.5f);
    set_whole_marker(spec, marker.shape, px(4.5f), ink_of(lane.lane));
    const std::string name = fmt::format("{} {}: {}", static_cast<char>('A' + lane.lane % 26),
                                         short_name(lane.decoder), marker.name);
    ImPlot::PlotScatter(name.c_str(), lane.acceptance_percent.data(), lane.speedup.data(),
                        static_cast<int>(lane.rows.size()), spec);
  }
}

// Draws a ring around the points of the run shown.
void ring_shown(const std::vector<ScatterLane>& lanes,
                const std::vector<PromptResult>& prompts,
                engine::RunId shown) {
  for (const ScatterLane& lane : lanes)
    for (std::size_t i = 0; i < lane.rows.size(); ++i)
      if (prompts[lane.rows[i]].run == shown)
        ImPlot::GetPlotDrawList()->AddCircle(
            ImPlot::PlotToPixels(lane.acceptance_percent[i], lane.speedup[i]), px(9),
            colour(theme().bright), 0, px(1.5f));
}

}  // namespace

std::optional<std::size_t> draw_scatter(const std::vector<PromptResult>& prompts,
                                        engine::RunId shown) {
  const std::vector<ScatterLane> lanes = scatter_of(prompts);
  if (lanes.empty()) {
    empty_state("No prompt has both a speed-up and an acceptance yet.");
    return std::nullopt;
  }
  std::optional<std::size_t> clicked;
  ImPlot::PushStyleVar(ImPlotStyleVar_FitPadding, ImVec2(0, 0.1f));  // whole markers at the ends
  const bool is_open =
      ImPlot::BeginPlot("##scatter", {-1, -1}, ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText);
  if (!is_open) {
    ImPlot::PopStyleVar();
    return clicked;
  }
  ImPlot::SetupAxes("accepted of proposed, %", "speed-up", ImPlotAxisFlags_None,
                    ImPlotAxisFlags_AutoFit);
  ImPlot::SetupAxisLimits(ImAxis_X1, 0, 100);
  ImPlot::SetupLegend(ImPlotLocation_NorthWest);
  constexpr double kPlain = 1;  // the speed of plain decoding
  ImPlotSpec line;
  line.LineColor = ImGui::ColorConvertU32ToFloat4(colour(theme().faint));
  line.Flags = ImPlotItemFlags{ImPlotInfLinesFlags_Horizontal} | ImPlotItemFlags_NoLegend;
  ImPlot::PlotInfLines("##plain", &kPlain, 1, line);
  draw_points(lanes);
  ring_shown(lanes, prompts, shown);
  if (const auto point = point_under_mouse(lanes)) {
    const PromptResult& row = prompts[point->lane->rows[point->index]];
    tooltip(fmt::format(
        "{}, {} {}: speed-up {:.2f}x, accepted {:.0f} %, {}\nClick: show this race.", row.prompt_id,
        static_cast<char>('A' + row.lane % 26), short_name(row.decoder), *row.speedup,
        point->lane->acceptance_percent[point->index], difference_words(row)));
    const ImVec2 drag = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 0);
    if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) && std::hypot(drag.x, drag.y) < px(4))
      clicked = point->lane->rows[point->index];
  }
  ImPlot::EndPlot();
  ImPlot::PopStyleVar();
  return clicked;
}

}  // namespace ui
