// Token recycling: guesses the tokens that the target itself ranked highest after each token.
//   paper     Luo et al. 2024 (arXiv:2408.08696): an adjacency matrix of each token's top-k successors, from
//             which a static tree is filled breadth first
//   lossless  greedy and coupled: token for token; rejection: in distribution
//   needs     nothing; memory of a table [vocabulary, k]
//   cost      1 target step of at most `rows` rows, and the k largest logits of each row
//   sized     rows=auto, our addition: the likeliest successors, as many as are worth the time of their rows
//             (guess/successor_choice.h)
//   differs   the prompt fills the table before the first step (prompt); lists of pairs of tokens are looked up
//             before those of tokens (pairs); if a token occurs in several rows of a step, the accepted row's
//             list is kept (the published program writes repeated tokens in undefined order); the trees
//             are small ones, grown for a number of rows; no guesses follow an end token
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/decode/control/step_control.h"
#include "engine/decode/decoder.h"
#include "engine/decode/draft/rank_tree.h"
#include "engine/decode/guess/successor_choice.h"
#include "engine/decode/guess/successor_tree.h"
#include "engine/decode/options.h"
#include "engine/decode/verify/verify.h"

namespace engine {

/// The options of `recycling`.
struct RecyclingOptions final : DecoderOptions {
  /// The rows of a step from which the table learns.
  enum class Learn { All, Accepted };
  std::optional<int> rows;  // nullopt is "auto"
  int k = 8;
  std::string tree = "own";
  bool pairs = true;
  bool prompt = true;
  Learn learn = Learn::All;
  bool keep = false;

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
  std::optional<TreeShape> draft_shape() const override;
  bool chooses_sizes() const override { return !rows && tree == "own"; }
};

/// The tree that `rows` and `k` ask for: grown from assumed shares of right guesses, by depth and rank.
/// @param n_rows  including the last token's
RankTree recycling_tree(int n_rows, int k);

/// Fills a static tree of ranks from the table of successors, and learns from the rows of every step.
class RecyclingDecoder : public Decoder {
 public:
  /// @throws Error(Usage)  if the tree needs more ranks than the table keeps
  RecyclingDecoder(const DecoderContext& context, const RecyclingOptions& options);
  void begin(const Sequence& prefix) override;
  Wants wants() const override;
  SizeDecision size_decision() const override { return decision_; }
  std::vector<std::int32_t> take_choices() override { return control_.take_choices(); }
  TokenTree propose(const Sequence& prefix) override;
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override {
    return verifier_.verify_request(prefix, tree);
  }
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::map<std::string, std::int64_t> counts() const override;
  std::map<std::string, double> figures() const override;

 private:
  void learn(const Sequence& prefix, const TokenTree& tree, const StepOutput& out, int row);
  std::span<const TokenId> end_ids() const;
  void add_likeliest(const Sequence& prefix, int max_depth);

  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  RankTree ranks_;
  bool learns_all_;
  bool reads_prompt_;
  bool knows_sureness_;  // the target's choices come with probabilities
  std::shared_ptr<SuccessorTable> table_;
  Verifier verifier_;
  ControlUse control_;
  SuccessorKnowledge* known_ = nullptr;     // with rows=auto
  std::vector<SuccessorToken> candidates_;  // of the current step, with rows=auto
  SizeDecision decision_;
  TokenTree tree_;  // of the current step
  std::int64_t n_guess_steps_ = 0;
  std::int64_t n_hit_steps_ = 0;
  std::vector<std::int64_t>
      n_verified_;  // [depth of the tree] nodes whose guesses of this depth were verified
  std::vector<std::int64_t> n_accepted_;  // [depth of the tree] accepted guesses
  std::vector<std::int64_t> n_of_rank_;   // [ranks of the tree] accepted guesses
};

}  // namespace engine
