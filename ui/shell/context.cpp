#include "ui/shell/context.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <imgui.h>

#include "engine/event/timeline/timeline.h"
#include "ui/files/notes.h"
#include "ui/files/settings.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/figure.h"
#include "ui/prepare/playhead.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/run_times.h"

namespace ui {

namespace {

Modifiers held_keys() {
  const ImGuiIO& io = ImGui::GetIO();
  return {.ctrl = io.KeyCtrl, .shift = io.KeyShift};
}

// The step times of all runs of the document.
struct TimesOfRuns : PanelState {
  std::map<engine::RunId, RunTimes> times;
  void document_changed() override { times.clear(); }
};

}  // namespace

bool Context::marks() const {
  return settings.marks;
}

const engine::RunRecord* Context::run() const {
  return timeline.run(selection.run);
}

std::vector<const engine::RunRecord*> Context::shown_runs() const {
  std::vector<const engine::RunRecord*> runs;
  if (compare && !selection.compared.empty()) {
    for (const engine::RunId id : selection.compared)
      if (const engine::RunRecord* one = timeline.run(id)) runs.push_back(one);
    return runs;
  }
  if (compare && selection.race != 0) return timeline.race(selection.race);
  if (const engine::RunRecord* one = run()) runs.push_back(one);
  return runs;
}

char Context::letter_of(const engine::RunRecord& run) const {
  if (!compare || selection.compared.empty()) return static_cast<char>('A' + run.started.lane % 26);
  const auto at = std::find(selection.compared.begin(), selection.compared.end(), run.id());
  return static_cast<char>('A' + (at - selection.compared.begin()) % 26);
}

const std::string* Context::given_name(const engine::RunRecord& run) const {
  const auto given = notes.run_names.find(run.id());
  return given != notes.run_names.end() ? &given->second : nullptr;
}

const std::string* Context::note_of(const engine::RunRecord& run) const {
  const auto note = notes.run_notes.find(run.id());
  return note != notes.run_notes.end() ? &note->second : nullptr;
}

std::string Context::name_of(const engine::RunRecord& run) const {
  const std::string* given = given_name(run);
  return given ? *given : ui::name_of(run);
}

const RunTimes& Context::times(const engine::RunRecord& run) const {
  RunTimes& t = states.get<TimesOfRuns>().times[run.id()];
  extend(t, run);
  return t;
}

void Context::click(const Place& place, std::span<const Place> in_order) {
  const Modifiers held = held_keys();
  const bool twice = ImGui::GetIO().MouseClickedLastCount[ImGuiMouseButton_Left] >= 2;
  if (twice && !held.ctrl && !held.shift) {
    selection.run = place.run;
    selection.choose({}, place);  // the first click may have removed the lock
    requests.panel = "inspector";
  } else {
    selection.click(place, held, in_order);
  }
}

void Context::show_step(const engine::RunRecord& run, engine::StepId step) {
  const RunTimes& t = times(run);
  const std::size_t i = t.index_of(step);
  if (i < t.steps.size()) playhead.go_to(t.steps[i].compute1, end());
}

void Context::choose_steps(const engine::RunRecord& run,
                           const std::vector<engine::StepId>& steps,
                           const std::string& why) {
  if (steps.empty()) {
    requests.say = "No step of this run " + why + ".";
    return;
  }
  std::vector<Place> places;
  places.reserve(steps.size());
  for (const engine::StepId step : steps) places.push_back({run.id(), step, -1, -1});
  selection.click_several(places, why, held_keys());
  const std::size_t n = selection.chosen().n_steps();
  requests.say = n == 1 ? fmt::format("Step {} {}.", steps.front(), why)
                        : fmt::format(
                              "{} steps {}: Ctrl+Left and Ctrl+Right move between them, Esc "
                              "deselects.",
                              with_commas(static_cast<std::int64_t>(n)), selection.chosen().why());
}

void Context::show_whole_timeline() {
  states.get<TimelineView>().range.show_all();
}

std::size_t Context::n_steps(const engine::RunRecord& run) const {
  const RunTimes& t = times(run);
  return playhead.follows() ? t.steps.size() : steps_shown(t, playhead.at);
}

bool Context::live(const engine::RunRecord& run) const {
  return playhead.follows() && !run.over();
}

double Context::wall_origin() const {
  double origin = 0;
  bool first = true;
  for (const engine::RunRecord* run : shown_runs()) {
    const double t = static_cast<double>(run->started.t);
    origin = first ? t : std::min(origin, t);
    first = false;
  }
  return origin;
}

double Context::end() const {
  double end = 0;
  for (const engine::RunRecord* r : shown_runs()) end = std::max(end, times(*r).end_compute());
  return end;
}

}  // namespace ui
