// The distribution a token is drawn from, and where the random numbers of the rejection mode come from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/language_model.h"
#include "engine/base/types.h"

namespace engine {

/// The distribution of the next token after repetition penalty, temperature and filters, in that order.
/// Sums in f64, so exact enumeration agrees to 1e-12 (kernels::filtered_distribution).
/// @param logits   [vocab_size] raw
/// @param history  the row's own ancestors with the prefix, for the penalty
/// @return         [vocab_size], sums to 1; greedy: one at the largest logit, lowest id first
/// @throws Error(BadInput)  if a logit is NaN or +inf
std::vector<double> token_distribution(std::span<const float> logits,
                                       const Sampling& sampling,
                                       std::span<const TokenId> history);

/// Whether proposals are judged by the papers' rule: under rejection sampling, unless it is greedy.
bool rejects(const Sampling& sampling);

/// Uniform numbers of the rejection mode. Each call says what its number will be compared with, so
/// that a test can enumerate every outcome of the shipped code; a real source ignores it.
class UniformSource {
 public:
  virtual ~UniformSource() = default;
  /// Whether a number does not depend on what it is compared with: then it may be asked for before
  /// that is known, with anything in its place, by who judges or draws elsewhere.
  virtual bool is_threshold_independent() const { return false; }
  /// In (0, 1). Draw `index` on accepting a candidate for the token at `position`; the candidate is
  /// kept if the number is below `threshold`.
  virtual double accept(std::uint32_t position, std::uint32_t index, double threshold) = 0;
  /// In (0, 1). The token at `position` will be drawn from `distribution` (not normalised) with it.
  virtual double residual(std::uint32_t position, std::span<const double> distribution) = 0;
  /// In (0, 1). Draw `index` of what a draft model proposes for the token at `position`, which is
  /// drawn from `distribution` (the draft's, not normalised) with it.
  virtual double proposal(std::uint32_t position,
                          std::uint32_t index,
                          std::span<const double> distribution) = 0;
};

/// Philox streams AcceptUniform, Residual and DraftGumbel (kernels/philox.h): a number is a
/// function of (seed, position, index) alone, and no two uses share one.
class PhiloxUniforms : public UniformSource {
 public:
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

/// Where a run's numbers come from: what it was given, else Philox by its seed.
class Uniforms {
 public:
  /// @param given  outlives this; null: Philox
  Uniforms(std::uint64_t seed, UniformSource* given) : philox_(seed), given_(given) {}
  UniformSource& operator*() { return given_ ? *given_ : philox_; }
  UniformSource* operator->() { return &**this; }

 private:
  PhiloxUniforms philox_;
  UniformSource* given_;
};

/// The token whose part of the cumulative distribution holds u; parts of length zero are never chosen.
/// @param distribution  [vocab_size] not negative, at least one positive; need not sum to 1
TokenId draw(std::span<const double> distribution, double u);

/// A token taken uniformly from `tokens` by draw `index` at `position` of a stream.
TokenId random_token(std::span<const TokenId> tokens,
                     std::uint64_t seed,
                     kernels::RandomStream stream,
                     std::uint32_t position,
                     std::uint32_t index);

}  // namespace engine
