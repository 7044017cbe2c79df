// The distribution of the next token, and the random numbers of rejection sampling.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/types.h"
#include "engine/model/language_model.h"

namespace engine {

/// The distribution of the next token after repetition penalty, temperature and filters, in that
/// order. Sums in f64, so it agrees with exact enumeration to 1e-12
/// (kernels::filtered_distribution).
/// @param logits   [vocab_size] raw
/// @param history  the prefix and the row's ancestors, for the penalty
/// @return         [vocab_size], sums to 1; greedy: probability 1 for the token with the largest
///                 logit (the lowest id on a tie)
/// @throws Error(BadInput)  if a logit is NaN or +inf
std::vector<double> token_distribution(std::span<const float> logits,
                                       const Sampling& sampling,
                                       std::span<const TokenId> history);

/// True if proposals are verified by rejection sampling: the sampling's mode says so, and it is not
/// greedy.
bool rejects(const Sampling& sampling);

/// Uniform random numbers of rejection sampling. Each call passes the value that its number will be
/// compared with, so a test can enumerate every outcome of the shipped code; a real source ignores
/// it.
class UniformSource {
 public:
  virtual ~UniformSource() = default;
  /// True if the numbers ignore the value passed to each call. They may then be drawn before that
  /// value is known, for verification on a device.
  virtual bool is_threshold_independent() const { return false; }
  /// Returns a number in (0, 1) for the test of candidate `index` at `position`. The candidate is
  /// accepted if the number is below `threshold`.
  virtual double accept(std::uint32_t position, std::uint32_t index, double threshold) = 0;
  /// Returns a number in (0, 1) that draws the token at `position` from the residual
  /// `distribution`, which need not be normalised.
  virtual double residual(std::uint32_t position, std::span<const double> distribution) = 0;
  /// Returns a number in (0, 1) that draws candidate `index` at `position` from `distribution`, the
  /// draft model's distribution, which need not be normalised.
  virtual double proposal(std::uint32_t position,
                          std::uint32_t index,
                          std::span<const double> distribution) = 0;
};

/// Philox streams AcceptUniform, Residual and DraftGumbel (kernels/philox.h): a number is a
/// function of (seed, position, index) alone, and no two uses share one.
class PhiloxUniforms : public UniformSource {
 public:
  /// @param seed  of the run
  explicit PhiloxUniforms(std::uint64_t seed) : seed_(seed) {}
  bool is_threshold_independent() const override { return true; }
  double accept(std::uint32_t position, std::uint32_t index, double threshold) override;
  double residual(std::uint32_t position, std::span<const double> distribution) override;
  double proposal(std::uint32_t position,
                  std::uint32_t index,
                  std::span<const double> distribution) override;

 private:
  std::uint64_t seed_;
};

/// A run's source of random numbers: either a given source, or Philox with the run's seed.
class Uniforms {
 public:
  /// @param given  outlives this; null: Philox
  Uniforms(std::uint64_t seed, UniformSource* given) : philox_(seed), given_(given) {}
  /// The source.
  UniformSource& operator*() { return given_ ? *given_ : philox_; }
  /// The source.
  UniformSource* operator->() { return &**this; }

 private:
  PhiloxUniforms philox_;
  UniformSource* given_;
};

/// Draws a token by inverting the cumulative distribution at u. A token of probability 0 is never
/// drawn.
/// @param distribution  [vocab_size] not negative, at least one positive; need not sum to 1
/// @param u             in (0, 1)
TokenId draw(std::span<const double> distribution, double u);

/// A uniformly random element of `tokens`: a function of (seed, stream, position, index).
TokenId random_token(std::span<const TokenId> tokens,
                     std::uint64_t seed,
                     kernels::RandomStream stream,
                     std::uint32_t position,
                     std::uint32_t index);

}  // namespace engine
