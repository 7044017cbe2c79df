// Token recycling: guesses the tokens that the target itself ranked highest after each token.
//   paper     Luo et al. 2024 (arXiv:2408.08696): an adjacency matrix of each token's top-k successors, from
//             which a static tree is filled breadth first
//   lossless  greedy and coupled: token for token; rejection: in distribution
//   needs     nothing; memory of a table [vocabulary, k]
//   cost      1 target step of at most `rows` rows, and the k largest logits of each row
//   differs   lists of pairs of tokens are looked up before those of tokens (pairs); if a token occurs in
//             several rows of a step, the accepted row's list is kept (the paper leaves the order open); the
//             trees are small ones, grown for a number of rows; no guesses follow an end token
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/draft/rank_tree.h"
#include "engine/decode/guess/successor_tree.h"
#include "engine/decode/options.h"
#include "engine/decode/verify/verify.h"

namespace engine {

/// The options of `recycling`.
struct RecyclingOptions final : DecoderOptions {
  /// The rows of a step from which the table learns.
  enum class Learn { All, Accepted };
  int rows = 4;
  int k = 8;
  std::string tree = "own";
  bool pairs = true;
  Learn learn = Learn::All;
  bool keep = false;

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
  std::optional<TreeShape> draft_shape() const override;
};

/// The tree that `rows` and `k` ask for: grown from assumed shares of right guesses, by depth and rank.
/// @param n_rows  including the last token's
RankTree recycling_tree(int n_rows, int k);

/// Fills a static tree of ranks from the table of successors, and learns from the rows of every step.
class RecyclingDecoder : public Decoder {
 public:
  /// @throws Error(Usage)  if the tree needs more ranks than the table keeps
  RecyclingDecoder(const DecoderContext& context, const RecyclingOptions& options);
  Wants wants() const override;
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
  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  RankTree ranks_;
  bool learns_all_;
  std::shared_ptr<SuccessorTable> table_;
  Verifier verifier_;
  TokenTree tree_;  // of the current step
  std::int64_t n_guess_steps_ = 0;
  std::int64_t n_hit_steps_ = 0;
  std::vector<std::int64_t>
      n_verified_;  // [depth of the tree] nodes whose guesses of this depth were verified
  std::vector<std::int64_t> n_accepted_;  // [depth of the tree] accepted guesses
  std::vector<std::int64_t> n_of_rank_;   // [ranks of the tree] accepted guesses
};

}  // namespace engine
