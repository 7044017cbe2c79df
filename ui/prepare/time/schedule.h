// The rows of the panel Schedule: SEED's branches, target and queue, for the runs of one schedule on the wall clock. They are built from
// engine/event/timeline/schedule_turns.h.
//   target, verify   forwards with the waits for a draft between them; the results of verification
//   branch B         its turns: waits for the draft model, drafts, waits for the target, is verified
//   queue            one row per place, the first place first
// Times are ns since the start of the first run.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/timeline/schedule_turns.h"
#include "ui/prepare/selection.h"

namespace ui {

struct ClockView;

/// The kind of a row.
enum class ScheduleRowKind : std::uint8_t { Target, Verify, Branch, Queue };

/// The activity during a slice.
enum class ScheduleAct : std::uint8_t {
  Forward,         ///< a forward of the target
  WaitsForDraft,   ///< the target waits for a draft
  Result,          ///< the result of a verification
  WaitsToDraft,    ///< a branch waits for the draft model
  Drafts,          ///< a branch drafts
  WaitsForTarget,  ///< a branch waits for the target
  BeingVerified,   ///< the target verifies the branch's draft
  InQueue,         ///< a turn has this place of the queue
};
/// Returns true if something waits during the slice.
constexpr bool is_wait(ScheduleAct act) {
  return act == ScheduleAct::WaitsForDraft || act == ScheduleAct::WaitsToDraft ||
         act == ScheduleAct::WaitsForTarget;
}

/// A slice of a row.
struct ScheduleSlice {
  double t0 = 0, t1 = 0;
  std::uint32_t turn =
      0;  // index in schedule.turns; for a forward or the wait before it, the first turn that it verifies
  std::uint32_t forward = 0;  // index in schedule.forwards, if the slice is a forward
  ScheduleAct act = ScheduleAct::Forward;
};

/// Sums over slices.
struct ScheduleSums {
  double worked = 0, waited = 0;  // ns of work, ns of waiting
  std::int64_t tokens = 0;        // tokens that forwards committed
};

/// A row.
struct ScheduleRow {
  ScheduleRowKind kind = ScheduleRowKind::Target;
  int index = 0;                      // number of the branch, or place in the queue, from 0
  std::vector<ScheduleSlice> slices;  // sorted by t0, without overlaps
  std::vector<ScheduleSums> sums;     // [slices + 1] prefix sums
};
/// Returns the label of a row: "branch 1", "queue 1st".
std::string row_name(const ScheduleRow& row);

/// Figures of a time range.
struct ScheduleFigures {
  double under_way = 0;  // ns in which any branch was active
  double target = 0;     // ns of forwards and verifications
  double target_waits = 0;
  double waits_to_draft = 0, waits_for_target = 0;  // ns, summed over all branches
  int longest_queue = 0;
  std::int64_t n_forwards = 0, n_tokens = 0;

  /// Returns the share of the active time in which the target computed; -1 without active time.
  double target_busy() const { return under_way > 0 ? target / under_way : -1; }
  /// Returns the mean length of the queue over the active time; -1 without active time.
  double mean_queue() const { return under_way > 0 ? waits_for_target / under_way : -1; }
};

/// All rows of a schedule.
struct ScheduleLanes {
  engine::Schedule schedule;
  std::map<engine::RunId, std::size_t> first_turn;  // index of a run's first turn in schedule.turns
  std::vector<ScheduleRow> rows;                    // target, verify, branches, queue
  std::vector<std::pair<double, double>>
      under_way;  // times in which any branch was active; sorted, disjoint
  double end = 0;
  ScheduleFigures figures;  // figures of the whole schedule

  /// Returns true if the schedule has no turns.
  bool empty() const { return schedule.empty(); }
};
/// Returns the queued runs of the schedule that `run` belongs to, by start: those of its search if it has one, else `run` and those whose times overlap
/// with it, directly or through others. Empty if none queued, or without a run.
std::vector<const engine::RunRecord*> runs_of_schedule(const engine::Timeline& timeline,
                                                       const engine::RunRecord* run);
/// Returns the runs in words: "seed on demo-target, 3 runs of search 2".
std::string schedule_words(const engine::Timeline& timeline,
                           std::span<const engine::RunRecord* const> runs);

/// Returns the rows of recorded runs.
ScheduleLanes schedule_lanes_of(std::span<const engine::RunRecord> runs);
/// Returns the rows of some recorded runs, in the order of their beginning.
ScheduleLanes schedule_lanes_of(std::span<const engine::RunRecord* const> runs);
/// Returns the rows of a schedule.
ScheduleLanes schedule_lanes_of(engine::Schedule schedule);

/// A slice, or several that are too narrow to be drawn one by one.
struct ScheduleBlock {
  double t0 = 0, t1 = 0;
  std::size_t first = 0, last = 0;  // slices of the row, [first, last)
  float worked = 0, waited = 0;     // shares of the block's time, for several slices

  /// Returns true if it contains several slices.
  bool is_bucket() const { return last - first > 1; }
};
/// Returns the blocks between view.t0 and view.t1, oldest first, about one per pixel at most. The time to find them grows with the number of pixels,
/// not of slices.
std::vector<ScheduleBlock> blocks_in_view(const ScheduleRow& row, const ClockView& view);
/// Returns the index of the slice at a time; slices.size() if there is none.
std::size_t slice_at(const ScheduleRow& row, double t);

/// Returns the figures of [from, to].
ScheduleFigures figures_between(const ScheduleLanes& lanes, double from, double to);

/// Returns the number of tokens committed in each of `n` equal parts of the schedule.
std::vector<float> tokens_over(const ScheduleLanes& lanes, int n);

/// Returns a slice in a sentence: "Branch 1 waits for the target, 3.1 ms, after branch 0."
std::string slice_sentence(const ScheduleLanes& lanes, const ScheduleRow& row, std::size_t slice);
/// Returns the same for a block, which may contain several slices.
std::string block_sentence(const ScheduleLanes& lanes,
                           const ScheduleRow& row,
                           const ScheduleBlock& block);

/// Returns the index of the turn of a run's step; schedule.turns.size() if there is none.
std::size_t turn_of(const ScheduleLanes& lanes, engine::RunId run, engine::StepId step);
/// Returns the indices of the slices of a row that belong to a turn; a forward may belong to several turns.
std::vector<std::size_t> slices_of_turn(const ScheduleLanes& lanes,
                                        const ScheduleRow& row,
                                        std::size_t turn);
/// Returns the step of a slice.
Place place_of(const ScheduleLanes& lanes, const ScheduleSlice& slice);
/// Returns the time from which a turn may draft and the time of its end, as far as they are recorded.
std::pair<double, double> time_of(const ScheduleLanes& lanes, const engine::ScheduleTurn& turn);

}  // namespace ui
