// Prompts a model has read lately. Who begins with the same tokens goes on from their keys and
// values: branches of one search differ in their last lines, and a page is held once however many
// share it.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/decode/step/sequence.h"
#include "engine/model/language_model.h"

namespace engine {

class PromptCaches {
 public:
  /// @param model   outlives the caches; used by whoever calls read()
  /// @param n_kept  prompts remembered, the latest
  explicit PromptCaches(LanguageModel& model, std::size_t n_kept = 1);

  /// A sequence of these tokens, prefilled. What the prompt remembered that begins most like it has
  /// of it, with the bits that reading gives (prompt_blocks.h), is shared, and the rest computed.
  /// @param tokens    at least one
  /// @param known     a further sequence to go on from: the first tokens of these. Or null
  /// @param progress  as of prefill(); false ends it with Error(Cancelled)
  /// @param with_state  as of prefill(). A prompt that is shared whole has the state of the
  ///     sequence it is shared with; if that has none, or goes on behind the prompt, there is none:
  ///     a forward to make it costs what the plain step does that it would spare
  Sequence read(std::span<const TokenId> tokens,
                const Sequence* known = nullptr,
                const std::function<bool(int, int)>& progress = {},
                bool with_state = false);

  /// Positions that were shared, and that were computed, all calls together.
  std::int64_t n_shared() const { return n_shared_; }
  std::int64_t n_computed() const { return n_computed_; }

 private:
  LanguageModel& model_;
  std::size_t n_kept_;
  std::deque<Sequence> kept_;  // oldest first
  std::int64_t n_shared_ = 0, n_computed_ = 0;
};

}  // namespace engine
