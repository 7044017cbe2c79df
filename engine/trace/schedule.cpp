#include "engine/trace/schedule.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/event/timeline/run_slices.h"
#include "engine/event/timeline/schedule_turns.h"

namespace engine {
namespace {

TraceItem slice(std::string name, const char* cat, Nanoseconds from, Nanoseconds to) {
  return {.ts = from, .end = to, .name = std::move(name), .cat = cat, .args = {}};
}

/// Adds the waits of a turn to the lane of its branch or of its run.
void add_waits(const ScheduleTurn& turn, Nanoseconds origin, std::vector<TraceItem>& lane) {
  if (turn.drafts > turn.may_draft)
    lane.push_back(slice("wait draft", "queue", turn.may_draft - origin, turn.drafts - origin));
  if (turn.queued >= 0 && turn.left_queue > turn.queued)
    lane.push_back(slice("wait target", "queue", turn.queued - origin, turn.left_queue - origin));
}

class Lanes {
 public:
  explicit Lanes(std::span<const RunRecord> runs) : runs_(runs), schedule_(schedule_of(runs)) {}

  std::vector<ScheduleLane> all() const {
    if (schedule_.empty()) return {};
    std::vector<ScheduleLane> lanes{{"target", target()}};
    for (int branch = 0; branch < schedule_.n_branches; branch++)
      lanes.push_back({fmt::format("draft branch {}", branch), drafts(branch)});
    lanes.push_back({"verify", verifications()});
    lanes.push_back({"queue", queue()});
    return lanes;
  }

 private:
  Nanoseconds since_origin(Nanoseconds t) const { return t - schedule_.origin; }

  std::vector<TraceItem> target() const {
    std::vector<TraceItem> items;
    for (const ScheduleForward& forward : schedule_.forwards) {
      std::vector<int> branches;
      std::vector<RunId> runs;
      for (const std::uint32_t i : schedule_.lane_turns(forward)) {
        branches.push_back(schedule_.turns[i].branch);
        runs.push_back(schedule_.turns[i].run);
      }
      items.push_back(slice(fmt::format("forward branch {}", fmt::join(branches, " ")), "target",
                            since_origin(forward.begin), since_origin(forward.end)));
      items.back().args = fmt::format("{{\"runs\":[{}],\"branches\":[{}]}}", fmt::join(runs, ","),
                                      fmt::join(branches, ","));
    }
    for (const TargetIdle& idle : schedule_.idle)
      items.push_back(
          slice("wait draft", "queue", since_origin(idle.begin), since_origin(idle.end)));
    return items;
  }

  std::vector<TraceItem> drafts(int branch) const {
    std::vector<TraceItem> items;
    for (const ScheduleTurn& turn : schedule_.turns) {
      if (turn.branch != branch) continue;
      add_waits(turn, schedule_.origin, items);
      if (turn.queued <= turn.drafts || turn.drafts < 0) continue;
      items.push_back(slice(fmt::format("draft branch {}", branch), "draft",
                            since_origin(turn.drafts), since_origin(turn.queued)));
      items.back().args = fmt::format("{{\"run\":{},\"step\":{}{}}}", turn.run, turn.step,
                                      turn.reads_prompt ? ",\"reads_prompt\":true" : "");
    }
    return items;
  }

  std::vector<TraceItem> verifications() const {
    std::vector<TraceItem> items;
    const RunRecord* run = nullptr;  // turns are ordered by run
    for (const ScheduleTurn& turn : schedule_.turns) {
      if (turn.forwarded < 0) continue;
      if (!run || run->id() != turn.run) run = &*std::ranges::find(runs_, turn.run, &RunRecord::id);
      const StepHead step = run->steps.head(static_cast<std::size_t>(turn.step));
      for (const LaneSlice& part : slices_of(step, Clock::Wall)) {
        if (part.lane != LaneKind::Verify) continue;
        items.push_back(slice(label_of(*run, LaneKind::Verify, part.slice), "verify",
                              since_origin(turn.forwarded), since_origin(turn.ended)));
        items.back().args = fmt::format("{{\"run\":{},\"step\":{},\"branch\":{}}}", turn.run,
                                        turn.step, turn.branch);
      }
    }
    return items;
  }

  std::vector<TraceItem> queue() const {
    std::vector<TraceItem> items;
    for_each_queue_interval(
        schedule_, [&](Nanoseconds begin, Nanoseconds end, std::span<const std::uint32_t> waiting) {
          std::vector<int> branches;
          for (const std::uint32_t i : waiting) branches.push_back(schedule_.turns[i].branch);
          items.push_back(slice(fmt::format("queue {}", waiting.size()), "queue",
                                since_origin(begin), since_origin(end)));
          items.back().args = fmt::format("{{\"branches\":[{}]}}", fmt::join(branches, ","));
        });
    return items;
  }

  std::span<const RunRecord> runs_;
  Schedule schedule_;
};

}  // namespace

std::vector<ScheduleLane> schedule_lanes(std::span<const RunRecord> runs) {
  return Lanes(runs).all();
}

std::vector<TraceItem> waits_of(const RunRecord& run) {
  std::vector<TraceItem> items;
  for (const ScheduleTurn& turn : schedule_of({&run, 1}).turns)
    add_waits(turn, run.started.t, items);
  return items;
}

}  // namespace engine
