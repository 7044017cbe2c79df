// One sequence: its tokens, its KV cache and its limits.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/types.h"
#include "engine/event/event.h"
#include "engine/model/language_model.h"

namespace engine {

/// One draw of rejection sampling: the row is accepted if uniform < keep.
struct Draw {
  int row = 0;
  float uniform = 0;
  float keep = 0;  // acceptance probability
};

/// Why a sequence ended. Bound and Probe: its decoder ended it early, after a number of steps or
/// because it saw an answer. Text: a stop text of a reasoning task. StopString, StopId: a stop
/// string or stop id of the user.
enum class StopReason { None, Eos, Length, Context, Bound, Probe, Text, StopString, StopId };
/// The reason's name in reports and events: "", "eos", "length", "context", "bound", "probe",
/// "text", "stop_string", "stop_id"
const char* name_of(StopReason reason);

/// True if an end token, a stop string or id, or a limit ended the sequence. Lossless runs that end
/// so must agree in every token.
bool ended_by_token_or_limit(StopReason reason);

/// The result of one step's verification.
struct Decision {
  std::vector<int> path;  // rows whose keys and values join the prefix, in order
  // new tokens; the last has no keys and values yet. Empty: the step only refined guesses and keeps
  // no row
  std::vector<TokenId> emitted;
  // [emitted] log probabilities of the emitted tokens; empty: take those of the picks
  std::vector<float> logp;
  std::vector<Draw> draws;  // one for each test of a verified row, in order; for display
  // the number that drew the last token, if that is not the token of a row; -1: none
  float last_uniform = -1;
  // [n_rows] the target's probability of each row's token, -1 if not verified; empty:
  // StepOutput::row_p
  std::vector<float> row_p;
  std::vector<RejectionDetail> rejection_details;  // of rejection sampling; for display
  std::vector<float> probe;                        // [n_rows] as in Verified; for display
  // the reason for which the decoder ends the run after this step, unless something else ends it;
  // None: the run continues
  StopReason wish = StopReason::None;
};

/// The limits at which a sequence stops.
struct Limits {
  int max_tokens = 256;  // new tokens
  int max_seq_len = 0;   // prompt + new tokens; 0: the model's
  bool ignore_eos = false;
  std::vector<TokenId> eos_ids;
  /// Returns the number of leading tokens that complete a stop string; 0 if none is complete.
  /// Called once for each step that emits tokens. Empty: there are no stop strings.
  std::function<int(std::span<const TokenId> emitted)> text_end = {};
  StopReason text_reason = StopReason::Text;  // the reason reported if text_end ends the sequence
  std::vector<TokenId> stop_ids = {};         // tokens that end the sequence, even with ignore_eos
};

/// A prompt and its continuation, with the KV cache of all tokens but the last.
class Sequence {
 public:
  /// @param prompt  at least one token
  /// @param cache   of leading tokens of the prompt, or empty
  Sequence(std::vector<TokenId> prompt, std::unique_ptr<SequenceCache> cache);

  /// Prompt and everything emitted. The last token has no keys and values yet:
  /// cache().length() == tokens().size() - 1 between steps.
  std::span<const TokenId> tokens() const { return tokens_; }
  /// The tokens that the sequence started with.
  std::span<const TokenId> prompt() const { return std::span(tokens_).first(n_prompt_); }
  /// The tokens emitted after the prompt.
  std::span<const TokenId> generated() const { return std::span(tokens_).subspan(n_prompt_); }
  /// The last token.
  TokenId last() const { return tokens_.back(); }
  /// The tokens that have keys and values.
  std::span<const TokenId> cached_tokens() const {
    return std::span(tokens_).first(static_cast<std::size_t>(cache_->length()));
  }
  /// The keys and values of cached_tokens().
  SequenceCache& cache() { return *cache_; }
  const SequenceCache& cache() const { return *cache_; }  ///< its keys and values
  /// [dim] the target's hidden state after the final norm at the last cached position.
  /// prefill(with_state) stores it. Forks keep it, a step drops it. Empty: unknown.
  std::span<const float> prompt_state() const {
    return state_ ? std::span<const float>(*state_) : std::span<const float>();
  }
  /// @param state  empty: unknown
  void set_prompt_state(std::vector<float> state);
  /// The prompt length whose rotary frequencies the cached keys have (BatchItem::n_prompt).
  int n_rotated() const { return n_rotated_; }
  /// Drops the cached keys if the model uses other rotary frequencies for this prompt length than
  /// those the keys were computed with. prefill() calls it first.
  void drop_other_rotation(const LanguageModel& model);
  /// Copies the prompt state of a sequence with the same cached tokens.
  void share_prompt_state(const Sequence& other);
  /// The reason why it ended; None if it has not ended.
  StopReason stop_reason() const { return stop_; }
  /// True if it has ended.
  bool finished() const { return stop_ != StopReason::None; }

  /// Commits the decision's path to the cache and appends the emitted tokens.
  /// @param stop  ends the sequence unless it is None
  void commit(const Decision& decision, StopReason stop);
  /// A copy that shares the cached pages.
  Sequence fork() const;
  /// A copy with another cache.
  /// @param cache  holds leading tokens of this sequence
  Sequence over(std::unique_ptr<SequenceCache> cache) const;
  /// A new sequence whose prompt is all tokens of this one and `more`. It shares the cached pages;
  /// prefill() computes the rest.
  Sequence restarted(std::span<const TokenId> more = {}) const;
  /// A new sequence whose prompt is the first n tokens, n >= 1. It shares their cached pages.
  Sequence shortened(std::size_t n) const;

 private:
  std::vector<TokenId> tokens_;
  std::size_t n_prompt_;
  int n_rotated_;
  std::unique_ptr<SequenceCache> cache_;
  std::shared_ptr<const std::vector<float>> state_;  // at position cache().length() - 1, or null
  StopReason stop_ = StopReason::None;
};

/// Positions that a sequence may fill: the smaller of the limits' and the model's maximum.
int context_of(const Limits& limits, int model_max_seq_len);
/// Tokens that may still be emitted under max_tokens and the context. A row more than room_left() -
/// 1 positions after the last token cannot yield a token.
int room_left(const Sequence& sequence, const Limits& limits, int model_max_seq_len);

/// Cuts a decision at the first end: after an end token or stop id, after the token that completes
/// a stop string, at max_tokens or at the context's end. The path loses one row for each token that
/// is cut. decision.wish applies only if nothing else ends the sequence. If limits.max_seq_len is
/// 0, this function checks no context limit; the stepper sets it to the model's.
/// @return  the reason to stop, or None
StopReason cut(Decision& decision, const Sequence& sequence, const Limits& limits);

/// Computes the missing keys and values of all tokens except the last one, in forwards of at most
/// `max_rows` rows. Starts from the first token if the rotary frequencies change with the prompt's
/// length. If the device reads prompts in blocks (engine/decode/step/prefill_blocks.h), a forward
/// has four times as many rows, and cached positions that were computed differently are computed
/// again. Synchronises after every forward, so progress counts only finished rows, an error is
/// reported for the prompt that caused it, and a cancelled prefill ends after at most one more
/// forward.
/// @param progress    called before the first forward and after each forward, with the numbers of
///                    finished rows and of all rows; false ends the prefill with Error(Cancelled)
/// @param with_state  true: stores the hidden state of the last row in the sequence
///                    (prompt_state()). If there is nothing to compute, the sequence keeps the
///                    state it has
void prefill(LanguageModel& model,
             Sequence& sequence,
             int max_rows = 256,
             const std::function<bool(int, int)>& progress = {},
             bool with_state = false);

}  // namespace engine
