// The cost of a run's steps by part, and the speed-up that follows from it and the accepted tokens, beside the measured one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/event/event.h"

namespace engine {

class Timeline;
struct RunRecord;

struct Acceptance;

/// The machine whose cost of a row is assumed.
enum class RowCost { Recorded, H100, Free };
inline constexpr int kRowCosts = 3;
/// Returns the name: "this machine", "an H100", "rows are free".
const char* name_of(RowCost cost);

/// The time of a forward by its number of rows, relative to one row.
struct RowCurve {
  std::vector<std::pair<double, double>> points{{1, 1}};  // rows, factor; rows ascend
  /// Returns the factor, linear between the points and beyond the last.
  double at(double rows) const;
};
/// Returns the curve of a cost. That of the recording is the least-squares line through the median times by number of rows, over all runs of the
/// model that had it alone; it is flat if all steps have equally many rows. The H100's was measured with a 7B model in bf16 at context 512
/// (docs/measurements/gpu/h100_80gb_hbm3_27_november.json).
RowCurve row_curve(RowCost cost, const Timeline& timeline, const RunRecord& run);

/// Means over the steps of a run, ms.
struct StepCost {
  int n_steps = 0;
  double propose = 0, draft = 0;  // draft: the part of propose in forwards of a draft model
  double forward = 0;
  double finish = 0;  // verification and commit
  double rows = 0;    // rows per step
  /// Returns the mean time of a step, ms.
  double total() const { return propose + forward + finish; }
};
/// Returns the means over the complete steps.
StepCost step_cost_of(const RunRecord& run);

/// A part of a step's time.
struct SpeedPart {
  const char* name;
  double ms = 0;       // per step, beyond a plain step
  double speedup = 0;  // with this part and all before it
};
/// The predicted speed-up of a run, part by part.
struct SpeedAccount {
  std::string why;  // why there is none; empty otherwise
  RunId baseline = 0;
  double plain_ms = 0, step_ms = 0;
  std::vector<SpeedPart> parts;        // the first: the expected tokens alone
  double predicted = 0, measured = 0;  // speed-ups
};
/// Returns the account. The expected tokens per step are those of the acceptance, the times those of the run and of its baseline.
SpeedAccount speed_account(const Timeline& timeline,
                           const RunRecord& run,
                           const Acceptance& acceptance);

}  // namespace engine
