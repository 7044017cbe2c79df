// Prompt lookup: the continuation of an earlier occurrence of the last few tokens is the guess.
//   source    Saxena 2023, prompt-lookup-decoding; Hugging Face transformers' assisted generation;
//             the "prompt lookup" row of Lookahead's ablation (arXiv:2402.02057, Table 3)
//   lossless  greedy and coupled: token for token; rejection: in distribution
//   needs     nothing; gains where the output repeats the prompt
//   cost      1 target step of at most 1 + n_tokens rows; scans the text once per n-gram length
//   differs   without a match it takes a plain step (the published code feeds a dummy token);
//             guesses end where the text must
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/verify/verify.h"

namespace engine {

enum class LookupVariant {
  Paper,  ///< leftmost occurrence whose continuation is n_tokens long
  Hf,     ///< leftmost occurrence, continuation as long as the text, cut before an end token
  Last,   ///< as Hf, but the rightmost; a continuation that meets the text's end goes on with
          ///< itself, so that a short cycle still fills the guess
};

struct LookupMatch {
  int begin = 0;                // index in the text of the guess's first token
  int ngram = 0;                // tokens of the suffix that matched
  std::vector<TokenId> tokens;  // the guess, 1 to n_tokens
};

/// The longest suffix of at most `max_ngram` tokens that occurs earlier decides.
std::optional<LookupMatch> look_up(std::span<const TokenId> text,
                                   int max_ngram,
                                   int n_tokens,
                                   LookupVariant variant,
                                   std::span<const TokenId> eos_ids = {});

class PromptLookupDecoder : public Decoder {
 public:
  explicit PromptLookupDecoder(const DecoderContext& context);
  Wants wants() const override { return verifier_.wants(); }
  TokenTree propose(const Sequence& prefix) override;
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override {
    return verifier_.verify_request(prefix, tree);
  }
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::map<std::string, std::int64_t> counts() const override;

 private:
  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  int max_ngram_;
  int n_tokens_;
  LookupVariant variant_;
  Verifier verifier_;
  bool guessed_ = false;
  std::int64_t n_matches_ = 0;
  std::int64_t n_misses_ = 0;
  std::int64_t n_hit_steps_ = 0;
};

}  // namespace engine
