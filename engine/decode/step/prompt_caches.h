// Prefix caching. Keeps the prompts that a model has read recently; a new prompt that begins with
// the same tokens shares their keys and values. Branches of one search differ only in their last
// lines, and shared cache pages exist once.
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

/// Prefills prompts and shares their common beginnings.
class PromptCaches {
 public:
  /// @param model   outlives the caches; read() runs it on the caller's thread
  /// @param n_kept  number of recent prompts that are kept
  explicit PromptCaches(LanguageModel& model, std::size_t n_kept = 1);

  /// Returns a prefilled sequence of these tokens. Shares the longest common beginning with a kept
  /// prompt, up to the position where its bits would differ from a prefill's (prefill_blocks.h),
  /// and computes the rest.
  /// @param tokens      at least one
  /// @param known       another sequence to share with, or null
  /// @param progress    as of prefill(); false ends it with Error(Cancelled)
  /// @param with_state  as of prefill(). If the whole prompt is shared, its state is copied from
  ///                    the other sequence. It stays empty if that sequence has no state or is
  ///                    longer than the prompt, because computing the state would cost as much as
  ///                    the plain step that it saves
  Sequence read(std::span<const TokenId> tokens,
                const Sequence* known = nullptr,
                const std::function<bool(int, int)>& progress = {},
                bool with_state = false);

  /// Positions shared by all calls so far.
  std::int64_t n_shared() const { return n_shared_; }
  /// Positions computed by all calls so far.
  std::int64_t n_computed() const { return n_computed_; }

 private:
  LanguageModel& model_;
  std::size_t n_kept_;
  std::deque<Sequence> kept_;  // oldest first
  std::int64_t n_shared_ = 0, n_computed_ = 0;
};

}  // namespace engine
