// Reasoning on the engine's thread. The order of the rooms keeps that thread from knowing how
// questions are asked (engine/reason): whoever starts it hands it a function that does.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/run/scheduler.h"

namespace engine {

/// What a reasoning works with.
struct ReasoningSite {
  const Model& target;
  Scheduler& scheduler;
  SchedulerWatch watch;       // of the stream and its next run; `ended` is left to the reasoner
  SearchId first_search = 1;  // of the stream, the next
  /// How far it is, of how much, and in words; all of it only at its end, with what came of it.
  std::function<void(std::int64_t done, std::int64_t total, const std::string& words)> tell;
};

/// Asks what a command wants asked. Its results are events of site.watch.
/// @throws Error  if it cannot be asked, or a run fails
using Reasoner = std::function<void(const StartReasoning& command, const ReasoningSite& site)>;

/// Hears a reasoning's events on their way to the stream: which numbers they have used, which runs
/// have not ended, and what each was and wrote.
class RunTracker final : public EventSink {
 public:
  struct Run {
    RunStarted started;
    std::vector<TokenId> tokens;
    std::string stop_reason;  // empty: it has not ended, or failed
    bool failed = false;
    bool over() const { return failed || !stop_reason.empty(); }
  };

  explicit RunTracker(EventSink& to) : to_(to) {}
  void push(Event event) override;
  const std::map<RunId, Run>& runs() const { return runs_; }
  /// 0: none was told of.
  SearchId last_search() const { return last_search_; }
  /// Whether a step has ended since this was asked last.
  bool stepped();

 private:
  EventSink& to_;
  std::map<RunId, Run> runs_;
  SearchId last_search_ = 0;
  bool stepped_ = false;
};

/// The request that a run began with, as far as its first event tells.
RunRequest request_of(const RunStarted& started);

}  // namespace engine
