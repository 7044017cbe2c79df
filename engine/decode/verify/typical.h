// Typical acceptance: a proposal is kept where the target finds it likely enough, not where the
// target would have drawn it. Not lossless.
//   paper    Cai et al. 2024 (arXiv:2401.10774), section 2.3.1
//   rule     token x is kept behind a row of distribution p where p(x) > min(epsilon, delta exp(-H(p)));
//            H is p's entropy in nats
//   path     the longest of kept tokens; of equally long ones the likeliest
//   differs  H is summed exactly, without the 1e-5 that the program adds in its logarithm; paths
//            end where the tree does, so that no row stands for what is not there
#pragma once

#include <span>

#include "engine/decode/verify/sampling.h"
#include "engine/decode/step/sequence.h"
#include "engine/model/language_model.h"
#include "engine/base/token_tree.h"

namespace engine {

struct TypicalSettings {
  double epsilon = 0.09, delta = 0.3;
  /// How the token behind the kept ones is chosen: the likeliest (as published); drawn from those
  /// likely enough to be kept; or as without proposals.
  enum class Root { Argmax, Typical, Sample } root = Root::Argmax;
};

/// The least probability a kept token exceeds.
/// @param distribution  sums to 1
double typical_threshold(std::span<const double> distribution, const TypicalSettings& settings);

/// What the target's device is to judge for accept_typical() to need no logits: every row.
/// @param uniforms  known ahead
VerifyRequest typical_verify_request(std::span<const TokenId> tokens,
                                     const TokenTree& tree,
                                     const Sampling& sampling,
                                     const TypicalSettings& settings,
                                     UniformSource& uniforms);

/// @param tokens  the committed tokens, row 0's the last of them
/// @param out     with logits, or the verdicts on typical_verify_request()
/// @return        with log probabilities
Decision accept_typical(std::span<const TokenId> tokens,
                        const TokenTree& tree,
                        const StepOutput& out,
                        const Sampling& sampling,
                        const TypicalSettings& settings,
                        UniformSource& uniforms);

}  // namespace engine
