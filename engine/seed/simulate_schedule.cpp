#include "engine/seed/simulate_schedule.h"

#include <algorithm>
#include <span>

#include "engine/seed/rounds_simulator.h"

namespace engine {
namespace {

/// The verified turns of one run.
struct Text {
  std::size_t first = 0, n = 0;  // range in Schedule::turns
  Nanoseconds begin = 0, end = 0;
};

/// The runs, ordered by their start.
std::vector<Text> texts_of(const Schedule& recorded) {
  std::vector<Text> texts;
  for (std::size_t i = 0; i < recorded.turns.size(); i++) {
    const ScheduleTurn& turn = recorded.turns[i];
    if (i == 0 || turn.run != recorded.turns[i - 1].run)
      texts.push_back({.first = i, .begin = turn.may_draft});
    if (turn.forwarded < 0) continue;
    texts.back().n++;
    texts.back().end = turn.ended;
  }
  std::erase_if(texts, [](const Text& text) { return text.n == 0; });
  std::ranges::stable_sort(texts, {}, &Text::begin);
  return texts;
}

/// Number of leading runs that overlapped in time: the runs of one level.
std::size_t level_size(std::span<const Text> texts, bool one_branch) {
  if (one_branch) return texts.size();
  Nanoseconds end = texts[0].end;
  std::size_t n = 1;
  for (; n < texts.size() && texts[n].begin < end; n++) end = std::max(end, texts[n].end);
  return n;
}

/// The texts in levels.
std::vector<std::span<const Text>> levels_of(std::span<const Text> texts, bool one_branch) {
  std::vector<std::span<const Text>> levels;
  while (!texts.empty()) {
    levels.push_back(texts.first(level_size(texts, one_branch)));
    texts = texts.subspan(levels.back().size());
  }
  return levels;
}

ScriptedRequest request_of(const Schedule& recorded, const Text& text) {
  ScriptedRequest request{.n_tokens = 0, .emitted = {}};
  for (std::size_t i = 0; i < text.n; i++) {
    request.emitted.push_back(std::max(1, recorded.turns[text.first + i].n_tokens));
    request.n_tokens += request.emitted.back();
  }
  return request;
}

/// Receives the events of Rounds for one level, and writes their times into the level's turns.
class Times final : public EventSink {
 public:
  /// @param first   index of each run's first turn in schedule.turns; the level's runs are numbered
  ///                from 1
  /// @param offset  time at which the level begins
  Times(Schedule& schedule, std::vector<std::size_t> first, Nanoseconds offset, Nanoseconds verify)
      : schedule_(schedule), next_(std::move(first)), offset_(offset), verify_(verify) {}

  void push(Event event) override {
    if (const auto* e = std::get_if<Queued>(&event)) queued(*e);
    if (const auto* e = std::get_if<Dequeued>(&event)) taken(*e);
    if (const auto* e = std::get_if<Waiting>(&event)) waited(*e);
  }

 private:
  std::size_t& next(RunId run) { return next_[run - 1]; }

  void queued(const Queued& e) {
    ScheduleTurn& turn = schedule_.turns[next(e.run)];
    turn.branch = e.branch;
    (e.resource == "draft" ? turn.may_draft : turn.queued) = offset_ + e.t;
  }
  void taken(const Dequeued& e) {
    ScheduleTurn& turn = schedule_.turns[next(e.run)];
    const Nanoseconds t = offset_ + e.t;
    if (e.resource == "draft") {
      turn.drafts = t;
      return;
    }
    turn.at_target = turn.left_queue = t;
    turn.forwarded = turn.ended = t + verify_;
    schedule_.forwards.push_back({.begin = t,
                                  .end = turn.forwarded,
                                  .ended = turn.forwarded,
                                  .first = schedule_.taken.size(),
                                  .n = 1});
    schedule_.taken.push_back(static_cast<std::uint32_t>(next(e.run)++));
  }
  void waited(const Waiting& e) {
    if (e.resource != "target") return;
    // the Dequeued event precedes the Waiting event
    const ScheduleTurn& turn = schedule_.turns[next(e.run) - 1];
    schedule_.idle.push_back(
        {.begin = offset_ + e.since, .end = offset_ + e.t, .run = turn.run, .branch = e.branch});
  }

  Schedule& schedule_;
  std::vector<std::size_t> next_;
  Nanoseconds offset_, verify_;
};

/// A copy of the schedule without times, in which the turns of a run follow each other.
Schedule untimed(const Schedule& recorded, std::span<const Text> texts, int n_branches) {
  Schedule schedule;
  schedule.n_branches = n_branches;
  for (const Text& text : texts) {
    for (std::size_t i = 0; i < text.n; i++) {
      const ScheduleTurn& was = recorded.turns[text.first + i];
      schedule.turns.push_back({.run = was.run,
                                .step = was.step,
                                .n_rows = was.n_rows,
                                .n_tokens = was.n_tokens,
                                .n_proposed = was.n_proposed,
                                .n_accepted = was.n_accepted});
    }
  }
  return schedule;
}

/// The number of draft models. More than branches have no work.
int drafters_of(const SimulatedStages& stages) {
  const int n = stages.n_branches;
  return stages.n_drafts > 0 ? std::min(stages.n_drafts, n) : n;
}

/// Simulates a level of runs, whose first turn is schedule.turns[turn].
/// @return  its duration
Nanoseconds run_level(const Schedule& recorded,
                      std::span<const Text> level,
                      const SimulatedStages& stages,
                      const Policy& policy,
                      std::size_t turn,
                      Nanoseconds begin,
                      Schedule& schedule) {
  std::vector<ScriptedRequest> requests;
  std::vector<std::size_t> first;
  for (const Text& text : level) {
    requests.push_back(request_of(recorded, text));
    first.push_back(turn);
    turn += text.n;
  }
  Times times(schedule, std::move(first), begin, stages.verify);
  ScriptedWork work(std::move(requests));
  Rounds rounds(stages.n_branches, policy, 1, &times, {}, nullptr, drafters_of(stages));
  return simulate_rounds(rounds, work, fixed_times(stages.draft, stages.verify)).back().end;
}

}  // namespace

SimulatedSchedule simulate_schedule(const Schedule& recorded, const SimulatedStages& stages) {
  ensure(stages.n_branches >= 1 && stages.draft >= 1 && stages.verify >= 1,
         "a simulated schedule needs branches, and stages that take time");
  const std::vector<Text> texts = texts_of(recorded);
  const auto policy = policy_named(stages.policy);
  SimulatedSchedule simulated{.schedule = untimed(recorded, texts, stages.n_branches)};
  std::size_t turn = 0;
  for (const auto level : levels_of(texts, recorded.n_branches <= 1)) {
    simulated.end +=
        run_level(recorded, level, stages, *policy, turn, simulated.end, simulated.schedule);
    for (const Text& text : level) turn += text.n;
  }
  simulated.in_turn =
      static_cast<Nanoseconds>(simulated.schedule.turns.size()) * (stages.draft + stages.verify);
  simulated.bound =
      speedup_bound(stages.n_branches, drafters_of(stages), static_cast<double>(stages.draft),
                    static_cast<double>(stages.verify));
  return simulated;
}

std::vector<std::vector<ScriptedRequest>> scripted_levels(const Schedule& recorded) {
  const std::vector<Text> texts = texts_of(recorded);
  std::vector<std::vector<ScriptedRequest>> levels;
  for (const auto level : levels_of(texts, recorded.n_branches <= 1)) {
    auto& requests = levels.emplace_back();
    for (const Text& text : level) requests.push_back(request_of(recorded, text));
  }
  return levels;
}

}  // namespace engine
