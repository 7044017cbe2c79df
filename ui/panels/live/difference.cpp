#include "ui/panels/live/difference.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/panels/results/run_numbers.h"
#include "ui/prepare/tokens/difference.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

std::vector<LaneFigures> figures_of(Context& context) {
  std::vector<LaneFigures> lanes;
  for (const engine::RunRecord* run : context.shown_runs()) {
    lanes.push_back(
        lane_figures(run_numbers(context, *run), *run, context.times(*run), context.n_steps(*run)));
    lanes.back().letter = std::string(1, context.letter_of(*run));
    if (const std::string* given = context.given_name(*run)) lanes.back().decoder = *given;
  }
  return lanes;
}

std::string why_no_difference(const Context& context) {
  return context.shown_runs().empty() ? "The figures of the lanes appear here side by side." : "";
}

// Returns the sum of the widths of the widest figures of all lanes.
float width_of_figures(const std::vector<LaneFigures>& lanes, float font_size) {
  float sum = 0;
  ImGui::PushFont(fonts().bold, font_size);
  for (const LaneFigures& lane : lanes) {
    float widest = 0;
    for (const std::string& value : lane.values)
      widest = std::max(widest, ImGui::CalcTextSize(value.c_str()).x);
    sum += widest;
  }
  ImGui::PopFont();
  return sum;
}

void draw_difference(Context& context) {
  const auto lanes = figures_of(context);
  const int n = static_cast<int>(lanes.size());
  // Many lanes have smaller figures; no figure is clipped.
  const float room = ImGui::GetContentRegionAvail().x - px(100) - px(12) * static_cast<float>(n);
  const bool is_tight = width_of_figures(lanes, kTextSize) > room;
  const float size = is_tight ? kSmallSize : kTextSize;
  // If even these do not fit, the table scrolls sideways beside its labels.
  const bool scrolls = width_of_figures(lanes, kSmallSize) > room + px(6) * static_cast<float>(n);
  const float row_height = ImGui::GetTextLineHeight() + px(3);
  const ImVec2 outer(
      0, scrolls ? row_height * (kDifferenceRows.size() + 1) + ImGui::GetStyle().ScrollbarSize : 0);
  // Low rows, so that the sentence and the buttons below are visible without scrolling.
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(is_tight ? 3.0f : 6.0f), px(1.5f)));
  if (ImGui::BeginTable("difference", n + 1,
                        ImGuiTableFlags_BordersInnerH | (scrolls ? ImGuiTableFlags_ScrollX : 0),
                        outer)) {
    if (scrolls)
      ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, px(88));
    else
      ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch);
    if (scrolls) ImGui::TableSetupScrollFreeze(1, 0);
    for (int i = 0; i < n; ++i) ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed);
    const auto right = [](const std::string& text, Rgb rgb) {
      ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(),
                                    ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x -
                                        ImGui::CalcTextSize(text.c_str()).x));
      words(text, rgb);
    };
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    for (const LaneFigures& lane : lanes) {
      ImGui::TableNextColumn();
      right(lane.letter, theme().dim);
    }
    for (std::size_t row = 0; row < kDifferenceRows.size(); ++row) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      words(elided(kDifferenceRows[row].label, ImGui::GetContentRegionAvail().x - px(14)),
            theme().dim);
      if (ImGui::IsItemHovered())
        tooltip(fmt::format("{}: {}", kDifferenceRows[row].label, kDifferenceRows[row].formula));
      truth_sign(kDifferenceRows[row].truth);
      ImGui::PushFont(fonts().bold, size);
      for (const LaneFigures& lane : lanes) {
        ImGui::TableNextColumn();
        right(lane.values[row], theme().bright);
      }
      ImGui::PopFont();
    }
    ImGui::EndTable();
  }
  ImGui::PopStyleVar();
  ImGui::Dummy({1, px(2)});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colour(theme().field));
  ImGui::BeginChild("how", {0, 0},
                    ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_AlwaysUseWindowPadding);
  wrapped(how_measured(context.timeline, context.shown_runs()), theme().dim);
  ImGui::EndChild();
  ImGui::PopStyleColor();
  if (button("Export trace")) context.requests.export_trace = true;
  ImGui::SameLine();
  if (button("Copy table")) context.requests.copy = as_markdown(lanes);
}

void draw_difference_head(Context&) {
  panel_legend(kDifferencePanel);
}

}  // namespace

const Panel kDifferencePanel{
    .id = "difference",
    .title = "Difference",
    .empty = why_no_difference,
    .draw = draw_difference,
    .head = draw_difference_head,
    .help = "The figures of the lanes at the playhead. Hover a label for its formula.",
    .compare = Dock::FootRight};

}  // namespace ui
