#include "ui/panels/time/gantt.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/timeline/lod.h"
#include "engine/event/timeline/timeline.h"
#include "ui/files/notes.h"
#include "ui/panels/time/gantt_picture.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/playhead.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

using gantt::Picture;
using namespace time_axis;

TimelineView& view_of(Context& context) {
  return context.states.get<TimelineView>();
}

// The levels of detail (engine::RunLod) of all runs, on the clock that was drawn last.
struct LodsOfRuns : PanelState {
  std::map<engine::RunId, engine::RunLod> lods;
  void document_changed() override { lods.clear(); }
};

struct Box {
  ImVec2 min, max;
};
// Returns the box of the slice in a legend's sample.
Box sample_slice(ImVec2 at) {
  return {{at.x, at.y + px(3)}, {at.x + px(60), at.y + px(20)}};
}

void draw_work_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const auto [min, max] = sample_slice(at);
  list->AddRectFilled(min, max, colour(theme().work), px(2));
  list->AddText(fonts().mono, px(13), {min.x + px(5), min.y + px(2)}, IM_COL32_WHITE, "+3");
}

void draw_waste_foot_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const auto [min, max] = sample_slice(at);
  list->AddRectFilled(min, {min.x + px(18), max.y}, colour(theme().work), px(2));
  waste_mark(list, min, {min.x + px(18), max.y}, 0.67f);
}

void draw_wait_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const auto [min, max] = sample_slice(at);
  hatch(list, {min.x, min.y + px(4)}, {max.x, max.y - px(4)}, colour(theme().wait), px(6),
        px(1.5f));
}

void draw_pool_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const auto [min, max] = sample_slice(at);
  list->AddRectFilled(min, {min.x + px(3), max.y}, colour(fill_of(Mean::Pool)), px(1));
}

void draw_rejection_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const auto [min, max] = sample_slice(at);
  list->AddRectFilled(min, max, colour(theme().work), px(2));
  list->AddRectFilled({min.x + px(20), min.y - px(2)}, {min.x + px(21.5f), min.y + px(2)},
                      colour(fill_of(Mean::Rejected)));
}

void draw_forwards_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const auto [min, max] = sample_slice(at);
  list->AddRectFilled(min, max, colour(fill_of(Mean::Draft)), px(2));
  for (const float x : {min.x, min.x + px(30)}) {
    list->AddLine({x, min.y}, {x, max.y}, colour(kBlack), px(1));
    list->AddText(fonts().mono, px(11), {x + px(3), min.y}, colour(kBlack), "1");
  }
}

void draw_missed_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const auto [min, max] = sample_slice(at);
  list->AddRectFilled({min.x, min.y - px(2)}, {min.x + px(4), min.y + px(1)},
                      colour(theme().bright));
  list->AddText(fonts().mono, px(11), {min.x + px(6), min.y}, colour(theme().bright), "! 4");
}

void draw_flow_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const auto [min, max] = sample_slice(at);
  const ImU32 bright = colour(theme().bright);
  const float y = (min.y + max.y) / 2;
  list->AddLine({min.x, y}, {max.x - px(6), y}, bright, px(1.3f));
  list->AddTriangleFilled({max.x - px(6), y - px(3.5f)}, {max.x - px(6), y + px(3.5f)},
                          {max.x + px(1), y}, bright);
}

void draw_flag_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const ImVec2 min = sample_slice(at).min;
  list->AddRectFilled(min, {min.x + px(14), min.y + px(12)}, colour(theme().bright));
  list->AddText(nullptr, px(11), {min.x + px(4), min.y}, colour(theme().card), "1");
}

void draw_passing_flag_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const ImVec2 min = sample_slice(at).min;
  list->AddRect(min, {min.x + px(9), min.y + px(12)}, colour(theme().bright), 0, px(1));
}

constexpr std::array kTimelineMarks{
    MarkNote{.words = "work; +3: the step committed three tokens", .draw = draw_work_sample},
    MarkNote{.words = "hatched: waste, rows without a committed token; their share is twice the "
                      "hatched width",
             .draw = draw_waste_sample},
    MarkNote{.words = "the same in a narrow slice: the bar at the foot is as long as the share",
             .draw = draw_waste_foot_sample},
    MarkNote{.words = "waiting for the device (wall clock)", .draw = draw_wait_sample},
    MarkNote{.words = "a step in which a pool n-gram was accepted or added",
             .draw = draw_pool_sample},
    MarkNote{.words = "at least one rejection among slices that are too narrow to draw",
             .draw = draw_rejection_sample},
    MarkNote{.words = "a proposal: each forward of the draft model with its number of rows",
             .draw = draw_forwards_sample},
    MarkNote{.words = "lane choice: tokens missed the prediction by a factor of 2, or time by 1.5",
             .draw = draw_missed_sample},
    MarkNote{.words = "the steps that the selected token passed through", .draw = draw_flow_sample},
    MarkNote{.words = "a bookmark with its number (Ctrl+1)", .draw = draw_flag_sample},
    MarkNote{.words = "a temporary mark (M); Shift+M keeps it", .draw = draw_passing_flag_sample},
};

// Returns the axis of the runs shown, on the chosen clock, between the pixels x0 and x1.
Picture picture_of(Context& context, float x0, float x1) {
  Picture p;
  p.x0 = x0;
  p.x1 = std::max(x1, x0 + 10);
  p.view.clock = view_of(context).clock;
  p.view.wall_origin = context.wall_origin();
  p.view.width = p.x1 - p.x0;
  p.view.empty = true;
  bool first = true;
  for (const engine::RunRecord* run : context.shown_runs()) {
    const RunTimes& times = context.times(*run);
    // Positions begin after the prompt.
    if (p.view.clock == ClockKind::Position) {
      const double begin = times.first_position;
      p.begin = first ? begin : std::min(p.begin, begin);
      p.end = std::max(p.end, p.begin + 1);
      first = false;
    }
    if (times.steps.empty()) continue;
    p.end =
        std::max(p.end, end_on(p.view.clock, times, times.steps.size() - 1, p.view.wall_origin));
    p.view.empty = false;
  }
  set_range(p, view_of(context).range);
  return p;
}

// Moves the playhead to the time t of the axis.
void scrub(Context& context, const Picture& p, double t) {
  const engine::RunRecord* run = gantt::lead(context);
  if (!run) return;
  const double compute = to_compute(p.view.clock, context.times(*run), t, p.view.wall_origin);
  context.playhead.go_to(compute, context.end());
}

// Draws the overview strip: tokens committed by all runs shown.
void draw_tokens(Context& context, const Picture& p, ImVec2 at) {
  std::vector<float> sum(static_cast<std::size_t>(overview_parts(p)));
  for (const engine::RunRecord* run : context.shown_runs()) {
    const auto bars =
        overview(context.times(*run), p.view, p.begin, p.end, static_cast<int>(sum.size()));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += bars[i];
  }
  draw_overview(context, view_of(context).range, p, at, sum,
                "Tokens committed over the whole run. Drag to move the visible range.");
}

// Returns the sums over the measured range [a, b] in words.
std::string range_words(Context& context, const Picture& p, double a, double b) {
  const engine::RunRecord* run = context.run() ? context.run() : gantt::lead(context);
  if (!run) return length_words(p.view.clock, b - a);
  const StepSums d = sums_between(context.times(*run), p.view, a, b);
  return fmt::format("{}: {}, {} rejected, waste {}", length_words(p.view.clock, b - a),
                     engine::counted(d.tokens, "token"), d.rejected, short_time(d.waste));
}

// Draws the marks of the runs shown in the ruler: a filled flag, with its number if a key jumps to it, or a hollow flag for the temporary mark.
void draw_marks(Context& context, const Picture& p, float top, float bottom) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::vector<const engine::RunRecord*> shown = context.shown_runs();
  int n = 0;
  for (const Bookmark& mark : context.notes.bookmarks) {
    const bool numbered = mark.kind == Bookmark::Kind::Numbered;
    n += numbered;
    const engine::RunRecord* run = context.timeline.run(mark.run);
    if (!run || std::ranges::find(shown, run) == shown.end()) continue;
    const float x =
        p.x_of(on_clock(p.view.clock, context.times(*run), mark.compute, p.view.wall_origin));
    if (x < p.x0 || x > p.x1) continue;
    const ImU32 ink = colour(theme().bright);
    const ImVec2 min{x, top}, max{x + px(numbered ? 14 : 9), top + px(12)};
    list->AddLine({x, top}, {x, bottom}, colour(theme().bright, 0.35f), px(1));
    if (mark.kind == Bookmark::Kind::Passing)
      list->AddRect(min, max, ink, 0, px(1));
    else
      list->AddRectFilled(min, max, ink);
    if (numbered)
      list->AddText(nullptr, px(11), {x + px(4), top}, colour(theme().card),
                    fmt::format("{}", n).c_str());
    if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(min, max))
      tooltip(bookmark_words(mark, n, context.name_of(*run)));
  }
}

// Updates the data that the rows are drawn from; all lanes of a run are updated together.
void prepare_rows(Context& context, const std::vector<gantt::Row>& rows, Picture& p) {
  std::map<const engine::RunRecord*, unsigned> lanes;
  for (const gantt::Row& row : rows) {
    if (!is_counter(row.key.kind))
      lanes[row.run] |= engine::lane_bit(engine_lane(row.key.kind));
    else if (p.columns.empty())
      p.columns = step_columns(context.times(*row.run), p.view);
  }
  for (const auto& [run, bits] : lanes) gantt::lod_of(context, *run, p.view.clock, bits);
}

void draw_gantt(Context& context) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float right = at.x + room.x - px(4);
  const float room_for_words =
      std::max(gantt::room_for_end_words(), gantt::room_for_words_of_cuts(context));
  Picture p = picture_of(context, at.x + px(kLabelWidth), right - room_for_words);
  p.words_end = right;
  const engine::RunRecord* run = gantt::lead(context);
  const double playhead =
      run ? on_clock(p.view.clock, context.times(*run),
                     std::min(context.playhead.at, context.end()), p.view.wall_origin)
          : p.begin;
  TimelineView& view = view_of(context);
  keep_following(context, view.range, p, playhead);
  walk_keys(context, view.range, p);
  const float top = at.y + px(kOverviewHeight + kRulerHeight + 4);
  std::vector<LaneKey> natural;
  const float words_room = room_for_range_words(view.range);
  const auto rows = gantt::rows_of(context, top, at.y + room.y - px(2) - words_room - top, natural);
  view.natural_lanes = natural;
  prepare_rows(context, rows, p);
  view.rows_end = rows.empty() ? top : rows.back().y + rows.back().height;
  const float bottom = std::max(view.rows_end + words_room, at.y + room.y - px(2));
  view.range_words_top = bottom - words_room;
  draw_tokens(context, p, {p.x0, at.y});
  draw_ruler(p, {p.x0, at.y + px(kOverviewHeight + 2)}, bottom,
             [&](double t) { scrub(context, p, t); });
  gantt::draw_hidden_chip(context, natural, at);
  gantt::draw_labels(context, rows, natural, at.x);
  handle_mouse(context, view.range, p, top, bottom);
  for (const gantt::Row& row : rows) gantt::draw_row(context, row, p);
  gantt::draw_arrows(context, rows, p);
  draw_range(view.range, p, top, bottom,
             [&](double a, double b) { return range_words(context, p, a, b); });
  draw_marks(context, p, at.y + px(kOverviewHeight + 3), bottom);
  draw_playhead(p, playhead, at.y + px(kOverviewHeight + kRulerHeight - 2), bottom);
}

void draw_gantt_head(Context& context) {
  std::array<const char*, kClocks> clocks;
  for (int i = 0; i < kClocks; ++i) clocks[i] = clock_name(static_cast<ClockKind>(i));
  TimelineView& view = view_of(context);
  int clock = static_cast<int>(view.clock);
  panel_legend(kGanttPanel);
  ImGui::SameLine(0, px(12));
  const char* rule = context.compare ? clock_rule(view.clock) : "";
  if (quiet_choice("##clock", rule, clocks, clock))
    view.choose_clock(static_cast<ClockKind>(clock));
  ImGui::SameLine(0, px(12));
  playhead_controls(context);
}

}  // namespace

const engine::RunLod& gantt::lod_of(Context& context,
                                    const engine::RunRecord& run,
                                    ClockKind clock,
                                    unsigned lanes) {
  const engine::Clock drawn = engine_clock(clock);
  engine::RunLod& lod =
      context.states.get<LodsOfRuns>().lods.try_emplace(run.id(), drawn).first->second;
  if (lod.clock() != drawn) lod = engine::RunLod(drawn);
  lod.update(run, lanes);
  return lod;
}

const engine::RunRecord* gantt::lead(Context& context) {
  const engine::RunRecord* best = nullptr;
  for (const engine::RunRecord* run : context.shown_runs())
    if (!best || context.times(*run).end_compute() > context.times(*best).end_compute()) best = run;
  return best;
}

const Panel kGanttPanel{.id = "gantt",
                        .title = "Timeline",
                        .empty = no_run_yet,
                        .draw = draw_gantt,
                        .head = draw_gantt_head,
                        .help = "The steps of the runs shown, by phase, with counters below.",
                        .marks = kTimelineMarks,
                        .sketch = Sketch::Bars,
                        .names_run = true,
                        .compare_title = "Timelines",
                        .live = Dock::Foot,
                        .compare = Dock::Foot};

}  // namespace ui
