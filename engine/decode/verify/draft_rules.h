// Rejection sampling of what a draft model proposed with a distribution q: which candidate is kept,
// and what is emitted where none is. Every rule emits tokens distributed as the target's own.
//   without  candidates drawn one after the other, none twice: multi-candidate speculative decoding
//            (Yang et al. 2024, arXiv:2401.06706); with one candidate Algorithm 1 of Leviathan,
//            Kalman and Matias 2023 (arXiv:2211.17192)
//   with     candidates drawn independently: recursive rejection (SpecInfer, arXiv:2305.09781)
//   kseq     candidates drawn independently, each judged against p / rho (SpecTr, arXiv:2310.15141)
//   naive    the target draws; a candidate it drew is kept
// A candidate that was proposed without a distribution (the draft's likeliest tokens) has a q that
// is one at itself: it is kept with probability p(x), otherwise p(x) is set to 0.
#pragma once

#include <span>
#include <vector>

#include "engine/decode/verify/sampling.h"
#include "engine/decode/step/sequence.h"
#include "engine/model/language_model.h"
#include "engine/base/token_tree.h"

namespace engine {

enum class DraftRule { Without, With, Naive, KSeq };

/// What a draft model proposed below one row.
struct Candidates {
  std::vector<int> rows;  // of the tree, in the order drawn; a row stands as often as it was drawn
  /// [vocab_size] q that the first was drawn from, sums to 1.
  std::vector<double> distribution;
  /// The same in its place, where the target's device reads it (LanguageModel::laws_device()). With
  /// neither the candidates were proposed without a distribution.
  const double* device_distribution = nullptr;
};

/// What the target's device is to judge for reject_drafted() to need no logits: every row that can
/// be reached, in order.
/// @param candidates  [n_rows], no distribution of which is the host's
/// @param uniforms    known ahead
VerifyRequest drafted_verify_request(std::span<const TokenId> tokens,
                                     const TokenTree& tree,
                                     std::span<const Candidates> candidates,
                                     DraftRule rule,
                                     UniformSource& uniforms);

/// Judges candidates from row 0 down: at each row those below it, by `rule`; where none is kept the
/// residual gives the token, and if that is a candidate's too its row is followed after all.
/// Behind a row without candidates the target's own distribution gives the last token.
/// @param tokens      the committed tokens, row 0's the last of them
/// @param candidates  [n_rows]
/// @param out         with logits, or the verdicts on drafted_verify_request()
/// @param no_bonus_at_leaf   nothing is drawn after a row that has no candidates, if a token was emitted
/// @return            with draws and log probabilities
Decision reject_drafted(std::span<const TokenId> tokens,
                        const TokenTree& tree,
                        std::span<const Candidates> candidates,
                        const StepOutput& out,
                        const Sampling& sampling,
                        DraftRule rule,
                        UniformSource& uniforms,
                        bool no_bonus_at_leaf = false);

/// SpecTr's division factor for `k` independent candidates: the least rho in [1, k] with
/// 1 - (1 - beta)^k <= rho beta, where beta = sum min(q, p / rho); bisection, from above.
double k_seq_factor(std::span<const double> p, std::span<const double> q, int k);

}  // namespace engine
