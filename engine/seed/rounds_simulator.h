// Simulates rounds on its own clock: the same bookkeeping (rounds.h) with given stage times, so the
// result is the same on every machine. Used by lessons and tests, and to estimate the gain of a
// schedule.
#pragma once

#include <functional>
#include <vector>

#include "engine/seed/rounds.h"

namespace engine {

/// Durations of the stages. The simulator calls these functions when a stage begins, so a duration
/// may depend on Rounds::at_once().
struct StageTimes {
  std::function<Nanoseconds(int branch)> draft;                      // one tree
  std::function<Nanoseconds(std::span<const int> branches)> verify;  // one forward
};
/// Every draft takes t_draft, and every verification t_verify for any number of branches.
StageTimes fixed_times(Nanoseconds t_draft, Nanoseconds t_verify);

/// One stage of a branch on the simulator's clock.
struct StageSlice {
  /// The resource that works.
  enum class Stage : std::uint8_t { Draft, Verify } stage = Stage::Draft;
  int branch = 0;
  Nanoseconds begin = 0, end = 0;
};

/// Runs all requests of `work` on this thread. The clock starts at 0, and prompts take no time.
/// @return  all stages, in the order in which they end
std::vector<StageSlice> simulate_rounds(Rounds& rounds, RoundsWork& work, const StageTimes& times);

/// A request without a model: its length, and the number of tokens that each round emits. If there
/// are more rounds than numbers, the numbers repeat.
struct ScriptedRequest {
  int n_tokens = 1;
  std::vector<int> emitted = {1};
  double value = 0;
};

/// Serves scripted requests.
class ScriptedWork final : public RoundsWork {
 public:
  /// Runs are numbered from 1, in the order of the requests.
  explicit ScriptedWork(std::vector<ScriptedRequest> requests);
  std::optional<Admitted> begin(int branch) override;
  void draft(int branch) override;
  std::vector<VerifiedBranch> verify(std::span<const int> branches) override;
  void end(int branch) override;

  /// Indices of the requests in the order in which they ended.
  const std::vector<int>& ended() const { return ended_; }
  /// Total number of rounds of all requests.
  int n_rounds() const;

 private:
  struct Place {
    int request = -1;
    int n_tokens = 0, n_rounds = 0;
  };
  std::vector<ScriptedRequest> requests_;
  std::size_t next_ = 0;
  std::vector<Place> places_;  // [branches] indices of requests, at most one for each branch
  std::vector<int> ended_;
};

}  // namespace engine
