#include "ui/panels/lab/what_if.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <imgui.h>

#include "engine/event/timeline/timeline.h"
#include "ui/panels/lab/lab_data.h"
#include "ui/panels/time/schedule.h"
#include "ui/panels/time/simulation_settings.h"
#include "ui/prepare/lab/speedup_curve.h"
#include "ui/prepare/time/simulation.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"

namespace ui {
extern const Panel kWhatIfPanel;
namespace {

constexpr float kControls = 300,
                kNarrow = 600;  // width of the controls; below kNarrow the chart is under them
constexpr float kLowestChart = 160;

void derived_badge(const char* why) {
  words("DERIVED", theme().warn);
  if (ImGui::IsItemHovered()) tooltip(why);
}

// Draws a slider for each size of the run.
void sliders(const RecordedShape& shape, WhatIfView& view) {
  const float label = px(64);
  for (int i = 0; i < kKnobs; ++i) {
    const auto knob = static_cast<Knob>(i);
    const int most = largest(shape, knob);
    if (most == 0) continue;
    WhatIfSizes recorded = shape.recorded;
    int& value = view.sizes.of(knob);
    ImGui::AlignTextToFramePadding();
    words(name_of(knob), theme().dim);
    if (ImGui::IsItemHovered()) tooltip(help_of(knob));
    ImGui::SameLine(label);
    ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - px(34));
    ImGui::SliderInt((std::string("##") + name_of(knob)).c_str(), &value,
                     knob == Knob::Width ? 1 : 0, most, "", ImGuiSliderFlags_AlwaysClamp);
    if (ImGui::IsItemHovered())
      tooltip(fmt::format("{}; recorded: {}", help_of(knob), recorded.of(knob)));
    // The value is beside the slider, whose handle would cover it.
    ImGui::SameLine();
    words(fmt::format("{}", value), value == recorded.of(knob) ? theme().text : theme().warn);
  }
  ImGui::AlignTextToFramePadding();
  words("cost of a row", theme().dim);
  ImGui::SameLine();
  std::array<const char*, kRowCosts> names{};
  for (int i = 0; i < kRowCosts; ++i) names[i] = name_of(static_cast<RowCost>(i));
  int cost = static_cast<int>(view.cost);
  if (quiet_choice("##row_cost", "", names, cost)) view.cost = static_cast<RowCost>(cost);
  if (ImGui::IsItemHovered())
    tooltip(
        "This machine: the line through this recording's forwards by number of rows. H100: "
        "measured with a 7B model in bf16 at context 512 (docs/measurements/gpu). Draft and other "
        "times keep their "
        "recorded ratio to a forward of one row.");
  ImGui::SameLine();
  if (link("reset###reset_sizes")) view.sizes = shape.recorded, view.cost = RowCost::Recorded;
}

// Computes the results again if the data or the choices have changed.
void compute(Context& context, const RecordedShape& shape, WhatIfView& view) {
  const std::uint64_t version = lab_version(context);
  if (view.version == version && view.computed == view.sizes && view.computed_cost == view.cost &&
      view.computed_over == view.over)
    return;
  view.version = version;
  view.computed = view.sizes;
  view.computed_cost = view.cost;
  view.computed_over = view.over;
  view.chosen = what_if(shape, view.sizes, view.cost);
  view.recorded = what_if(shape, shape.recorded, RowCost::Recorded);
  view.curves.clear();
  for (int i = 0; i < kRowCosts; ++i)
    view.curves.push_back(speedup_over(shape, view.over, view.sizes, static_cast<RowCost>(i)));
}

void results(Context& context, const RecordedShape& shape, WhatIfView& view) {
  compute(context, shape, view);
  const WhatIf &result = view.chosen, &recorded = view.recorded;
  const double measured = lab_account(context).measured;
  label_value({"speed-up", fmt::format("{:.2f}x", result.speedup),
               "tokens / step x time of a plain step / time of a step",
               fmt::format("{:.2f} x {:.3g} / {:.3g}", result.tokens, shape.plain_ms, result.ms),
               Truth::Derived});
  label_value(
      {"tokens / step", fmt::format("{:.2f}", result.tokens),
       "1 + the accepted proposals among those that are kept; beyond the recorded depth, the mean "
       "acceptance applies",
       fmt::format("acceptance beyond the recorded depth {:.3f}", shape.rate), Truth::Derived});
  label_value({"rows / step", fmt::format("{:.1f}", result.rows), "rows of a forward",
               "one row, the window and the kept proposals", Truth::Derived});
  label_value({"with the recorded sizes", fmt::format("{:.2f}x", recorded.speedup),
               "the same calculation for the recorded sizes on this machine",
               measured > 0 ? fmt::format("measured: {:.2f}x", measured) : "not measured",
               Truth::Derived});
}

// Draws the speed-up over the values of one size, for all costs of a row. A click chooses a value.
void chart(Context& context, const RecordedShape& shape, WhatIfView& view) {
  std::vector<const char*> names;
  std::vector<Knob> knobs;
  int over = 0;
  for (int i = 0; i < kKnobs; ++i) {
    const auto knob = static_cast<Knob>(i);
    if (largest(shape, knob) == 0) continue;
    if (knob == view.over) over = static_cast<int>(knobs.size());
    knobs.push_back(knob);
    names.push_back(name_of(knob));
  }
  if (quiet_choice("##over", "speed-up over ", names, over)) view.x = {};
  view.over = knobs[static_cast<std::size_t>(over)];
  compute(context, shape, view);
  const std::vector<Curve>& curves = view.curves;
  std::string below;
  for (const Curve& curve : curves)
    below += (below.empty() ? "" : " \xC2\xB7 ") + curve.name + ": " + below_one_words(curve);
  wrapped(below, theme().dim);
  const auto clicked = draw_chart("speedup", curves, view.x,
                                  {.x_name = name_of(view.over),
                                   .whole = true,
                                   .dots = curves[0].x.size() <= 40,
                                   .marked = view.sizes.of(view.over),
                                   .level = 1,
                                   .marks_below = true},
                                  {ImGui::GetContentRegionAvail().x,
                                   std::max(px(kLowestChart), ImGui::GetContentRegionAvail().y)});
  if (clicked) view.sizes.of(view.over) = static_cast<int>(*clicked);
}

// The speed-up of a simulated schedule over its number of branches.
struct SimulatedBranches : PanelState {
  std::uint64_t version = 0;
  engine::SimulatedStages stages;
  Curve curve;
  ChartAxis x;
  void document_changed() override {
    version = 0;
    curve = {};
    x = {};
  }
};

void simulated(Context& context) {
  constexpr int kMost = 8;
  if (!context.catalog.simulate)
    return wrapped("This program was built without the schedule simulator.", theme().dim);
  const ScheduleLanes& lanes = schedule_shown(context);
  SimulationForm& form = context.states.get<ScheduleView>().simulation;
  simulation_settings(context, lanes.schedule, form);
  const engine::SimulatedStages stages = stages_of(form, lanes.schedule);
  auto& kept = context.states.get<SimulatedBranches>();
  const std::uint64_t version = lab_version(context);
  if (kept.version != version || kept.stages != stages) {
    kept.version = version;
    kept.stages = stages;
    kept.curve = {"simulated speed-up", {}, {}};
    for (int n = 1; n <= kMost; ++n) {
      engine::SimulatedStages with_n = stages;
      with_n.n_branches = n;
      kept.curve.x.push_back(n);
      kept.curve.y.push_back(
          simulation_of(context.catalog.simulate(lanes.schedule, with_n)).speedup());
    }
  }
  if (link("show the schedule of these settings###show_schedule")) {
    form.on = true;
    context.requests.screen = "live";
    context.requests.panel = "schedule";
  }
  const auto clicked = draw_chart("branches", {{kept.curve}}, kept.x,
                                  {.x_name = "branches",
                                   .whole = true,
                                   .dots = true,
                                   .marked = stages.n_branches,
                                   .level = 1,
                                   .marks_below = true},
                                  {ImGui::GetContentRegionAvail().x,
                                   std::max(px(kLowestChart), ImGui::GetContentRegionAvail().y)});
  if (clicked) form.n_branches = static_cast<int>(*clicked);
}

bool is_scheduled(const Context& context) {
  return !context.run()->queueing.empty();
}

std::string why_none(const Context& context) {
  return why_no_proposals(context);
}

void draw(Context& context) {
  if (is_scheduled(context)) return simulated(context);
  const RecordedShape& shape = lab_shape(context);
  if (!shape.why.empty()) return empty_state(shape.why, Sketch::Curve);
  auto& view = context.states.get<WhatIfView>();
  if (view.run != context.run()->id()) {
    view.run = context.run()->id();
    view.sizes = shape.recorded;
    view.x = {};
  } else if (view.sizes == view.last_recorded) {
    view.sizes = shape.recorded;  // the user has not changed them; a live run grows
  }
  view.last_recorded = shape.recorded;
  const bool beside = ImGui::GetContentRegionAvail().x > px(kNarrow);
  ImGui::BeginChild("controls", {beside ? px(kControls) : 0, 0}, ImGuiChildFlags_AutoResizeY);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
  derived_badge(
      "Computed from the recorded acceptances and step costs; nothing here was measured "
      "with these sizes.");
  sliders(shape, view);
  ImGui::Dummy({1, px(2)});
  results(context, shape, view);
  ImGui::PopStyleVar();
  ImGui::EndChild();
  if (beside) ImGui::SameLine(0, px(14));
  ImGui::BeginChild("chart", {0, beside ? 0 : px(240)});
  chart(context, shape, view);
  ImGui::EndChild();
}

void draw_head(Context& context) {
  lab_head(context, kWhatIfPanel);
}

}  // namespace

const Panel kWhatIfPanel{
    .id = "what_if",
    .title = "What if",
    .empty = why_none,
    .draw = draw,
    .head = draw_head,
    .help =
        "The speed-up that the recorded run would have had with other sizes and other costs of "
        "a row, derived from its acceptances and step costs.",
    .sketch = Sketch::Curve,
    .lab = Dock::Centre};

}  // namespace ui
