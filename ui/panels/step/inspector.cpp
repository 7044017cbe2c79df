#include "ui/panels/step/inspector.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/tokens/describe_place.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

// The facts of the selected places, cached until the selection or the timeline changes.
struct FactsOfChosen : PanelState {
  std::uint64_t version = 0;  // version of the timeline plus 1; 0: not computed yet
  engine::RunId run = 0;
  std::vector<Place> chosen;
  PlaceFacts facts;
  void document_changed() override { version = 0; }
  void units_changed() override { version = 0; }
};

const PlaceFacts& facts_of_chosen(Context& context, const engine::RunRecord& run) {
  auto& prepared = context.states.get<FactsOfChosen>();
  const Chosen& chosen = context.selection.chosen();
  const std::uint64_t version = context.timeline.version() + 1;
  if (prepared.version != version || prepared.run != run.id() ||
      !std::ranges::equal(prepared.chosen, chosen.places())) {
    prepared.version = version;
    prepared.run = run.id();
    prepared.chosen.assign(chosen.places().begin(), chosen.places().end());
    prepared.facts = describe_places(context.timeline, run, chosen);
  }
  return prepared.facts;
}

// Returns the pinned place if its run exists, else the place under the pointer, else the selected one.
Place inspected(const Context& context) {
  const Place& pinned = context.states.get<InspectorView>().pinned;
  return pinned.valid() && context.timeline.run(pinned.run) ? pinned : context.selection.shown();
}

std::string why_no_inspector(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  const engine::RunRecord* run = context.run();
  return inspected(context).valid() || (run && context.n_steps(*run) > 0)
             ? ""
             : "Point at a token or a step. A click keeps it here.";
}

void token_head(const Context& context, const engine::RunRecord& run, const PlaceFacts& facts) {
  const float left = ImGui::GetCursorPosX(), right = right_edge();
  words_within(context.name_of(run) + " \xC2\xB7 " + facts.title, theme().dim, right - left);
  if (facts.token < 0) return;
  const float title_end = left + ImGui::GetItemRectSize().x + px(12);
  const std::string text = cell_text(context.timeline, run, facts.token);
  const float width = std::min(right - left, px(22) + static_cast<float>(n_columns(text)) * px(8));
  // If the token does not fit beside the title, it is drawn below the title.
  if (title_end + width <= right) ImGui::SameLine(right - width);
  const ImVec2 min = ImGui::GetCursorScreenPos();
  ImGui::Dummy({width, px(24)});
  CellFlags flags;
  flags.origin = facts.origin;
  token_cell(ImGui::GetWindowDrawList(), min, {min.x + width, min.y + px(24)}, text, facts.mean,
             flags);
}

void sentence_box(Context& context, const std::string& sentence) {
  if (sentence.empty()) return;
  ImGui::Dummy({1, px(2)});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colour(theme().field));
  ImGui::BeginChild("sentence", {0, 0},
                    ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_AlwaysUseWindowPadding);
  wrapped(sentence, theme().text);
  ImGui::EndChild();
  ImGui::PopStyleColor();
  if (link("Copy sentence")) context.requests.copy = sentence;
}

// Draws the user's note on the run.
void note_box(const Context& context, const engine::RunRecord& run) {
  const std::string* note = context.note_of(run);
  if (!note) return;
  ImGui::Dummy({1, px(2)});
  small_label("note on " + context.name_of(run));
  wrapped(*note, theme().text);
}

void draw_inspector(Context& context) {
  Place place = inspected(context);
  if (!place.valid()) {
    // Nothing is selected: show the newest step at the playhead.
    const engine::RunRecord& run = *context.run();
    place = {run.id(), run.steps[context.n_steps(run) - 1].begun.step, -1, -1};
  }
  const engine::RunRecord* run = context.timeline.run(place.run);
  if (!run) return;
  const bool pinned = context.states.get<InspectorView>().pinned == place && place.valid();
  const bool several = !pinned && context.selection.several() && !context.selection.hovered.valid();
  const PlaceFacts facts =
      several ? facts_of_chosen(context, *run) : describe_place(context.timeline, *run, place);
  if (pinned) small_label("pinned: does not follow the pointer");
  token_head(context, *run, facts);
  ImGui::Dummy({1, px(2)});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(3)));
  for (const Fact& fact : facts.rows) label_value(fact.label.c_str(), fact.value, fact.truth);
  ImGui::PopStyleVar();
  sentence_box(context, facts.sentence);
  note_box(context, *run);
}

void draw_inspector_head(Context& context) {
  const bool pinned = context.states.get<InspectorView>().pinned.valid();
  if (button(pinned ? "Unpin###pin" : "Pin###pin", pinned, true,
             pinned ? "follow the pointer again (K)" : "keep showing this place (K)"))
    context.requests.pin = true;
  ImGui::SameLine();
  panel_legend(kInspectorPanel);
}

}  // namespace

const Panel kInspectorPanel{
    .id = "inspector",
    .title = "Inspector",
    .empty = why_no_inspector,
    .draw = draw_inspector,
    .head = draw_inspector_head,
    .help = "The facts of the step or token under the pointer, or of the selected one.",
    .marks = cell_marks(),
    .sketch = Sketch::Columns,
    .live = Dock::RightMiddle,
    .compare = Dock::FootRight};

}  // namespace ui
