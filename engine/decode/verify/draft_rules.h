// Acceptance rules of speculative sampling for candidates that were drawn from a draft's
// distribution q. A rule decides which candidate is accepted, and draws a token from the residual
// distribution if none is. Under every rule the emitted tokens are distributed as the target's.
//   without  candidates drawn without replacement: multi-candidate speculative decoding (Yang et
//            al. 2024, arXiv:2401.06706). Candidate x is accepted with probability min(1, p(x) /
//            q(x)), otherwise p becomes norm(max(0, p - q)) and q loses x. With one candidate this
//            is Algorithm 1 of Leviathan, Kalman and Matias 2023 (arXiv:2211.17192)
//   with     candidates drawn independently: recursive rejection sampling (SpecInfer,
//            arXiv:2305.09781); q stays the same
//   kseq     candidates drawn independently, each accepted with probability min(1, p(x) / (rho
//            q(x))): K-SEQ (SpecTr, arXiv:2310.15141)
//   naive    the target draws a token; a candidate is accepted if it is that token
// A deterministic candidate (one of the draft's likeliest tokens) has q(x) = 1: it is accepted with
// probability p(x), otherwise p(x) is set to 0 and p is renormalised.
#pragma once

#include <span>
#include <vector>

#include "engine/base/token_tree.h"
#include "engine/decode/step/sequence.h"
#include "engine/decode/verify/sampling.h"
#include "engine/model/language_model.h"

namespace engine {

/// The acceptance rules above.
enum class DraftRule { Without, With, Naive, KSeq };

/// The candidates below one row of the tree.
struct Candidates {
  // rows of the tree, in the order drawn; a row that was drawn twice is listed twice
  std::vector<int> rows;
  /// [vocab_size] q, from which the first candidate was drawn; sums to 1.
  std::vector<double> distribution;
  /// [vocab_size] q in device memory that the target's device can read
  /// (LanguageModel::distributions_device()). If this and `distribution` are both empty, the
  /// candidates are deterministic.
  const double* device_distribution = nullptr;
};

/// Makes the request with which the target's device verifies every reachable row. With the result
/// of that request, reject_drafted() needs no logits.
/// @param tokens      the committed tokens; the last one is row 0's
/// @param candidates  [n_rows], without distributions on the host
/// @param uniforms    must ignore the thresholds of its calls (UniformSource)
VerifyRequest drafted_verify_request(std::span<const TokenId> tokens,
                                     const TokenTree& tree,
                                     std::span<const Candidates> candidates,
                                     DraftRule rule,
                                     UniformSource& uniforms);

/// Verifies candidates by `rule`, starting at row 0. If no candidate of a row is accepted, a token
/// is drawn from the residual distribution; if that token is a candidate's, the path continues with
/// the candidate's row. After a row without candidates the last token is drawn from the target's
/// distribution.
/// @param tokens            the committed tokens; the last one is row 0's
/// @param candidates        [n_rows]
/// @param out               with logits, or with the device's result of drafted_verify_request()
/// @param sampling          the target's
/// @param no_bonus_at_leaf  draws no token after a row without candidates, if a token was emitted
///                          already
/// @return                  with draws and log probabilities
Decision reject_drafted(std::span<const TokenId> tokens,
                        const TokenTree& tree,
                        std::span<const Candidates> candidates,
                        const StepOutput& out,
                        const Sampling& sampling,
                        DraftRule rule,
                        UniformSource& uniforms,
                        bool no_bonus_at_leaf = false);

/// SpecTr's division factor for `k` independent candidates: the smallest rho in [1, k] with 1 - (1
/// - beta)^k <= rho beta, where beta = sum min(q, p / rho). Found by bisection, from above.
/// @param p, q  [vocab_size], each sums to 1
double k_seq_factor(std::span<const double> p, std::span<const double> q, int k);

}  // namespace engine
