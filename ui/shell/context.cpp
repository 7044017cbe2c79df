#include "ui/shell/context.h"

#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/prepare/status.h"

namespace ui {

namespace {

Modifiers held_keys() {
  const ImGuiIO& io = ImGui::GetIO();
  return {.ctrl = io.KeyCtrl, .shift = io.KeyShift};
}

}  // namespace

const RunTimes& Prepared::times(const engine::RunRecord& run) {
  RunTimes& t = times_[run.id()];
  extend(t, run);
  return t;
}

const engine::RunLod& Prepared::lod(const engine::RunRecord& run, ClockKind clock, unsigned lanes) {
  const engine::Clock drawn = engine_clock(clock);
  engine::RunLod& lod = lods_.try_emplace(run.id(), drawn).first->second;
  if (lod.clock() != drawn) lod = engine::RunLod(drawn);
  lod.update(run, lanes);
  return lod;
}

const RunCounters& Prepared::counters(const engine::RunRecord& run) {
  RunCounters& c = counters_[run.id()];
  extend(c, run);
  return c;
}

const std::vector<FlowArrow>& Prepared::arrows(const engine::RunRecord& run, const Place& place) {
  if (arrows_.place != place || arrows_.n_steps != run.steps.size() + 1)
    arrows_ = {place, run.steps.size() + 1, arrows_of(run, place)};
  return arrows_.arrows;
}

const Tally& Prepared::tally(const engine::RunRecord& run, std::size_t n_steps) {
  Tally& t = tallies_[run.id()];
  advance(t, run, n_steps);
  return t;
}

PoolState& Prepared::pool(const engine::RunRecord& run, std::size_t n_steps) {
  PoolState& p = pools_[run.id()];
  advance(p, run, n_steps);
  return p;
}

const std::vector<TextCell>& Prepared::cells(const engine::Timeline& timeline,
                                             const engine::RunRecord& run,
                                             std::size_t n_steps,
                                             bool live) {
  Cells& c = cells_[run.id()];
  const std::uint64_t version = timeline.version() + 1;  // 0: never prepared
  if (c.version != version || c.n_steps != n_steps || c.live != live)
    c = {.version = version,
         .n_steps = n_steps,
         .live = live,
         .cells = text_cells(timeline, run, n_steps, live)};
  return c.cells;
}

const std::vector<CellBox>& Prepared::boxes(const engine::RunRecord& run,
                                            std::size_t first,
                                            float width,
                                            const CellMetrics& metrics,
                                            bool flowing) {
  Cells& c = cells_[run.id()];
  if (c.width != width || c.first != first || c.metrics != metrics || c.flowing != flowing) {
    c.width = width;
    c.first = first;
    c.metrics = metrics;
    c.flowing = flowing;
    c.boxes = lay_out(std::span(c.cells).subspan(std::min(first, c.cells.size())), width, metrics,
                      flowing);
  }
  return c.boxes;
}

const Numbers& Prepared::numbers(const engine::Timeline& timeline,
                                 const engine::RunRecord& run,
                                 std::size_t n_steps) {
  Figures& f = figures_[run.id()];
  const std::uint64_t version = timeline.version() + 1;
  if (f.version != version || f.n_steps != n_steps)
    f = {version, n_steps, numbers_of(timeline, run, times(run), n_steps)};
  return f.numbers;
}

const PlaceFacts& Prepared::facts(const engine::Timeline& timeline,
                                  const engine::RunRecord& run,
                                  const Chosen& chosen) {
  const std::uint64_t version = timeline.version() + 1;
  const bool same = facts_.version == version && facts_.run == run.id() &&
                    std::ranges::equal(facts_.chosen, chosen.places());
  if (!same)
    facts_ = {version,
              run.id(),
              {chosen.places().begin(), chosen.places().end()},
              describe_places(timeline, run, chosen)};
  return facts_.facts;
}

const ScheduleLanes& Prepared::schedule(const engine::Timeline& timeline) {
  // Made anew as a whole, so in a stream without pause only when it has grown by a part: all those
  // times together cost some ten times what the last does.
  constexpr std::uint64_t kSmall = 20'000, kPart = 10;
  Scheduled& s = schedule_;
  const std::uint64_t version = timeline.version() + 1;
  const bool pauses = version == s.seen, grown = version - s.version > s.version / kPart;
  if (version != s.version && (pauses || grown || version < kSmall))
    s = {.version = version, .lanes = schedule_lanes_of(timeline.runs())};
  s.seen = version;
  return s.lanes;
}

const Simulation& Prepared::simulation(const engine::Timeline& timeline,
                                       const engine::ScheduleSimulator& simulate,
                                       const engine::SimulatedStages& stages) {
  const engine::Schedule& told = schedule(timeline).told;
  Simulated& s = simulated_;
  if (s.version != schedule_.version || s.stages != stages)
    s = {schedule_.version, stages, simulation_of(simulate(told, stages))};
  return s.simulation;
}

const StepHistogram& Prepared::histogram(const engine::RunRecord& run,
                                         std::size_t n_steps,
                                         int n_bins) {
  Histogram& h = histograms_[run.id()];
  // Complete steps never change: their number says it all.
  if (h.n_steps != n_steps || h.n_bins != n_bins)
    h = {n_steps, n_bins, step_histogram(times(run), n_steps, n_bins)};
  return h.histogram;
}

const ThoughtLayout& Prepared::thoughts(const engine::Timeline& timeline,
                                        const engine::SearchRecord& search) {
  if (thoughts_.version != timeline.version() || thoughts_.search != search.begun.search)
    thoughts_ = {timeline.version(), search.begun.search, thought_layout(search)};
  return thoughts_.layout;
}

// A history that is read anew counts on, so its version says whether it is the same.
const TrainingCurves& Prepared::training(const engine::TrainingHistory& history,
                                         TrainingAxis axis) {
  if (trained_.version != history.version || trained_.axis != axis) {
    trained_.curves = curves_of(history, axis);
    trained_.version = history.version;
    trained_.axis = axis;
  }
  return trained_.curves;
}

const std::vector<ProbeCounts>& Prepared::probes(const engine::TrainingHistory& history) {
  if (trained_.probed != history.version) {
    trained_.probes = counts_of(history);
    trained_.probed = history.version;
  }
  return trained_.probes;
}

void Prepared::clear() {
  *this = Prepared{};
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
  const auto given = view.run_names.find(run.id());
  return given != view.run_names.end() ? &given->second : nullptr;
}

std::string Context::name_of(const engine::RunRecord& run) const {
  const std::string* given = given_name(run);
  return given ? *given : ui::name_of(run);
}

void Context::click(const Place& place, std::span<const Place> in_order) {
  const Modifiers held = held_keys();
  const bool twice = ImGui::GetIO().MouseClickedLastCount[ImGuiMouseButton_Left] >= 2;
  if (twice && !held.ctrl && !held.shift) {
    selection.run = place.run;
    selection.choose({}, place);  // the first of the two clicks may have let it go
    requests.panel = "inspector";
  } else {
    selection.click(place, held, in_order);
  }
}

void Context::show_step(const engine::RunRecord& run, engine::StepId step) {
  const RunTimes& times = prepared.times(run);
  const std::size_t i = times.index_of(step);
  if (i < times.steps.size()) playhead.go_to(times.steps[i].compute1, end());
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
                              "{} steps {}: Ctrl+Left and Ctrl+Right walk through them, Esc "
                              "lets go.",
                              with_commas(static_cast<std::int64_t>(n)), selection.chosen().why());
}

std::size_t Context::n_steps(const engine::RunRecord& run) const {
  const RunTimes& times = prepared.times(run);
  return playhead.follows() ? times.steps.size() : steps_shown(times, playhead.at);
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
  for (const engine::RunRecord* r : shown_runs())
    end = std::max(end, prepared.times(*r).end_compute());
  return end;
}

}  // namespace ui
