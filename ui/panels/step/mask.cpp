#include "ui/panels/step/mask.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "engine/event/timeline/proposals.h"
#include "engine/event/timeline/timeline.h"
#include "ui/panels/live/row_cell.h"
#include "ui/panels/step/shown_step.h"
#include "ui/prepare/run_traits.h"
#include "ui/prepare/tokens/mask.h"
#include "ui/prepare/tokens/row_origin.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/token_tree.h"
#include "ui/prepare/tokens/trajectory.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

struct MaskView : PanelState {
  bool numbers = false;  // write 0 and 1 into the cells
  float zoom = 1;        // zoom of the cells; 1: the mask fills the panel
};

enum class Sight { Not, Other, Own };

void mask_cell(ImDrawList* list, ImVec2 min, ImVec2 max, Sight sight) {
  if (sight == Sight::Not) return list->AddRect(min, max, colour(theme().line));
  list->AddRectFilled(min, max, colour(theme().work));
  if (sight == Sight::Own) list->AddRect(min, max, colour(theme().bright), 0, px(1.5f));
}

template <Sight sight>
void draw_sight_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  mask_cell(list, {at.x, at.y + px(4)}, {at.x + px(15), at.y + px(19)}, sight);
}

constexpr std::array kMaskMarks{
    MarkNote{.words = "the row attends to this row, its ancestor",
             .draw = draw_sight_sample<Sight::Other>},
    MarkNote{.words = "the row itself", .draw = draw_sight_sample<Sight::Own>},
    MarkNote{.words = "masked: a row of another branch, or a later one",
             .draw = draw_sight_sample<Sight::Not>},
    kLitNote,
};

// If the step has more rows than this, their tokens are not written beside them.
constexpr int kMostNamed = 40;
constexpr float kHeads = 20, kLargestCell = 48;  // pixels at scale 1
constexpr float kFarthest = 0.25f, kNearest = 8;

bool fits_mask(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.proposes() || traits.window || !traits.known;
}

const char* instead_of_mask(const engine::RunRecord&) {
  return "text";
}

std::string why_no_mask(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  const engine::RunRecord& run = *context.run();
  if (!traits_of(run).known || run.steps.empty()) return "No step yet.";
  return fits_mask(run)
             ? ""
             : method_of(context, run) +
                   (run.over()
                        ? " computed one row per step; each attended to the whole prefix."
                        : " has computed one row per step so far; it attends to the whole prefix.");
}

// Sizes in pixels: width of the row labels, width of the prefix column, width of a cell, height of a row.
struct Sizes {
  float label, prefix, cell, line;
};

Sizes sizes_for(int n_rows, float zoom) {
  const float line =
      std::clamp((n_rows <= kMostNamed ? px(25) : px(9)) * zoom, px(3), px(kLargestCell));
  Sizes s{line >= px(24) ? px(110) : 0, px(64), 0, line};
  // The visible width is used, because the content may be wider.
  const ImGuiStyle& style = ImGui::GetStyle();
  const float room = ImGui::GetWindowWidth() - 2 * style.WindowPadding.x - style.ScrollbarSize -
                     s.label - s.prefix;
  const float cell = std::clamp(room / static_cast<float>(std::max(1, n_rows)), px(5), px(25));
  s.cell = std::clamp(cell * zoom, px(2), px(kLargestCell));
  return s;
}

// Zooms with Ctrl and the wheel; the cell under the mouse keeps its place.
void zoom_by_wheel(float& zoom, int n_rows, ImVec2 at) {
  const ImGuiIO& io = ImGui::GetIO();
  if (!io.KeyCtrl || io.MouseWheel == 0 || !ImGui::IsWindowHovered()) return;
  const Sizes before = sizes_for(n_rows, zoom);
  zoom = std::clamp(zoom * std::exp(0.2f * io.MouseWheel), kFarthest, kNearest);
  const Sizes after = sizes_for(n_rows, zoom);
  const auto moved = [](float from, float start, float size, float new_start, float new_size) {
    return from < start ? 0 : new_start + (from - start) * new_size / size - from;
  };
  ImGui::SetScrollX(ImGui::GetScrollX() + moved(io.MousePos.x - at.x, before.label + before.prefix,
                                                before.cell, after.label + after.prefix,
                                                after.cell));
  ImGui::SetScrollY(ImGui::GetScrollY() +
                    moved(io.MousePos.y - at.y, px(kHeads), before.line, px(kHeads), after.line));
}

// Returns the result of a proposed row, or the meaning of another row's kind.
Mean mean_at(const engine::StepRecord& step, int row) {
  return is_proposal(step.drafted.tree.tag[row].kind) ? fate_of(step, row)
                                                      : mean_of(step.drafted.tree.tag[row].kind);
}

// Draws the names of the regions above their first columns, shortened to the width of the region; the tooltip shows the whole name.
void region_names(const Mask& mask, ImVec2 at, const Sizes& s) {
  constexpr float kSize = 12, kInset = 2, kApart = 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float left = at.x + s.label + s.prefix;
  const float right = ImGui::GetWindowPos().x + right_edge() - left;
  const float scale = px(kSize) / ImGui::GetFontSize();
  const auto width = [scale](const std::string& text) {
    return ImGui::CalcTextSize(text.c_str()).x * scale + px(kInset + kApart);
  };
  const std::vector<std::string> heads = region_heads(mask, s.cell, right, width);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const MaskRegion& region = mask.regions[i];
    const float x = left + static_cast<float>(region.first) * s.cell;
    const float end = left + static_cast<float>(region.last + 1) * s.cell;
    list->AddLine({x, at.y + px(13)}, {x, at.y + px(18)}, colour(theme().dim));
    list->AddText(nullptr, px(kSize), {x + px(kInset), at.y}, colour(theme().dim),
                  heads[i].c_str());
    if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect({x, at.y}, {end, at.y + px(18)}))
      tooltip(fmt::format("{}: {}", region.name,
                          region.first == region.last
                              ? fmt::format("row {}", region.first)
                              : fmt::format("rows {} to {}", region.first, region.last)));
  }
}

void draw_row(const Context& context,
              const engine::RunRecord& run,
              const engine::StepRecord& step,
              const Mask& mask,
              int row,
              ImVec2 at,
              const Sizes& s) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float y = at.y + static_cast<float>(row) * s.line, foot = y + s.line - px(2);
  const float first = at.x + s.label + s.prefix;
  mask_cell(list, {at.x + s.label, y}, {first - px(4), foot}, Sight::Other);
  if (s.line >= px(20))
    list->AddText(fonts().mono, px(12), {at.x + s.label + px(5), y + px(5)}, IM_COL32_WHITE,
                  fmt::format("{}", step.begun.kv_len).c_str());
  for (const int other : mask.sees[row]) {
    const float x = first + static_cast<float>(other) * s.cell;
    mask_cell(list, {x, y}, {x + s.cell - px(1), foot}, other == row ? Sight::Own : Sight::Other);
  }
  if (context.states.get<MaskView>().numbers && s.cell >= px(10) && s.line >= px(20))
    for (int other = 0; other < static_cast<int>(mask.sees.size()); ++other) {
      const bool seen = mask.seen(row, other);
      list->AddText(fonts().mono, px(12),
                    {first + static_cast<float>(other) * s.cell + s.cell / 2 - px(3), y + px(5)},
                    seen ? IM_COL32_WHITE : colour(theme().faint), seen ? "1" : "0");
    }
  if (lights(context, run, step, row))
    list->AddRect({at.x + s.label - px(1), y - px(1)},
                  {first + static_cast<float>(mask.sees.size()) * s.cell, foot + px(1)},
                  colour(theme().light_up), 0, px(1.5f));
}

// Shows the tooltip of a row, and of the row `other` in its column if it is not -1.
void hover_words(Context& context,
                 const engine::RunRecord& run,
                 const engine::StepRecord& step,
                 const Mask& mask,
                 int row,
                 int other) {
  const auto name = [&](int r) {
    return cell_text(context.timeline, run, step.drafted.tree.token[r]);
  };
  std::string text =
      fmt::format("row {} \"{}\" attends to {} of {} rows and {} positions of the prefix", row,
                  name(row), mask.sees[row].size(), mask.sees.size(), step.begun.kv_len);
  if (other >= 0)
    text += fmt::format("\nrow {} \"{}\": {}", other, name(other),
                        mask.seen(row, other) ? "attended" : "masked");
  tooltip(text);
}

// Handles the mouse with one button for the whole mask; there may be too many cells for one button each.
void take_mouse(Context& context,
                const engine::RunRecord& run,
                const engine::StepRecord& step,
                const Mask& mask,
                ImVec2 at,
                const Sizes& s) {
  const int n = static_cast<int>(mask.sees.size());
  const float wide = static_cast<float>(n) * s.cell, high = static_cast<float>(n) * s.line;
  ImGui::SetCursorScreenPos({at.x + s.label, at.y});
  const bool clicked = ImGui::InvisibleButton("mask", {s.prefix + wide, high});
  if (!ImGui::IsItemHovered() && !clicked) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const int row = std::clamp(static_cast<int>((mouse.y - at.y) / s.line), 0, n - 1);
  const float right = mouse.x - at.x - s.label - s.prefix;
  const int other = right < 0 ? -1 : std::min(n - 1, static_cast<int>(right / s.cell));
  const Place place{run.id(), step.begun.step, -1, row};
  if (clicked) context.click(place);
  context.selection.hover(place);
  hover_words(context, run, step, mask, row, other);
}

void draw_grid(Context& context,
               const engine::RunRecord& run,
               const engine::StepRecord& step,
               const Mask& mask) {
  const int n = static_cast<int>(mask.sees.size());
  ImVec2 at = ImGui::GetCursorScreenPos();
  float& zoom = context.states.get<MaskView>().zoom;
  zoom_by_wheel(zoom, n, at);
  const Sizes s = sizes_for(n, zoom);
  const float wide = static_cast<float>(n) * s.cell, high = static_cast<float>(n) * s.line;
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (s.label > 0)
    list->AddText(nullptr, px(12), {at.x, at.y}, colour(theme().dim), "row attends to");
  list->AddText(nullptr, px(12), {at.x + s.label, at.y}, colour(theme().dim), "the prefix");
  region_names(mask, at, s);
  at.y += px(kHeads);
  const float left = at.x + s.label + s.prefix;
  list->AddRectFilled({left, at.y}, {left + wide, at.y + high - px(2)}, colour(theme().field));
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowSize().y;
  for (int row = 0; row < n; ++row) {
    const float y = at.y + static_cast<float>(row) * s.line;
    if (y > bottom || y + s.line < top) continue;
    draw_row(context, run, step, mask, row, at, s);
    if (s.label <= 0) continue;
    ImGui::SetCursorScreenPos({at.x, y});
    row_cell(context, run, step, row, mean_at(step, row), s.label - px(6));
  }
  take_mouse(context, run, step, mask, at, s);
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({s.label + s.prefix + wide, high});
}

void draw_mask(Context& context) {
  const engine::RunRecord& run = *context.run();
  const ShownStep shown = shown_step(context, run);
  if (!shown.step) return empty_state("No step at the playhead.", Sketch::Triangle);
  const engine::StepRecord& step = *shown.step;
  if (!step.has_drafted) return wrapped("The rows of this step were not recorded.", theme().dim);
  const Mask mask = mask_of(step.drafted.tree, proposer_of(run));
  small_label(fmt::format("{} \xC2\xB7 {} rows after a prefix of {} tokens", words_of(shown),
                          mask.sees.size(), step.begun.kv_len));
  draw_grid(context, run, step, mask);
}

void draw_mask_head(Context& context) {
  auto& view = context.states.get<MaskView>();
  panel_legend(kMaskPanel);
  ImGui::SameLine();
  tick("0 and 1", view.numbers);
  if (ImGui::IsItemHovered())
    tooltip("Write 0 and 1 into the cells if they are large enough. Ctrl and the wheel zoom.");
  if (view.zoom == 1) return;
  ImGui::SameLine();
  if (link("Fit zoom")) view.zoom = 1;
  if (ImGui::IsItemHovered()) tooltip("Make the cells as large as the panel has room for.");
}

}  // namespace

const Panel kMaskPanel{
    .id = "mask",
    .title = "Mask",
    .empty = why_no_mask,
    .draw = draw_mask,
    .head = draw_mask_head,
    .fits = fits_mask,
    .instead = instead_of_mask,
    .help = "The attention mask of a step: one line per row, one column per row it can attend to.",
    .marks = kMaskMarks,
    .sketch = Sketch::Triangle,
    .wide = true,
    .names_run = true,
    .live = Dock::Centre};

}  // namespace ui
