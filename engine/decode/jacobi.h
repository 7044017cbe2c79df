// Jacobi decoding: a block of guesses, all refined by every forward, kept as far as it is final.
//   paper     Song et al. 2021 (arXiv:2002.03629); Santilli et al. 2023 (arXiv:2305.10427); as the
//             Consistency LLMs run it: Kou et al. 2024 (arXiv:2403.00835), "jacobi_forward"
//   lossless  token for token, greedy and coupled: the fixed point of the refinement is unique
//   needs     nothing; a model trained for it (a CLLM) converges in fewer iterations
//   cost      1 target step of at most `block` rows per iteration; never more steps than AR
//             (form=textbook is another decoder: textbook_jacobi.h)
//   differs   refill=slide keeps the block full as FastCoT's window does; stops at end-of-sequence
//             inside a block; the last block is cut to what may still be emitted
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/guess/jacobi_block.h"

namespace engine {

class JacobiDecoder : public Decoder {
 public:
  explicit JacobiDecoder(const DecoderContext& context);
  void begin(const Sequence& prefix) override;
  TokenTree propose(const Sequence& prefix) override;
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::vector<Event> take_events() override;
  std::map<std::string, std::int64_t> counts() const override;
  std::map<std::string, double> figures() const override;

 private:
  enum class Refill { Block, Slide };

  int size_for(const Sequence& prefix) const;
  void fill(const Sequence& prefix);
  void open_block(const Sequence& prefix);

  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  int block_;
  Refill refill_;
  BlockFiller filler_;

  std::vector<TokenId> cur_;      // the rows: last emitted token, then guesses
  std::vector<TokenId> refined_;  // [cur_.size()] pick after each row of the step under way
  std::vector<TokenId> state_;    // the whole block, its final front included
  int first_pos_ = 0;             // of state_[0], from the sequence's start
  int n_kept_ = 0;                // rows the walk followed, this step

  BlockCounts counts_;
  std::vector<Event> events_;
};

}  // namespace engine
