#include "ui/panels/results/training_charts.h"

#include <algorithm>
#include <array>

#include "ui/widgets/draw.h"
#include "ui/panels/results/chart.h"
#include "ui/panels/results/training.h"

namespace ui {
namespace {

const TrainingCurves& curves_shown(Context& context) {
  return context.prepared.training(*context.training, context.view.training_axis);
}

// As high as there is room for so many, one below the other.
ImVec2 room_for(int n_charts) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float spacing = ImGui::GetStyle().ItemSpacing.y * static_cast<float>(n_charts - 1);
  return {room.x, std::max(px(110), (room.y - spacing) / static_cast<float>(n_charts) - px(2))};
}

std::string why_no_curves(const Context& context) {
  if (std::string none = no_training_yet(context); !none.empty()) return none;
  return context.training->reports.empty() ? "No step was told yet." : "";
}

void draw_losses(Context& context) {
  draw_chart("losses", curves_shown(context).losses,
             {.x_name = axis_name(context.view.training_axis), .log = context.view.training_log},
             room_for(1));
}

void losses_head(Context& context) {
  static constexpr std::array<const char*, kTrainingAxes> kNames{axis_name(TrainingAxis::Steps),
                                                                 axis_name(TrainingAxis::Tokens),
                                                                 axis_name(TrainingAxis::Minutes)};
  int axis = static_cast<int>(context.view.training_axis);
  if (quiet_choice("##training_axis", "over ", kNames, axis))
    context.view.training_axis = static_cast<TrainingAxis>(axis);
  if (ImGui::IsItemHovered()) tooltip("what all curves of this training run over");
  ImGui::SameLine();
  ImGui::Checkbox("log", &context.view.training_log);
  if (ImGui::IsItemHovered()) tooltip("the loss by its logarithm");
}

std::string why_no_probes(const Context& context) {
  if (std::string none = why_no_curves(context); !none.empty()) return none;
  const auto probed = [](const engine::TrainingReport& report) { return !report.probes.empty(); };
  return std::ranges::any_of(context.training->reports, probed)
             ? ""
             : "No probe was told yet. A recipe says how often the weights are measured on unseen "
               "texts (probe_steps, probe_minutes).";
}

void draw_probes(Context& context) {
  const TrainingCurves& curves = curves_shown(context);
  const ChartLook look{.x_name = axis_name(context.view.training_axis), .dots = true};
  const int n_charts = !curves.shares.empty() + !curves.counts.empty();
  if (!curves.shares.empty()) draw_chart("shares", curves.shares, look, room_for(n_charts));
  if (!curves.counts.empty()) draw_chart("counts", curves.counts, look, room_for(1));
}

void draw_pace(Context& context) {
  const TrainingCurves& curves = curves_shown(context);
  const ChartLook look{.x_name = axis_name(context.view.training_axis)};
  const ImVec2 room = room_for(3);
  draw_chart("speed", curves.speed, look, room);
  draw_chart("lr", curves.lr, look, room);
  draw_chart("norm", curves.norm, look, room);
}

}  // namespace

const Panel kLossPanel{.id = "loss",
                       .title = "Loss",
                       .empty = why_no_curves,
                       .draw = draw_losses,
                       .head = losses_head};
const Panel kProbesPanel{.id = "probes",
                         .title = "Probes",
                         .empty = why_no_probes,
                         .draw = draw_probes,
                         .head = nullptr};
const Panel kPacePanel{.id = "pace",
                       .title = "Speed and step size",
                       .empty = why_no_curves,
                       .draw = draw_pace,
                       .head = nullptr};

}  // namespace ui
