// SuffixDecoding: guesses the tokens that most often followed the longest suffix of the sequence in
// the prompt, in the text so far, and in texts of earlier runs.
//   paper     Oliaro, Jia, Campos, Qiao 2024 (arXiv:2411.04975); factor = alpha, match = p
//   lossless  greedy and coupled: token for token; rejection: in distribution
//   needs     nothing; fast if texts repeat each other or themselves
//   cost      1 target step of at most 1 + n_tokens rows. The search takes microseconds; the index
//             has some 150 bytes per token of the texts
//   sized     n_tokens=auto, our addition: a tree of the likeliest tokens of all matches, as many as are
//             worth the time of their rows (guess/suffix_choice.h)
//   differs   indexes the texts in suffix automata (guess/suffix_automaton.h), with the counts of
//             the paper's suffix trees; a draft that reaches the end of a text continues with a
//             shorter suffix; does not use earlier texts under rejection sampling
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/decode/control/step_control.h"
#include "engine/decode/decoder.h"
#include "engine/decode/guess/suffix_choice.h"
#include "engine/decode/guess/suffix_draft.h"
#include "engine/decode/options.h"
#include "engine/decode/verify/verify.h"

namespace engine {

/// The options of `suffix`.
struct SuffixOptions final : DecoderOptions {
  /// Tree: all likely continuations. Chain: the likeliest one.
  enum class Shape { Tree, Chain };

  std::optional<int> n_tokens;  // nullopt is "auto"
  double factor = 2;            // alpha; not with n_tokens=auto
  double min_p = 0.2;           // not with n_tokens=auto
  Shape shape = Shape::Tree;
  bool earlier = true;
  int keep_tokens = 65'536;

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
  int n_kept_tokens() const override { return keep_tokens; }
  bool chooses_sizes() const override { return !n_tokens; }
};

/// Verifies one draft per step.
class SuffixDecoder : public Decoder {
 public:
  /// Copies from `context.texts` too, except under rejection sampling.
  SuffixDecoder(const DecoderContext& context, const SuffixOptions& options);
  void begin(const Sequence& prefix) override;
  Wants wants() const override { return verifier_.wants(); }
  TokenTree propose(const Sequence& prefix) override;
  std::vector<GuessSource> guess_sources() const override { return sources_; }
  SizeDecision size_decision() const override { return decision_; }
  std::vector<std::int32_t> take_choices() override { return control_.take_choices(); }
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override {
    return verifier_.verify_request(prefix, tree);
  }
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::map<std::string, std::int64_t> counts() const override;
  std::map<std::string, double> figures() const override;

 private:
  std::vector<SearchedText> matches(const Sequence& prefix) const;
  SuffixDraftLimits draft_limits(const Sequence& prefix) const;
  void add_best_draft(TokenTree& tree, const Sequence& prefix);
  void add_chosen(TokenTree& tree, const Sequence& prefix);
  void add_row(TokenTree& tree, const SuffixDraftNode& node, GuessSource::Kind kind);
  GuessSource source_of(const SuffixDraftNode& node, GuessSource::Kind kind) const;

  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  SuffixOptions options_;
  std::shared_ptr<const EarlierTexts> texts_;  // null: only the own sequence
  bool copies_runs_;
  Verifier verifier_;
  ControlUse control_;
  SuffixKnowledge* known_ = nullptr;     // with n_tokens=auto
  std::vector<SuffixToken> candidates_;  // of the current step, with n_tokens=auto
  SizeDecision decision_;
  SuffixAutomaton own_;  // of the sequence
  int n_prompt_ = 0;
  TokenTree tree_;                    // of the current step
  std::vector<GuessSource> sources_;  // [rows of tree_]
  std::int64_t n_drafts_ = 0, n_misses_ = 0, n_hit_steps_ = 0;
  std::int64_t n_matched_ = 0;                // sum of the matches' lengths
  std::array<std::int64_t, 5> n_accepted_{};  // by GuessSource::Kind
};

}  // namespace engine
