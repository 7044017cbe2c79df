// Jacobi decoding: every forward refines all guesses of a block at once; the tokens that can no
// longer change are kept.
//   paper     Song et al. 2021 (arXiv:2002.03629); Santilli et al. 2023 (arXiv:2305.10427); in the
//             form of Consistency LLMs: Kou et al. 2024 (arXiv:2403.00835), "jacobi_forward"
//   lossless  token for token, greedy and coupled: the fixed point of the iteration is unique
//   needs     nothing; a model trained for it (a CLLM) converges in fewer iterations
//   cost      1 target step of at most `block` rows per iteration; never more steps than AR
//             (form=textbook is another decoder: textbook_jacobi.h)
//   sized     block=auto, our addition: the block that brings the most tokens per time; 1 where no
//             block pays
//   differs   refill=slide keeps the block full, like FastCoT's window; a block ends at
//             end-of-sequence; the last block is cut to the tokens that may still be emitted
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/decode/control/size_choice.h"
#include "engine/decode/decoder.h"
#include "engine/decode/guess/jacobi_block.h"
#include "engine/decode/options.h"

namespace engine {

/// The options of `jacobi`.
struct JacobiOptions final : DecoderOptions {
  /// How guesses are added as tokens become final: a new block after convergence, or one guess for
  /// each final token.
  enum class Refill { Block, Slide };
  /// Kv keeps the final tokens in the KV cache; Textbook recomputes the whole block every time.
  enum class Form { Kv, Textbook };

  std::optional<int> block;  // rows of an iteration; nullopt is "auto"
  Refill refill = Refill::Block;
  BlockFiller::Fill fill = BlockFiller::Fill::Prompt;
  Form form = Form::Kv;

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  void check() const override;
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
  bool chooses_sizes() const override { return !block && form == Form::Kv; }
};

/// Jacobi decoding with a KV cache of the final tokens (form=kv).
class JacobiDecoder : public Decoder {
 public:
  /// @param options  with form=kv
  JacobiDecoder(const DecoderContext& context, const JacobiOptions& options);
  void begin(const Sequence& prefix) override;
  TokenTree propose(const Sequence& prefix) override;
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::vector<Event> take_events() override;
  SizeDecision size_decision() const override {
    return chosen_ ? chosen_->decision() : SizeDecision();
  }
  std::map<std::string, std::int64_t> counts() const override;
  std::map<std::string, double> figures() const override;

 private:
  int size_for(const Sequence& prefix) const;
  void fill(const Sequence& prefix);
  void open_block(const Sequence& prefix);

  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  int block_;
  JacobiOptions::Refill refill_;
  BlockFiller filler_;
  ControlUse control_;
  std::optional<LastingSize> chosen_;  // with block=auto

  std::vector<TokenId> cur_;  // the rows: last emitted token, then guesses
  // [cur_.size()] the target's pick after each row of the current step
  std::vector<TokenId> refined_;
  std::vector<TokenId> state_;  // the whole block, its final tokens included
  int first_pos_ = 0;           // position of state_[0] in the sequence
  int n_kept_ = 0;              // rows on the accepted path of the current step

  BlockCounts counts_;
  std::vector<Event> events_;
};

}  // namespace engine
