// Rounds with a clock instead of threads: the same bookkeeping, stage times as given, the same
// outcome on every machine. For lessons, for tests, and to see what a schedule could gain.
#pragma once

#include <functional>
#include <vector>

#include "engine/seed/rounds.h"

namespace engine {

/// How long the stages last; asked as each begins, so that they may differ with Rounds::at_once().
struct StageTimes {
  std::function<Nanoseconds(int branch)> draft;                      // one tree
  std::function<Nanoseconds(std::span<const int> branches)> verify;  // one forward
  int n_drafts = 0;  // that work at once; 0: one a branch, as the paper has it
};
/// Every draft takes t_draft and every verification t_verify, however many branches it takes.
StageTimes fixed_times(Nanoseconds t_draft, Nanoseconds t_verify, int n_drafts = 0);

/// A piece of a branch's time.
struct StageSlice {
  enum class Stage : std::uint8_t { Draft, Verify } stage = Stage::Draft;
  int branch = 0;
  Nanoseconds begin = 0, end = 0;
};

/// Runs all requests of `work`, one thing after the other on this thread, on a clock that begins at
/// 0 and reads prompts in no time.
/// @return  in the order in which they end; the last ends last
std::vector<StageSlice> simulate_rounds(Rounds& rounds, RoundsWork& work, const StageTimes& times);

/// A request without a model: so many tokens, and how many of them each round gives, over again.
struct ScriptedRequest {
  int n_tokens = 1;
  std::vector<int> emitted = {1};
  double value = 0;
};

class ScriptedWork final : public RoundsWork {
 public:
  /// Runs are numbered from 1, in the requests' order.
  explicit ScriptedWork(std::vector<ScriptedRequest> requests);
  std::optional<Admitted> begin(int branch) override;
  void draft(int branch) override;
  std::vector<VerifiedNode> verify(std::span<const int> branches) override;
  void end(int branch) override;

  /// Requests in the order in which they ended, from 0.
  const std::vector<int>& ended() const { return ended_; }
  /// Rounds that all of them take.
  int n_rounds() const;

 private:
  struct Place {
    int request = -1;
    int n_tokens = 0, n_rounds = 0;
  };
  std::vector<ScriptedRequest> requests_;
  std::size_t next_ = 0;
  std::vector<Place> places_;  // by branch; no more are taken than there are requests
  std::vector<int> ended_;
};

}  // namespace engine
