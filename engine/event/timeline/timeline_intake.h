// What each kind of event changes in a timeline, and why an event is not believed (BAD_INPUTS TR04,
// TR05). A recording is untrusted: whatever it holds, sums stay defined and indices inside.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"

namespace engine {

/// Times and durations beyond this (13 days in ns) are not believed.
inline constexpr Nanoseconds kMaxTime = Nanoseconds{1} << 50;
/// Steps that may be missing in a row (lost with a damaged frame) before the rest is not believed.
inline constexpr StepId kMaxMissingSteps = 4096;
/// Reasons kept; further ones are only counted.
inline constexpr std::size_t kMaxReasons = 100;

/// The row of a step whose answer each of its committed tokens is; -1 from where that is not told.
std::vector<int> answering_rows(const StepRecord& step, std::span<const TokenId> tokens);

/// Applies one event. Every handler returns why it refused, or an empty string.
class TimelineIntake {
 public:
  explicit TimelineIntake(Timeline& timeline) : timeline_(timeline) {}
  void apply(const Event& event);

 private:
  std::string take(const ModelLoaded& e);
  std::string take(const RunStarted& e);
  std::string take(const Phase& e);
  std::string take(const StepBegun& e);
  std::string take(const Drafted& e);
  std::string take(const BlockRefined& e);
  std::string take(const Verified& e);
  std::string take(const Committed& e);
  std::string take(const PoolChanged& e);
  std::string take(const Queued& e);
  std::string take(const Dequeued& e);
  std::string take(const Waiting& e);
  std::string take(const Sampled& e);
  std::string take(const Agreement& e);
  std::string take(const StepEnded& e);
  std::string take(const PayloadDropped& e);
  std::string take(const RunFinished& e);
  std::string take(const RunFailed& e);
  std::string take(const Held& e);
  std::string take(const Notice& e);
  std::string take(const SearchBegun& e);
  std::string take(const ThoughtMade& e);
  std::string take(const ThoughtValued& e);
  std::string take(const ThoughtJudged& e);
  std::string take(const SearchEnded& e);

  std::string check_time(const Event& event);
  RunRecord* find(RunId id);
  /// A search that goes on, or nullptr.
  SearchRecord* open_search(SearchId id);
  /// A thought of it, or nullptr.
  ThoughtRecord* thought_of(SearchId id, int node);
  /// Lets payload go until the rest is within the budget.
  void keep_budget(RunRecord& grown);
  /// The step now running: begun and not complete; nullptr otherwise.
  StepRecord* open_step(RunId id, StepId step);
  /// The first token no model of this run knows, or -1.
  TokenId foreign(const RunRecord& run, std::span<const TokenId> tokens) const;
  int vocab_size(const RunRecord& run) const;

  Timeline& timeline_;  // owned by the caller of apply
};

}  // namespace engine
