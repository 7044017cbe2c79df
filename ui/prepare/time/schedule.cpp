#include "ui/prepare/time/schedule.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/text.h"
#include "ui/prepare/figure.h"
#include "ui/prepare/search_part.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/gantt.h"

namespace ui {
namespace {

using engine::Nanoseconds;
using engine::ScheduleTurn;
using Kind = ScheduleRowKind;
using Act = ScheduleAct;

// Slices narrower than this are drawn as one block.
constexpr double kBlockPixels = 2;
// The end of a run that has not ended.
constexpr Nanoseconds kNanosecondsMax = std::numeric_limits<Nanoseconds>::max();

// Builds the rows of a schedule from its turns and forwards.
class Builder {
 public:
  explicit Builder(engine::Schedule schedule) { lanes_.schedule = std::move(schedule); }

  ScheduleLanes lanes() {
    const engine::Schedule& schedule = lanes_.schedule;
    if (schedule.empty()) return std::move(lanes_);
    ScheduleRow verify = row(Kind::Verify);
    lanes_.rows.push_back(target());
    std::vector<ScheduleRow> branches;
    for (int branch = 0; branch < schedule.n_branches; ++branch)
      branches.push_back(row(Kind::Branch, branch));
    for (std::uint32_t i = 0; i < schedule.turns.size(); ++i) {
      const ScheduleTurn& turn = schedule.turns[i];
      lanes_.first_turn.try_emplace(turn.run, i);
      if (turn.forwarded >= 0) add(verify, Act::Result, turn.forwarded, turn.ended, i);
      add_turn(branches[static_cast<std::size_t>(turn.branch)], turn, i);
    }
    lanes_.rows.push_back(std::move(verify));
    std::ranges::move(branches, std::back_inserter(lanes_.rows));
    add_queue();
    for (ScheduleRow& one : lanes_.rows) settle(one);
    lanes_.under_way = times_under_way();
    lanes_.figures = figures_between(lanes_, 0, lanes_.end);
    return std::move(lanes_);
  }

 private:
  static ScheduleRow row(Kind kind, int index = 0) {
    ScheduleRow row;
    row.kind = kind;
    row.index = index;
    return row;
  }

  double since_origin(Nanoseconds t) const {
    return static_cast<double>(t - lanes_.schedule.origin);
  }

  void add(ScheduleRow& row,
           Act act,
           Nanoseconds from,
           Nanoseconds to,
           std::uint32_t turn,
           std::uint32_t forward = 0) {
    if (from < 0 || to <= from) return;  // not recorded, or of no length
    row.slices.push_back({since_origin(from), since_origin(to), turn, forward, act});
    lanes_.end = std::max(lanes_.end, since_origin(to));
  }

  void add_turn(ScheduleRow& row, const ScheduleTurn& turn, std::uint32_t i) {
    add(row, Act::WaitsToDraft, turn.may_draft, turn.drafts, i);
    add(row, Act::Drafts, turn.drafts, turn.queued, i);
    add(row, Act::WaitsForTarget, turn.queued, turn.left_queue, i);
    add(row, Act::BeingVerified, turn.at_target, turn.ended, i);
  }

  // Returns the row of the target: its forwards, and the waits for a draft that end with a recorded forward.
  ScheduleRow target() {
    const engine::Schedule& schedule = lanes_.schedule;
    ScheduleRow made = row(Kind::Target);
    std::map<std::pair<Nanoseconds, engine::RunId>, std::uint32_t> idle_until;
    for (std::uint32_t i = 0; i < schedule.forwards.size(); ++i) {
      const engine::ScheduleForward& forward = schedule.forwards[i];
      const auto turns = schedule.lane_turns(forward);
      add(made, Act::Forward, forward.begin, forward.end, turns[0], i);
      for (const std::uint32_t turn : turns)
        if (!schedule.idle.empty()) idle_until[{forward.begin, schedule.turns[turn].run}] = turn;
    }
    for (const engine::TargetIdle& idle : schedule.idle) {
      const auto ended_by = idle_until.find({idle.end, idle.run});
      if (ended_by != idle_until.end())
        add(made, Act::WaitsForDraft, idle.begin, idle.end, ended_by->second);
    }
    return made;
  }

  // Adds one row per place of the queue. A turn that keeps its place while the queue changes has one slice there.
  void add_queue() {
    std::vector<ScheduleRow> places;
    for_each_queue_interval(lanes_.schedule, [&](Nanoseconds begin, Nanoseconds end,
                                                 std::span<const std::uint32_t> waiting) {
      for (std::size_t place = 0; place < waiting.size(); ++place) {
        if (place == places.size()) places.push_back(row(Kind::Queue, static_cast<int>(place)));
        std::vector<ScheduleSlice>& slices = places[place].slices;
        const bool stays = !slices.empty() && slices.back().turn == waiting[place] &&
                           slices.back().t1 == since_origin(begin);
        if (stays)
          slices.back().t1 = since_origin(end);
        else
          add(places[place], Act::InQueue, begin, end, waiting[place]);
      }
    });
    std::ranges::move(places, std::back_inserter(lanes_.rows));
  }

  // Sorts the slices, removes overlaps, and drops slices that are covered by others.
  void settle(ScheduleRow& row) const {
    std::ranges::stable_sort(row.slices, {}, &ScheduleSlice::t0);
    double free_from = 0;
    std::erase_if(row.slices, [&](ScheduleSlice& slice) {
      slice.t0 = std::max(slice.t0, free_from);
      free_from = std::max(free_from, slice.t1);
      return slice.t1 <= slice.t0;
    });
    row.sums.assign(1, {});
    row.sums.reserve(row.slices.size() + 1);
    for (const ScheduleSlice& slice : row.slices) {
      ScheduleSums sum = row.sums.back();
      if (is_wait(slice.act))
        sum.waited += slice.t1 - slice.t0;
      else if (slice.act != Act::BeingVerified)  // counts this time as work of the target
        sum.worked += slice.t1 - slice.t0;
      sum.tokens += tokens_of(slice);
      row.sums.push_back(sum);
    }
  }

  std::int64_t tokens_of(const ScheduleSlice& slice) const {
    std::int64_t n = 0;
    if (slice.act != Act::Forward) return n;
    const engine::Schedule& schedule = lanes_.schedule;
    for (const std::uint32_t turn : schedule.lane_turns(schedule.forwards[slice.forward]))
      n += schedule.turns[turn].n_tokens;
    return n;
  }

  std::vector<std::pair<double, double>> times_under_way() const {
    std::vector<std::pair<double, double>> turns, apart;
    for (const ScheduleTurn& turn : lanes_.schedule.turns) turns.push_back(time_of(lanes_, turn));
    std::ranges::sort(turns);
    for (const auto& [from, to] : turns) {
      if (apart.empty() || from > apart.back().second)
        apart.emplace_back(from, to);
      else
        apart.back().second = std::max(apart.back().second, to);
    }
    return apart;
  }

  ScheduleLanes lanes_;
};

double overlap(double a0, double a1, double b0, double b1) {
  return std::max(0.0, std::min(a1, b1) - std::max(a0, b0));
}

std::size_t first_ending_after(const ScheduleRow& row, double t) {
  const auto ends_by = [](double at, const ScheduleSlice& slice) { return at < slice.t1; };
  return static_cast<std::size_t>(
      std::upper_bound(row.slices.begin(), row.slices.end(), t, ends_by) - row.slices.begin());
}

std::size_t first_beginning_at(const ScheduleRow& row, double t) {
  const auto at = std::ranges::lower_bound(row.slices, t, {}, &ScheduleSlice::t0);
  return static_cast<std::size_t>(at - row.slices.begin());
}

void add_slice(ScheduleFigures& figures, const ScheduleSlice& slice, double time) {
  switch (slice.act) {
    case Act::Forward:
      figures.n_forwards++;
      [[fallthrough]];
    case Act::Result:
      figures.target += time;
      break;
    case Act::WaitsForDraft:
      figures.target_waits += time;
      break;
    case Act::WaitsToDraft:
      figures.waits_to_draft += time;
      break;
    case Act::WaitsForTarget:
      figures.waits_for_target += time;
      break;
    default:
      break;
  }
}

// Returns "branch 0", "branches 0 and 2" or "branches 0, 1 and 2".
std::string branches_words(const std::vector<int>& branches) {
  if (branches.size() == 1) return fmt::format("branch {}", branches[0]);
  return fmt::format("branches {} and {}", fmt::join(branches.begin(), branches.end() - 1, ", "),
                     branches.back());
}

// Returns the branches whose drafts the target verifies in a time range, in the order of verification, each once.
std::vector<int> verified_between(const ScheduleLanes& lanes, double from, double to) {
  std::vector<int> branches;
  const ScheduleRow& target = lanes.rows[0];
  for (std::size_t i = first_ending_after(target, from);
       i < target.slices.size() && target.slices[i].t0 < to; ++i) {
    if (target.slices[i].act != Act::Forward) continue;
    for (const std::uint32_t turn :
         lanes.schedule.lane_turns(lanes.schedule.forwards[target.slices[i].forward])) {
      const int branch = lanes.schedule.turns[turn].branch;
      if (std::ranges::find(branches, branch) == branches.end()) branches.push_back(branch);
    }
  }
  return branches;
}

// Returns the branches that draft in a time range.
std::vector<int> drafting_between(const ScheduleLanes& lanes, double from, double to) {
  std::vector<int> branches;
  for (const ScheduleRow& row : lanes.rows) {
    if (row.kind != Kind::Branch) continue;
    for (std::size_t i = first_ending_after(row, from);
         i < row.slices.size() && row.slices[i].t0 < to; ++i) {
      if (row.slices[i].act != Act::Drafts) continue;
      branches.push_back(row.index);
      break;
    }
  }
  return branches;
}

std::string forward_sentence(const ScheduleLanes& lanes, const ScheduleSlice& slice) {
  const engine::ScheduleForward& forward = lanes.schedule.forwards[slice.forward];
  std::vector<int> branches;
  int n_rows = 0, n_tokens = 0;
  for (const std::uint32_t i : lanes.schedule.lane_turns(forward)) {
    branches.push_back(lanes.schedule.turns[i].branch);
    n_rows += lanes.schedule.turns[i].n_rows;
    n_tokens += lanes.schedule.turns[i].n_tokens;
  }
  return fmt::format("The target verifies the {} of {}: {} rows in {}, +{}.",
                     branches.size() == 1 ? "draft" : "drafts", branches_words(branches), n_rows,
                     short_time(slice.t1 - slice.t0), engine::counted(n_tokens, "token"));
}

std::string wait_for_target_sentence(const ScheduleLanes& lanes,
                                     const ScheduleTurn& turn,
                                     double from,
                                     double to) {
  std::string text =
      fmt::format("Branch {} waits for the target, {}", turn.branch, short_time(to - from));
  const std::vector<int> ahead = verified_between(lanes, from, to);
  if (!ahead.empty()) text += ", after " + branches_words(ahead);
  if (turn.at_target < 0)
    text += "; it was not verified because its run ended";
  else if (ahead.empty())
    text += "; no other draft is being verified: the target reads a prompt or is between two steps";
  return text + ".";
}

const char* ordinal_end(int n) {
  const int tens = n % 100 / 10;
  if (tens == 1) return "th";
  return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

}  // namespace

std::string row_name(const ScheduleRow& row) {
  if (row.kind == Kind::Target) return "target";
  if (row.kind == Kind::Verify) return "verify";
  if (row.kind == Kind::Branch) return fmt::format("branch {}", row.index);
  return fmt::format("queue {}{}", row.index + 1, ordinal_end(row.index + 1));
}

std::vector<const engine::RunRecord*> runs_of_schedule(const engine::Timeline& timeline,
                                                       const engine::RunRecord* run) {
  const auto queued = [](const engine::RunRecord& one) { return !one.queueing.empty(); };
  std::vector<const engine::RunRecord*> runs;
  if (!run) return runs;
  const engine::SearchRecord* search = search_of(timeline.searches(), run->started);
  if (!search && !queued(*run)) return runs;
  for (const engine::RunRecord& one : timeline.runs())
    if (queued(one) && search_of(timeline.searches(), one.started) == search) runs.push_back(&one);
  if (search) return runs;
  // The runs whose times overlap with the run's, directly or through others. Events may follow a run's end, so last_event is not it.
  const auto end_of = [](const engine::RunRecord& one) {
    return one.finished ? one.finished->t : one.failed ? one.failed->t : kNanosecondsMax;
  };
  Nanoseconds from = run->started.t, to = end_of(*run);
  const auto overlaps = [&](const engine::RunRecord* one) {
    return one->started.t <= to && end_of(*one) >= from;
  };
  for (bool grows = true; grows;) {
    grows = false;
    for (const engine::RunRecord* one : runs) {
      if (!overlaps(one) || (one->started.t >= from && end_of(*one) <= to)) continue;
      from = std::min(from, one->started.t);
      to = std::max(to, end_of(*one));
      grows = true;
    }
  }
  std::erase_if(runs, [&](const engine::RunRecord* one) { return !overlaps(one); });
  return runs;
}

std::string schedule_words(const engine::Timeline& timeline,
                           std::span<const engine::RunRecord* const> runs) {
  if (runs.empty()) return "";
  const engine::RunStarted& started = runs[0]->started;
  const engine::ModelLoaded* model = timeline.model(started.model);
  const engine::SearchRecord* search = search_of(timeline.searches(), started);
  const std::string on = model ? " on " + model->name : "";
  const std::string n = engine::counted(static_cast<std::int64_t>(runs.size()), "run");
  const std::string of = search ? fmt::format(" of search {}", search->begun.search) : "";
  return short_name(started.decoder) + on + ", " + n + of;
}

ScheduleLanes schedule_lanes_of(std::span<const engine::RunRecord* const> runs) {
  return schedule_lanes_of(engine::schedule_of(runs));
}

ScheduleLanes schedule_lanes_of(std::span<const engine::RunRecord> runs) {
  return schedule_lanes_of(engine::schedule_of(runs));
}

ScheduleLanes schedule_lanes_of(engine::Schedule schedule) {
  return Builder(std::move(schedule)).lanes();
}

std::vector<ScheduleBlock> blocks_in_view(const ScheduleRow& row, const ClockView& view) {
  std::vector<ScheduleBlock> blocks;
  if (!(view.t1 > view.t0) || !(view.width >= 1)) return blocks;
  const double wide = (view.t1 - view.t0) / view.width * kBlockPixels;
  const std::vector<ScheduleSlice>& slices = row.slices;
  std::size_t i = first_ending_after(row, view.t0);
  while (i < slices.size() && slices[i].t0 < view.t1) {
    ScheduleBlock block{slices[i].t0, slices[i].t1, i, i + 1};
    if (block.t1 - block.t0 < wide) {
      // Blocks begin at multiples of their width, so that they do not flicker while panning.
      const double edge = (std::floor(block.t0 / wide) + 1) * wide;
      block.last = std::max(i + 1, first_beginning_at(row, edge));
      const ScheduleSlice& across = slices[block.last - 1];
      // A wide slice that crosses the edge gets a block of its own.
      if (block.is_bucket() && across.t1 - across.t0 >= wide) --block.last;
      block.t1 = slices[block.last - 1].t1;
      const double time = block.t1 - block.t0;
      const ScheduleSums &before = row.sums[block.first], &after = row.sums[block.last];
      block.worked = static_cast<float>((after.worked - before.worked) / time);
      block.waited = static_cast<float>((after.waited - before.waited) / time);
    }
    blocks.push_back(block);
    i = block.last;
  }
  return blocks;
}

std::size_t slice_at(const ScheduleRow& row, double t) {
  const std::size_t i = first_ending_after(row, t);
  return i < row.slices.size() && row.slices[i].t0 <= t ? i : row.slices.size();
}

ScheduleFigures figures_between(const ScheduleLanes& lanes, double from, double to) {
  ScheduleFigures figures;
  for (const auto& [a, b] : lanes.under_way) figures.under_way += overlap(a, b, from, to);
  for (const ScheduleRow& row : lanes.rows) {
    const std::size_t first = first_ending_after(row, from);
    const std::size_t last = std::max(first, first_beginning_at(row, to));
    for (std::size_t i = first; i < last; ++i) {
      const ScheduleSlice& slice = row.slices[i];
      add_slice(figures, slice, overlap(slice.t0, slice.t1, from, to));
    }
    if (row.kind == Kind::Target) figures.n_tokens = row.sums[last].tokens - row.sums[first].tokens;
    if (row.kind == Kind::Queue && last > first)
      figures.longest_queue = std::max(figures.longest_queue, row.index + 1);
  }
  return figures;
}

std::vector<float> tokens_over(const ScheduleLanes& lanes, int n) {
  std::vector<float> bars(static_cast<std::size_t>(std::max(n, 0)));
  if (lanes.empty() || !(lanes.end > 0)) return bars;
  const ScheduleRow& target = lanes.rows[0];
  std::int64_t before = 0;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double edge = lanes.end * static_cast<double>(i + 1) / n;
    const std::int64_t sum = target.sums[first_ending_after(target, edge)].tokens;
    bars[i] = static_cast<float>(sum - before);
    before = sum;
  }
  return bars;
}

std::string slice_sentence(const ScheduleLanes& lanes, const ScheduleRow& row, std::size_t i) {
  const ScheduleSlice& slice = row.slices[i];
  const ScheduleTurn& turn = lanes.schedule.turns[slice.turn];
  const std::string time = short_time(slice.t1 - slice.t0);
  const int b = turn.branch;
  switch (slice.act) {
    case Act::Forward:
      return forward_sentence(lanes, slice);
    case Act::WaitsForDraft:
      return fmt::format("The target waits for a draft, {}, until the draft of branch {} arrives.",
                         time, b);
    case Act::Result:
      return fmt::format("Branch {}: {} of {} drafted tokens accepted, +{} tokens committed.", b,
                         turn.n_accepted, turn.n_proposed, turn.n_tokens);
    case Act::WaitsToDraft: {
      const std::vector<int> ahead = drafting_between(lanes, slice.t0, slice.t1);
      const std::string after = ahead.empty() ? "" : ", after " + branches_words(ahead);
      return fmt::format("Branch {} waits for the draft model, {}{}.", b, time, after);
    }
    case Act::Drafts:
      return fmt::format("Branch {} {}drafts {}, {}.", b,
                         turn.reads_prompt ? "lets the draft model read its prompt and " : "",
                         engine::counted(turn.n_proposed, "token"), time);
    case Act::WaitsForTarget:
      return wait_for_target_sentence(lanes, turn, slice.t0, slice.t1);
    case Act::BeingVerified:
      return fmt::format("The target verifies the draft of branch {}, {}.", b, time);
    case Act::InQueue:
      break;
  }
  const double origin = static_cast<double>(lanes.schedule.origin);
  const double from = static_cast<double>(turn.queued) - origin;
  const double to = turn.left_queue < 0 ? slice.t1 : static_cast<double>(turn.left_queue) - origin;
  return fmt::format("{}{} in the queue, {} at this place. ", row.index + 1,
                     ordinal_end(row.index + 1), time) +
         wait_for_target_sentence(lanes, turn, from, to);
}

std::string block_sentence(const ScheduleLanes& lanes,
                           const ScheduleRow& row,
                           const ScheduleBlock& block) {
  if (!block.is_bucket()) return slice_sentence(lanes, row, block.first);
  const ScheduleSums &before = row.sums[block.first], &after = row.sums[block.last];
  std::string text =
      fmt::format("{}: {} slices in {}, {} of the time working", row_name(row),
                  block.last - block.first, short_time(block.t1 - block.t0), percent(block.worked));
  if (row.kind == Kind::Queue)
    text = fmt::format("{}: {} turns waited here one after the other, in {}", row_name(row),
                       block.last - block.first, short_time(block.t1 - block.t0));
  if (block.waited > 0) text += fmt::format(", {} waiting", percent(block.waited));
  if (row.kind == Kind::Target) text += fmt::format(", +{} tokens", after.tokens - before.tokens);
  return text + "\nzoom in to see them";
}

std::size_t turn_of(const ScheduleLanes& lanes, engine::RunId run, engine::StepId step) {
  const std::vector<ScheduleTurn>& turns = lanes.schedule.turns;
  const auto first = lanes.first_turn.find(run);
  if (first == lanes.first_turn.end() || step < 0) return turns.size();
  const std::size_t i = first->second + static_cast<std::size_t>(step);
  return i < turns.size() && turns[i].run == run ? i : turns.size();
}

std::vector<std::size_t> slices_of_turn(const ScheduleLanes& lanes,
                                        const ScheduleRow& row,
                                        std::size_t turn) {
  const ScheduleTurn& t = lanes.schedule.turns[turn];
  std::vector<std::size_t> found;
  if (row.kind == Kind::Branch && row.index != t.branch) return found;
  const auto [from, to] = time_of(lanes, t);
  for (std::size_t i = first_ending_after(row, from);
       i < row.slices.size() && row.slices[i].t0 < to; ++i) {
    const ScheduleSlice& slice = row.slices[i];
    bool is_of = slice.turn == turn;
    if (slice.act == Act::Forward)
      is_of = std::ranges::count(lanes.schedule.lane_turns(lanes.schedule.forwards[slice.forward]),
                                 static_cast<std::uint32_t>(turn)) > 0;
    if (is_of) found.push_back(i);
  }
  return found;
}

Place place_of(const ScheduleLanes& lanes, const ScheduleSlice& slice) {
  const ScheduleTurn& turn = lanes.schedule.turns[slice.turn];
  return {turn.run, turn.step, -1, -1};
}

std::pair<double, double> time_of(const ScheduleLanes& lanes, const ScheduleTurn& turn) {
  const Nanoseconds last =
      std::max({turn.may_draft, turn.drafts, turn.queued, turn.left_queue, turn.ended});
  return {static_cast<double>(turn.may_draft - lanes.schedule.origin),
          static_cast<double>(last - lanes.schedule.origin)};
}

}  // namespace ui
