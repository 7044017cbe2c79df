#include "ui/panels/step/tree.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/panels/live/in_view.h"
#include "ui/panels/live/row_cell.h"
#include "ui/panels/step/shown_step.h"
#include "ui/prepare/run_traits.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/tokens/row_origin.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/token_tree.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

constexpr Mean kTreeLegend[] = {Mean::Accepted, Mean::Bonus, Mean::Rejected,
                                Mean::Unused,   Mean::Draft, Mean::Pool};

struct TreeView : PanelState {
  float below = 0;       // hide unverified proposals with a lower q
  bool shows_p = false;  // write p (target) at the edges instead of q (draft)
  bool follows = false;  // select the end of the accepted path at every step
  Place followed;        // the place that `follows` selected last
  void document_changed() override { followed = {}; }
};

// Draws an edge from the right side of a node to the left side of its child; thick on the accepted path.
void tree_edge(ImDrawList* list, ImVec2 from, ImVec2 to, bool on_path, Rgb rgb) {
  const ImU32 ink = colour(on_path ? theme().bright : rgb);
  const float thick = px(on_path ? 3.0f : 1.2f), middle = from.x + px(10);
  if (from.y == to.y) return list->AddLine(from, to, ink, thick);
  const ImVec2 points[] = {from, {middle, from.y}, {middle, to.y}, to};
  list->AddPolyline(points, 4, ink, thick);
}

template <bool on_path>
void draw_edge_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  tree_edge(list, {at.x, at.y + px(4)}, {at.x + px(60), at.y + px(19)}, on_path, theme().dim);
}

constexpr std::array kTreeMarks{
    MarkNote{.words = "the accepted path", .draw = draw_edge_sample<true>},
    MarkNote{.words = "another branch, or after a rejection", .draw = draw_edge_sample<false>},
    cell_note(Mean::Draft),
    cell_note(Mean::Pool),
    MarkNote{.words = "proposed and accepted", .mean = Mean::Accepted, .text = "accepted"},
    cell_note(Mean::Rejected),
    cell_note(Mean::Unused),
    cell_note(Mean::Bonus),
    kLitNote,
};

bool fits_tree(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.guesses || traits.drafts || !traits.known;
}

const char* instead_of_tree(const engine::RunRecord& run) {
  return traits_of(run).has_trajectory() ? "trajectory" : "text";
}

std::string why_no_tree(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  const engine::RunRecord& run = *context.run();
  const RunTraits traits = traits_of(run);
  if (!traits.known || run.steps.empty()) return "No step yet.";
  if (fits_tree(run)) return "";
  if (!traits.has_trajectory()) return proposed_nothing(context, run) + ", so it has no tree.";
  return method_of(context, run) + " guesses one block, not a tree. The panel Trajectory shows it.";
}

struct Sizes {
  float cell_width, cell_height, column, line;
};

Sizes sizes() {
  return {px(92), px(23), px(138), px(30)};
}

std::string number_of(const Context& context, const TreeNode& node) {
  const float value = context.states.get<TreeView>().shows_p ? node.p : node.q;
  if (value < 0 || node.parent < 0) return "";
  return value < 0.005f ? "<.01" : fmt::format("{:.2f}", value).substr(value < 0.995f ? 1 : 0);
}

// Returns the place of a node. The bonus token has no row but a position.
Place place_of(const engine::RunRecord& run, const engine::StepRecord& step, const TreeNode& node) {
  if (node.row >= 0) return {run.id(), step.begun.step, -1, node.row};
  const int last = static_cast<int>(step.committed.tokens.size()) - 1;
  return {run.id(), step.begun.step, step.committed.first_pos + last, -1};
}

void bonus_cell(Context& context,
                const engine::RunRecord& run,
                const engine::StepRecord& step,
                const TreeNode& node,
                float width) {
  const ImVec2 min = ImGui::GetCursorScreenPos(), max{min.x + width, min.y + px(23)};
  const Place place = place_of(run, step, node);
  const std::string text = cell_text(context.timeline, run, node.token);
  if (ImGui::InvisibleButton("bonus", {width, px(23)})) context.click(place);
  if (ImGui::IsItemHovered()) {
    context.selection.hover(place);
    tooltip(
        fmt::format("{}\n{} \xC2\xB7 position {}", text, meaning_of(Mean::Bonus), place.position));
  }
  CellFlags flags;
  flags.marks = context.marks();
  flags.elide = true;
  flags.lit = context.selection.lights_position(run.id(), place.position);
  flags.locked = context.selection.locked == place;
  token_cell(ImGui::GetWindowDrawList(), min, max, text, Mean::Bonus, flags);
}

ImVec2 corner_of(const TreeNode& node, ImVec2 at, const Sizes& s) {
  return {at.x + static_cast<float>(node.depth) * s.column,
          at.y + static_cast<float>(node.line) * s.line};
}

void draw_edge(const Context& context,
               const TreeLayout& layout,
               const TreeNode& node,
               ImVec2 at,
               const Sizes& s) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 start = corner_of(layout.nodes[node.parent], at, s), end = corner_of(node, at, s);
  const float middle = s.cell_height / 2;
  const ImVec2 from{start.x + s.cell_width, start.y + middle}, to{end.x, end.y + middle};
  tree_edge(list, from, to, node.on_path, theme().dim);
  const std::string number = number_of(context, node);
  if (!number.empty())
    list->AddText(fonts().mono, px(12), {to.x - px(27), to.y - px(14)}, colour(theme().text),
                  number.c_str());
}

void draw_tree(Context& context,
               const engine::RunRecord& run,
               const engine::StepRecord& step,
               const TreeLayout& layout) {
  const Sizes s = sizes();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 seen = ImGui::GetWindowPos();
  const float bottom = seen.y + ImGui::GetWindowSize().y;
  const auto out_of_sight = [&](int line) {
    const float y = at.y + static_cast<float>(line) * s.line;
    return y > bottom || y + s.line < seen.y;
  };
  // The path is drawn last, over the others.
  for (const bool path : {false, true})
    for (const TreeNode& node : layout.nodes)
      if (node.parent >= 0 && node.on_path == path &&
          !(out_of_sight(node.line) && out_of_sight(layout.nodes[node.parent].line)))
        draw_edge(context, layout, node, at, s);
  for (const TreeNode& node : layout.nodes) {
    if (out_of_sight(node.line)) continue;
    ImGui::SetCursorScreenPos(corner_of(node, at, s));
    if (node.row >= 0)
      row_cell(context, run, step, node.row, node.mean, s.cell_width);
    else
      bonus_cell(context, run, step, node, s.cell_width);
    if (node.n_hidden_below == 0) continue;
    ImGui::SameLine(0, px(4));
    words(fmt::format("+{}", node.n_hidden_below), theme().dim);
  }
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({static_cast<float>(layout.n_columns) * s.column,
                static_cast<float>(layout.n_lines) * s.line});
}

void name_columns(const TreeLayout& layout) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::vector<std::string> names = head_columns(layout);
  for (std::size_t column = 0; column < names.size(); column++) {
    if (names[column].empty()) continue;
    ImGui::SetCursorScreenPos({at.x + static_cast<float>(column) * sizes().column, at.y});
    small_label(names[column]);
  }
}

// Selects the end of the accepted path at every step that the playhead reaches. A click selects something else until the next step.
void follow_path(Context& context, const engine::RunRecord& run) {
  const std::size_t n = context.n_steps(run);
  auto& view = context.states.get<TreeView>();
  if (!view.follows || n == 0) return;
  const engine::StepId at = context.times(run).steps[n - 1].step;
  Place& followed = view.followed;
  if (followed.run == run.id() && followed.step == at) return;
  const engine::StepRecord step = run.steps[n - 1];
  const TreeLayout layout = tree_layout(step, view.below);
  const bool taken = !layout.nodes.empty() && end_of_path(layout).depth > 0;
  followed =
      taken ? place_of(run, step, end_of_path(layout)) : Place{run.id(), step.begun.step, -1, -1};
  context.selection.choose({}, followed);
}

// While the panel follows the path, scrolls to the end of the path of each new step.
void keep_path_in_view(const Context& context, const TreeLayout& layout, ImVec2 at) {
  const auto& view = context.states.get<TreeView>();
  const Place& followed = view.followed;
  const bool is_new = is_new_in_view(static_cast<int>(followed.run * 65'537) ^ followed.step);
  if (!is_new || !view.follows) return;
  const Sizes s = sizes();
  const auto last = std::ranges::find_if(layout.nodes.rbegin(), layout.nodes.rend(),
                                         [](const TreeNode& node) { return node.on_path; });
  const ImVec2 min = corner_of(*last, at, s);
  bring_into_view(min, {min.x + s.cell_width + px(8), min.y + s.cell_height});
}

std::string budget_words(const engine::StepRecord& step, const TreeLayout& layout) {
  const engine::Verified& v = step.verified;
  std::string text = fmt::format("{} proposed", layout.n_proposed);
  if (step.has_verified)
    text += fmt::format(" \xC2\xB7 {} accepted \xC2\xB7 {} rejected \xC2\xB7 {} not verified",
                        v.n_accepted, v.n_rejected, v.n_unused);
  if (layout.n_hidden > 0) text += fmt::format(" \xC2\xB7 {} not shown", layout.n_hidden);
  return text;
}

void draw_tree(Context& context) {
  const engine::RunRecord& run = *context.run();
  follow_path(context, run);
  const ShownStep shown = shown_step(context, run);
  if (!shown.step) return empty_state("No step at the playhead.", Sketch::Tree);
  const engine::StepRecord& step = *shown.step;
  const TreeLayout layout = tree_layout(step, context.states.get<TreeView>().below);
  if (layout.nodes.empty()) {
    small_label(words_of(shown));
    return wrapped("This step proposed no tokens; the target chose its token alone.", theme().dim);
  }
  small_label(words_of(shown) + " \xC2\xB7 " + budget_words(step, layout));
  if (drafts_by_heads(run)) name_columns(layout);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_tree(context, run, step, layout);
  keep_path_in_view(context, layout, at);
  if (std::string gone = why_no_probabilities(run, step); !gone.empty()) small_label(gone);
  ImGui::Dummy({1, px(4)});
  legend(kTreeLegend, false);
}

void draw_tree_head(Context& context) {
  auto& view = context.states.get<TreeView>();
  panel_legend(kTreePanel);
  ImGui::SameLine();
  if (tick("follow accepted path", view.follows)) view.followed = {};
  if (ImGui::IsItemHovered())
    tooltip("Select the last accepted proposal of every step, and keep it visible.");
  const engine::RunRecord* run = context.run();
  if (!run || !traits_of(*run).drafts) return;  // guesses have no probability
  ImGui::SameLine();
  static constexpr std::array<const char*, 2> kNumbers{"q (draft)", "p (target)"};
  int number = view.shows_p ? 1 : 0;
  if (quiet_choice("##number", "number: ", kNumbers, number)) view.shows_p = number == 1;
  ImGui::SameLine();
  ImGui::SetNextItemWidth(px(110));
  const FrameLines lines(theme().faint);
  ImGui::SliderFloat("##below", &view.below, 0, 0.5f, "q >= %.2f");
  if (ImGui::IsItemHovered())
    tooltip(
        "Proposals with a lower q that were not verified are hidden, with everything below them.");
}

}  // namespace

const Panel kTreePanel{
    .id = "tree",
    .title = "Tree",
    .empty = why_no_tree,
    .draw = draw_tree,
    .head = draw_tree_head,
    .fits = fits_tree,
    .instead = instead_of_tree,
    .help = "The tokens that a step proposed, and which of them the target accepted.",
    .marks = kTreeMarks,
    .sketch = Sketch::Tree,
    .wide = true,
    .names_run = true,
    .live = Dock::Centre};

}  // namespace ui
