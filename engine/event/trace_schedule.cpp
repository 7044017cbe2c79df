#include "engine/event/trace_schedule.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/event/run_slices.h"

namespace engine {
namespace {

/// One round of a branch, as far as it was told; -1: it was not.
struct Turn {
  const RunRecord* run = nullptr;
  std::size_t step = 0;
  int branch = 0;
  Nanoseconds may_draft = -1, drafts = -1, queued = -1, at_target = -1;
};

/// The one of a run's queueing that is of this kind and resource, or null.
template <class E>
const E* of_resource(const std::variant<Queued, Dequeued, Waiting>& event, const char* resource) {
  const E* e = std::get_if<E>(&event);
  return e && e->resource == resource ? e : nullptr;
}

std::vector<Turn> turns_of(const RunRecord& run) {
  std::vector<Turn> turns;
  for (const auto& event : run.queueing) {
    if (const auto* ready = of_resource<Queued>(event, "draft")) {
      turns.push_back(
          {.run = &run, .step = turns.size(), .branch = ready->branch, .may_draft = ready->t});
    }
    if (turns.empty()) continue;
    Turn& turn = turns.back();
    if (const auto* e = of_resource<Dequeued>(event, "draft")) turn.drafts = e->t;
    if (const auto* e = of_resource<Queued>(event, "target")) turn.queued = e->t;
    if (const auto* e = of_resource<Dequeued>(event, "target")) turn.at_target = e->t;
  }
  return turns;
}

TraceItem slice(std::string name, const char* cat, Nanoseconds from, Nanoseconds to) {
  return {.ts = from, .end = to, .name = std::move(name), .cat = cat, .args = {}};
}

/// Waits of a turn, in its branch's or its run's lane.
void add_waits(const Turn& turn, Nanoseconds origin, std::vector<TraceItem>& lane) {
  if (turn.drafts > turn.may_draft)
    lane.push_back(slice("wait draft", "queue", turn.may_draft - origin, turn.drafts - origin));
  if (turn.at_target > turn.queued)
    lane.push_back(slice("wait target", "queue", turn.queued - origin, turn.at_target - origin));
}

class Lanes {
 public:
  explicit Lanes(std::span<const RunRecord> runs) {
    for (const RunRecord& run : runs) {
      const std::vector<Turn> turns = turns_of(run);
      if (turns.empty()) continue;
      if (turns_.empty()) origin_ = run.started.t;
      origin_ = std::min(origin_, run.started.t);
      turns_.insert(turns_.end(), turns.begin(), turns.end());
      runs_.push_back(&run);
    }
  }

  std::vector<ScheduleLane> all() const {
    if (turns_.empty()) return {};
    std::vector<ScheduleLane> lanes{{"target", target()}};
    int n_branches = 0;
    for (const Turn& turn : turns_) n_branches = std::max(n_branches, turn.branch + 1);
    for (int branch = 0; branch < n_branches; branch++)
      lanes.push_back({fmt::format("draft branch {}", branch), drafts(branch)});
    lanes.push_back({"verify", verifications()});
    lanes.push_back({"queue", queue()});
    return lanes;
  }

 private:
  /// Where a turn's forward ended; -1: its step was not told to its end.
  static Nanoseconds forward_end(const Turn& turn) {
    if (turn.at_target < 0 || turn.step >= turn.run->steps.size()) return -1;
    const StepHead step = turn.run->steps.head(turn.step);
    if (!step.complete) return -1;
    return std::max(turn.at_target, step.ended.t - step.ended.commit - step.ended.verify);
  }

  /// Branches that one forward took left the queue at one moment.
  std::vector<TraceItem> target() const {
    std::map<Nanoseconds, std::vector<const Turn*>> forwards;
    for (const Turn& turn : turns_)
      if (forward_end(turn) >= 0) forwards[turn.at_target].push_back(&turn);
    std::vector<TraceItem> items;
    for (const auto& [t, together] : forwards) {
      Nanoseconds end = forward_end(*together[0]);
      std::vector<int> branches;
      std::vector<RunId> runs;
      for (const Turn* turn : together) {
        end = std::min(end, forward_end(*turn));
        branches.push_back(turn->branch);
        runs.push_back(turn->run->id());
      }
      items.push_back(slice(fmt::format("forward branch {}", fmt::join(branches, " ")), "target",
                            t - origin_, end - origin_));
      items.back().args = fmt::format("{{\"runs\":[{}],\"branches\":[{}]}}", fmt::join(runs, ","),
                                      fmt::join(branches, ","));
    }
    for (const RunRecord* run : runs_) {
      for (const auto& event : run->queueing) {
        if (const auto* idle = of_resource<Waiting>(event, "target"))
          items.push_back(slice("wait draft", "queue", idle->since - origin_, idle->t - origin_));
      }
    }
    return items;
  }

  std::vector<TraceItem> drafts(int branch) const {
    std::vector<TraceItem> items;
    for (const Turn& turn : turns_) {
      if (turn.branch != branch) continue;
      add_waits(turn, origin_, items);
      if (turn.queued <= turn.drafts || turn.drafts < 0) continue;
      items.push_back(slice(fmt::format("draft branch {}", branch), "draft", turn.drafts - origin_,
                            turn.queued - origin_));
      items.back().args = fmt::format("{{\"run\":{},\"step\":{}}}", turn.run->id(), turn.step);
    }
    return items;
  }

  std::vector<TraceItem> verifications() const {
    std::vector<TraceItem> items;
    for (const Turn& turn : turns_) {
      const Nanoseconds from = forward_end(turn);
      if (from < 0) continue;
      const StepHead step = turn.run->steps.head(turn.step);
      for (const LaneSlice& part : slices_of(step, Clock::Wall)) {
        if (part.lane != LaneKind::Verify) continue;
        items.push_back(slice(label_of(*turn.run, LaneKind::Verify, part.slice), "verify",
                              from - origin_, step.ended.t - origin_));
        items.back().args = fmt::format("{{\"run\":{},\"step\":{},\"branch\":{}}}", turn.run->id(),
                                        turn.step, turn.branch);
      }
    }
    return items;
  }

  std::vector<TraceItem> queue() const {
    struct Change {
      Nanoseconds t;
      bool comes;
      int branch;
    };
    std::vector<Change> changes;
    for (const Turn& turn : turns_) {
      if (turn.queued >= 0) changes.push_back({turn.queued, true, turn.branch});
      if (turn.at_target >= 0) changes.push_back({turn.at_target, false, turn.branch});
    }
    // At one moment a branch comes before it leaves.
    std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
      return a.t != b.t ? a.t < b.t : a.comes > b.comes;
    });
    std::vector<int> waiting;
    std::vector<TraceItem> items;
    for (std::size_t i = 0; i + 1 < changes.size(); i++) {
      if (changes[i].comes) {
        waiting.push_back(changes[i].branch);
      } else {
        std::erase(waiting, changes[i].branch);
      }
      if (waiting.empty() || changes[i + 1].t == changes[i].t) continue;
      items.push_back(slice(fmt::format("queue {}", waiting.size()), "queue",
                            changes[i].t - origin_, changes[i + 1].t - origin_));
      items.back().args = fmt::format("{{\"branches\":[{}]}}", fmt::join(waiting, ","));
    }
    return items;
  }

  std::vector<const RunRecord*> runs_;
  std::vector<Turn> turns_;
  Nanoseconds origin_ = 0;
};

}  // namespace

std::vector<ScheduleLane> schedule_lanes(std::span<const RunRecord> runs) {
  return Lanes(runs).all();
}

std::vector<Nanoseconds> times_at_target(const RunRecord& run) {
  std::vector<Nanoseconds> times;
  for (const Turn& turn : turns_of(run)) times.push_back(turn.at_target);
  return times;
}

std::vector<TraceItem> waits_of(const RunRecord& run) {
  std::vector<TraceItem> items;
  for (const Turn& turn : turns_of(run)) add_waits(turn, run.started.t, items);
  return items;
}

}  // namespace engine
