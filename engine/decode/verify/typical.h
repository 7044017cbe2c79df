// Typical acceptance: a proposal is accepted if the target finds it likely enough, even if the
// target would not have drawn it. Not lossless.
//   paper    Cai et al. 2024 (arXiv:2401.10774), section 2.3.1
//   rule     token x is accepted after a row with distribution p if p(x) > min(epsilon, delta
//            exp(-H(p))); H is p's entropy in nats
//   path     the longest path of accepted tokens; the likeliest if several are equally long
//   differs  H is summed exactly (the authors' program adds 1e-5 inside the logarithm); paths are
//            not padded
#pragma once

#include <span>

#include "engine/base/token_tree.h"
#include "engine/decode/step/sequence.h"
#include "engine/decode/verify/sampling.h"
#include "engine/model/language_model.h"

namespace engine {

/// Settings of typical acceptance.
struct TypicalSettings {
  double epsilon = 0.09, delta = 0.3;
  /// How the token after the accepted ones is chosen. Argmax: the likeliest token (as published).
  /// Typical: a draw from the tokens that would be accepted. Sample: as in plain decoding.
  enum class Root { Argmax, Typical, Sample } root = Root::Argmax;
};

/// The threshold min(epsilon, delta exp(-H)), which an accepted token's probability exceeds.
/// @param distribution  [vocab_size] sums to 1
double typical_threshold(std::span<const double> distribution, const TypicalSettings& settings);

/// Makes the request with which the target's device verifies every row. With the result of that
/// request, accept_typical() needs no logits.
/// @param tokens    the committed tokens; the last one is row 0's
/// @param uniforms  must ignore the thresholds of its calls (UniformSource)
VerifyRequest typical_verify_request(std::span<const TokenId> tokens,
                                     const TokenTree& tree,
                                     const Sampling& sampling,
                                     const TypicalSettings& settings,
                                     UniformSource& uniforms);

/// Verifies a tree by typical acceptance.
/// @param tokens  the committed tokens; the last one is row 0's
/// @param out     with logits, or with the device's result of typical_verify_request()
/// @return        with log probabilities
Decision accept_typical(std::span<const TokenId> tokens,
                        const TokenTree& tree,
                        const StepOutput& out,
                        const Sampling& sampling,
                        const TypicalSettings& settings,
                        UniformSource& uniforms);

}  // namespace engine
