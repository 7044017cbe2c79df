// The panel Decisions: the sizes that the decoder chose, with expected and measured tokens and times.
#include <algorithm>

#include <imgui.h>

#include "engine/event/timeline/timeline.h"
#include "ui/panels/lab/lab_data.h"
#include "ui/prepare/lab/decisions.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/chart.h"
#include "ui/widgets/draw.h"

namespace ui {
extern const Panel kDecisionsPanel;
namespace {

struct DecisionsView : PanelState {
  ChartAxis step;  // of the three charts
  engine::RunId run = 0;
  void document_changed() override { step = {}; }
};

void draw(Context& context) {
  auto& view = context.states.get<DecisionsView>();
  const engine::RunRecord& run = *context.run();
  if (view.run != run.id()) view.step = {};
  view.run = run.id();
  const Decisions& decisions = lab_decisions(context);
  if (decisions.size[0].x.empty())
    return empty_state(
        "The sizes of this run were fixed. A decoder chooses them with options such as n=auto.",
        Sketch::Curve);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const ImVec2 size{room.x,
                    std::max(px(96), (room.y - 2 * ImGui::GetStyle().ItemSpacing.y) / 3 - px(1))};
  const ChartLook look{.x_name = "step", .whole = true};
  const auto chart = [&](const char* id, const std::vector<Curve>& curves) {
    if (const auto x = draw_chart(id, curves, view.step, look, size))
      context.show_step(run, static_cast<engine::StepId>(*x));
  };
  chart("tokens", decisions.tokens);
  chart("ms", decisions.ms);
  chart("size", decisions.size);
}

void draw_head(Context& context) {
  lab_head(context, kDecisionsPanel);
}

}  // namespace

const Panel kDecisionsPanel{
    .id = "decisions",
    .title = "Decisions",
    .empty = why_no_proposals,
    .draw = draw,
    .head = draw_head,
    .help =
        "The size that the decoder chose for each step, with the expected and the measured tokens "
        "and time. A click shows the step.",
    .sketch = Sketch::Curve,
    .lab = Dock::Centre};

}  // namespace ui
