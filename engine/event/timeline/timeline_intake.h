// Applies events to a timeline and refuses events that contradict earlier ones. A recording is
// untrusted: for any content, sums stay defined and indices stay in range.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"

namespace engine {

/// Longer times and durations (13 days in ns) are refused.
inline constexpr Nanoseconds kMaxTime = Nanoseconds{1} << 50;
/// Largest accepted number of consecutive missing steps, which were lost with a damaged frame.
inline constexpr StepId kMaxMissingSteps = 4096;
/// Number of reasons kept; further refusals are only counted.
inline constexpr std::size_t kMaxReasons = 100;

/// [tokens] for each committed token, the row of the step after which it was chosen. If the row of
/// a token is unknown, this token and all later ones have -1.
std::vector<int> answering_rows(const StepRecord& step, std::span<const TokenId> tokens);

/// Applies events to one timeline. Every take() returns the reason of a refusal, or "".
class TimelineIntake {
 public:
  /// @param timeline  outlives the intake
  explicit TimelineIntake(Timeline& timeline) : timeline_(timeline) {}
  /// Applies an event, or counts it as inconsistent.
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
  /// A search that has not ended, or nullptr.
  SearchRecord* open_search(SearchId id);
  /// A thought of a search that has not ended, or nullptr.
  ThoughtRecord* thought_of(SearchId id, int node);
  /// Drops payload until the rest is within the budget.
  void keep_budget(RunRecord& grown);
  /// The step if it is in progress, else null.
  StepRecord* open_step(RunId id, StepId step);
  /// The first token outside the vocabulary of the run's model, or -1.
  TokenId foreign(const RunRecord& run, std::span<const TokenId> tokens) const;
  int vocab_size(const RunRecord& run) const;

  Timeline& timeline_;  // owned by the caller of apply
};

}  // namespace engine
