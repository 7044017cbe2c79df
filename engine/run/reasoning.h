// Reasoning on the engine's thread. engine/run may not depend on engine/reason, so the caller
// passes a function that runs a reasoning command.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/run/scheduler.h"

namespace engine {

/// The inputs of one reasoning command.
struct ReasoningSite {
  Model& target;
  Scheduler& scheduler;
  SchedulerWatch watch;       // the event stream and its next run id; the reasoner sets `ended`
  SearchId first_search = 1;  // the stream's next search id
  /// Reports progress with a text. At the end, and only then, done == total and the text is a
  /// summary.
  std::function<void(std::int64_t done, std::int64_t total, const std::string& words)> report;
};

/// Runs a reasoning command. Reports its results as events to site.watch.
/// @throws Error  if the command cannot be run, or if a run fails
using Reasoner = std::function<void(const StartReasoning& command, const ReasoningSite& site)>;

/// Records the runs of a reasoning command from its events, and forwards the events to the stream.
class RunTracker final : public EventSink {
 public:
  /// The data of one run, collected from its events.
  struct Run {
    RunStarted started;
    std::vector<TokenId> tokens;
    std::string stop_reason;  // empty: the run has not ended, or failed
    bool failed = false;
    /// True if the run has ended or failed.
    bool over() const { return failed || !stop_reason.empty(); }
  };

  /// @param to  receives all events; outlives the tracker
  explicit RunTracker(EventSink& to) : to_(to) {}
  void push(Event event) override;
  /// All runs seen so far, by id.
  const std::map<RunId, Run>& runs() const { return runs_; }
  /// The largest search id seen; 0: none.
  SearchId last_search() const { return last_search_; }
  /// True if a step has ended since the last call.
  bool stepped();

 private:
  EventSink& to_;
  std::map<RunId, Run> runs_;
  SearchId last_search_ = 0;
  bool stepped_ = false;
};

/// The request of a run, rebuilt from its first event.
RunRequest request_of(const RunStarted& started);

}  // namespace engine
