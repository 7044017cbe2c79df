#include "engine/decode/step/prompt_caches.h"

#include <algorithm>

#include "engine/decode/step/prefill_blocks.h"

namespace engine {
namespace {

/// Number of leading positions of `sequence` that a prefill of `tokens` can reuse: their tokens are
/// the same, and their bits equal those of a prefill.
std::size_t n_usable(const LanguageModel& model,
                     const Sequence& sequence,
                     std::span<const TokenId> tokens,
                     int block) {
  if (model.rotation_key(sequence.n_rotated()) !=
      model.rotation_key(static_cast<int>(tokens.size())))
    return 0;
  const auto have = sequence.cached_tokens();
  const auto want = tokens.first(tokens.size() - 1);
  const auto n = std::ranges::mismatch(have, want).in1 - have.begin();
  return static_cast<std::size_t>(n_reusable_positions(sequence.cache(), static_cast<int>(n),
                                                       static_cast<int>(want.size()), block));
}

}  // namespace

PromptCaches::PromptCaches(LanguageModel& model, std::size_t n_kept)
    : model_(model), n_kept_(n_kept) {}

Sequence PromptCaches::read(std::span<const TokenId> tokens,
                            const Sequence* known,
                            const std::function<bool(int, int)>& progress,
                            bool with_state) {
  ensure(!tokens.empty(), "a prompt must have at least one token");
  const Sequence* best = known;
  const int block = model_.prompt_block();
  std::size_t n = known ? n_usable(model_, *known, tokens, block) : 0;
  for (const Sequence& kept : kept_) {
    const std::size_t m = n_usable(model_, kept, tokens, block);
    if (m > n) n = m, best = &kept;
  }
  std::unique_ptr<SequenceCache> cache = n > 0 ? best->cache().fork() : model_.make_cache();
  if (cache->length() > static_cast<int>(n)) cache->truncate(static_cast<int>(n));
  Sequence sequence({tokens.begin(), tokens.end()}, std::move(cache));
  if (n > 0 && best->cache().length() == static_cast<int>(n)) sequence.share_prompt_state(*best);
  prefill(model_, sequence, 256, progress, with_state);
  n_shared_ += static_cast<std::int64_t>(n);
  n_computed_ += std::ssize(tokens) - 1 - static_cast<std::int64_t>(n);
  const bool remembered = best != known && n + 1 == tokens.size();
  if (n_kept_ == 0 || remembered) return sequence;
  if (kept_.size() == n_kept_) kept_.pop_front();
  kept_.push_back(sequence.fork());
  return sequence;
}

}  // namespace engine
