// A run as slices on lanes, on one of four clocks. The trace export, the levels of detail (lod.h)
// and descriptions of steps (engine/trace/describe.h) use these times.
//   wall      the parts of a step in succession from its beginning. The forward part is exact if
//             the forward pass served only this run, else it is the run's share. A step that waited
//             in a queue for its forward pass continues after the wait
//   compute   the parts on the run's own compute time
//   step      every step is kUnit long
//   position  a step spans the positions it committed, kUnit each
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"

namespace engine {

/// The clock by which a run is drawn.
enum class Clock : std::uint8_t { Wall, Compute, Step, Position };
inline constexpr Nanoseconds kUnit = 1'000'000;  // length of a step or position

/// The lanes of a run.
enum class LaneKind : std::uint8_t { Phases, Propose, Target, Verify, Commit, Pool, Device };
inline constexpr int kLaneKinds = 7;
/// "phases", "propose", ...
const char* name_of(LaneKind lane);

/// The kind of a slice, which gives its colour.
enum class SliceKind : std::uint8_t {
  Load,
  Prefill,
  Decode,
  OtherPhase,
  Failed,
  Propose,
  Forward,
  VerifyPlain,     ///< a step without proposals
  VerifyAccepted,  ///< at least one proposal accepted
  VerifyRejected,  ///< no proposal accepted
  Commit,
  Rollback,  ///< a step that committed nothing
  PoolHit,   ///< a guess from the pool was accepted
  PoolMiss,  ///< guesses were verified, none accepted
  PoolFill,  ///< n-grams were only added or evicted
  Busy,      ///< a sampled device
};
inline constexpr int kSliceKinds = 16;

/// Properties of a slice that stay visible at any zoom, as bits.
enum SliceFlag : std::uint8_t {
  kFlagRejected = 1,
  kFlagError = 2,
  kFlagPoolHit = 4,
  kFlagPoolAdded = 8
};

/// A span of time on a lane.
struct Slice {
  Nanoseconds start = 0, end = 0;
  StepId step = -1;  // -1: none; for a phase: its index in RunRecord::phases
  SliceKind kind = SliceKind::Forward;
  std::uint8_t flags = 0;    // bits of SliceFlag
  std::int16_t percent = 0;  // Busy: load; Forward: share of rows that were not committed
};

/// A slice and its lane.
struct LaneSlice {
  LaneKind lane;
  Slice slice;
};

/// The slices of one step, in the order of time.
struct LaneSlices {
  std::array<LaneSlice, 5> all{};
  std::size_t n = 0;
  /// The first slice.
  const LaneSlice* begin() const { return all.data(); }
  /// Past the last slice.
  const LaneSlice* end() const { return all.data() + n; }
};

/// The slices of a complete step; an incomplete step has none.
LaneSlices slices_of(const StepHead& step, Clock clock);
/// The slices of a step of this run. On the wall clock a step that queued for the target continues
/// when it left the queue (Dequeued).
LaneSlices slices_of(const RunRecord& run, const StepHead& step, Clock clock);
/// The run's phases and its failure; on clocks other than Wall only the decode phase.
std::vector<Slice> phase_slices(const RunRecord& run, Clock clock);
/// The load of sampled devices as slices.
std::vector<Slice> device_slices(std::span<const Sampled> samples);

/// The label of a slice, its kind first: "verify accepted 3/5".
std::string label_of(const RunRecord& run, LaneKind lane, const Slice& slice);

}  // namespace engine
