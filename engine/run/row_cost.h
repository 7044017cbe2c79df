// What a text's rows cost by themselves: its forwards once more, without the decoder that asked for
// them. Speed-ups are held against it, for nothing but the rows and their drafts should be paid; run
// right behind the text, so that both meet the machine in the same state.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "engine/event/queue.h"
#include "engine/run/run.h"

namespace engine {

/// What the steps of texts evaluated and gave, kept from what is told of them, and told on.
class StepRecorder : public EventSink {
 public:
  struct Step {
    TokenTree tree;
    std::vector<TokenId> emitted;
  };
  struct Text {
    std::vector<Step> steps;
    Nanoseconds drafting = 0;  // forwards of the draft model, or of heads
  };

  /// @param next  where everything is told on, or null; owned by the caller
  explicit StepRecorder(EventSink* next) : next_(next) {}
  void push(Event event) override;
  /// Nothing of a run that was not told.
  const Text& of(RunId run) { return texts_[run]; }

 private:
  EventSink* next_;
  std::map<RunId, Text> texts_;
};

/// The forwards of a text's steps again, each alone in its forward, over the same rows behind the
/// same tokens, greedy or sampled as they were; logits, states and attention are not asked for.
/// @param stop  asked before each; true ends it there. Or empty
/// @return  ms that these took; reading the prompt anew and keeping rows count nowhere
/// @throws Error  as a forward
double row_cost_ms(LanguageModel& model,
                   const RunRequest& request,
                   const StepRecorder::Text& text,
                   const std::function<bool()>& stop = {});

/// The first chain of rows from the prefix down that holds these tokens, in order.
/// @throws ContractError  if there is none
std::vector<int> rows_along(const TokenTree& tree, std::span<const TokenId> tokens);

}  // namespace engine
