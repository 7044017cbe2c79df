// Textbook Jacobi iteration: every forward recomputes every position of the block, until nothing
// changes. No token of a block is kept before all of it is final.
//   paper     Song et al. 2021 (arXiv:2002.03629), Algorithm 1; Kou et al. 2024 (arXiv:2403.00835)
//             collect trajectories with it
//   lossless  token for token, greedy and coupled: the fixed point of the iteration is unique
//   needs     nothing
//   cost      1 target step of `block` rows per iteration, at most block + 1 iterations per block:
//             the last one only finds that nothing changes. Never cheaper than the form with a KV
//             cache (jacobi.h); it is kept for comparison
//   differs   the last block is cut to the tokens that may still be emitted
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/guess/jacobi_block.h"

namespace engine {

/// The states that a block passes through until its fixed point.
struct JacobiTrajectory {
  // the states from the initial guess (points[0]) to the fixed point, which appears once
  std::vector<std::vector<TokenId>> points;
  int n_forwards = 0;  // at most block size + 1
};

/// The rows of one iteration, a chain of [point.size()] rows. Row i yields position i, so the chain
/// starts with the prefix's last token and leaves out the point's last one.
TokenTree block_rows(TokenId last, std::span<const TokenId> point);
/// The target's pick after each row.
std::vector<TokenId> picks_of(const StepOutput& out);

/// Iterates the block that follows `prefix` to its fixed point, which equals AR's tokens with the
/// same sampling. The sequence's tokens and cache stay unchanged.
/// @param guess  [n] initial tokens, n >= 1; the block must fit the context
JacobiTrajectory textbook_jacobi(LanguageModel& model,
                                 Sequence& prefix,
                                 std::span<const TokenId> guess,
                                 const Sampling& sampling);

/// The decoder `jacobi` with form=textbook. Its steps emit nothing until a block has converged, and
/// then the whole block.
class TextbookJacobiDecoder : public Decoder {
 public:
  /// @param block  tokens of a block
  /// @param fill   its first guesses
  TextbookJacobiDecoder(const DecoderContext& context, int block, BlockFiller::Fill fill);
  void begin(const Sequence& prefix) override;
  TokenTree propose(const Sequence& prefix) override;
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::vector<Event> take_events() override;
  std::map<std::string, std::int64_t> counts() const override { return counts_.counts(); }
  std::map<std::string, double> figures() const override { return counts_.figures(); }

 private:
  void open_block(const Sequence& prefix);

  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  int block_;
  BlockFiller filler_;

  std::vector<TokenId> point_;    // the block's state: guesses of the tokens after the prefix
  std::vector<TokenId> refined_;  // [point_.size()] the state after the current step's forward
  int first_pos_ = 0;             // position of point_[0] in the sequence
  int n_final_ = 0;               // leading tokens of point_ that are known to be final
  BlockCounts counts_;
  std::vector<Event> events_;
};

}  // namespace engine
