#include "ui/panels/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "ui/legend.h"
#include "ui/panels/gantt_picture.h"

namespace ui {
namespace {

using gantt::Picture;

constexpr float kOverviewHeight = 20, kRulerHeight = 18;

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
  ViewState& v = context.view;
  p.view.t0 = v.t0;
  p.view.t1 = v.t1;
  if (!(v.t1 > v.t0)) {
    p.view.t0 = p.begin;
    p.view.t1 = p.end + (p.end - p.begin) * 0.05;
  }
  return p;
}

// The newest time stays in view while following a zoomed range.
void keep_following(Context& context, Picture& p, double playhead) {
  if (!context.playhead.follows() || !(context.view.t1 > context.view.t0)) return;
  const double wide = p.view.t1 - p.view.t0;
  if (playhead > p.view.t1 - 0.05 * wide || playhead < p.view.t0) {
    p.view.t1 = playhead + 0.1 * wide;
    p.view.t0 = p.view.t1 - wide;
    context.view.t0 = p.view.t0;
    context.view.t1 = p.view.t1;
  }
}

void scrub(Context& context, const Picture& p, float x) {
  const engine::RunRecord* run = gantt::lead(context);
  if (!run) return;
  const double compute =
      to_compute(p.view.clock, context.prepared.times(*run), p.t_of(x), p.view.wall_origin);
  context.playhead.go_to(compute, context.end());
}

void draw_overview(Context& context, const Picture& p, ImVec2 at) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float high = px(kOverviewHeight);
  list->AddRectFilled(at, {p.x1, at.y + high}, colour(theme().field), px(2));
  const int n = std::max(8, static_cast<int>((p.x1 - p.x0) / px(7)));
  std::vector<float> sum(n);
  for (const engine::RunRecord* run : context.shown_runs()) {
    const auto bars = overview(context.prepared.times(*run), p.view, p.begin, p.end, n);
    for (int i = 0; i < n; ++i) sum[i] += bars[i];
  }
  const float top = std::max(1e-6f, *std::max_element(sum.begin(), sum.end()));
  const float wide = (p.x1 - p.x0) / n;
  for (int i = 0; i < n; ++i) {
    const float h = std::max(sum[i] > 0 ? px(2) : 0, sum[i] / top * (high - px(4)));
    list->AddRectFilled({p.x0 + i * wide + 1, at.y + high - px(2) - h},
                        {p.x0 + (i + 1) * wide - 1, at.y + high - px(2)}, colour(theme().overview));
  }
  const auto x_all = [&](double t) {
    const double share = (t - p.begin) / (p.end - p.begin);
    return p.x0 + static_cast<float>(std::clamp(share, 0.0, 1.0)) * (p.x1 - p.x0);
  };
  list->AddRect(
      {x_all(p.view.t0), at.y}, {std::max(x_all(p.view.t1), x_all(p.view.t0) + 3), at.y + high},
      colour(theme().monochrome ? theme().bright : look(Mean::Guess).fill), px(2), px(1.5f));
  ImGui::SetCursorScreenPos(at);
  ImGui::InvisibleButton("overview", {std::max(1.0f, p.x1 - at.x), high});
  if (ImGui::IsItemActive()) {
    const double share = (ImGui::GetMousePos().x - p.x0) / (p.x1 - p.x0);
    const double half = (p.view.t1 - p.view.t0) / 2;
    gantt::pan(context, p, p.begin + share * (p.end - p.begin) - half - p.view.t0);
  }
  if (ImGui::IsItemHovered())
    tooltip("Tokens committed over the whole run. Drag to move the visible range.");
}

void draw_ruler(Context& context, const Picture& p, ImVec2 at, float bottom) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (const double t : ruler_ticks(p.view, px(84))) {
    const float x = p.x_of(t);
    if (x < p.x0 - 1) continue;
    list->AddLine({x, at.y + px(2)}, {x, bottom}, colour(theme().line));
    const std::string label = tick_label(p.view, t);
    const float wide = ImGui::CalcTextSize(label.c_str()).x * px(12) / ImGui::GetFontSize();
    if (x + px(4) + wide > p.x1 + px(4)) continue;  // it would be cut
    list->AddText(nullptr, px(12), {x + px(4), at.y + px(2)}, colour(theme().dim), label.c_str());
  }
  ImGui::SetCursorScreenPos({p.x0, at.y});
  ImGui::InvisibleButton("ruler", {p.x1 - p.x0, px(kRulerHeight)});
  if (ImGui::IsItemActive()) scrub(context, p, ImGui::GetMousePos().x);
  if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
}

void draw_playhead(const Picture& p, double at, float top, float bottom) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = p.x_of(at);
  if (x < p.x0 || x > p.x1 + 1) return;
  const ImU32 ink = colour(theme().playhead);
  list->AddLine({x, top + px(5)}, {x, bottom}, ink, px(1.3f));
  list->AddTriangleFilled({x - px(5), top}, {x + px(5), top}, {x, top + px(7)}, ink);
}

void draw_range(Context& context, const Picture& p, float top, float bottom) {
  const double a = std::min(context.view.range0, context.view.range1),
               b = std::max(context.view.range0, context.view.range1);
  if (!(b > a) || p.x_of(b) < p.x0 || p.x_of(a) > p.x1) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({std::max(p.x0, p.x_of(a)), top}, {std::min(p.x1, p.x_of(b)), bottom},
                      colour(theme().bright, 0.07f));
  const engine::RunRecord* run = context.run() ? context.run() : gantt::lead(context);
  if (!run) return;
  const StepSums d = sums_between(context.prepared.times(*run), p.view, a, b);
  const std::string text =
      fmt::format("{}: {} tokens, {} rejected, waste {}", length_words(p.view.clock, b - a),
                  d.tokens, d.rejected, short_time(d.waste));
  const float x = std::clamp(p.x_of(a) + px(6), p.x0, std::max(p.x0, p.x1 - px(300)));
  list->AddText(nullptr, px(13), {x, bottom - px(20)}, colour(theme().bright), text.c_str());
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

void draw(Context& context) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  Picture p = picture_of(context, at.x + px(gantt::kLabelWidth), at.x + room.x - px(4));
  const engine::RunRecord* run = gantt::lead(context);
  const double playhead =
      run ? on_clock(p.view.clock, context.prepared.times(*run),
                     std::min(context.playhead.at, context.end()), p.view.wall_origin)
          : p.begin;
  keep_following(context, p, playhead);
  gantt::walk_keys(context, p);
  const float top = at.y + px(kOverviewHeight + kRulerHeight + 4);
  std::vector<LaneKey> natural;
  const auto rows = gantt::rows_of(context, top, at.y + room.y - px(2) - top, natural);
  context.view.natural_lanes = natural;
  prepare_rows(context, rows, p);
  const float bottom =
      std::max(rows.empty() ? top : rows.back().y + rows.back().height, at.y + room.y - px(2));
  draw_overview(context, p, {p.x0, at.y});
  draw_ruler(context, p, {p.x0, at.y + px(kOverviewHeight + 2)}, bottom);
  gantt::draw_hidden_chip(context, natural, at);
  gantt::draw_labels(context, rows, natural, at.x);
  gantt::handle_mouse(context, p, top, bottom);
  for (const gantt::Row& row : rows) gantt::draw_row(context, row, p);
  gantt::draw_arrows(context, rows, p);
  draw_range(context, p, top, bottom);
  draw_marks(context, p, at.y + px(kOverviewHeight + 3), bottom);
  draw_cut(context, p, top, bottom);
  draw_playhead(p, playhead, at.y + px(kOverviewHeight + kRulerHeight - 6), bottom);
}

bool icon(const char* label, const char* help) {
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, colour(theme().dim));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(5), px(3)));
  const bool pressed = ImGui::Button(label);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(2);
  if (ImGui::IsItemHovered()) tooltip(help);
  ImGui::SameLine(0, px(2));
  return pressed;
}

void draw_head(Context& context) {
  Playhead& head = context.playhead;
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
  const double end = context.end();
  if (icon("|<##start", "to the start (Home)")) head.go_to(0, end);
  if (icon(head.mode == Playhead::Mode::Playing ? "pause##play" : "play##play",
           "play or pause the view (Space); the engine goes on"))
    head.play_or_pause(end);
  if (icon(">|##end", "to the end, and follow (End)")) head.mode = Playhead::Mode::Follow;
  static constexpr std::array<double, 9> kSpeeds{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20};
  static constexpr std::array<const char*, 9> kNames{"0.05x", "0.1x", "0.25x", "0.5x", "1x",
                                                     "2x",    "5x",   "10x",   "20x"};
  int speed = static_cast<int>(std::lower_bound(kSpeeds.begin(), kSpeeds.end(), head.speed) -
                               kSpeeds.begin());
  speed = std::clamp(speed, 0, 8);
  if (quiet_choice("##speed", "", kNames, speed)) head.speed = kSpeeds[speed];
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  if (head.follows()) {
    words("follow", theme().bright);
  } else if (link(fmt::format("{} behind - End to follow###follow", short_time(end - head.at))
                      .c_str())) {
    head.mode = Playhead::Mode::Follow;
  }
}

}  // namespace

const Panel kGanttPanel{"gantt", "Timeline", no_run_yet, draw, draw_head};

}  // namespace ui
