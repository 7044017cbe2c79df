#include "ui/panels/time/gantt.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "ui/shell/legend.h"
#include "ui/panels/time/gantt_picture.h"

namespace ui {
namespace {

using gantt::Picture;
using namespace time_axis;

Picture picture_of(Context& context, float x0, float x1) {
  Picture p;
  p.x0 = x0;
  p.x1 = std::max(x1, x0 + 10);
  p.view.clock = context.view.clock;
  p.view.wall_origin = context.wall_origin();
  p.view.width = p.x1 - p.x0;
  bool first = true;
  for (const engine::RunRecord* run : context.shown_runs()) {
    const RunTimes& times = context.prepared.times(*run);
    // Positions begin behind the prompt.
    if (p.view.clock == ClockKind::Position) {
      const double begin = times.first_position;
      p.begin = first ? begin : std::min(p.begin, begin);
      p.end = std::max(p.end, p.begin + 1);
      first = false;
    }
    if (!times.steps.empty())
      p.end =
          std::max(p.end, end_on(p.view.clock, times, times.steps.size() - 1, p.view.wall_origin));
  }
  set_range(p, context.view);
  return p;
}

void scrub(Context& context, const Picture& p, double t) {
  const engine::RunRecord* run = gantt::lead(context);
  if (!run) return;
  const double compute =
      to_compute(p.view.clock, context.prepared.times(*run), t, p.view.wall_origin);
  context.playhead.go_to(compute, context.end());
}

void draw_tokens(Context& context, const Picture& p, ImVec2 at) {
  std::vector<float> sum(static_cast<std::size_t>(overview_parts(p)));
  for (const engine::RunRecord* run : context.shown_runs()) {
    const auto bars = overview(context.prepared.times(*run), p.view, p.begin, p.end,
                               static_cast<int>(sum.size()));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += bars[i];
  }
  draw_overview(context, context.view, p, at, sum,
                "Tokens committed over the whole run. Drag to move the visible range.");
}

std::string range_words(Context& context, const Picture& p, double a, double b) {
  const engine::RunRecord* run = context.run() ? context.run() : gantt::lead(context);
  if (!run) return length_words(p.view.clock, b - a);
  const StepSums d = sums_between(context.prepared.times(*run), p.view, a, b);
  return fmt::format("{}: {} tokens, {} rejected, waste {}", length_words(p.view.clock, b - a),
                     d.tokens, d.rejected, short_time(d.waste));
}

// Marks stand in the ruler: a flag, numbered where a key jumps to it; the passing one is hollow.
void draw_marks(Context& context, const Picture& p, float top, float bottom) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  int n = 0;
  for (const Bookmark& mark : context.view.bookmarks) {
    const bool numbered = mark.kind == Bookmark::Kind::Numbered;
    n += numbered;
    const engine::RunRecord* run = context.timeline.run(mark.run);
    if (!run) continue;
    const float x = p.x_of(
        on_clock(p.view.clock, context.prepared.times(*run), mark.compute, p.view.wall_origin));
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
      tooltip(fmt::format(
          "{} at {}{}", numbered ? fmt::format("Bookmark {} (Ctrl+{})", n, n) : "Mark",
          short_time(mark.compute), mark.step >= 0 ? fmt::format(", step {}", mark.step) : ""));
  }
}

void draw_cut(const Context& context, const Picture& p, float top, float bottom) {
  for (const engine::RunRecord* run : context.shown_runs()) {
    if (run->over() || context.source.empty() || context.reading >= 0) continue;
    const std::string text = run->steps.empty()
                                 ? "ended before the first step"
                                 : fmt::format("ended mid-step {}", run->steps.back().begun.step);
    ImDrawList* list = ImGui::GetWindowDrawList();
    const float x = std::min(p.x_of(p.end), p.x1 - px(20));
    hatch(list, {x, top}, {p.x1, bottom}, colour(theme().warn, 0.35f), px(8), px(1.5f));
    list->AddText(nullptr, px(13), {std::max(p.x0, x - px(130)), bottom - px(18)},
                  colour(theme().warn), text.c_str());
    return;
  }
}

// What the rows are drawn from: the lanes of a run are taken through its steps together.
void prepare_rows(Context& context, const std::vector<gantt::Row>& rows, Picture& p) {
  std::map<const engine::RunRecord*, unsigned> lanes;
  for (const gantt::Row& row : rows) {
    if (!is_counter(row.key.kind))
      lanes[row.run] |= engine::lane_bit(engine_lane(row.key.kind));
    else if (p.columns.empty())
      p.columns = step_columns(context.prepared.times(*row.run), p.view);
  }
  for (const auto& [run, bits] : lanes) context.prepared.lod(*run, p.view.clock, bits);
}

void draw_gantt(Context& context) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  Picture p = picture_of(context, at.x + px(kLabelWidth), at.x + room.x - px(4));
  const engine::RunRecord* run = gantt::lead(context);
  const double playhead =
      run ? on_clock(p.view.clock, context.prepared.times(*run),
                     std::min(context.playhead.at, context.end()), p.view.wall_origin)
          : p.begin;
  keep_following(context, context.view, p, playhead);
  walk_keys(context, context.view, p);
  const float top = at.y + px(kOverviewHeight + kRulerHeight + 4);
  std::vector<LaneKey> natural;
  const auto rows = gantt::rows_of(context, top, at.y + room.y - px(2) - top, natural);
  context.view.natural_lanes = natural;
  prepare_rows(context, rows, p);
  const float bottom =
      std::max(rows.empty() ? top : rows.back().y + rows.back().height, at.y + room.y - px(2));
  draw_tokens(context, p, {p.x0, at.y});
  draw_ruler(p, {p.x0, at.y + px(kOverviewHeight + 2)}, bottom,
             [&](double t) { scrub(context, p, t); });
  gantt::draw_hidden_chip(context, natural, at);
  gantt::draw_labels(context, rows, natural, at.x);
  handle_mouse(context, context.view, p, top, bottom);
  for (const gantt::Row& row : rows) gantt::draw_row(context, row, p);
  gantt::draw_arrows(context, rows, p);
  draw_range(context.view, p, top, bottom,
             [&](double a, double b) { return range_words(context, p, a, b); });
  draw_marks(context, p, at.y + px(kOverviewHeight + 3), bottom);
  draw_cut(context, p, top, bottom);
  draw_playhead(p, playhead, at.y + px(kOverviewHeight + kRulerHeight - 6), bottom);
}

void draw_gantt_head(Context& context) {
  std::array<const char*, kClocks> clocks;
  for (int i = 0; i < kClocks; ++i) clocks[i] = clock_name(static_cast<ClockKind>(i));
  int clock = static_cast<int>(context.view.clock);
  legend_word("?###marks_gantt", time_line_marks());
  ImGui::SameLine(0, px(12));
  const char* rule = context.compare ? clock_rule(context.view.clock) : "";
  if (quiet_choice("##clock", rule, clocks, clock)) {
    context.view.clock = static_cast<ClockKind>(clock);
    context.view.t0 = context.view.t1 = context.view.range0 = context.view.range1 = 0;
  }
  ImGui::SameLine(0, px(12));
  playhead_controls(context);
}

}  // namespace

const engine::RunRecord* gantt::lead(Context& context) {
  const engine::RunRecord* best = nullptr;
  for (const engine::RunRecord* run : context.shown_runs())
    if (!best ||
        context.prepared.times(*run).end_compute() > context.prepared.times(*best).end_compute())
      best = run;
  return best;
}

const Panel kGanttPanel{"gantt", "Timeline", no_run_yet, draw_gantt, draw_gantt_head};

}  // namespace ui
