// One text being generated: its tokens, its share of the cache, where it must stop.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/event/event.h"
#include "engine/model/language_model.h"
#include "engine/base/types.h"

namespace engine {

/// One draw of rejection sampling: the row is kept if uniform < keep.
struct Draw {
  int row = 0;
  float uniform = 0;
  float keep = 0;
};

/// Bound and Probe: the decoder's own wish to end, after a number of steps or having seen an
/// answer. Text: the text holds a stop text of a reasoning task. StopString, StopId: a stop string
/// or a stop id that a person gave.
enum class StopReason { None, Eos, Length, Context, Bound, Probe, Text, StopString, StopId };
/// "", "eos", "length", "context", "bound", "probe", "text", "stop_string", "stop_id"
const char* name_of(StopReason reason);

/// By its text or its limits: two such runs must agree to the end.
bool ended_by_its_text(StopReason reason);

/// What a decoder decided in one step.
struct Decision {
  std::vector<int> path;         // rows whose keys and values join the prefix, in order
  std::vector<TokenId> emitted;  // new tokens; the last has no keys and values yet. None: the step
                                 // only refined guesses, and keeps no row
  std::vector<float> logp;       // [emitted] their log probabilities; empty: those of the picks
  std::vector<Draw> draws;       // that judged rows, in order; for display
  float last_uniform = -1;       // drawn for the last token where no row gave it; -1: none
  std::vector<float> row_p;      // [n_rows] the target's probability of each row's own token, -1
                                 // where not judged; empty: the forward's own (StepOutput)
  std::vector<RejectionDetail> rejection_details;  // of rejection sampling; for display
  std::vector<float> probe;      // [n_rows] as of Verified; for display
  StopReason wish = StopReason::None;  // to end after this step, if nothing else ends it
};

/// Where a sequence must stop.
struct Limits {
  int max_tokens = 256;  // new tokens
  int max_seq_len = 0;   // prompt + new tokens; 0: the model's
  bool ignore_eos = false;
  std::vector<TokenId> eos_ids;
  /// Returns how many of these tokens complete a stop string, counted from the first; 0: none does.
  /// Called once for each step that emits tokens. Empty: there are no stop strings.
  std::function<int(std::span<const TokenId> emitted)> text_end = {};
  StopReason text_reason = StopReason::Text;  // what an end by text_end is reported as
  std::vector<TokenId> stop_ids = {};         // end the text too, also with ignore_eos
};

class Sequence {
 public:
  /// @param prompt  at least one token
  Sequence(std::vector<TokenId> prompt, std::unique_ptr<SequenceCache> cache);

  /// Prompt and everything emitted. The last token has no keys and values yet:
  /// cache().length() == tokens().size() - 1 between steps.
  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const TokenId> prompt() const { return std::span(tokens_).first(n_prompt_); }
  std::span<const TokenId> generated() const { return std::span(tokens_).subspan(n_prompt_); }
  TokenId last() const { return tokens_.back(); }
  /// Tokens that have keys and values.
  std::span<const TokenId> cached_tokens() const {
    return std::span(tokens_).first(static_cast<std::size_t>(cache_->length()));
  }
  SequenceCache& cache() { return *cache_; }
  const SequenceCache& cache() const { return *cache_; }
  /// [dim] The model's state after its final norm at the last position that has keys and values, as
  /// prefill() brought it: forks have it too, a step ends it. Empty: it was not asked for, or that
  /// position was not read by a prefill.
  std::span<const float> prompt_state() const {
    return state_ ? std::span<const float>(*state_) : std::span<const float>();
  }
  /// Empty: it is not known (any more).
  void set_prompt_state(std::vector<float> state);
  /// The prompt's length for which the cached tokens were rotated (BatchItem::n_prompt).
  int n_rotated() const { return n_rotated_; }
  /// Forgets what is cached where a model would rotate it otherwise for this prompt: what prefill()
  /// begins with.
  void drop_other_rotation(const LanguageModel& model);
  /// Takes over that of a sequence with the same cached tokens.
  void share_prompt_state(const Sequence& other);
  StopReason stop_reason() const { return stop_; }
  bool finished() const { return stop_ != StopReason::None; }

  /// Keeps the decision's path in the cache and appends what it emitted.
  void commit(const Decision& decision, StopReason stop);
  Sequence fork() const;
  /// The same tokens and end over another cache, of their first positions.
  Sequence over(std::unique_ptr<SequenceCache> cache) const;
  /// The same keys and values under more tokens, all of it a prompt: what prefill() and a new lane
  /// go on from.
  Sequence restarted(std::span<const TokenId> more = {}) const;
  /// Its first n tokens (at least one), all of them a prompt.
  Sequence shortened(std::size_t n) const;

 private:
  std::vector<TokenId> tokens_;
  std::size_t n_prompt_;
  int n_rotated_;
  std::unique_ptr<SequenceCache> cache_;
  std::shared_ptr<const std::vector<float>> state_;  // of position cache().length() - 1, or null
  StopReason stop_ = StopReason::None;
};

/// Positions a sequence may fill: the limits' own, or the model's where they name none.
int context_of(const Limits& limits, int model_max_seq_len);
/// Tokens that may still be emitted: what max_tokens and the context leave. A row deeper than
/// room_left() - 1 below the last token can give nothing.
int room_left(const Sequence& sequence, const Limits& limits, int model_max_seq_len);

/// Applies end-of-sequence, stop ids, max_tokens, the context's end and texts that end it to a
/// decision: emitted is cut after the first end token, at the limits and after the token that
/// completes a text, and the path loses as many rows.
/// The decision's own wish counts where none of these ends the text.
/// limits.max_seq_len 0 sets no end here; the stepper fills in the model's.
/// @return  the reason to stop, or None
StopReason cut(Decision& decision, const Sequence& sequence, const Limits& limits);

/// Runs the tokens but the last that have no keys and values yet through the model, in forwards of
/// at most `max_rows` rows; of a model whose rotary frequencies depend on the prompt's length all of
/// them, where it is another than that of the cached ones. Where a device reads prompts in blocks (engine/decode/step/prefill_blocks.h)
/// these go four times as many, and what did not come to the cache so is read anew.
/// Each is waited for: what is told as done is, its failures are the prompt's, and what ends it
/// early leaves no more than one forward to wait for.
/// @param progress  called before the first forward and after each, with rows done and rows in all;
/// false ends it early with Error(Cancelled)
/// @param with_state  the last row's state comes back with the last forward and stays with the
/// sequence (prompt_state()). Where there is nothing to read the sequence keeps what it has
void prefill(LanguageModel& model,
             Sequence& sequence,
             int max_rows = 256,
             const std::function<bool(int, int)>& progress = {},
             bool with_state = false);

}  // namespace engine
