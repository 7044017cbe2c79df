// What decoders with draft heads share: a tree of ranks filled with the heads' tokens, judged by
// the target in one forward.
//   guesses  nodes whose path the heads find unlikely are left out (`stop_below`), and where none
//            is left no head is asked further
//   root     the tree hangs on the last emitted token, which the target chose behind the step
//            before: published programs call it the root, and verify it in every step
//   greedy   verify_exact_match(): kept while equal to the target's own choice, its likeliest token or, coupled,
//            its draw. Under rejection sampling candidates are tried one after another, each with
//            the target's probability of it
//   sample   the target draws a token at each node, and the child of that token is kept: coupled
//            the same choice again, under rejection sampling a draw of its own for each node
//   typical  what the target finds likely enough is kept (typical.h). Not lossless
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/verify/draft_rules.h"
#include "engine/decode/draft/rank_tree.h"
#include "engine/decode/verify/sampling.h"
#include "engine/decode/verify/typical.h"
#include "engine/model/ranked.h"

namespace engine {

class HeadTreeDecoder : public Decoder {
 public:
  Wants wants() const override {
    return {.logits = needs_distributions_, .hidden = true, .row_p = !needs_distributions_};
  }
  TokenTree propose(const Sequence& prefix) override;
  bool drafts() const override { return true; }
  std::vector<float> proposal_probabilities() const override { return q_; }
  std::vector<DraftForward> draft_forwards() const override { return forwards_; }
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override;
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  /// head_N_judged, head_N_accepted: steps in which head N's tokens (from 1) were judged, and in
  /// which one of them was kept.
  std::map<std::string, std::int64_t> counts() const override;

 protected:
  /// @param n_heads  the tree may be no deeper
  /// @throws Error(Usage)     if it is
  /// @throws Error(BadInput)  as find_rank_tree
  HeadTreeDecoder(const DecoderContext& context, int n_heads);

  const RankTree& ranks() const { return ranks_; }
  /// [n, state_dim()] the target's states behind rows that the text took since this was asked last,
  /// in order.
  std::vector<float> take_hidden();
  /// The states of positions before the first step, which take_hidden() gives then. Or none.
  void begin_with_hidden(std::span<const float> states, std::size_t dim);
  std::size_t state_dim() const { return state_dim_; }  // 0: none is known yet
  /// Whether a draft can hang on this text: the heads know the state it begins from.
  /// @param depth  levels that will be asked for
  virtual bool begin_draft(const Sequence& prefix, int depth) = 0;
  /// What the heads say behind the rows of depth - 1, for those at `depth`.
  /// @param parents  rows of the tree that get children
  /// @param width    ranks that are needed
  /// @return         one for all of them, or one each
  virtual std::vector<RankedTokens> rank(const TokenTree& tree,
                                         int depth,
                                         std::span<const int> parents,
                                         int width) = 0;
  /// Forwards of the heads, for the picture of time.
  void tell_forward(const DraftForward& forward) { forwards_.push_back(forward); }

 private:
  void add_level(TokenTree& tree, int depth);
  DraftRule draft_rule() const {
    return rule_ == Rule::Sample ? DraftRule::Naive : DraftRule::Without;
  }
  LanguageModel& target_;  // owned by the engine
  Sampling sampling_;
  Limits limits_;
  RankTree ranks_;
  double stop_below_;
  enum class Rule { Greedy, Sample, Typical } rule_;
  TypicalSettings typical_;
  bool needs_distributions_;  // the rule looks at distributions, not at choices
  Uniforms uniforms_;

  // Of the step under way.
  TokenTree tree_;
  std::vector<int> row_of_;  // [n_nodes] of the tree of ranks; -1: not proposed
  std::vector<Candidates> candidates_;
  VerifyRequest verify_request_;
  std::vector<float> q_;
  std::vector<double> path_p_;  // [n_rows] the heads' product from the root's child down to the row
  std::vector<DraftForward> forwards_;
  std::vector<float> hidden_;      // [n_rows, dim]
  std::vector<int> depth_of_row_;  // [n_rows]

  std::vector<float> kept_hidden_;
  std::size_t state_dim_ = 0;
  std::vector<std::int64_t> n_judged_, n_accepted_;  // [heads of the tree]
};

}  // namespace engine
