// Who asks for completions and who decides in which order they are made. Reasoning (engine/reason)
// asks a scheduler and never sees a decoder.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/step/prompt_caches.h"
#include "engine/run/run.h"

namespace engine {

/// One text to be continued.
struct CompletionRequest {
  RunRequest run;  // prompt_tokens are what counts
  /// A sequence to go on from, whose tokens are prompt_tokens; its keys and values are shared, not
  /// computed again. Null: none. Owned by the caller, until run() returns.
  const Sequence* from = nullptr;
  /// The run ends where its text holds one of these, with the token that completes it.
  std::vector<std::string> stop_texts;
  double value = 0;  // of what it continues, larger first, for schedulers that may choose
};

struct Completion {
  RunResult result;  // cut at a stop text, and stop_reason then is "text"
  Sequence end;      // to go on from: of those tokens; approximate ones are not in it
};

/// How runs are told of while they go on.
struct SchedulerWatch {
  EventSink* events = nullptr;  // or null
  RunId first_run = 1;          // runs are numbered from here, in the requests' order
  std::function<bool()> stop;   // asked before each step; true ends all. Or empty
  std::function<void(int done, int n)> ended;  // called as each request is done. Or empty
};

/// What a scheduler has done so far, all calls of run() together.
struct ScheduleTotals {
  Nanoseconds wall = 0;           // of the calls
  Nanoseconds prefill = 0;        // own compute of reading prompts, both models
  Nanoseconds draft_prefill = 0;  // of it: the draft's, where it reads beside the target's work
  Nanoseconds target_busy = 0;    // judging what was proposed: forward, verify, commit
  Nanoseconds draft_busy = 0;     // proposing
  Nanoseconds drafting = 0;       // of it: for runs that have a draft model
  int n_runs = 0;
  std::int64_t n_tokens = 0;
  std::int64_t n_steps = 0;     // of all runs
  std::int64_t n_drafts = 0;    // of them: for which a draft model proposed
  std::int64_t n_forwards = 0;  // of the target; fewer than steps where runs share one
  std::int64_t n_depth = 0;     // tokens that whole paths of its drafts would have been
  std::int64_t n_proposed = 0, n_accepted = 0, n_rejected = 0;  // as in Lane
  // Pages, at the most: of runs under way, without what they share; of all texts, with those that
  // are over and can be gone on from; of the draft's.
  std::int64_t branch_cache_bytes = 0, cache_bytes = 0, draft_cache_bytes = 0;
};

/// Names and values for a report's "schedule": the totals and what follows from them. A rate whose
/// denominator is 0 is absent.
///     tokens_per_second   of wall
///     target_busy         share of wall
///     acceptance_rate     accepted / proposed
///     accepted_of_judged  accepted / (accepted + rejected): the rate of one token
///     alpha               accepted / (steps * depth of the draft): SEED's acceptance rate
///     block_efficiency    tokens / steps
///     weight_bytes, draft_weight_bytes       once, however many runs there are
///     branch_cache_bytes, ...                as in ScheduleTotals
std::map<std::string, double> figures_of(const ScheduleTotals& totals, const RunModels& models);

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// One completion a request, in their order; each has the tokens it has alone. Stopped early,
  /// those that were begun come with stop_reason "stopped" and the others are left out.
  virtual std::vector<Completion> run(std::span<const CompletionRequest> requests,
                                      const SchedulerWatch& watch) = 0;
  /// What it has done so far, for a report.
  virtual std::map<std::string, double> figures() const = 0;
};

/// The scheduler a decoder runs under.
/// @param options    of the decoder, as given
/// @param n_at_once  requests in one forward; not for "seed", whose options say it
std::unique_ptr<Scheduler> make_scheduler(const RunModels& models,
                                          const std::string& decoder,
                                          const OptionValues& options,
                                          int n_at_once);
/// The models such a scheduler needs: with what the decoder needs beside the target, the ranks that
/// share its rows among it; a draft model of "seed" has threads of its own.
RunModels models_for(ModelStore& store,
                     const ModelRequest& request,
                     const DraftResources& draft_resources,
                     const std::string& decoder,
                     const OptionValues& options,
                     const LoadProgress& progress = {});

/// Adds the ranks that these options ask for (ModelStore::get_ranks()).
/// @param options  of the decoder, as given
void add_ranks(ModelStore& store,
               RunModels& models,
               const std::string& decoder,
               const OptionValues& options,
               const LoadProgress& progress = {});

/// Up to `n_at_once` requests in one forward, whatever their lengths and decoders: as one ends the
/// next takes its place. 1: one after the other.
class BatchScheduler : public Scheduler {
 public:
  /// @param models  with a draft for decoders that need one
  BatchScheduler(const RunModels& models, int n_at_once);
  std::vector<Completion> run(std::span<const CompletionRequest> requests,
                              const SchedulerWatch& watch) override;
  std::map<std::string, double> figures() const override { return figures_of(totals_, models_); }

 private:
  RunModels models_;  // owned by the store, as long as this is used
  int n_at_once_;
  PromptCaches prompts_;
  ScheduleTotals totals_;
};

}  // namespace engine
