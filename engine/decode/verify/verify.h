// Verification of proposals, which makes decoders lossless.
//   verify_exact_match  greedy and coupled: a proposal is accepted if the target picked the same
//                       token
//   reject              rejection sampling of deterministic proposals: speculative sampling
//                       (Leviathan et al. 2023, arXiv:2211.17192) with q(x) = 1, with several
//                       proposals per position as in Lookahead (arXiv:2402.02057); draft_rules.h
//                       implements it
#pragma once

#include "engine/base/token_tree.h"
#include "engine/decode/step/sequence.h"
#include "engine/decode/verify/sampling.h"
#include "engine/model/language_model.h"

namespace engine {

/// Verification by exact match: from the last leading row, follows the child whose token equals the
/// target's pick, as deep as possible. If several paths are equal, takes the first one. Never
/// follows window cells or probes. The emitted tokens are AR's tokens under the same settings,
/// because all ancestors of a followed row are AR's tokens.
/// @param out           with the target's pick after each row
/// @param leading_rows  rows 0 .. leading_rows - 1 are a chain of committed tokens
/// @param bonus_at_end  false: a path that ends in a leaf emits its proposals without the bonus
///                      token (the published Lookahead)
/// @return  path: leading and followed rows; emitted: the target's pick after the last leading row
///          and after each followed row
Decision verify_exact_match(const TokenTree& tree,
                            const StepOutput& out,
                            int leading_rows = 1,
                            bool bonus_at_end = true);

/// Rejection sampling of deterministic proposals (q(x) = 1). At each node the children are tried in
/// row order: token x is accepted with probability p(x), otherwise p(x) is set to 0 and p is
/// renormalised. The emitted tokens are distributed as AR's, after penalty, temperature and
/// filters, for any proposals (Lookahead's rule, after SpecInfer's).
/// @param tokens        the committed tokens; the last one is row 0's
/// @param out           with logits, or with the device's result of Verifier::verify_request()
/// @param bonus_at_end  false: no token is drawn after an accepted leaf
Decision reject(std::span<const TokenId> tokens,
                const TokenTree& tree,
                const StepOutput& out,
                const Sampling& sampling,
                UniformSource& uniforms,
                bool bonus_at_end = true);

/// Number of leading rows on the path: the rows of committed tokens, up to the row after which the
/// first token was emitted.
int leading_rows_of(const Decision& decision);

/// The result of every row, after the cut. Accepted: the row's token was emitted (this includes the
/// last emitted token if a row proposed it, although that row's keys and values are not kept).
/// Rejected: the row's parent is on the path, and a different token was emitted after the parent.
std::vector<RowFate> fates_of(const TokenTree& tree, const Decision& cut);

/// Verifies deterministic proposals: by exact match, or by rejection sampling if the sampling says
/// so.
class Verifier {
 public:
  /// @param uniforms  null: Philox from the sampling's seed
  Verifier(const Sampling& sampling, UniformSource* uniforms);
  /// Outputs that the verification needs.
  Wants wants() const { return {.logits = rejects_, .hidden = false}; }
  /// The request for the target's device; see Decoder::verify_request().
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree);
  /// Verifies a tree with one leading row.
  /// @param bonus_at_end  as of verify_exact_match() and reject()
  Decision operator()(const Sequence& prefix,
                      const TokenTree& tree,
                      const StepOutput& out,
                      bool bonus_at_end = true);

 private:
  Sampling sampling_;
  bool rejects_;
  Uniforms uniforms_;
  VerifyRequest verify_request_;  // of the current step
};

}  // namespace engine
