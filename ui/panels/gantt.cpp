// The time line: overview, ruler, lanes, playhead. Work is solid, waste is hatched in the slice it
// belongs to, a slice says what it brought.
#include "ui/panels/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ui/draw.h"
#include "ui/prepare/gantt.h"

namespace ui {
namespace {

struct Lane {
  const engine::RunRecord* run;
  LaneKind kind;
  std::string label;
};

struct Picture {
  ClockView view;
  double end = 1;  // on the clock
  float x0 = 0, x1 = 0;

  float x_of(double t) const {
    return x0 + static_cast<float>((t - view.t0) / (view.t1 - view.t0)) * (x1 - x0);
  }
  double t_of(float x) const { return view.t0 + (x - x0) / (x1 - x0) * (view.t1 - view.t0); }
};

constexpr float kLaneHeight = 27, kOverviewHeight = 20, kRulerHeight = 18;

std::vector<Lane> lanes_of(Context& context) {
  std::vector<Lane> lanes;
  for (const engine::RunRecord* run : context.shown_runs()) {
    const StepSums& total = context.prepared.times(*run).total;
    const std::string letter =
        context.compare ? fmt::format("{} ", static_cast<char>('A' + run->started.lane % 26)) : "";
    const auto add = [&](LaneKind kind) { lanes.push_back({run, kind, letter + lane_name(kind)}); };
    add(LaneKind::Target);
    if (total.pool_hits > 0 || total.pool_added > 0) add(LaneKind::PoolHit);
    if (context.compare) continue;
    add(LaneKind::Propose);
    add(LaneKind::Verify);
    add(LaneKind::Commit);
    if (total.pool_added > 0) add(LaneKind::PoolInsert);
  }
  return lanes;
}

Picture picture_of(Context& context, float x0, float x1) {
  Picture p;
  p.x0 = x0;
  p.x1 = std::max(x1, x0 + 10);
  p.view.clock = context.view.clock;
  p.view.wall_origin = context.wall_origin();
  p.view.width = p.x1 - p.x0;
  p.end = 1;
  for (const engine::RunRecord* run : context.shown_runs()) {
    const RunTimes& times = context.prepared.times(*run);
    if (!times.steps.empty())
      p.end =
          std::max(p.end, end_on(p.view.clock, times, times.steps.size() - 1, p.view.wall_origin));
  }
  ViewState& v = context.view;
  p.view.t0 = v.t0;
  p.view.t1 = v.t1;
  if (!(v.t1 > v.t0)) {
    p.view.t0 = 0;
    p.view.t1 = p.end * 1.05;
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

void zoom(Context& context, const Picture& p, double at, double factor) {
  const double least = context.view.clock == ClockKind::Step ? 2 : 1000;
  const double wide = std::clamp((p.view.t1 - p.view.t0) * factor, least, p.end * 4 + least);
  const double share = (at - p.view.t0) / (p.view.t1 - p.view.t0);
  context.view.t0 = at - share * wide;
  context.view.t1 = context.view.t0 + wide;
}

void pan(Context& context, const Picture& p, double by) {
  context.view.t0 = p.view.t0 + by;
  context.view.t1 = p.view.t1 + by;
  if (context.playhead.follows()) context.playhead.mode = Playhead::Mode::Paused;
}

const engine::RunRecord* lead(Context& context) {
  // The longest run leads the playhead's place on the wall and step clocks.
  const engine::RunRecord* best = nullptr;
  for (const engine::RunRecord* run : context.shown_runs())
    if (!best ||
        context.prepared.times(*run).end_compute() > context.prepared.times(*best).end_compute())
      best = run;
  return best;
}

void scrub(Context& context, const Picture& p, float x) {
  const engine::RunRecord* run = lead(context);
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
    const auto bars = overview(context.prepared.times(*run), p.view, p.end, n);
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
    return p.x0 + static_cast<float>(std::clamp(t / p.end, 0.0, 1.0)) * (p.x1 - p.x0);
  };
  list->AddRect(
      {x_all(p.view.t0), at.y}, {std::max(x_all(p.view.t1), x_all(p.view.t0) + 3), at.y + high},
      colour(theme().monochrome ? theme().bright : look(Mean::Guess).fill), px(2), px(1.5f));
  ImGui::SetCursorScreenPos(at);
  ImGui::InvisibleButton("overview", {std::max(1.0f, p.x1 - at.x), high});
  if (ImGui::IsItemActive()) {
    const double t = (ImGui::GetMousePos().x - p.x0) / (p.x1 - p.x0) * p.end;
    const double half = (p.view.t1 - p.view.t0) / 2;
    pan(context, p, t - half - p.view.t0);
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
    list->AddText(nullptr, px(12), {x + px(4), at.y + px(2)}, colour(theme().dim),
                  tick_label(p.view, t).c_str());
  }
  ImGui::SetCursorScreenPos({p.x0, at.y});
  ImGui::InvisibleButton("ruler", {p.x1 - p.x0, px(kRulerHeight)});
  if (ImGui::IsItemActive()) scrub(context, p, ImGui::GetMousePos().x);
  if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
}

Rgb lane_colour(LaneKind kind) {
  if (kind == LaneKind::Target) return theme().work;
  if (kind == LaneKind::Propose) return fill_of(Mean::Draft);
  if (kind == LaneKind::PoolHit || kind == LaneKind::PoolInsert) return fill_of(Mean::Pool);
  return fill_of(Mean::Accepted);
}

std::string block_words(const Context& context,
                        const Lane& lane,
                        const RunTimes& times,
                        const LaneBlock& b) {
  const StepSums &from = times.sums(b.first), &to = times.sums(b.last + 1);
  if (b.is_bucket)
    return fmt::format("{}: {} steps, {} tokens, {} busy, {} rejections\nzoom in to see them",
                       lane.label, b.last - b.first + 1, b.n_tokens, percent(b.busy), b.n_rejected);
  const StepSpan& s = times.steps[b.first];
  const double own = s.compute1 - s.compute0;
  std::string text = fmt::format("{} \xC2\xB7 step {} \xC2\xB7 {} of {}", lane.label, s.step,
                                 short_time(lane.kind == LaneKind::Target    ? own * s.forward
                                            : lane.kind == LaneKind::Propose ? own * s.propose
                                            : lane.kind == LaneKind::Verify  ? own * s.verify
                                                                             : own * s.commit),
                                 short_time(own));
  text += fmt::format("\n{} rows, {} proposed, {} accepted, {} rejected", s.n_rows,
                      to.proposed - from.proposed, to.accepted - from.accepted,
                      to.rejected - from.rejected);
  text += fmt::format("\n+{} tokens", s.n_tokens);
  if (s.wasted > 0) text += fmt::format(" \xC2\xB7 {} of the rows thrown away", percent(s.wasted));
  (void)context;
  return text;
}

void draw_tick(ImDrawList* list, const Picture& p, const LaneBlock& b, float y, Rgb rgb) {
  const float x = p.x_of(b.t0);
  list->AddRectFilled({x - px(1), y + px(4)},
                      {std::max(x + px(2), b.is_bucket ? p.x_of(b.t1) : 0), y + px(20)},
                      colour(rgb), px(1));
}

void draw_slice(const Lane& lane, const Picture& p, const LaneBlock& b, ImVec2 min, ImVec2 max) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float wide = max.x - min.x, rounding = wide > px(6) ? px(2) : 0;
  const float busy_top = b.is_bucket ? max.y - (max.y - min.y) * std::max(0.15f, b.busy) : min.y;
  list->AddRectFilled({min.x, busy_top}, max, colour(lane_colour(lane.kind)), rounding);
  if (b.wasted > 0 && wide >= px(24)) {
    // At most half of the slice: the label keeps its room, and its share is in the tooltip.
    const float from = max.x - wide * b.wasted * 0.5f;
    hatch(list, {from, busy_top}, max, colour(fill_of(Mean::Rejected)), px(6), px(2.2f));
  } else if (b.wasted > 0 && wide >= px(4)) {
    // Too narrow for a hatch that reads as one: a foot as long as the share.
    list->AddRectFilled({max.x - wide * b.wasted, max.y - px(4)}, max,
                        colour(fill_of(Mean::Rejected)));
  }
  if (lane.kind == LaneKind::Target && b.n_rejected > 0 && (b.is_bucket || wide < px(4)))
    list->AddRectFilled({min.x, min.y - px(2)}, {min.x + px(1.5f), min.y + px(1)},
                        colour(fill_of(Mean::Rejected)));
  if (lane.kind != LaneKind::Target || wide < px(24) || b.is_bucket) return;
  list->PushClipRect(min, max, true);
  list->AddText(fonts().mono, px(13), {min.x + px(5), min.y + px(2.5f)}, IM_COL32_WHITE,
                fmt::format("+{}", b.n_tokens).c_str());
  list->PopClipRect();
  (void)p;
}

void draw_lane(Context& context, const Lane& lane, const Picture& p, float y) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const RunTimes& times = context.prepared.times(*lane.run);
  const bool marks = lane.kind == LaneKind::PoolHit || lane.kind == LaneKind::PoolInsert;
  const bool thin = lane.kind != LaneKind::Target && !marks;
  const float mouse = ImGui::GetMousePos().x;
  const bool hovered = ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
                       ImGui::IsMouseHoveringRect({p.x0, y}, {p.x1, y + px(kLaneHeight)});
  list->PushClipRect({p.x0, y - px(3)}, {p.x1, y + px(kLaneHeight)}, true);
  for (const LaneBlock& b : blocks_in_view(times, lane.kind, p.view)) {
    if (marks) {
      draw_tick(list, p, b, y, lane_colour(lane.kind));
    } else {
      ImVec2 min{p.x_of(b.t0), y + px(thin ? 6 : 3)}, max{p.x_of(b.t1), y + px(thin ? 19 : 22)};
      max.x = std::max(min.x + 1, max.x - (max.x - min.x > px(6) ? px(2) : 0));
      draw_slice(lane, p, b, min, max);
      bool lit = false;
      const Place& shown = context.selection.shown();
      if (shown.run == lane.run->id() && shown.step >= 0)
        lit = times.steps[b.first].step <= shown.step && shown.step <= times.steps[b.last].step;
      if (lit)
        list->AddRect({min.x - 1, min.y - 1}, {max.x + 1, max.y + 1}, colour(theme().light_up),
                      px(2), px(1.5f));
    }
    const float left = p.x_of(b.t0) - (marks ? px(3) : 0),
                right = std::max(left + px(6), p.x_of(b.t1));
    if (!hovered || mouse < left || mouse >= right) continue;
    context.selection.hover({lane.run->id(), times.steps[b.first].step, -1, -1});
    tooltip(block_words(context, lane, times, b));
    if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
        ImGui::GetIO().MouseDragMaxDistanceSqr[0] < 16) {
      context.selection.run = lane.run->id();
      context.view.lane = lane.kind;
      context.selection.click({lane.run->id(), times.steps[b.first].step, -1, -1});
    }
  }
  if (!times.steps.empty() && lane.kind == LaneKind::Target && lane.run->finished) {
    const float x = p.x_of(end_on(p.view.clock, times, times.steps.size() - 1, p.view.wall_origin));
    list->AddLine({x, y}, {x, y + px(kLaneHeight - 3)}, colour(theme().text), px(1.5f));
    list->AddText(nullptr, px(12), {x + px(4), y + px(6)}, colour(theme().dim), "done");
  }
  list->PopClipRect();
}

void draw_playhead(Context& context, const Picture& p, double at, float top, float bottom) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = p.x_of(at);
  if (x < p.x0 || x > p.x1 + 1) return;
  const ImU32 ink = colour(theme().playhead);
  list->AddLine({x, top + px(5)}, {x, bottom}, ink, px(1.3f));
  list->AddTriangleFilled({x - px(5), top}, {x + px(5), top}, {x, top + px(7)}, ink);
  (void)context;
}

void handle_mouse(Context& context, const Picture& p, ImVec2 at, float bottom) {
  ImGui::SetCursorScreenPos({p.x0, at.y});
  ImGui::InvisibleButton("lanes", {p.x1 - p.x0, std::max(px(10), bottom - at.y)},
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight);
  const ImGuiIO& io = ImGui::GetIO();
  const double a_pixel = (p.view.t1 - p.view.t0) / p.view.width;
  if (ImGui::IsItemHovered() && io.MouseWheel != 0) {
    const double strength = io.KeyCtrl ? 0.05 : io.KeyShift ? 0.5 : 0.2;
    zoom(context, p, p.t_of(io.MousePos.x), std::exp(-io.MouseWheel * strength));
  }
  if (ImGui::IsItemHovered() && io.MouseWheelH != 0)
    pan(context, p, -io.MouseWheelH * 60 * a_pixel);
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Right, 2))
    pan(context, p, -io.MouseDelta.x * a_pixel);
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 4)) {
    context.view.range0 = p.t_of(io.MouseClickedPos[0].x);
    context.view.range1 = p.t_of(io.MousePos.x);
  }
  if (ImGui::IsItemDeactivated() && io.MouseDragMaxDistanceSqr[0] < 16)
    context.view.range0 = context.view.range1 = 0;
}

void draw_range(Context& context, const Picture& p, float top, float bottom) {
  const double a = std::min(context.view.range0, context.view.range1),
               b = std::max(context.view.range0, context.view.range1);
  if (!(b > a)) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({std::max(p.x0, p.x_of(a)), top}, {std::min(p.x1, p.x_of(b)), bottom},
                      colour(theme().bright, 0.07f));
  const engine::RunRecord* run = context.run() ? context.run() : lead(context);
  if (!run) return;
  const StepSums d = sums_between(context.prepared.times(*run), p.view, a, b);
  const std::string text = fmt::format(
      "{}: {} tokens, {} rejected, waste {}",
      p.view.clock == ClockKind::Step ? fmt::format("{:.0f} steps", b - a) : short_time(b - a),
      d.tokens, d.rejected, short_time(d.waste));
  const float x = std::clamp(p.x_of(a) + px(6), p.x0, p.x1 - px(200));
  list->AddText(nullptr, px(13), {x, bottom - px(20)}, colour(theme().bright), text.c_str());
}

void walk_keys(Context& context, const Picture& p) {
  if (ImGui::GetIO().WantTextInput || ImGui::GetIO().KeyCtrl || ImGui::GetIO().KeyAlt) return;
  const double dt = ImGui::GetIO().DeltaTime * (ImGui::GetIO().KeyShift ? 3 : 1);
  const double middle = (p.view.t0 + p.view.t1) / 2, wide = p.view.t1 - p.view.t0;
  if (ImGui::IsKeyDown(ImGuiKey_W)) zoom(context, p, middle, std::exp(-2 * dt));
  if (ImGui::IsKeyDown(ImGuiKey_S)) zoom(context, p, middle, std::exp(2 * dt));
  if (ImGui::IsKeyDown(ImGuiKey_A)) pan(context, p, -wide * dt);
  if (ImGui::IsKeyDown(ImGuiKey_D)) pan(context, p, wide * dt);
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

void draw(Context& context) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  Picture p = picture_of(context, at.x + px(86), at.x + room.x - px(4));
  const engine::RunRecord* run = lead(context);
  const double playhead =
      run ? on_clock(p.view.clock, context.prepared.times(*run),
                     std::min(context.playhead.at, context.end()), p.view.wall_origin)
          : 0;
  keep_following(context, p, playhead);
  walk_keys(context, p);
  const auto lanes = lanes_of(context);
  const float lanes_top = at.y + px(kOverviewHeight + kRulerHeight + 4);
  const float bottom = std::max(lanes_top + lanes.size() * px(kLaneHeight), at.y + room.y - px(2));
  draw_overview(context, p, {p.x0, at.y});
  draw_ruler(context, p, {p.x0, at.y + px(kOverviewHeight + 2)}, bottom);
  handle_mouse(context, p, {p.x0, lanes_top}, bottom);
  float y = lanes_top;
  for (const Lane& lane : lanes) {
    ImGui::GetWindowDrawList()->AddText(nullptr, px(14), {at.x, y + px(5)}, colour(theme().text),
                                        lane.label.c_str());
    draw_lane(context, lane, p, y);
    y += px(kLaneHeight);
  }
  draw_range(context, p, lanes_top, bottom);
  draw_marks(context, p, at.y + px(kOverviewHeight + 3), bottom);
  draw_cut(context, p, lanes_top, bottom);
  draw_playhead(context, p, playhead, at.y + px(kOverviewHeight + kRulerHeight - 6), bottom);
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
  static constexpr std::array<const char*, 3> kClocks{"wall ms", "compute ms", "steps"};
  int clock = static_cast<int>(context.view.clock);
  if (quiet_choice("##clock", context.compare && clock == 1 ? "equal " : "", kClocks, clock)) {
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
