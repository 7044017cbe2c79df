// Moves the view by keys: by steps, iterations, slices of a lane, steps of a token, marks, panels.
#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "ui/panels/time/schedule.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/time/walk.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"

namespace ui {
namespace {

// Returns true for a notable step: with a rejection, a pool hit, or at least three tokens.
bool notable(const StepSpan& s) {
  return s.n_rejected > 0 || s.has_pool_hit || s.n_tokens >= 3;
}

const char* kNoRun = "There is no run yet.";

}  // namespace

// Moves the playhead and the selection to the next step in a direction.
void Shell::step_view(Context& context, int direction, bool only_notable) {
  const engine::RunRecord* run = context.run();
  if (!run) return;
  const RunTimes& times = context.times(*run);
  // If several steps are selected, the keys for notable steps move between the selected ones.
  const Chosen& chosen = selection_.chosen();
  const bool among_chosen =
      only_notable && chosen.n_steps() > 1 && selection_.locked.run == run->id();
  const auto wanted = [&](const StepSpan& s) {
    return among_chosen ? chosen.has_step(run->id(), s.step, s.step) : notable(s);
  };
  const auto size = static_cast<long>(times.steps.size());
  const long from = among_chosen && selection_.locked.step >= 0
                        ? static_cast<long>(times.index_of(selection_.locked.step)) + 1
                        : static_cast<long>(context.n_steps(*run));
  long n = from + direction;
  while (only_notable && n >= 1 && n <= size && !wanted(times.steps[n - 1])) n += direction;
  if (among_chosen && (n < 1 || n > size)) return say("There is no further step in the selection.");
  n = std::clamp<long>(n, 0, size);
  playhead_.go_to(n == 0 ? 0 : times.steps[n - 1].compute1, context.end());
  if (n == 0) return;
  const Place place{run->id(), times.steps[n - 1].step, -1, -1};
  if (among_chosen)
    selection_.move_to(place);
  else
    selection_.locked = place;
}

void Shell::walk_iterations(Context& context, int direction) {
  const engine::RunRecord* run = context.run();
  if (!run) return say(kNoRun);
  const RunTimes& times = context.times(*run);
  const auto n = next_boundary(*run, context.n_steps(*run), direction);
  if (!n) {
    const bool refines = std::any_of(run->steps.begin(), run->steps.end(),
                                     [](const auto& step) { return !step.blocks.empty(); });
    if (!refines)
      say(method_of(context, *run) + " has no iterations. Right and Left move by steps.");
    return;
  }
  const std::size_t at = std::min(*n, times.steps.size());
  playhead_.go_to(at == 0 ? 0 : times.steps[at - 1].compute1, context.end());
  if (at > 0) selection_.locked = {run->id(), times.steps[at - 1].step, -1, -1};
}

bool Shell::place_of(
    Context& context, engine::RunId id, engine::StepId step, double& from, double& to) {
  const engine::RunRecord* run = context.timeline.run(id);
  if (!run || step < 0) return false;
  const RunTimes& times = context.times(*run);
  const std::size_t i = times.index_of(step);
  if (i >= times.steps.size()) return false;
  const double origin = context.wall_origin();
  const ClockKind clock = state<TimelineView>().clock;
  from = begin_on(clock, times, i, origin);
  to = end_on(clock, times, i, origin);
  return true;
}

// Pans by the smallest distance that makes [from, to] visible.
void Shell::bring_into_view(Context& context, double from, double to) {
  TimeRange& range = state<TimelineView>().range;
  if (!range.zoomed() || (from >= range.t0 && to <= range.t1)) return;
  const double wide = range.t1 - range.t0, margin = 0.1 * wide;
  range.t0 = from < range.t0 ? from - margin : to + margin - wide;
  range.t1 = range.t0 + wide;
  if (playhead_.follows()) playhead_.go_to(context.end(), context.end());
}

void Shell::walk_lane(Context& context, int direction) {
  const Place& at = selection_.locked;
  const engine::RunRecord* run = at.valid() ? context.timeline.run(at.run) : context.run();
  if (!run) return say(kNoRun);
  const RunTimes& times = context.times(*run);
  if (times.steps.empty()) return;
  const std::size_t from =
      at.valid() ? times.index_of(at.step) : context.n_steps(*run) - (direction > 0 ? 1 : 0);
  const LaneKind lane = state<TimelineView>().lane;
  const auto next = next_in_lane(times, lane, from, direction);
  if (!next) return say(fmt::format("There is no further slice in the lane {}.", lane_name(lane)));
  selection_.run = run->id();
  selection_.locked = {run->id(), times.steps[*next].step, -1, -1};
  double t0 = 0, t1 = 0;
  if (place_of(context, run->id(), times.steps[*next].step, t0, t1))
    bring_into_view(context, t0, t1);
}

void Shell::walk_flow(Context& context, int direction) {
  const Place at = selection_.shown();
  const engine::RunRecord* run = context.timeline.run(at.run);
  if (!run || at.position < 0)
    return say("Select a token first; then [ and ] move along its steps.");
  const std::vector<FlowStop> flow = flow_of(*run, at.position);
  if (flow.empty()) return say("No step proposed this position.");
  const auto here = std::find_if(flow.begin(), flow.end(),
                                 [&](const FlowStop& stop) { return stop.step >= at.step; });
  auto i = here - flow.begin() +
           (direction > 0 && here != flow.end() && here->step > at.step ? 0 : direction);
  i = std::clamp<std::ptrdiff_t>(i, 0, static_cast<std::ptrdiff_t>(flow.size()) - 1);
  const FlowStop& stop = flow[static_cast<std::size_t>(i)];
  selection_.run = run->id();
  selection_.locked = {run->id(), stop.step, at.position, -1};
  const RunTimes& times = context.times(*run);
  const std::size_t n = times.index_of(stop.step);
  if (n < times.steps.size()) playhead_.go_to(times.steps[n].compute1, context.end());
  double t0 = 0, t1 = 0;
  if (place_of(context, run->id(), stop.step, t0, t1)) bring_into_view(context, t0, t1);
  static constexpr const char* kDid[] = {"entered the pool", "was proposed", "was refined",
                                         "was committed"};
  say(fmt::format("Position {} {} at step {} ({} of {}).", at.position,
                  kDid[static_cast<int>(stop.kind)], stop.step, i + 1, flow.size()));
}

// Returns the length of the time axis when everything is visible.
double Shell::whole_axis(Context& context) {
  const ClockKind clock = state<TimelineView>().clock;
  const double origin = context.wall_origin();
  double from = 0, to = 0;
  bool first = true;
  for (const engine::RunRecord* run : context.shown_runs()) {
    const RunTimes& times = context.times(*run);
    if (times.steps.empty()) continue;
    const double begin = begin_on(clock, times, 0, origin);
    from = first ? begin : std::min(from, begin);
    to = std::max(to, end_on(clock, times, times.steps.size() - 1, origin));
    first = false;
  }
  return to - from;
}

// Centres the measured range, else the selected place, on the timeline. Zooms to it at the second call in a row.
void Shell::fit_selection(Context& context) {
  double from = 0, to = 0;
  const Place place = selection_.shown();
  zoom_schedule_to(context, place);
  TimeRange& shown = state<TimelineView>().range;
  const bool range = shown.range1 != shown.range0;
  if (range)
    std::tie(from, to) = std::minmax(shown.range0, shown.range1);
  else if (!place_of(context, place.run, place.step, from, to))
    return;
  if (centred_ && fitted_ == place) {
    const double margin = range ? 0 : 2 * (to - from);
    shown.t0 = from - margin;
    shown.t1 = to + margin;
  } else {
    const double wide = shown.zoomed() ? shown.t1 - shown.t0 : whole_axis(context);
    shown.t0 = (from + to - wide) / 2;
    shown.t1 = shown.t0 + wide;
  }
  fitted_ = place;
  centred_ = true;
}

// Makes the time from the first to the last selected step the measured range.
void Shell::range_from_selection(Context& context) {
  const Place& place = selection_.shown();
  double from = 0, to = 0;
  if (!place_of(context, place.run, place.step, from, to))
    return say("Select a step first; then R makes it the measured range.");
  for (const Place& other : selection_.chosen().places()) {
    double begin = 0, end = 0;
    if (other.run != place.run || !place_of(context, other.run, other.step, begin, end)) continue;
    from = std::min(from, begin);
    to = std::max(to, end);
  }
  TimeRange& range = state<TimelineView>().range;
  range.range0 = from;
  range.range1 = to;
}

void Shell::mark(Context& context, Bookmark::Kind kind) {
  const engine::RunRecord* run = context.run();
  if (!run) return say(kNoRun);
  Bookmark made{run->id(), std::min(playhead_.at, context.end()), -1, kind};
  if (const Place& place = selection_.shown(); place.valid()) {
    const engine::RunRecord* of = context.timeline.run(place.run);
    const RunTimes* times = of ? &context.times(*of) : nullptr;
    const std::size_t i = times ? times->index_of(place.step) : 0;
    if (times && i < times->steps.size())
      made = {place.run, times->steps[i].compute1, place.step, kind};
  }
  if (kind == Bookmark::Kind::Passing)
    std::erase_if(notes_.bookmarks,
                  [](const Bookmark& b) { return b.kind == Bookmark::Kind::Passing; });
  notes_.bookmarks.push_back(made);
  if (kind != Bookmark::Kind::Numbered) return;
  const auto n =
      std::count_if(notes_.bookmarks.begin(), notes_.bookmarks.end(),
                    [](const Bookmark& b) { return b.kind == Bookmark::Kind::Numbered; });
  say(n <= 9 ? fmt::format("Bookmark {}: Ctrl+{} returns here.", n, n)
             : fmt::format("Bookmark {}. Keys reach the first nine only.", n));
}

void Shell::keep_mark() {
  for (Bookmark& b : notes_.bookmarks) {
    if (b.kind != Bookmark::Kind::Passing) continue;
    b.kind = Bookmark::Kind::Kept;
    return;
  }
  say("There is no mark to keep. M sets one.");
}

void Shell::jump(Context& context, int number) {
  int n = 0;
  for (const Bookmark& b : notes_.bookmarks) {
    if (b.kind != Bookmark::Kind::Numbered || n++ != number) continue;
    if (!context.timeline.run(b.run))
      return say(reads() ? "The run of this bookmark has not been read yet."
                         : "The run of this bookmark is not in this recording.");
    selection_.run = b.run;
    double t0 = 0, t1 = 0;
    const bool has_step = place_of(context, b.run, b.step, t0, t1);
    selection_.locked = has_step ? Place{b.run, b.step, -1, -1} : Place{};
    playhead_.go_to(b.compute, context.end());
    if (has_step) bring_into_view(context, t0, t1);
    return;
  }
  say(fmt::format("There is no bookmark {} yet. Ctrl+B sets one.", number + 1));
}

void Shell::key_at(char us_letter, bool down) {
  DriveKeys& keys = drive_;
  switch (us_letter) {
    case 'W':
      keys.in = down;
      break;
    case 'S':
      keys.out = down;
      break;
    case 'A':
      keys.left = down;
      break;
    case 'D':
      keys.right = down;
      break;
    default:
      break;
  }
}

// Moves the keyboard to the next panel of the screen and brings its tab to the front.
void Shell::walk_panels(int direction) {
  std::vector<const char*> ids;
  std::ranges::copy_if(panels_of(screen_), std::back_inserter(ids),
                       [this](const char* id) { return offers(id); });
  if (ids.empty()) return;
  const ImGuiWindow* focused = ImGui::GetCurrentContext()->NavWindow;
  const auto n = static_cast<int>(ids.size());
  int at = direction > 0 ? -1 : 0;
  for (int i = 0; i < n; ++i) {
    const std::string name = window_name(screen_, ids[i], "");
    const ImGuiWindow* window = ImGui::FindWindowByName(name.c_str());
    if (window && focused && focused->RootWindow == window) at = i;
  }
  at = ((at + direction) % n + n) % n;
  ImGui::SetWindowFocus(window_name(screen_, ids[at], "").c_str());
  panel_ring_ = true;
}

}  // namespace ui
