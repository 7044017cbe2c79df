#include "ui/panels/step/inspector.h"

#include <algorithm>

#include <fmt/format.h>

#include "ui/widgets/draw.h"
#include "ui/shell/legend.h"
#include "ui/prepare/tokens/describe_place.h"

namespace ui {
namespace {

// What was pinned, as long as it is there, else what is pointed at or was clicked.
Place inspected(const Context& context) {
  const Place& pinned = context.view.pinned;
  return pinned.valid() && context.timeline.run(pinned.run) ? pinned : context.selection.shown();
}

std::string why_no_inspector(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  return inspected(context).valid() || context.n_steps(*context.run()) > 0
             ? ""
             : "Point at a token or a step; click to keep it here.";
}

void token_head(const Context& context, const engine::RunRecord& run, const PlaceFacts& facts) {
  const float left = ImGui::GetCursorPosX(), right = right_edge();
  words_within(context.name_of(run) + " \xC2\xB7 " + facts.title, theme().dim, right - left);
  if (facts.token < 0) return;
  const float title_end = left + ImGui::GetItemRectSize().x + px(12);
  const std::string text = cell_text(context.timeline, run, facts.token);
  const float width = std::min(right - left, px(22) + n_columns(text) * px(8));
  // A token wider than the room beside the title stands below it.
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

void draw_inspector(Context& context) {
  Place place = inspected(context);
  if (!place.valid()) {
    // Nothing is pointed at: the newest step at the playhead.
    const engine::RunRecord& run = *context.run();
    place = {run.id(), run.steps[context.n_steps(run) - 1].begun.step, -1, -1};
  }
  const engine::RunRecord* run = context.timeline.run(place.run);
  if (!run) return;
  const bool pinned = context.view.pinned.valid() && place == context.view.pinned;
  const bool several = !pinned && context.selection.several() && !context.selection.hovered.valid();
  const PlaceFacts facts =
      several ? context.prepared.facts(context.timeline, *run, context.selection.chosen())
              : describe_place(context.timeline, *run, place);
  if (pinned) small_label("pinned: stays, whatever is pointed at");
  token_head(context, *run, facts);
  ImGui::Dummy({1, px(2)});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(3)));
  for (const Fact& fact : facts.rows) label_value(fact.label.c_str(), fact.value, fact.truth);
  ImGui::PopStyleVar();
  sentence_box(context, facts.sentence);
}

void draw_inspector_head(Context& context) {
  const bool pinned = context.view.pinned.valid();
  if (button(pinned ? "Unpin###pin" : "Pin###pin", pinned, true,
             pinned ? "follow what is pointed at again (K)" : "keep showing this (K)"))
    context.requests.pin = true;
  ImGui::SameLine();
  legend_word("?###marks_inspector", cell_marks());
}

}  // namespace

const Panel kInspectorPanel{"inspector", "Inspector", why_no_inspector, draw_inspector,
                            draw_inspector_head};

}  // namespace ui
