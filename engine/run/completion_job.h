// The state that a scheduler keeps for one completion request from its start to its end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/decode/step/prompt_caches.h"
#include "engine/run/completion.h"

namespace engine {

/// A started completion request.
struct CompletionJob {
  const CompletionRequest& request;  // the caller's, valid until run() returns
  std::size_t index;                 // of the request
  RunId run;
  Nanoseconds prefill;  // compute of the target's prefill; the draft's is in the lane
  Lane lane;
  const Tokenizer& tokenizer;  // the target's
  std::size_t n_read = 0;      // generated tokens that take_new_tokens() has counted

  /// True if the sequence has ended.
  bool finished() const { return lane.sequence.finished(); }
  /// @return  tokens generated since the last call
  int take_new_tokens();
  /// Builds the completion, cut before a stop text, emits its RunFinished event and adds it to
  /// `totals`.
  /// @param events  or null
  Completion complete(EventSink* events, ScheduleTotals& totals);
};

/// Tokens on the deepest path of one draft; 0 if no draft model proposes, nullopt if the tree is
/// chosen step by step.
std::optional<int> draft_depth(const DecoderOptions& options);
/// The number of tokens that the run would have accepted if the target had accepted a path of full
/// depth in every step. This is the denominator of SEED's acceptance rate.
/// @param counts  of the run's decoder
std::int64_t full_path_tokens(const DecoderOptions& options,
                              std::int64_t n_steps,
                              const std::map<std::string, std::int64_t>& counts);

/// Emits the event that ends a run after the exception that is being handled: RunFinished if the
/// exception is a requested stop, else RunFailed. Call it only within a catch block.
/// @param events  or null
/// @return        true if the run was stopped
bool report_thrown(EventSink* events, RunId run);

/// Emits a request's RunStarted event and makes its job.
/// @param make  makes the lane and reads the prompt
/// @return  null if the run was stopped while its prompt was read; its RunFinished event has then
///          been emitted
/// @throws  the other exceptions of `make`, after reporting that the run failed
std::unique_ptr<CompletionJob> begin_job(std::span<const CompletionRequest> requests,
                                         std::size_t index,
                                         const RunModels& models,
                                         RunId first_run,
                                         EventSink* events,
                                         const std::function<Lane(RunId)>& make);

/// Reads a request's prompt with the target. Shares the keys and values of `request.from` and of
/// earlier prompts.
/// @param progress  as of prefill()
Sequence read_prompt(PromptCaches& prompts,
                     const RunModels& models,
                     const CompletionRequest& request,
                     const std::function<bool(int, int)>& progress);

}  // namespace engine
