#include "ui/panels/live/text_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/playhead.h"
#include "ui/prepare/tokens/row_origin.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/shell/context.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

constexpr std::size_t kMaxCells = 4096;

// The cells of all runs, and their last layout.
struct CellsOfRuns : PanelState {
  struct Entry {
    std::uint64_t version = 0;  // version of the timeline plus 1; 0: not computed yet
    std::size_t n_steps = 0;
    bool live = false;
    std::vector<TextCell> cells;
    std::size_t first = 0;
    float width = -1;
    CellMetrics metrics;
    bool flowing = false;
    std::vector<CellBox> boxes;  // boxes of the cells from `first` on
  };
  std::map<engine::RunId, Entry> entries;
  void document_changed() override { entries.clear(); }
};

// Returns the cached cells of a run; computes them if the timeline or the playhead has changed.
CellsOfRuns::Entry& cells_of(Context& context, const engine::RunRecord& run, std::size_t n_steps) {
  CellsOfRuns::Entry& entry = context.states.get<CellsOfRuns>().entries[run.id()];
  const std::uint64_t version = context.timeline.version() + 1;
  const bool live = context.live(run);
  if (entry.version != version || entry.n_steps != n_steps || entry.live != live)
    entry = {.version = version,
             .n_steps = n_steps,
             .live = live,
             .cells = text_cells(context.timeline, run, n_steps, live)};
  return entry;
}

// Returns the cached layout of the cells from `first` on; computes it if an argument has changed.
const std::vector<CellBox>& boxes_of(CellsOfRuns::Entry& entry,
                                     std::size_t first,
                                     float width,
                                     const CellMetrics& metrics,
                                     bool flowing) {
  if (entry.width != width || entry.first != first || entry.metrics != metrics ||
      entry.flowing != flowing) {
    entry.width = width;
    entry.first = first;
    entry.metrics = metrics;
    entry.flowing = flowing;
    entry.boxes = lay_out(std::span(entry.cells).subspan(std::min(first, entry.cells.size())),
                          width, metrics, flowing);
  }
  return entry.boxes;
}

// The last layout of lanes that are aligned.
struct AlignedBoxes : PanelState {
  // For which it was computed: run, version of the timeline, complete steps and `live` of each lane
  std::vector<std::tuple<engine::RunId, std::uint64_t, std::size_t, bool>> lanes;
  float width = -1;
  CellMetrics metrics;
  bool flowing = false;
  std::vector<std::vector<CellBox>> boxes;  // [lanes]
  int n_lines = 0;                          // of the longest lane
  void document_changed() override { lanes.clear(); }
};

const AlignedBoxes& aligned_boxes(Context& context,
                                  const AlignedWith& with,
                                  float width,
                                  const CellMetrics& metrics,
                                  bool flowing) {
  AlignedBoxes& all = context.states.get<AlignedBoxes>();
  decltype(all.lanes) lanes;
  for (const engine::RunRecord* run : with.lanes)
    lanes.emplace_back(run->id(), context.timeline.version(), context.n_steps(*run),
                       context.live(*run));
  if (all.lanes == lanes && all.width == width && all.metrics == metrics && all.flowing == flowing)
    return all;
  all.lanes = std::move(lanes), all.width = width, all.metrics = metrics, all.flowing = flowing;
  std::vector<std::span<const TextCell>> cells;
  for (const engine::RunRecord* run : with.lanes) {
    const std::span whole = cells_of(context, *run, context.n_steps(*run)).cells;
    cells.push_back(whole.subspan(std::min(whole.size(), run->started.prompt_tokens.size())));
  }
  all.boxes = lay_out_aligned(cells, width, metrics, flowing);
  all.n_lines = 0;
  for (const auto& boxes : all.boxes)
    if (!boxes.empty()) all.n_lines = std::max(all.n_lines, boxes.back().line + 1);
  return all;
}

// Returns the colour that the lens gives a committed cell; nullopt if the lens does not colour it.
std::optional<Rgb> lens_colour(const Context& context,
                               const engine::RunRecord& run,
                               const TextCell& cell,
                               double top_cost,
                               engine::StepId newest) {
  if (!cell.committed || cell.step < 0) return std::nullopt;
  switch (context.states.get<TextView>().lens) {
    case Lens::TokenStatus:
      return std::nullopt;
    case Lens::Probability:
      return viridis(std::exp(static_cast<double>(cell.logp)));
    case Lens::Age:
      return viridis(std::min(1.0, (newest - cell.step) / 20.0));
    case Lens::Cost:
      return plasma(top_cost > 0 ? cell.cost_ns / top_cost : 0);
    case Lens::Origin:
      return cell.origin == Mean::Prefix ? theme().button_hot : fill_of(cell.origin);
    case Lens::Agreement: {
      if (!run.agreement) return theme().button;
      const int index = cell.position - run.tokens.front().pos;
      const int bad = run.agreement->first_difference;
      if (index >= run.agreement->n_compared && bad < 0) return theme().button;
      return bad >= 0 && index >= bad ? fill_of(Mean::Rejected) : fill_of(Mean::Accepted);
    }
  }
  return std::nullopt;
}

// The first token of a run that differs from another run.
struct Divergence {
  const engine::RunRecord* reference =
      nullptr;     // nullptr: plain decoding, of which only the report is known
  int index = -1;  // among generated tokens; -1: none
};

Divergence divergence_of(const engine::RunRecord& run, const AlignedWith& aligned) {
  if (aligned.reference) return {aligned.reference, aligned.first_difference};
  const bool is_reported = aligned.lanes.empty() && run.agreement;
  return {nullptr, is_reported ? run.agreement->first_difference : -1};
}

bool diverges_at(const engine::RunRecord& run, const TextCell& cell, const Divergence& divergence) {
  return cell.committed && cell.step >= 0 && divergence.index >= 0 &&
         cell.position - run.first_generated() == divergence.index;
}

// Returns words on the token that the reference has in place of the run's.
std::string other_token_words(const Context& context,
                              const engine::RunRecord& run,
                              const Divergence& divergence) {
  if (!divergence.reference)
    return "Plain decoding chose: " + cell_text(context.timeline, run, run.agreement->expected);
  const engine::TokenId token =
      divergence.reference->tokens[static_cast<std::size_t>(divergence.index)].id;
  return fmt::format("Lane {} has: {}", context.letter_of(*divergence.reference),
                     cell_text(context.timeline, *divergence.reference, token));
}

void cell_tooltip(const Context& context,
                  const engine::RunRecord& run,
                  const TextCell& cell,
                  const Divergence& divergence) {
  if (!ImGui::BeginTooltip()) return;
  ImGui::PushFont(fonts().mono, kMonoSize);
  words(cell.text, theme().bright);
  ImGui::PopFont();
  if (cell.step < 0) {
    words(fmt::format("prompt{} \xC2\xB7 position {} \xC2\xB7 token {}",
                      cell.mean == Mean::Approximate ? ", approximate" : "", cell.position,
                      cell.token),
          theme().dim);
  } else {
    words(fmt::format("{} \xC2\xB7 step {} \xC2\xB7 position {} \xC2\xB7 token {}",
                      look(cell.mean).name, cell.step, cell.position, cell.token),
          theme().text);
    if (cell.has_logp)
      words(fmt::format("p {:.3f} \xC2\xB7 {} per token of its step", std::exp(cell.logp),
                        short_time(cell.cost_ns)),
            theme().dim);
    if (const char* text = copied_text(cell.tag))
      words(fmt::format("copied from {}", text), theme().dim);
    else if (cell.origin != Mean::Prefix)
      words(fmt::format("proposed as: {}", look(cell.origin).name), theme().dim);
  }
  if (diverges_at(run, cell, divergence))
    words(other_token_words(context, run, divergence), theme().bad);
  ImGui::EndTooltip();
}

Place place_of(const engine::RunRecord& run, const TextCell& cell) {
  return {run.id(), cell.step, cell.position, cell.row};
}

void click_cell(Context& context,
                const engine::RunRecord& run,
                std::span<const TextCell> cells,
                std::size_t i) {
  std::vector<Place> in_order;
  in_order.reserve(cells.size());
  for (const TextCell& cell : cells) in_order.push_back(place_of(run, cell));
  context.click(in_order[i], in_order);
}

// Properties that all cells of a text share.
struct TextStyle {
  bool flowing = false;
  double top_cost = 0;        // the highest cost of a cell, ns
  engine::StepId newest = 0;  // the last step that the text shows
};

void draw_cell(Context& context,
               const engine::RunRecord& run,
               std::span<const TextCell> cells,
               std::size_t i,
               ImVec2 min,
               ImVec2 max,
               const TextStyle& style,
               const Divergence& divergence) {
  const TextCell& cell = cells[i];
  const Place place = place_of(run, cell);
  ImGui::SetCursorScreenPos(min);
  ImGui::PushID(cell.position * 2 + (cell.committed ? 0 : 1));
  if (ImGui::InvisibleButton("cell", {std::max(1.0f, max.x - min.x), max.y - min.y}))
    click_cell(context, run, cells, i);
  if (ImGui::IsItemHovered()) {
    context.selection.hover(place);
    cell_tooltip(context, run, cell, divergence);
  }
  ImGui::PopID();
  CellFlags flags;
  const bool own =
      cell.committed || context.selection.shown().row == cell.row || context.selection.several();
  flags.lit = own && (context.selection.lights_position(run.id(), cell.position) ||
                      (context.selection.shown().position < 0 &&
                       context.selection.lights_step(run.id(), cell.step)));
  flags.locked = own && context.selection.locks_position(run.id(), cell.position);
  flags.marks = context.marks() && max.x - min.x > px(12);
  // The layout reserves room for padding and mark only where a meaning fills the cell.
  flags.tight =
      style.flowing || (!look(cell.mean).filled && look(cell.mean).border == Border::None);
  flags.quiet = cell.committed && cell.step >= 0 && cell.step < style.newest &&
                cell.mean != Mean::Approximate;
  flags.diverged = diverges_at(run, cell, divergence);
  if (cell.mean == Mean::Accepted) flags.origin = cell.origin;
  const auto lens = lens_colour(context, run, cell, style.top_cost, style.newest);
  if (lens) flags.lens_fill = &*lens;
  token_cell(ImGui::GetWindowDrawList(), min, max, cell.text, cell.mean, flags);
  // A bracket before the first different token, which is seen without looking at single cells.
  if (flags.diverged && divergence.reference)
    text_bar(ImGui::GetWindowDrawList(), {min.x - px(1), min.y - px(2)}, max.y + px(2), px(6),
             theme().bad);
}

// Draws a thin bar at the end of the committed text and brackets around the block that is being refined.
void draw_edges(const TextEdges& edges,
                std::span<const TextCell> cells,
                std::span<const CellBox> boxes,
                ImVec2 at,
                float line_height,
                float cell_height) {
  if (cells.empty()) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto index_of = [&](int position) {
    return static_cast<std::size_t>(
        std::ranges::lower_bound(cells, position, {}, &TextCell::position) - cells.begin());
  };
  // Returns the upper left or upper right corner of a cell.
  const auto corner = [&](std::size_t i, bool right) {
    const CellBox& box = boxes[i];
    return ImVec2{at.x + px(1) + box.x + (right ? box.width + px(2) : 0),
                  at.y + px(1) + static_cast<float>(box.line) * line_height};
  };
  const auto bar = [&](ImVec2 top, float tick, Rgb rgb) {
    text_bar(list, top, top.y + cell_height + px(2), tick, rgb);
  };
  if (edges.block_first >= 0) {
    const std::size_t first = index_of(edges.block_first), last = index_of(edges.block_last);
    if (first < cells.size()) bar(corner(first, false), px(5), edge_on(theme(), look(Mean::Guess)));
    if (last < cells.size()) bar(corner(last, true), -px(5), edge_on(theme(), look(Mean::Guess)));
  }
  const std::size_t next = index_of(edges.caret);
  ImVec2 caret = next < cells.size() ? corner(next, false) : corner(cells.size() - 1, true);
  caret.y -= px(2);
  text_bar(list, caret, caret.y + cell_height + px(6), 0, theme().bright);
}

// Returns the highest cost of a cell, the upper end of the lens's scale.
double costliest(const std::vector<TextCell>& cells) {
  double top = 0;
  for (const TextCell& cell : cells) top = std::max(top, cell.cost_ns);
  return top;
}

// Scrolls to the end of the answer one frame after the answer changed, when the new height is known.
void scroll_to_end(std::size_t n_cells) {
  int* seen = ImGui::GetStateStorage()->GetIntRef(ImGui::GetID("n_cells"), -1);
  const int now = static_cast<int>(n_cells);
  if (*seen == now && ImGui::GetScrollY() < ImGui::GetScrollMaxY() - 1) {
    int* tried = ImGui::GetStateStorage()->GetIntRef(ImGui::GetID("tried"), -1);
    if (*tried == now) return;  // the user has scrolled away since that frame
    *tried = now;
  }
  *seen = now;
  ImGui::SetScrollHereY(1.0f);
}

}  // namespace

void draw_token_text(Context& context,
                     const engine::RunRecord& run,
                     bool flowing,
                     bool with_prompt,
                     const AlignedWith& aligned) {
  const std::size_t n_steps = context.n_steps(run);
  CellsOfRuns::Entry& prepared = cells_of(context, run, n_steps);
  const std::vector<TextCell>& all = prepared.cells;
  const std::size_t first =
      with_prompt ? 0 : std::min(all.size(), run.started.prompt_tokens.size());
  const std::span cells = std::span(all).subspan(first);
  CellMetrics metrics;
  ImGui::PushFont(fonts().mono, kMonoSize);
  // Measures many characters, because Dear ImGui rounds the width of a text up, which would leave a gap after each token.
  metrics.character = ImGui::CalcTextSize("0000000000").x / 10;
  ImGui::PopFont();
  metrics.padding = px(10);
  metrics.mark = px(kMarkSize) * 0.5f + px(1);
  metrics.gap = px(2);
  const float width = ImGui::GetContentRegionAvail().x - px(4);
  const auto lane = std::ranges::find(aligned.lanes, &run);
  const AlignedBoxes* together = lane == aligned.lanes.end()
                                     ? nullptr
                                     : &aligned_boxes(context, aligned, width, metrics, flowing);
  const std::vector<CellBox>& boxes =
      together ? together->boxes[static_cast<std::size_t>(lane - aligned.lanes.begin())]
               : boxes_of(prepared, first, width, metrics, flowing);
  const Divergence divergence = divergence_of(run, aligned);
  const float line_height = flowing ? px(22) : px(kTokenLine),
              cell_height = flowing ? px(20) : px(24);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowSize().y;
  const TextStyle style{
      .flowing = flowing,
      .top_cost = context.states.get<TextView>().lens == Lens::Cost ? costliest(all) : 0,
      .newest = n_steps > 0 ? run.steps.head(n_steps - 1).begun.step : 0};
  std::size_t n_drawn = 0;
  const int first_line = std::max(0, static_cast<int>((top - at.y) / line_height) - 1);
  auto i = static_cast<std::size_t>(
      std::partition_point(boxes.begin(), boxes.end(),
                           [first_line](const CellBox& b) { return b.line < first_line; }) -
      boxes.begin());
  for (; i < cells.size() && n_drawn < kMaxCells; ++i) {
    const ImVec2 min{at.x + boxes[i].x + px(2),
                     at.y + static_cast<float>(boxes[i].line) * line_height + px(2)};
    if (min.y > bottom) break;
    draw_cell(context, run, cells, i, min, {min.x + boxes[i].width, min.y + cell_height}, style,
              divergence);
    ++n_drawn;
  }
  draw_edges(text_edges(run, n_steps, context.live(run)), cells, boxes, at, line_height,
             cell_height);
  const int n_lines = together ? together->n_lines : boxes.empty() ? 0 : boxes.back().line + 1;
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({1, static_cast<float>(n_lines) * line_height + px(4)});
  if (context.playhead.mode != Playhead::Mode::Paused) scroll_to_end(cells.size());
}

}  // namespace ui
