// Who asks for completions and who decides in which order they are made. Reasoning (engine/reason)
// asks a scheduler and never sees a decoder.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/schedule/run.h"

namespace engine {

/// One text to be continued.
struct CompletionRequest {
  RunRequest run;  // prompt_tokens are what counts
  /// A sequence to go on from, whose tokens are prompt_tokens; its keys and values are shared, not
  /// computed again. Null: none. Owned by the caller, until run() returns.
  const Sequence* from = nullptr;
  /// The run ends with the step after which its text holds one of these.
  std::vector<std::string> stop_texts;
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

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// One completion a request, in their order; each has the tokens it has alone. Stopped early,
  /// those that were begun come with stop_reason "stopped" and the others are left out.
  virtual std::vector<Completion> run(std::span<const CompletionRequest> requests,
                                      const SchedulerWatch& watch) = 0;
};

/// Up to `n_at_once` requests in one forward, whatever their lengths and decoders: as one ends the
/// next takes its place. 1: one after the other.
class BatchScheduler : public Scheduler {
 public:
  /// @param models  with a draft for decoders that need one
  BatchScheduler(const RunModels& models, int n_at_once);
  std::vector<Completion> run(std::span<const CompletionRequest> requests,
                              const SchedulerWatch& watch) override;

 private:
  RunModels models_;  // owned by the store
  int n_at_once_;
};

}  // namespace engine
