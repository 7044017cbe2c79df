#include "ui/panels/results/training_charts.h"

#include <algorithm>
#include <array>

#include "engine/event/recording/training_history.h"
#include "ui/panels/results/training.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

struct CurvesOfTraining : PanelState {
  std::uint64_t version = 0;  // version of the history
  TrainingAxis axis = TrainingAxis::Steps;
  TrainingCurves curves;
  void training_changed() override {
    version = 0;
    curves = {};
  }
};

// Returns the curves, cached by the history's version. Equal versions mean equal data, because a
// history that is read again continues the version numbers.
const TrainingCurves& curves_shown(Context& context) {
  auto& prepared = context.states.get<CurvesOfTraining>();
  const TrainingAxis axis = context.states.get<ChartsView>().axis;
  if (prepared.version != context.training->version || prepared.axis != axis) {
    prepared.curves = curves_of(*context.training, axis);
    prepared.version = context.training->version;
    prepared.axis = axis;
  }
  return prepared.curves;
}

// Returns the size of a chart if `n_charts` charts share the panel's height.
ImVec2 room_for(int n_charts) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float spacing = ImGui::GetStyle().ItemSpacing.y * static_cast<float>(n_charts - 1);
  return {room.x, std::max(px(110), (room.y - spacing) / static_cast<float>(n_charts) - px(2))};
}

std::string why_no_curves(const Context& context) {
  if (std::string none = no_training_yet(context); !none.empty()) return none;
  return context.training->reports.empty() ? "No step has been reported yet." : "";
}

void draw_losses(Context& context) {
  auto& view = context.states.get<ChartsView>();
  draw_chart("losses", curves_shown(context).losses, view.x,
             {.x_name = axis_name(view.axis), .log = view.log}, room_for(1));
}

void losses_head(Context& context) {
  static constexpr std::array<const char*, kTrainingAxes> kNames{axis_name(TrainingAxis::Steps),
                                                                 axis_name(TrainingAxis::Tokens),
                                                                 axis_name(TrainingAxis::Minutes)};
  auto& view = context.states.get<ChartsView>();
  int axis = static_cast<int>(view.axis);
  if (quiet_choice("##training_axis", "over ", kNames, axis)) {
    view.axis = static_cast<TrainingAxis>(axis);
    view.x = {};
  }
  if (ImGui::IsItemHovered()) tooltip("the x axis of all curves");
  ImGui::SameLine();
  tick("log", view.log);
  if (ImGui::IsItemHovered()) tooltip("logarithmic loss axis");
}

std::string why_no_probes(const Context& context) {
  if (std::string none = why_no_curves(context); !none.empty()) return none;
  const auto probed = [](const engine::TrainingReport& report) { return !report.probes.empty(); };
  return std::ranges::any_of(context.training->reports, probed)
             ? ""
             : "No probe has been reported yet. The recipe says how often the weights are "
               "evaluated on unseen texts (probe_steps, probe_minutes).";
}

void draw_probes(Context& context) {
  const TrainingCurves& curves = curves_shown(context);
  auto& view = context.states.get<ChartsView>();
  const ChartLook look{.x_name = axis_name(view.axis), .dots = true};
  const int n_charts = !curves.shares.empty() + !curves.counts.empty();
  if (!curves.shares.empty()) draw_chart("shares", curves.shares, view.x, look, room_for(n_charts));
  if (!curves.counts.empty()) draw_chart("counts", curves.counts, view.x, look, room_for(1));
}

void draw_pace(Context& context) {
  const TrainingCurves& curves = curves_shown(context);
  auto& view = context.states.get<ChartsView>();
  const ChartLook look{.x_name = axis_name(view.axis)};
  const ImVec2 room = room_for(3);
  draw_chart("speed", curves.speed, view.x, look, room);
  draw_chart("lr", curves.lr, view.x, look, room);
  draw_chart("norm", curves.norm, view.x, look, room);
}

}  // namespace

const Panel kLossPanel{.id = "loss",
                       .title = "Loss",
                       .empty = why_no_curves,
                       .draw = draw_losses,
                       .head = losses_head,
                       .sketch = Sketch::Curve,
                       .offers_training = true,
                       .training = Dock::Centre};
const Panel kProbesPanel{.id = "probes",
                         .title = "Probes",
                         .empty = why_no_probes,
                         .draw = draw_probes,
                         .sketch = Sketch::Curve,
                         .training = Dock::RightMiddle};
const Panel kPacePanel{.id = "pace",
                       .title = "Speed and step size",
                       .empty = why_no_curves,
                       .draw = draw_pace,
                       .sketch = Sketch::Curve,
                       .training = Dock::Right};

}  // namespace ui
