// Jacobi iteration as the textbook has it: every position of the block anew in every forward, until
// nothing changes. Nothing of a block is kept before all of it is final.
//   paper     Song et al. 2021 (arXiv:2002.03629), Algorithm 1; trajectories are collected with it
//             in Kou et al. 2024 (arXiv:2403.00835)
//   lossless  token for token, greedy and coupled: the fixed point of the refinement is unique
//   needs     nothing
//   cost      1 target step of `block` rows per iteration, at most block + 1 iterations a block:
//             the last one only finds that nothing changes. Never cheaper than the form that keeps
//             keys and values (jacobi.h); it is there to be looked at and compared with
//   differs   the last block is cut to what may still be emitted
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/guess/jacobi_block.h"

namespace engine {

struct JacobiTrajectory {
  std::vector<std::vector<TokenId>> points;  // [0] the initial guess ... the fixed point, once
  int n_forwards = 0;                        // at most block size + 1
};

/// The rows of one iteration: the row before position i gives it, so the prefix's last token comes
/// first and the point's last is left out. Chain of [point.size()] rows.
TokenTree block_rows(TokenId last, std::span<const TokenId> point);
/// What the target picked after each row.
std::vector<TokenId> picks_of(const StepOutput& out);

/// Iterates the block that follows `prefix` to its fixed point, which is what AR with the same
/// sampling emits. The sequence's tokens and cache stay as they are.
/// @param guess  [n] initial tokens, n >= 1; the block must fit the context
JacobiTrajectory textbook_jacobi(LanguageModel& model,
                                 Sequence& prefix,
                                 std::span<const TokenId> guess,
                                 const Sampling& sampling);

/// The decoder `jacobi` with form=textbook. Its steps emit nothing until a block has converged, and
/// then all of it.
class TextbookJacobiDecoder : public Decoder {
 public:
  explicit TextbookJacobiDecoder(const DecoderContext& context);
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

  std::vector<TokenId> point_;    // the block's state: guesses of the tokens behind the prefix
  std::vector<TokenId> refined_;  // [point_.size()] what this step's forward made of it
  int first_pos_ = 0;             // of point_[0], from the sequence's start
  int n_final_ = 0;               // of point_, proved final
  BlockCounts counts_;
  std::vector<Event> events_;
};

}  // namespace engine
