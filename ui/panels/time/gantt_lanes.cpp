// The rows below the ruler of the timeline: lanes, counters, their labels, and the arrows across them.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/timeline/schedule_turns.h"
#include "ui/files/notes.h"
#include "ui/panels/time/gantt_picture.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/lab/decisions.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/counters.h"
#include "ui/prepare/time/flow_arrows.h"
#include "ui/shell/context.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui::gantt {
namespace {

constexpr float kLaneHeight = 27, kCounterHeight = 25, kCollapsedHeight = 10;
// Words at the end of a run.
constexpr const char *kDone = "done", *kStopped = "stopped";
constexpr float kCutBand = 8;  // width of the band at the end of a run that its recording cuts

struct CountersOfRuns : PanelState {
  std::map<engine::RunId, RunCounters> counters;
  void document_changed() override { counters.clear(); }
};

const RunCounters& counters_of(Context& context, const engine::RunRecord& run) {
  RunCounters& counters = context.states.get<CountersOfRuns>().counters[run.id()];
  extend(counters, run);
  return counters;
}

// The arrows of the selected place, cached.
struct ArrowsOfPlace : PanelState {
  Place place;
  std::size_t n_steps = 0;
  std::vector<FlowArrow> arrows;
  void document_changed() override {
    place = {};
    n_steps = 0;
    arrows.clear();
  }
};

const std::vector<FlowArrow>& arrows_shown(Context& context,
                                           const engine::RunRecord& run,
                                           const Place& place) {
  auto& prepared = context.states.get<ArrowsOfPlace>();
  if (prepared.place != place || prepared.n_steps != run.steps.size() + 1) {
    prepared.place = place;
    prepared.n_steps = run.steps.size() + 1;
    prepared.arrows = arrows_of(run, place);
  }
  return prepared.arrows;
}

// Appends the lanes of one run in their default order; a phase that the run never had gets no lane.
void add_lanes(Context& context,
               const engine::RunRecord& run,
               int place,
               std::vector<LaneKey>& natural) {
  const StepSums& total = context.times(run).total;
  const auto add = [&](LaneKind kind) { natural.push_back({place, kind}); };
  const bool has_pool = total.pool_hits > 0 || total.pool_added > 0;
  add(LaneKind::Target);
  if (has_pool) add(LaneKind::PoolHit);
  if (context.compare) return;
  if (total.proposed > 0) add(LaneKind::Propose);
  add(LaneKind::Verify);
  add(LaneKind::Commit);
  if (total.pool_added > 0) add(LaneKind::PoolInsert);
  if (total.proposed > 0) add(LaneKind::Rows);
  add(LaneKind::Tokens);
  add(LaneKind::Cache);
  if (total.pool_added > 0) add(LaneKind::PoolSize);
  if (total.chosen > 0) add(LaneKind::Choice);
}

Rgb slice_colour(LaneKind lane, engine::SliceKind kind) {
  switch (kind) {
    case engine::SliceKind::VerifyAccepted:
    case engine::SliceKind::Commit:
      return fill_of(Mean::Accepted);
    case engine::SliceKind::VerifyRejected:
    case engine::SliceKind::Rollback:
      return fill_of(Mean::Rejected);
    case engine::SliceKind::Propose:
      return fill_of(Mean::Draft);
    default:
      return is_marks(lane) ? fill_of(Mean::Pool) : theme().work;
  }
}

// Returns a lane's share of the step's own compute.
double share_of(const StepSpan& s, LaneKind lane) {
  return lane == LaneKind::Target    ? s.forward
         : lane == LaneKind::Propose ? s.propose
         : lane == LaneKind::Verify  ? s.verify
                                     : s.commit;
}

// Returns the tooltip of a bucket of several slices.
std::string bucket_words(const Row& row,
                         const RunTimes& times,
                         const Picture& p,
                         const LaneBlock& b) {
  if (is_marks(row.key.kind))
    return fmt::format("{}: {} steps\nzoom in to see them", row.label, b.n_slices);
  const StepSums sums = sums_between(times, p.view, b.t0, b.t1);
  return fmt::format("{}: {} slices, {} tokens, {} busy, {} rejections\nzoom in to see them",
                     row.label, b.n_slices, sums.tokens, percent(b.busy), b.n_rejected);
}

// Returns the tooltip of the slice of step `i`.
std::string slice_words(const Row& row, const RunTimes& times, std::size_t i) {
  const StepSpan& s = times.steps[i];
  const double own = s.compute1 - s.compute0;
  std::string text = fmt::format("{} \xC2\xB7 step {}", row.label, s.step);
  if (!is_marks(row.key.kind))
    text += fmt::format(" \xC2\xB7 {} of {}", short_time(own * share_of(s, row.key.kind)),
                        short_time(own));
  text += fmt::format("\n{}, {} proposed, {} accepted, {} rejected",
                      engine::counted(s.n_rows, "row"), s.n_proposed, s.n_accepted, s.n_rejected);
  text += "\n+" + engine::counted(s.n_tokens, "token");
  if (s.wasted > 0)
    text += fmt::format(" \xC2\xB7 {} of the rows without a committed token", percent(s.wasted));
  if (row.key.kind != LaneKind::Propose) return text;
  const std::size_t n_forwards = row.run->steps[i].drafted.forwards.size();
  if (n_forwards > 0) text += fmt::format("\n{} forwards of the draft model", n_forwards);
  return text;
}

// Draws a slice, or a bucket whose height is the share in which the lane was busy.
void draw_slice(const Row& row, const LaneBlock& b, ImVec2 min, ImVec2 max) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float wide = max.x - min.x;
  const float foot = max.y;
  if (b.is_bucket) min.y = foot - (foot - min.y) * std::max(0.15f, b.busy);
  list->AddRectFilled(min, max, colour(slice_colour(row.key.kind, b.kind)),
                      wide > px(6) && !b.is_bucket ? px(2) : 0);
  if (row.collapsed) return;
  time_axis::waste_mark(list, min, max, b.wasted);
  const bool shows_rejection =
      row.key.kind == LaneKind::Target && b.n_rejected > 0 && (b.is_bucket || wide < px(4));
  if (shows_rejection)
    list->AddRectFilled({min.x, row.y}, {min.x + px(1.5f), row.y + px(3)},
                        colour(fill_of(Mean::Rejected)));
  if (row.key.kind != LaneKind::Target || wide < px(24) || b.is_bucket) return;
  list->PushClipRect(min, max, true);
  const float text_y = std::floor((min.y + max.y - px(13)) / 2);
  list->AddText(fonts().mono, px(13), {min.x + px(5), text_y}, IM_COL32_WHITE,
                fmt::format("+{}", b.n_tokens).c_str());
  list->PopClipRect();
}

// Marks the start of each forward of the draft model and writes its number of rows, if the proposal is wide enough.
void draw_draft_forwards(
    const Row& row, const RunTimes& times, const LaneBlock& b, ImVec2 min, ImVec2 max) {
  const float wide = max.x - min.x;
  if (row.key.kind != LaneKind::Propose || b.is_bucket || row.collapsed || wide < px(16)) return;
  const engine::StepRecord step = row.run->steps[times.index_of(b.step)];
  const auto whole = static_cast<float>(step.ended.propose);
  if (whole <= 0) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float each =
      wide / static_cast<float>(std::max<std::size_t>(1, step.drafted.forwards.size()));
  list->PushClipRect(min, max, true);
  for (const engine::DraftForward& forward : step.drafted.forwards) {
    const float x = min.x + wide * static_cast<float>(forward.begun) / whole;
    list->AddLine({x, min.y}, {x, max.y}, colour(kBlack), px(1));
    if (each >= px(16))
      list->AddText(fonts().mono, px(11), {x + px(3), min.y}, colour(kBlack),
                    fmt::format("{}", forward.n_rows).c_str());
  }
  list->PopClipRect();
}

// Draws the tick of a pool hit or a pool insertion, which has no length.
void draw_tick(const Row& row, const LaneBlock& b, float x0, float x1) {
  const float inset = row.collapsed ? px(1) : px(4);
  ImGui::GetWindowDrawList()->AddRectFilled(
      {x0 - px(1), row.y + inset},
      {std::max(x0 + px(2), b.is_bucket ? x1 - px(1) : 0), row.y + row.height - inset - px(1)},
      colour(slice_colour(row.key.kind, b.kind)), px(1));
}

void draw_wait(const Row& row, float from, float to) {
  if (to - from > px(5))
    hatch(ImGui::GetWindowDrawList(), {from + px(1), row.y + px(8)}, {to - px(1), row.y + px(17)},
          colour(theme().wait), px(6), px(1.5f));
}

// Draws waits, which exist on the wall clock alone: a lane of a race waits while other lanes use the device; a run of a schedule waits in the queue
// between its proposal and its forward.
void draw_waits(const Row& row,
                const RunTimes& times,
                const std::vector<LaneBlock>& blocks,
                const Picture& p) {
  const bool races = row.run->started.race != 0, queues = engine::has_schedule({row.run, 1});
  if (p.view.clock != ClockKind::Wall || row.collapsed || !(races || queues)) return;
  for (const LaneBlock& b : blocks) {
    const std::size_t i = b.is_bucket ? times.steps.size() : times.index_of(b.step);
    if (i >= times.steps.size()) continue;
    if (queues) {
      const auto proposal = part_of_step(*row.run, times, i, LaneKind::Propose, p.view);
      if (proposal) draw_wait(row, p.x_of(proposal->second), p.x_of(b.t0));
    } else if (i + 1 < times.steps.size()) {
      draw_wait(row, p.x_of(end_on(p.view.clock, times, i, p.view.wall_origin)),
                p.x_of(begin_on(p.view.clock, times, i + 1, p.view.wall_origin)));
    }
  }
}

// Returns the step under the mouse; a block may be a bucket of several steps.
std::size_t step_under(const RunTimes& times, const LaneBlock& b, const Picture& p, float x) {
  if (!b.is_bucket) return times.index_of(b.step);
  return first_ending_after(p.view.clock, times, p.t_of(x), p.view.wall_origin);
}

// Zooms so that the step takes a third of the visible range.
void zoom_to_step(Context& context, const RunTimes& times, std::size_t i, const Picture& p) {
  const double from = begin_on(p.view.clock, times, i, p.view.wall_origin);
  const double wide = end_on(p.view.clock, times, i, p.view.wall_origin) - from;
  if (wide > 0)
    time_axis::show_range(context, context.states.get<TimelineView>().range, from - wide,
                          from + 2 * wide);
}

// Shows the tooltip of the block under the mouse and handles clicks on it.
void point_at(
    Context& context, const Row& row, const RunTimes& times, const LaneBlock& b, const Picture& p) {
  const ImGuiIO& io = ImGui::GetIO();
  const std::size_t i = step_under(times, b, p, io.MousePos.x);
  if (i >= times.steps.size()) return;
  const Place place{row.run->id(), times.steps[i].step, -1, -1};
  context.selection.hover(place);
  tooltip(b.is_bucket ? bucket_words(row, times, p, b) : slice_words(row, times, i));
  if (time_axis::clicked_with(ImGuiMouseButton_Middle)) zoom_to_step(context, times, i, p);
  if (!time_axis::clicked_with(ImGuiMouseButton_Left)) return;
  auto& view = context.states.get<TimelineView>();
  view.lane = row.key.kind;
  view.lane_key = row.key;
  context.click(place);
}

// Returns true if the block contains a highlighted step.
bool is_lit(const Context& context,
            const Row& row,
            const RunTimes& times,
            const LaneBlock& b,
            const Picture& p) {
  const engine::RunId run = row.run->id();
  if (!b.is_bucket) return context.selection.lights_steps(run, b.step, b.step);
  const ClockKind clock = p.view.clock;
  const auto begin = [&](std::size_t i) { return begin_on(clock, times, i, p.view.wall_origin); };
  const std::size_t n = times.steps.size();
  const std::size_t first = first_ending_after(clock, times, b.t0, p.view.wall_origin);
  if (first >= n || begin(first) >= b.t1) return false;
  std::size_t last = std::min(first_ending_after(clock, times, b.t1, p.view.wall_origin), n - 1);
  if (last > first && begin(last) >= b.t1) last--;
  return context.selection.lights_steps(run, times.steps[first].step, times.steps[last].step);
}

float width_of_end_word(const char* word) {
  return ImGui::CalcTextSize(word).x * px(12) / ImGui::GetFontSize();
}

// Returns true if the recording ends before the run does.
bool is_cut(const Context& context, const engine::RunRecord& run) {
  return !run.over() && !context.source.empty() && context.reading < 0;
}

// Returns the words at the end of a run: of a finished one, or of one that its recording cuts; empty for other runs.
std::string end_words(const Context& context, const engine::RunRecord& run) {
  if (run.finished) return run.was_stopped() ? kStopped : kDone;
  if (!is_cut(context, run)) return "";
  if (run.steps.empty()) return "ended before step 0";
  const engine::StepHead last = run.steps.head(run.steps.size() - 1);
  return fmt::format("ended {} {}", last.complete ? "after step" : "mid-step", last.begun.step);
}

// Draws the end of a run: a line, and right of it words, clear of the slices. Between them, a hatched band marks a run that its recording cuts.
void draw_end(Context& context, const Row& row, const Picture& p) {
  const std::string words = end_words(context, *row.run);
  if (words.empty() || row.key.kind != LaneKind::Target) return;
  const RunTimes& times = context.times(*row.run);
  const std::size_t n = times.steps.size();
  if (n == 0 && row.run->finished) return;
  const float x =
      n > 0 ? p.x_of(end_on(p.view.clock, times, n - 1, p.view.wall_origin)) : p.x_of(p.begin);
  const bool cut = !row.run->finished;
  const float band = cut ? px(kCutBand) : 0, foot = row.y + row.height - px(3);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect({p.x0, row.y - px(1)}, {p.words_end, row.y + row.height}, true);
  if (x <= p.x1 + 1) {
    list->AddLine({x, row.y}, {x, foot}, colour(cut ? theme().warn : theme().text), px(1.5f));
    if (cut) hatch(list, {x, row.y}, {x + band, foot}, colour(theme().warn, 0.6f), px(5), px(1.5f));
  }
  const auto at = end_word_at(p, x, band + width_of_end_word(words.c_str()));
  if (at && !row.collapsed)
    list->AddText(nullptr, px(12), {*at + band, row.y + px(6)},
                  colour(cut ? theme().warn : theme().dim), words.c_str());
  list->PopClipRect();
}

// Draws the blocks of a lane, and rings around the highlighted ones.
void draw_lane(Context& context, const Row& row, const Picture& p) {
  const RunTimes& times = context.times(*row.run);
  const engine::RunLod& lod =
      lod_of(context, *row.run, p.view.clock, engine::lane_bit(engine_lane(row.key.kind)));
  const std::vector<LaneBlock> blocks = blocks_in_view(lod, times, row.key.kind, p.view);
  const bool marks = is_marks(row.key.kind), thin = row.key.kind != LaneKind::Target;
  const float mouse = ImGui::GetMousePos().x;
  const bool hovered = ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
                       ImGui::IsMouseHoveringRect({p.x0, row.y}, {p.x1, row.y + row.height});
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (row.key.kind == LaneKind::Target) draw_waits(row, times, blocks, p);
  for (const LaneBlock& b : blocks) {
    const float x0 = p.x_of(b.t0), x1 = p.x_of(b.t1);
    const float inset = row.collapsed ? px(2) : px(thin ? 6 : 3);
    const ImVec2 min{x0, row.y + inset};
    ImVec2 max{x1, row.y + row.height - inset - (row.collapsed ? 0 : px(2))};
    max.x = std::max(min.x + 1, max.x - (!b.is_bucket && x1 - x0 > px(6) ? px(2) : 0));
    if (marks)
      draw_tick(row, b, x0, x1);
    else
      draw_slice(row, b, min, max);
    draw_draft_forwards(row, times, b, min, max);
    if (!marks && is_lit(context, row, times, b, p))
      list->AddRect({min.x - 1, min.y - 1}, {max.x + 1, max.y + 1}, colour(theme().light_up), px(2),
                    px(1.5f));
    const float left = x0 - (marks ? px(3) : 0), right = std::max(left + px(6), x1);
    if (hovered && mouse >= left && mouse < right) point_at(context, row, times, b, p);
  }
}

// Marks a column of the lane `choice` if one of its steps missed its prediction. A column of one step gets the longest label that fits into [x0, x1].
void draw_choice(
    const Row& row, const RunCounters& counters, const StepColumn& column, float x0, float x1) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float wide = x1 - x0;
  const std::size_t last = std::min(column.last, counters.missed.size());
  if (counters.missed.of(column.first, last).second > 0)
    list->AddRectFilled({x0, row.y}, {x0 + px(wide < px(6) ? 1.5f : 4), row.y + px(3)},
                        colour(theme().bright));
  if (row.collapsed || wide < px(24) || column.last - column.first > 1) return;
  ImFont* font = fonts().mono;
  for (const std::string& label : choice_labels(row.run->steps[column.first])) {
    const float needs = font->CalcTextSizeA(px(11), FLT_MAX, 0, label.c_str()).x;
    if (needs > wide - px(8)) continue;
    const ImVec2 at{x0 + px(4), std::floor(row.middle() - px(6))};
    list->AddRectFilled({at.x - px(2), at.y - px(1)}, {at.x + needs + px(2), at.y + px(12)},
                        colour(theme().card), px(2));
    list->AddText(font, px(11), at, colour(theme().bright), label.c_str());
    return;
  }
}

// Draws a counter. A column reaches from the lowest to the highest value of its steps.
void draw_counter(Context& context, const Row& row, const Picture& p) {
  const RunCounters& counters = counters_of(context, *row.run);
  const Extremes& values = counters.of(row.key.kind);
  const RunTimes& times = context.times(*row.run);
  const float top = row.y + px(row.collapsed ? 1 : 4), foot = row.y + row.height - px(2);
  const float scale = (foot - top) / std::max(1.0f, values.highest());
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddLine({p.x0, foot}, {p.x1, foot}, colour(theme().line), px(1));
  const ImU32 band = colour(theme().monochrome ? theme().dim : theme().work, 0.45f);
  const ImU32 edge = colour(theme().monochrome ? theme().bright : look(Mean::Guess).fill);
  const bool hovered = ImGui::IsWindowHovered() &&
                       ImGui::IsMouseHoveringRect({p.x0, row.y}, {p.x1, row.y + row.height});
  const float mouse = ImGui::GetMousePos().x;
  for (const StepColumn& column : p.columns) {
    const auto [low, high] = values.of(column.first, std::min(column.last, values.size()));
    const float x0 = p.x_of(column.t0), x1 = std::max(x0 + 1, p.x_of(column.t1));
    const float y0 = foot - high * scale, y1 = foot - low * scale;
    list->AddRectFilled({x0, y0}, {x1, foot}, band);
    list->AddRectFilled({x0, y0 - px(0.75f)}, {x1, std::max(y0 + px(0.75f), y1)}, edge);
    if (row.key.kind == LaneKind::Choice)
      draw_choice(row, counters, column, std::max(x0, p.x0), std::min(x1, p.x1));
    if (!hovered || mouse < x0 || mouse >= x1) continue;
    const engine::StepId first = times.steps[column.first].step;
    const bool one = column.last - column.first == 1;
    if (one) {
      const Place place{row.run->id(), first, -1, -1};
      context.selection.hover(place);
      if (time_axis::clicked_with(ImGuiMouseButton_Left)) context.click(place);
    }
    std::string words =
        one ? fmt::format("{}\nstep {}: {:.0f}", counter_words(row.key.kind), first, high)
            : fmt::format("{}\nsteps {} to {}: {:.0f} to {:.0f}", counter_words(row.key.kind),
                          first, times.steps[column.last - 1].step, low, high);
    if (row.key.kind == LaneKind::Choice)
      words += "\n" + choice_words(*row.run, column.first, column.last);
    tooltip(words);
  }
}

void label_menu(Context& context, const Row& row, const std::vector<LaneKey>& natural, int at) {
  if (!ImGui::BeginPopup("##lane_menu")) return;
  LaneOrder& lanes = context.notes.lanes;
  if (menu_item(row.collapsed ? "Expand" : "Collapse", "click")) lanes.toggle_collapsed(row.key);
  if (menu_item("Hide")) lanes.hide(row.key);
  ImGui::Separator();
  if (menu_item("Move up", "U, or drag", false, at > 0)) lanes.move(natural, row.key, at - 1);
  if (menu_item("Move down", "J, or drag")) lanes.move(natural, row.key, at + 1);
  if (menu_item("Move to the top", nullptr, false, at > 0)) lanes.move(natural, row.key, 0);
  ImGui::EndPopup();
}

// Returns the new index of a dragged row. It moves past a row when the mouse passes the middle of
// that row.
int place_for(const std::vector<Row>& rows, int dragged, float y) {
  int to = dragged;
  while (to > 0 && y < rows[to - 1].middle()) --to;
  while (to + 1 < static_cast<int>(rows.size()) && y > rows[to + 1].middle()) ++to;
  return to;
}

void label_text(Context& context, const Row& row, float left, bool hovered) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Rgb ink = hovered ? theme().bright : is_counter(row.key.kind) ? theme().dim : theme().text;
  const float size = px(row.collapsed ? 11 : is_counter(row.key.kind) ? 13 : 14);
  const float y = std::floor(row.middle() - size / 2);
  list->AddText(nullptr, size, {left, y}, colour(ink), row.label.c_str());
  if (!is_counter(row.key.kind)) return;
  const Extremes& values = counters_of(context, *row.run).of(row.key.kind);
  const std::size_t n = std::min(context.n_steps(*row.run), values.size());
  if (n == 0) return;
  const std::string value = fmt::format("{:.0f}", values.at(n - 1));
  const float wide = ImGui::CalcTextSize(value.c_str()).x * size / ImGui::GetFontSize();
  list->AddText(nullptr, size, {left + px(time_axis::kLabelWidth) - px(9) - wide, y},
                colour(theme().bright), value.c_str());
}

struct Anchor {
  float x = 0, y = 0;
  bool found = false;
};

// Returns the point at which an arrow leaves or arrives. If the arrow's lane is not shown, the point is in the target's lane.
Anchor anchor_of(const engine::RunRecord& run,
                 const RunTimes& times,
                 const FlowEnd& end,
                 bool leaves,
                 const std::vector<Row>& rows,
                 const Picture& p) {
  for (const LaneKind lane : {end.lane, LaneKind::Target}) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) {
      return r.run == &run && r.key.kind == lane;
    });
    if (row == rows.end()) continue;
    const auto part = part_of_step(run, times, end.step, lane, p.view);
    if (!part) return {};
    return {p.x_of(leaves ? part->second : part->first), row->middle(), true};
  }
  return {};
}

}  // namespace

std::vector<Row> rows_of(Context& context, float top, float room, std::vector<LaneKey>& natural) {
  natural.clear();
  const auto runs = context.shown_runs();
  for (std::size_t i = 0; i < runs.size(); ++i)
    add_lanes(context, *runs[i], context.compare ? static_cast<int>(i) : -1, natural);
  std::vector<Row> rows;
  float wanted = 0, least = 0;  // the height of all rows
  for (const LaneKey& key : context.notes.lanes.arranged(natural)) {
    const engine::RunRecord* run = runs[static_cast<std::size_t>(std::max(0, key.place))];
    Row row{key, run, lane_name(key.kind), context.notes.lanes.collapsed(key)};
    if (context.compare) row.label = fmt::format("{} {}", context.letter_of(*run), row.label);
    row.height = px(row.collapsed          ? kCollapsedHeight
                    : is_counter(key.kind) ? kCounterHeight
                                           : kLaneHeight);
    wanted += row.height;
    least += std::min(row.height, px(kLeastTarget));
    rows.push_back(std::move(row));
  }
  // Rows without room shrink until their labels have the least height of a target.
  const float share = std::clamp((room - least) / std::max(1.0f, wanted - least), 0.0f, 1.0f);
  float y = std::floor(top);
  for (Row& row : rows) {
    const float lowest = std::min(row.height, px(kLeastTarget));
    row.y = y;
    row.height = std::ceil(lowest + (row.height - lowest) * share);
    y += row.height;
  }
  return rows;
}

void draw_labels(Context& context,
                 const std::vector<Row>& rows,
                 const std::vector<LaneKey>& natural,
                 float left) {
  LaneOrder& lanes = context.notes.lanes;
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
    const Row& row = rows[i];
    ImGui::SetCursorScreenPos({left, row.y});
    ImGui::PushID(row.label.c_str());
    const bool clicked =
        ImGui::InvisibleButton("label", {px(time_axis::kLabelWidth) - px(4), row.height});
    const bool hovered = ImGui::IsItemHovered();
    if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 4)) {
      ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
      const int to = place_for(rows, i, ImGui::GetMousePos().y);
      if (to != i) lanes.move(natural, row.key, to);
    } else if (clicked && ImGui::GetIO().MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] < 16) {
      lanes.toggle_collapsed(row.key);
    }
    if (clicked || ImGui::IsItemActive() || ImGui::IsItemFocused())
      context.states.get<TimelineView>().lane_key = row.key;
    if (hovered && ImGui::IsMouseReleased(ImGuiMouseButton_Right)) ImGui::OpenPopup("##lane_menu");
    label_menu(context, row, natural, i);
    if (hovered && !ImGui::IsItemActive())
      tooltip(fmt::format("{}click: {} \xC2\xB7 drag: move \xC2\xB7 right click: more",
                          is_counter(row.key.kind) ? std::string(counter_words(row.key.kind)) + "\n"
                                                   : std::string(),
                          row.collapsed ? "expand" : "collapse"));
    ImGui::PopID();
    label_text(context, row, left, hovered);
  }
}

void draw_hidden_chip(Context& context, const std::vector<LaneKey>& natural, ImVec2 at) {
  const int n = context.notes.lanes.n_hidden(natural);
  if (n == 0) return;
  ImGui::SetCursorScreenPos(at);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(0, target_padding()));
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, colour(theme().warn));
  if (ImGui::Button(fmt::format("{} hidden###hidden", n).c_str())) context.notes.lanes.show_all();
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar();
  if (ImGui::IsItemHovered()) tooltip("show all lanes again");
}

float room_for_end_words() {
  return px(6) + std::max(width_of_end_word(kDone), width_of_end_word(kStopped));
}

float room_for_words_of_cuts(const Context& context) {
  float room = 0;
  for (const engine::RunRecord* run : context.shown_runs())
    if (is_cut(context, *run))
      room = std::max(room, px(6 + kCutBand) + width_of_end_word(end_words(context, *run).c_str()));
  return room;
}

std::optional<float> end_word_at(const Picture& p, float x, float wide) {
  if (x < p.x0 || x > p.x1 + 1) return std::nullopt;
  const float right = x + px(4);
  return right + wide <= p.words_end ? std::optional(right) : std::nullopt;
}

void draw_row(Context& context, const Row& row, const Picture& p) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect({p.x0, row.y - px(1)}, {p.x1, row.y + row.height}, true);
  if (is_counter(row.key.kind))
    draw_counter(context, row, p);
  else
    draw_lane(context, row, p);
  list->PopClipRect();
  draw_end(context, row, p);
}

void draw_arrows(Context& context, const std::vector<Row>& rows, const Picture& p) {
  if (rows.empty()) return;
  const Place& place = context.selection.shown();
  const engine::RunRecord* run = place.valid() ? context.timeline.run(place.run) : nullptr;
  if (!run) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect({p.x0, rows.front().y}, {p.x1, rows.back().y + rows.back().height}, true);
  const RunTimes& times = context.times(*run);
  const ImU32 ink = colour(theme().bright, 0.8f), halo = colour(theme().card, 0.7f);
  for (const FlowArrow& arrow : arrows_shown(context, *run, place)) {
    const Anchor a = anchor_of(*run, times, arrow.from, true, rows, p);
    const Anchor b = anchor_of(*run, times, arrow.to, false, rows, p);
    if (!a.found || !b.found || std::max(a.x, b.x) < p.x0 || std::min(a.x, b.x) > p.x1) continue;
    if (a.y == b.y && b.x - a.x < px(6)) continue;  // adjacent slices of one lane need no arrow
    const float bend = std::clamp((b.x - a.x) / 2, px(8), px(40));
    for (const bool under : {true, false})
      list->AddBezierCubic({a.x, a.y}, {a.x + bend, a.y}, {b.x - bend, b.y}, {b.x, b.y},
                           under ? halo : ink, px(under ? 3.5f : 1.3f));
    list->AddTriangleFilled({b.x - px(6), b.y - px(3.5f)}, {b.x - px(6), b.y + px(3.5f)},
                            {b.x + px(1), b.y}, ink);
  }
  list->PopClipRect();
}

}  // namespace ui::gantt
