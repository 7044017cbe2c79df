// Shared by decoders with draft heads: a tree of ranks is filled with the heads' tokens, and the
// target verifies it in one forward.
//   drafting  a node is left out if the heads give its path a low probability (`stop_below`); if a
//             level has no node left, no further head runs
//   root      the tree's root is the last emitted token, which the target chose in the step before;
//             published programs call it the root, and verify it in every step
//   greedy    verify_exact_match(): a token is kept if it equals the target's choice (greedy or
//             coupled). With rejection sampling the candidates are tried in turn, each accepted
//             with the target's probability
//   sample    the target draws a token at each node, and the child with that token is kept. With
//             coupled sampling this equals greedy; with rejection sampling each node gets one
//             independent draw
//   sized     tree=auto: the heads fill the candidates of a large tree, and those that pay are verified
//             (head_choice.h)
//   typical   tokens that the target finds likely enough are kept (typical.h). Not lossless
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/draft/head_choice.h"
#include "engine/decode/draft/rank_tree.h"
#include "engine/decode/options.h"
#include "engine/decode/verify/draft_rules.h"
#include "engine/decode/verify/sampling.h"
#include "engine/decode/verify/typical.h"
#include "engine/model/ranked.h"

namespace engine {

/// Options of every decoder with draft heads.
struct HeadTreeOptions : DecoderOptions {
  /// How proposals are verified; the head of this file describes each rule.
  enum class Rule { Greedy, Typical, Sample };

  std::string tree = "auto";  // "auto", "own", a bundled tree's name, a .json file, or "none"
  double stop_below = 0;      // nodes with a less probable path are left out
  Rule verify = Rule::Greedy;
  TypicalSettings typical;

  bool keeps_distribution(const Sampling& sampling) const override;
  /// Under typical acceptance the tree would change the tokens, so it is fixed.
  bool chooses_sizes() const override { return tree == "auto" && verify != Rule::Typical; }
  /// Returns nullopt, because the tree depends on the heads' folder or on a file.
  std::optional<TreeShape> draft_shape() const override { return std::nullopt; }

 protected:
  /// Sets `info`: the decoder needs draft heads and supports rejection sampling.
  static void describe_needs(DecoderInfo& info);
  /// Declares these options.
  void bind_heads(OptionBinder& binder);
};

/// Drafts a tree of ranks level by level and verifies it. Derived decoders run their heads.
class HeadTreeDecoder : public Decoder {
 public:
  Wants wants() const override {
    return {.logits = needs_distributions_, .hidden = true, .row_p = !needs_distributions_};
  }
  TokenTree propose(const Sequence& prefix) override;
  bool drafts() const override { return true; }
  SizeDecision size_decision() const override { return decision_; }
  std::vector<std::int32_t> take_choices() override { return control_.take_choices(); }
  std::vector<float> proposal_probabilities() const override { return q_; }
  std::vector<DraftForward> draft_forwards() const override { return forwards_; }
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override;
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  /// head_N_verified, head_N_accepted: steps in which tokens of head N (from 1) were verified, and in
  /// which one of them was kept.
  std::map<std::string, std::int64_t> counts() const override;

 protected:
  /// @param n_heads  the depth that the tree may have
  /// @throws Error(Usage)     if the tree is deeper
  /// @throws Error(BadInput)  as find_rank_tree
  HeadTreeDecoder(const DecoderContext& context, const HeadTreeOptions& options, int n_heads);

  /// The tree that the heads fill.
  const RankTree& ranks() const { return ranks_; }
  /// [n, state_dim()] the target's hidden states of the rows committed since the last call, in
  /// order. Moves them to the caller.
  std::vector<float> take_hidden();
  /// Sets the hidden states (maybe none) of positions before the first step; take_hidden() returns
  /// them.
  void begin_with_hidden(std::span<const float> states, std::size_t dim);
  /// Dimension of a hidden state; 0 before the first one is known.
  std::size_t state_dim() const { return state_dim_; }
  /// Prepares the heads for one draft.
  /// @param depth  the largest number of levels that the draft may have
  /// @return       false if nothing can be drafted because the heads lack the state to start from
  virtual bool begin_draft(const Sequence& prefix, int depth) = 0;
  /// The tokens that the heads rank highest for the children, at `depth`, of rows at depth - 1.
  /// @param parents  rows of the tree that get children
  /// @param width    ranks that are needed
  /// @return         either one list that all parents share, or one list for each parent
  virtual std::vector<RankedTokens> rank(const TokenTree& tree,
                                         int depth,
                                         std::span<const int> parents,
                                         int width) = 0;
  /// Records a forward of the heads for the step's event.
  void add_forward(const DraftForward& forward) { forwards_.push_back(forward); }

 private:
  void add_level(TokenTree& tree, int depth);
  TokenTree drafted_tree(const Sequence& prefix, int depth);
  bool chooses_to_draft();
  TokenTree pruned_by_choice(const TokenTree& all);
  void learn(const Decision& cut);
  DraftRule draft_rule() const {
    return rule_ == HeadTreeOptions::Rule::Sample ? DraftRule::Naive : DraftRule::Without;
  }
  LanguageModel& target_;  // owned by the engine
  Sampling sampling_;
  Limits limits_;
  RankTree ranks_;
  double stop_below_;
  HeadTreeOptions::Rule rule_;
  TypicalSettings typical_;
  bool needs_distributions_;  // the rule compares probabilities, not picks
  Uniforms uniforms_;
  ControlUse control_;
  HeadKnowledge* known_ = nullptr;  // with tree=auto

  // The current step:
  SizeDecision decision_;
  std::vector<HeadCandidate> drafted_;  // all candidates, of which some are rows
  TokenTree tree_;
  std::vector<int> row_of_;  // [n_nodes of the tree of ranks] the node's row; -1: not proposed
  std::vector<Candidates> candidates_;
  VerifyRequest verify_request_;
  std::vector<float> q_;
  std::vector<double> path_p_;  // [n_rows] product of the heads' probabilities along the path
  std::vector<DraftForward> forwards_;
  std::vector<float> hidden_;      // [n_rows, dim]
  std::vector<int> depth_of_row_;  // [n_rows]

  std::vector<float> kept_hidden_;
  std::size_t state_dim_ = 0;
  std::vector<std::int64_t> n_verified_, n_accepted_;  // [heads of the tree]
};

}  // namespace engine
