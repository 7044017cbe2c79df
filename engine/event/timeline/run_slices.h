// What a run did, as slices on lanes: the trace export, the levels of detail (lod.h) and what is
// read aloud of a step (describe.h) take their times from here.
//   wall      the parts of a step laid one after the other from its beginning; exact for a lane
//             that had its forward to itself, else its share. A step that waited in a queue for its
//             forward has it behind the wait
//   compute   the same on the race clock: only the run's own compute counts
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

enum class Clock : std::uint8_t { Wall, Compute, Step, Position };
inline constexpr Nanoseconds kUnit = 1'000'000;  // of the clocks that count

enum class LaneKind : std::uint8_t { Phases, Propose, Target, Verify, Commit, Pool, Device };
inline constexpr int kLaneKinds = 7;
const char* name_of(LaneKind lane);

enum class SliceKind : std::uint8_t {
  Load,
  Prefill,
  Decode,
  OtherPhase,
  Failed,
  Propose,
  Forward,
  VerifyPlain,     ///< nothing was proposed
  VerifyAccepted,  ///< at least one proposal kept
  VerifyRejected,  ///< none kept
  Commit,
  Rollback,  ///< a step that committed nothing
  PoolHit,   ///< a guess from the pool was accepted
  PoolMiss,  ///< guesses were verified, none accepted
  PoolFill,  ///< n-grams added or evicted only
  Busy,      ///< a sampled device
};
inline constexpr int kSliceKinds = 16;

/// What must stay visible at any zoom, as bits.
enum Rare : std::uint8_t { kRareRejected = 1, kRareError = 2, kRarePoolHit = 4, kPoolAdded = 8 };

struct Slice {
  Nanoseconds start = 0, end = 0;
  StepId step = -1;  // -1: of no step; for phases the index in RunRecord::phases
  SliceKind kind = SliceKind::Forward;
  std::uint8_t rare = 0;     // bits of Rare
  std::int16_t percent = 0;  // of Busy: how busy; of Forward: of its rows, those thrown away
};

struct LaneSlice {
  LaneKind lane;
  Slice slice;
};

/// Slices of one step.
struct LaneSlices {
  std::array<LaneSlice, 5> all{};
  std::size_t n = 0;
  const LaneSlice* begin() const { return all.data(); }
  const LaneSlice* end() const { return all.data() + n; }
};

/// Slices of one complete step, lane by lane; an incomplete one has none.
LaneSlices slices_of(const StepHead& step, Clock clock);
/// The same of a step of this run: on the wall clock what queued between its proposal and its
/// forward (Dequeued) was forwarded when the target took it.
LaneSlices slices_of(const RunRecord& run, const StepHead& step, Clock clock);
/// The run's phases so far and its failure; on clocks other than wall, decode alone.
std::vector<Slice> phase_slices(const RunRecord& run, Clock clock);
/// Whether a GPU's driver was asked: not of a CPU, nor of the device emulated on one.
bool of_gpu(const Sampled& sample);
/// Busy shares of sampled devices.
std::vector<Slice> device_slices(std::span<const Sampled> samples);

/// What one reads on a slice, a word that names its state first: "verify accepted 3/5".
std::string label_of(const RunRecord& run, LaneKind lane, const Slice& slice);

}  // namespace engine
