// The one place where exactness is decided: which proposals the target agrees with.
//   walk     greedy and coupled: a proposal is kept if the target picked the same token
//   reject   rejection sampling of proposals made without a distribution: Leviathan et al. 2023
//            (arXiv:2211.17192) with q = 1, several a position as in Lookahead (arXiv:2402.02057);
//            draft_rules.h has it
#pragma once

#include "engine/decode/verify/sampling.h"
#include "engine/decode/step/sequence.h"
#include "engine/model/language_model.h"
#include "engine/base/token_tree.h"

namespace engine {

/// Follows, from the last leading row, the child whose token is what the target picked, as deep as
/// it goes; of equal paths the one whose rows come first. Window cells and probes are never
/// followed. The emitted tokens are those AR would emit with the same settings, because every
/// followed row's ancestors are tokens AR would have emitted.
/// @param leading_rows  rows 0 .. leading_rows - 1 are a chain of committed tokens
/// @param bonus_at_end  false: a path that ends in a leaf emits its proposals and no token more
/// (the published Lookahead)
/// @return  path: leading and followed rows; emitted: the target's pick after each but the leading
/// rows before the last
Decision verify_exact_match(const TokenTree& tree,
                            const StepOutput& out,
                            int leading_rows = 1,
                            bool bonus_at_end = true);

/// Rejection sampling where proposals have no distribution (q is one at the proposal): at each node
/// the children are tried in row order; a token x is kept with probability p(x), otherwise p(x) is
/// set to 0 and p renormalised. The emitted tokens are distributed as AR's, after penalty,
/// temperature and filters, for any proposals (Lookahead's rule, after SpecInfer's).
/// @param tokens        the committed tokens, row 0's the last of them
/// @param out           with logits, or the verdicts on Verifier::verify_request()
/// @param bonus_at_end  false: nothing is drawn after a leaf was kept
Decision reject(std::span<const TokenId> tokens,
                const TokenTree& tree,
                const StepOutput& out,
                const Sampling& sampling,
                UniformSource& uniforms,
                bool bonus_at_end = true);

/// Rows at the path's start behind which nothing was emitted, and the one behind which the first
/// token was.
int leading_rows_of(const Decision& decision);

/// What became of every row, after the cut. Accepted: its token was emitted (the last emitted may
/// have been proposed too, though its keys and values do not stay). Rejected: hangs on a row of the
/// path, after which another token was emitted.
std::vector<RowFate> fates_of(const TokenTree& tree, const Decision& cut);

/// For decoders whose proposals carry no distribution: the rule the sampling asks for.
class Verifier {
 public:
  /// @param uniforms  null: Philox from the sampling's seed
  Verifier(const Sampling& sampling, UniformSource* uniforms);
  Wants wants() const { return {.logits = rejects_, .hidden = false}; }
  /// As Decoder::verify_request().
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree);
  Decision operator()(const Sequence& prefix,
                      const TokenTree& tree,
                      const StepOutput& out,
                      bool bonus_at_end = true);

 private:
  Sampling sampling_;
  bool rejects_;
  Uniforms uniforms_;
  VerifyRequest verify_request_;  // of the step under way
};

}  // namespace engine
