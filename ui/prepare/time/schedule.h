// What the Schedule draws: SEED's branches, its target and its queue, of all runs together on the
// wall clock, made of what engine/event/timeline/schedule_turns.h tells.
//   target, verify   forwards, with waits for a draft between them; what became of each draft
//   branch B         its turns: waits for the draft model, drafts, waits for the target, is judged
//   queue            a row a place, the first place first: who stood there
// Times are nanoseconds since the first run that took part began.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/timeline/schedule_turns.h"
#include "ui/prepare/time/gantt.h"
#include "ui/shell/selection.h"

namespace ui {

enum class ScheduleRowKind : std::uint8_t { Target, Verify, Branch, Queue };

/// What goes on during a slice.
enum class ScheduleAct : std::uint8_t {
  Forward,         ///< of the target
  WaitsForDraft,   ///< the target
  Verdict,         ///< verified and committed
  WaitsToDraft,    ///< a branch, for the draft model
  Drafts,          //
  WaitsForTarget,  //
  VerifiedNode,    //
  InQueue,         ///< at this place
};
constexpr bool is_wait(ScheduleAct act) {
  return act == ScheduleAct::WaitsForDraft || act == ScheduleAct::WaitsToDraft ||
         act == ScheduleAct::WaitsForTarget;
}

struct ScheduleSlice {
  double t0 = 0, t1 = 0;
  std::uint32_t turn = 0;     // of told.turns; of a forward or its wait, the first it took
  std::uint32_t forward = 0;  // of told.forwards, of a forward
  ScheduleAct act = ScheduleAct::Forward;
};

struct ScheduleSums {
  double worked = 0, waited = 0;  // ns
  std::int64_t tokens = 0;        // committed, of forwards
};

struct ScheduleRow {
  ScheduleRowKind kind = ScheduleRowKind::Target;
  int index = 0;                      // the branch; the place in the queue, from 0
  std::vector<ScheduleSlice> slices;  // by t0, none over another
  std::vector<ScheduleSums> sums;     // [slices + 1] of all before
};
std::string row_name(const ScheduleRow& row);  // "branch 1", "queue 1st"

/// Of a time.
struct ScheduleFigures {
  double under_way = 0;  // ns in which any branch was
  double target = 0;     // of those, ns of forwards and verdicts
  double target_waits = 0;
  double waits_to_draft = 0, waits_for_target = 0;  // ns, of all branches
  int longest_queue = 0;
  std::int64_t n_forwards = 0, n_tokens = 0;

  /// Of the time under way; -1: there was none.
  double target_busy() const { return under_way > 0 ? target / under_way : -1; }
  double mean_queue() const { return under_way > 0 ? waits_for_target / under_way : -1; }
};

struct ScheduleLanes {
  engine::Schedule told;
  std::map<engine::RunId, std::size_t> first_turn;   // of told.turns, by run
  std::vector<ScheduleRow> rows;                     // target, verify, branches, queue
  std::vector<std::pair<double, double>> under_way;  // while any branch was; by time, apart
  double end = 0;
  ScheduleFigures figures;  // of all of it

  bool empty() const { return told.empty(); }
};
ScheduleLanes schedule_lanes_of(std::span<const engine::RunRecord> runs);
ScheduleLanes schedule_lanes_of(engine::Schedule told);

/// A slice, or several that are too narrow to be seen one by one.
struct ScheduleBlock {
  double t0 = 0, t1 = 0;
  std::size_t first = 0, last = 0;  // slices of the row, [first, last)
  float worked = 0, waited = 0;     // shares of its time, of several

  bool is_bucket() const { return last - first > 1; }
};
/// Blocks between view.t0 and view.t1, oldest first, at most one a pixel and a few more; found in
/// time that grows with the pixels, not with the slices.
std::vector<ScheduleBlock> blocks_in_view(const ScheduleRow& row, const ClockView& view);
/// The slice at a time, or slices.size().
std::size_t slice_at(const ScheduleRow& row, double t);

/// Of [from, to].
ScheduleFigures figures_between(const ScheduleLanes& lanes, double from, double to);

/// Committed tokens in each of `n` equal parts of all there is.
std::vector<float> tokens_over(const ScheduleLanes& lanes, int n);

/// A slice in a sentence: "Branch 1 waits for the target, 3.1 ms, behind branch 0."
std::string slice_sentence(const ScheduleLanes& lanes, const ScheduleRow& row, std::size_t slice);
/// Several slices too narrow to be seen.
std::string block_sentence(const ScheduleLanes& lanes,
                           const ScheduleRow& row,
                           const ScheduleBlock& block);

/// The turn of a run's step, or told.turns.size().
std::size_t turn_of(const ScheduleLanes& lanes, engine::RunId run, engine::StepId step);
/// Slices of a row that a turn takes part in, by index; a forward may be of several turns.
std::vector<std::size_t> slices_of_turn(const ScheduleLanes& lanes,
                                        const ScheduleRow& row,
                                        std::size_t turn);
Place place_of(const ScheduleLanes& lanes, const ScheduleSlice& slice);
/// From when it may draft until it is over, or as far as it was told.
std::pair<double, double> time_of(const ScheduleLanes& lanes, const engine::ScheduleTurn& turn);

}  // namespace ui
