// The acceptance of a run's proposals by depth, by task and by token.
//   paper  Leviathan, Kalman, Matias 2023 (arXiv:2211.17192): alpha in section 3.1, expected tokens in equation 1
// The depth of a proposal is its distance from the prefix; 1 is the next position.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/event/event.h"

namespace engine {

class Timeline;
struct RunRecord;

/// The mean of alpha = 1 - TV(p, q), the probability that rejection sampling accepts a token drawn from q. It is estimated by the mean of
/// min(1, p / q) over the tokens drawn. A recording has the probabilities of a few tokens of each place, which bound alpha at these places.
struct Alpha {
  double sum = 0;  // of min(1, p / q)
  int n = 0;       // tokens drawn
  double sum_low = 0, sum_high = 0;
  int n_bounded = 0;  // places

  /// Adds the tokens and places of another run.
  void add(const Alpha& other);
  double mean() const { return n > 0 ? sum / n : 0; }
  double low() const { return n_bounded > 0 ? sum_low / n_bounded : 0; }
  double high() const { return n_bounded > 0 ? sum_high / n_bounded : 0; }
};

/// Acceptance at one depth.
struct DepthAcceptance {
  int verified = 0, accepted = 0;  // proposals; the other ones were not verified
  int reached = 0,
      passed = 0;  // steps with a proposal here after an accepted one; steps that accepted one here
  Alpha alpha;
};

/// The acceptance of a run.
struct Acceptance {
  std::vector<DepthAcceptance> by_depth;  // [depth - 1]
  int n_steps = 0, n_tokens = 0;          // complete steps, committed tokens
  int proposed = 0, verified = 0, accepted = 0;
  int reached = 0, passed = 0;
  Alpha alpha;
  bool is_chain = true;  // no step had two proposals at one depth
  double expected =
      0;  // mean of expected_tokens(rate(), depth) over the steps with their own depths
  /// Returns the acceptance probability of a depth that was reached: alpha's mean for chains if it is known, else passed / reached.
  double rate() const;
  /// Returns committed tokens / steps; 0 without steps.
  double tokens_per_step() const { return n_steps > 0 ? double(n_tokens) / n_steps : 0; }
};
/// Returns the acceptance over the complete steps of a run.
Acceptance acceptance_of(const RunRecord& run);

/// Returns the tokens that a step is expected to commit if each of `depth` proposals is accepted with probability `rate` and the first rejection
/// ends the step: (1 - rate^(depth + 1)) / (1 - rate).
double expected_tokens(double rate, int depth);

/// The acceptance of the runs of one task.
struct TaskAcceptance {
  std::string task;  // "arith"
  int n_runs = 0;
  std::int64_t proposed = 0, verified = 0, accepted = 0, n_steps = 0, n_tokens = 0;
  Alpha alpha;  // of the runs that have ended
};
/// Alpha of runs that have ended, which does not change.
using AlphaOfRuns = std::map<RunId, Alpha>;
/// Returns the acceptance by task over all runs with the decoder, options and models of `run`. The task is that of the prompt file, else the part of the
/// prompt's id before the first '/'; runs without a task are left out.
/// @param known  alpha of runs from earlier calls; extended
std::vector<TaskAcceptance> acceptance_by_task(const Timeline& timeline,
                                               const RunRecord& run,
                                               AlphaOfRuns& known);

/// A proposed token that the target rejected, and the token that it committed instead.
struct LostToken {
  TokenId proposed = 0, instead = 0;
  std::string proposed_text, instead_text;
  std::string context;  // the text before the last occurrence
  int n = 0;            // rejections
  int n_unused = 0;     // proposals that continued it, which were not verified
  std::vector<StepId> steps;
};
/// Returns the rejected tokens of the complete steps, the most frequent first.
std::vector<LostToken> lost_tokens(const Timeline& timeline, const RunRecord& run);

}  // namespace engine
