// Prompt lookup: finds the last few tokens earlier in the sequence and guesses that the same
// continuation follows.
//   source    Saxena 2023, prompt-lookup-decoding; Hugging Face transformers' assisted generation;
//             the "prompt lookup" row of Lookahead's ablation (arXiv:2402.02057, Table 3)
//   lossless  greedy and coupled: token for token; rejection: in distribution
//   needs     nothing; fast if the output repeats the prompt
//   cost      1 target step of at most 1 + n_tokens rows; scans the sequence once per n-gram length
//   sized     n_tokens=auto, our addition: the number of guessed tokens follows from the time of a
//             row and from how often a guess after a match of this length was right
//   differs   makes a plain step if there is no match (the published code feeds a dummy token); a
//             guess ends where the run must end
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/control/step_control.h"
#include "engine/decode/decoder.h"
#include "engine/decode/options.h"
#include "engine/decode/verify/verify.h"

namespace engine {

/// Which earlier occurrence of the suffix provides the guess.
enum class LookupVariant {
  /// Leftmost occurrence whose continuation is n_tokens long.
  Paper,
  /// Leftmost occurrence (Hugging Face). The continuation ends with the sequence or before an end
  /// token.
  Hf,
  /// As Hf, but the rightmost occurrence. A continuation that reaches the end of the sequence
  /// starts over, so a short cycle still fills the guess.
  Last,
};

/// A match and the guess that follows from it.
struct LookupMatch {
  int begin = 0;                // index of the guess's first token in the sequence
  int ngram = 0;                // length of the suffix that matched
  std::vector<TokenId> tokens;  // the guess, 1 to n_tokens
};

/// Finds the longest suffix of at most `max_ngram` tokens that occurs earlier, and returns its
/// continuation there.
/// @param text     the sequence: prompt and emitted tokens
/// @param eos_ids  end tokens, which Hf and Last never guess
/// @return         nullopt if no suffix occurs earlier
std::optional<LookupMatch> look_up(std::span<const TokenId> text,
                                   int max_ngram,
                                   int n_tokens,
                                   LookupVariant variant,
                                   std::span<const TokenId> eos_ids = {});

/// The options of `prompt-lookup`.
struct PromptLookupOptions final : DecoderOptions {
  int max_ngram = 3;
  std::optional<int> n_tokens;  // nullopt is "auto"
  LookupVariant variant = LookupVariant::Last;

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
  bool chooses_sizes() const override { return !n_tokens; }
};

/// Acceptance rates by the length of the match. A right token after a match of L tokens makes a match
/// of L + 1 tokens, so one table serves all tokens of a guess.
class LookupKnowledge;

/// Verifies one looked-up continuation per step.
class PromptLookupDecoder : public Decoder {
 public:
  /// Samples as `context.sampling` says.
  PromptLookupDecoder(const DecoderContext& context, const PromptLookupOptions& options);
  Wants wants() const override { return verifier_.wants(); }
  TokenTree propose(const Sequence& prefix) override;
  std::vector<GuessSource> guess_sources() const override { return sources_; }
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override {
    return verifier_.verify_request(prefix, tree);
  }
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  SizeDecision size_decision() const override { return decision_; }
  std::vector<std::int32_t> take_choices() override { return control_.take_choices(); }
  std::map<std::string, std::int64_t> counts() const override;

 private:
  int choose_size(int most);
  void learn(const Decision& cut);

  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  PromptLookupOptions options_;
  Verifier verifier_;
  ControlUse control_;
  LookupKnowledge* known_ = nullptr;  // null: n_tokens was given
  // of the current step:
  LookupMatch match_;     // without tokens if there is none
  int match_length_ = 0;  // tokens before the guess that equal those before its source
  SizeDecision decision_;
  std::vector<GuessSource> sources_;  // [rows of the current step]
  bool guessed_ = false;
  std::int64_t n_matches_ = 0;
  std::int64_t n_misses_ = 0;
  std::int64_t n_hit_steps_ = 0;
};

}  // namespace engine
