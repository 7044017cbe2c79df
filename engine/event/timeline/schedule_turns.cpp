#include "engine/event/timeline/schedule_turns.h"

#include <algorithm>
#include <span>
#include <variant>

namespace engine {
namespace {

using Queueing = std::variant<Queued, Dequeued, Waiting>;

/// Turns of higher branches, which only a damaged recording has, are ignored.
constexpr int kMaxBranches = 4096;

/// The queueing event, if it has type E and this resource; else null.
template <class E>
const E* of_resource(const Queueing& event, const char* resource) {
  const E* e = std::get_if<E>(&event);
  return e && e->resource == resource ? e : nullptr;
}

/// Copies the counts and times of a step to its turn.
void add_step(ScheduleTurn& turn, const StepHead& step) {
  turn.n_rows = step.n_rows;
  turn.n_tokens = step.n_tokens;
  turn.n_proposed = step.n_proposed;
  turn.n_accepted = step.n_accepted;
  if (turn.at_target < 0 || !step.complete) return;
  turn.ended = step.ended.t;
  turn.forwarded = std::max(turn.at_target, step.ended.t - step.ended.commit - step.ended.verify);
}

/// Marks the turn of a run in which the draft model read the prompt. Older recordings do not report
/// the reading; a run in them that drafts began with it. A live run reports it before it drafts.
void mark_reading(const RunRecord& run, std::span<ScheduleTurn> turns) {
  const auto read = std::ranges::find(run.phases, "draft prefill", &Phase::name);
  if (read == run.phases.end()) {
    turns.front().reads_prompt =
        std::ranges::any_of(turns, [](const ScheduleTurn& turn) { return turn.n_proposed > 0; });
    return;
  }
  for (ScheduleTurn& turn : turns)
    turn.reads_prompt =
        turn.drafts >= 0 && turn.drafts <= read->t && (turn.queued < 0 || read->t <= turn.queued);
}

void add_turns(const RunRecord& run, std::vector<ScheduleTurn>& turns) {
  const std::size_t first = turns.size();
  for (const Queueing& event : run.queueing) {
    const auto* ready = of_resource<Queued>(event, "draft");
    if (ready && ready->branch >= 0 && ready->branch < kMaxBranches) {
      turns.push_back({.run = run.id(),
                       .step = static_cast<StepId>(turns.size() - first),
                       .branch = ready->branch,
                       .may_draft = ready->t});
    }
    if (turns.size() == first) continue;
    ScheduleTurn& turn = turns.back();
    if (const auto* e = of_resource<Dequeued>(event, "draft")) turn.drafts = e->t;
    if (const auto* e = of_resource<Queued>(event, "target")) turn.queued = e->t;
    if (const auto* e = of_resource<Dequeued>(event, "target"))
      turn.at_target = turn.left_queue = e->t;
  }
  for (std::size_t i = first; i < turns.size(); i++)
    if (i - first < run.steps.size()) add_step(turns[i], run.steps.head(i - first));
  // A run that ended while it was in the queue has left the queue at its end.
  if (turns.size() > first && turns.back().queued >= 0 && turns.back().left_queue < 0 && run.over())
    turns.back().left_queue = std::max(turns.back().queued, run.last_event);
  if (turns.size() > first) mark_reading(run, std::span(turns).subspan(first));
}

void add_idle(const RunRecord& run, std::vector<TargetIdle>& idle) {
  for (const Queueing& event : run.queueing)
    if (const auto* e = of_resource<Waiting>(event, "target"))
      idle.push_back({.begin = e->since, .end = e->t, .run = run.id(), .branch = e->branch});
}

/// Branches of one forward pass left the queue at the same time.
void add_forwards(Schedule& schedule) {
  const std::vector<ScheduleTurn>& turns = schedule.turns;
  std::vector<std::uint32_t>& taken = schedule.taken;
  for (std::size_t i = 0; i < turns.size(); i++)
    if (turns[i].forwarded >= 0) taken.push_back(static_cast<std::uint32_t>(i));
  const auto at_target = [&](std::uint32_t i) { return turns[i].at_target; };
  std::ranges::stable_sort(taken, {}, at_target);
  for (std::size_t first = 0, next = 0; first < taken.size(); first = next) {
    const ScheduleTurn& one = turns[taken[first]];
    ScheduleForward forward{
        .begin = one.at_target, .end = one.forwarded, .ended = one.ended, .first = first};
    for (; next < taken.size() && at_target(taken[next]) == forward.begin; next++) {
      forward.end = std::min(forward.end, turns[taken[next]].forwarded);
      forward.ended = std::max(forward.ended, turns[taken[next]].ended);
    }
    forward.n = next - first;
    schedule.forwards.push_back(forward);
  }
}

Nanoseconds time_of_queueing(const Queueing& event) {
  return std::visit([](const auto& e) { return e.t; }, event);
}

}  // namespace

bool has_schedule(std::span<const RunRecord> runs) {
  return std::ranges::any_of(runs, [](const RunRecord& run) { return !run.queueing.empty(); });
}

Schedule schedule_of(std::span<const RunRecord> runs) {
  std::vector<const RunRecord*> all;
  for (const RunRecord& run : runs) all.push_back(&run);
  return schedule_of(all);
}

Schedule schedule_of(std::span<const RunRecord* const> runs) {
  Schedule schedule;
  for (const RunRecord* run : runs) {
    const std::size_t before = schedule.turns.size();
    add_turns(*run, schedule.turns);
    if (schedule.turns.size() == before) continue;
    schedule.origin = before == 0 ? run->started.t : std::min(schedule.origin, run->started.t);
    add_idle(*run, schedule.idle);
  }
  for (const ScheduleTurn& turn : schedule.turns)
    schedule.n_branches = std::max(schedule.n_branches, turn.branch + 1);
  add_forwards(schedule);
  return schedule;
}

void for_each_queue_interval(const Schedule& schedule, const QueueVisitor& visit) {
  struct Change {
    Nanoseconds t;
    bool enters;
    std::uint32_t turn;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < schedule.turns.size(); i++) {
    const ScheduleTurn& turn = schedule.turns[i];
    const auto index = static_cast<std::uint32_t>(i);
    if (turn.queued >= 0) changes.push_back({turn.queued, true, index});
    if (turn.queued >= 0 && turn.left_queue >= 0)
      changes.push_back({turn.left_queue, false, index});
  }
  // At equal times a branch enters before it leaves.
  std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
    return a.t != b.t ? a.t < b.t : a.enters > b.enters;
  });
  std::vector<std::uint32_t> waiting;
  for (std::size_t i = 0; i + 1 < changes.size(); i++) {
    if (changes[i].enters) {
      waiting.push_back(changes[i].turn);
    } else {
      std::erase(waiting, changes[i].turn);
    }
    if (!waiting.empty() && changes[i + 1].t > changes[i].t)
      visit(changes[i].t, changes[i + 1].t, waiting);
  }
}

Nanoseconds time_at_target(const RunRecord& run, const StepHead& step) {
  // The last event before the step's end; later events belong to the next turn.
  auto event = std::ranges::upper_bound(run.queueing, step.ended.t, {}, time_of_queueing);
  while (event != run.queueing.begin()) {
    --event;
    if (time_of_queueing(*event) < step.begun.t) break;
    if (const auto* e = of_resource<Dequeued>(*event, "target")) return e->t;
  }
  return -1;
}

}  // namespace engine
