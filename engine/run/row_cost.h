// Measures what the rows of a run cost without its decoder, by repeating the run's forwards.
// Speed-ups are compared with this cost, because an ideal decoder spends time only on its rows and
// drafts. Repeat the forwards directly after the run, while the machine is in the same state.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "engine/event/queue.h"
#include "engine/run/run.h"

namespace engine {

/// Records the steps of runs from their events, and forwards the events.
class StepRecorder : public EventSink {
 public:
  /// The rows that a step evaluated and the tokens it emitted.
  struct Step {
    TokenTree tree;
    std::vector<TokenId> emitted;
  };
  /// The steps of one run.
  struct Text {
    std::vector<Step> steps;
    Nanoseconds drafting = 0;  // duration of the forwards of a draft model or heads
  };

  /// @param next  receives all events, or null; owned by the caller
  explicit StepRecorder(EventSink* next) : next_(next) {}
  void push(Event event) override;
  /// The steps of a run; none if it had no events.
  const Text& of(RunId run) { return texts_[run]; }

 private:
  EventSink* next_;
  std::map<RunId, Text> texts_;
};

/// Repeats the forwards of a run's steps: the same rows after the same tokens with the same
/// sampling, one step per forward, without logits, hidden states or attention.
/// @param stop  called before each forward; true ends the measurement. May be empty
/// @return  duration of these forwards in ms, without the prefill and the commits
/// @throws Error  as LanguageModel::forward()
double row_cost_ms(LanguageModel& model,
                   const RunRequest& request,
                   const StepRecorder::Text& text,
                   const std::function<bool()>& stop = {});

/// The first chain of rows, starting below the prefix, whose tokens are these, in order.
/// @throws ContractError  if there is none
std::vector<int> rows_along(const TokenTree& tree, std::span<const TokenId> tokens);

}  // namespace engine
