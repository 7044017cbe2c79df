// A completion while it is made: what every scheduler keeps of a request that it has begun.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/run/scheduler.h"

namespace engine {

struct CompletionJob {
  const CompletionRequest& request;  // of the caller, until run() returns
  std::size_t index;                 // of the request
  RunId run;
  Nanoseconds prefill;  // own compute of reading the prompt
  Lane lane;
  const Tokenizer& tokenizer;     // the target's
  std::size_t n_read = 0;         // generated tokens that were counted
  Nanoseconds draft_prefill = 0;  // of prefill: the draft's, beside what the target does

  bool over() const { return lane.sequence.finished(); }
  /// @return  how many tokens the last step gave
  int read();
  /// What it came to, told to `events` (or null), cut where a stop text begins and counted as that.
  Completion finished(EventSink* events, ScheduleTotals& totals);
};

/// Tokens that a whole path of this request's drafts would be; 0 where no draft model proposes, and
/// nullopt where every step has a tree of its own.
std::optional<int> draft_depth(const RunRequest& run);
/// Tokens that whole paths of all steps would have been: what SEED's acceptance divides by.
/// @param counts  of the run's decoder
std::int64_t depth_asked(const RunRequest& run,
                         std::int64_t n_steps,
                         const std::map<std::string, std::int64_t>& counts);

/// Tells what is being thrown as the end of a run that was begun: that it failed, or was stopped.
/// Call it in a catch alone.
/// @param events  or null
/// @return        whether it was stopped
bool tell_thrown(EventSink* events, RunId run);

/// Tells that a request's run begins and makes its job.
/// @param make  its lane; the prompt is read in there
/// @return  null if it was stopped while its prompt was read: then that is told too
/// @throws whatever `make` throws else; the run is told as failed by it then
std::unique_ptr<CompletionJob> begun_job(std::span<const CompletionRequest> requests,
                                         std::size_t index,
                                         const RunModels& models,
                                         RunId first_run,
                                         EventSink* events,
                                         const std::function<Lane(RunId)>& make);

/// A request's prompt, read by the target; what it goes on from and what was read before is shared.
Sequence read_prompt(PromptCaches& prompts,
                     const RunModels& models,
                     const CompletionRequest& request,
                     const std::function<bool(int, int)>& progress);

}  // namespace engine
