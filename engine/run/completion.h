// Completions: the requests that a scheduler serves, its results and its counters. Reasoning
// (engine/reason) uses this interface and never sees a decoder.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/run/run.h"

namespace engine {

/// A prompt to continue.
struct CompletionRequest {
  RunRequest run;  // the prompt is prompt_tokens; its text is ignored
  /// A sequence with the same tokens as prompt_tokens, whose keys and values are shared instead of
  /// computed again; null: none. Owned by the caller until run() returns.
  const Sequence* from = nullptr;
  /// The run ends with the token that first completes one of these texts.
  std::vector<std::string> stop_texts;
  // value of the search state that this request continues (larger is better); the scheduler may use
  // it to choose
  double value = 0;
};

/// A finished continuation.
struct Completion {
  RunResult result;  // cut before a stop text; then stop_reason is "text"
  // prompt and continuation, without approximate tokens; a later request can continue it
  Sequence end;
};

/// How a scheduler reports its runs.
struct SchedulerWatch {
  EventSink* events = nullptr;  // or null
  RunId first_run = 1;          // id of the first request's run; the others follow in order
  std::function<bool()> stop;   // called before each step; true ends all runs. May be empty
  std::function<void(int done, int n)> ended;  // called as each request finishes. May be empty
};

/// Totals of a scheduler over all its calls of run().
struct ScheduleTotals {
  Nanoseconds wall = 0;           // duration of the calls
  Nanoseconds prefill = 0;        // compute of the prefills, of both models
  Nanoseconds draft_prefill = 0;  // the draft model's part of `prefill`
  Nanoseconds target_busy = 0;    // forward, verify and commit
  Nanoseconds draft_busy = 0;     // propose
  Nanoseconds drafting = 0;       // the part of draft_busy that belongs to runs with a draft model
  int n_runs = 0;
  std::int64_t n_tokens = 0;
  std::int64_t n_steps = 0;     // of all runs
  std::int64_t n_drafts = 0;    // steps for which a draft model proposed
  std::int64_t n_forwards = 0;  // of the target; fewer than steps if runs share forwards
  std::int64_t n_depth = 0;     // full_path_tokens() of all runs
  std::int64_t n_proposed = 0, n_accepted = 0, n_rejected = 0;  // as in Lane
  // Peak bytes of cache pages. branch_cache_bytes: of the current runs, without shared pages.
  // cache_bytes: of all sequences, including finished ones. draft_cache_bytes: of the draft.
  std::int64_t branch_cache_bytes = 0, cache_bytes = 0, draft_cache_bytes = 0;
};

/// The values of a report's "schedule": the totals, and rates computed from them. A rate whose
/// denominator is 0 is absent.
///     tokens_per_second   of wall
///     target_busy         share of wall
///     acceptance_rate     accepted / proposed
///     accepted_of_verified  accepted / (accepted + rejected): the rate per verified token
///     alpha               accepted / (steps * depth of the draft): SEED's acceptance rate
///     block_efficiency    tokens / steps
///     weight_bytes, draft_weight_bytes       counted once, however many runs there are
///     branch_cache_bytes, ...                as in ScheduleTotals
std::map<std::string, double> figures_of(const ScheduleTotals& totals, const RunModels& models);

/// Serves completion requests in an order of its choice.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// Serves all requests. Every completion has the same tokens as if its request ran alone. After
  /// an early stop, started requests return with stop_reason "stopped"; requests that were not
  /// started are left out.
  /// @return  one completion per request, in their order
  virtual std::vector<Completion> run(std::span<const CompletionRequest> requests,
                                      const SchedulerWatch& watch) = 0;
  /// Totals and rates of all calls of run(), for a report.
  virtual std::map<std::string, double> figures() const = 0;
  /// Notices on its options for this machine. run() emits them as events too, once.
  virtual std::vector<std::string> notices() const { return {}; }
};

}  // namespace engine
