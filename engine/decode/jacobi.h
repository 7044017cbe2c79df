// Jacobi decoding: every forward refines all guesses of a block at once; the tokens that can no
// longer change are kept.
//   paper     Song et al. 2021 (arXiv:2002.03629); Santilli et al. 2023 (arXiv:2305.10427); in the
//             form of Consistency LLMs: Kou et al. 2024 (arXiv:2403.00835), "jacobi_forward"
//   lossless  token for token, greedy and coupled: the fixed point of the iteration is unique;
//             rejection (form=kv): in distribution, by speculative Jacobi decoding (Teng et al.
//             2024, arXiv:2410.01699): a guess is drawn from the distribution q of the iteration
//             before and kept with probability min(1, p / q)
//   needs     nothing; a model trained for it (a CLLM) converges in fewer iterations
//   cost      1 target step of at most `block` rows per iteration; never more steps than AR
//             (form=textbook is another decoder: textbook_jacobi.h)
//   sized     block=auto, our addition: the block that yields the most tokens per time; 1 where no
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
#include "engine/decode/verify/sampling.h"

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
  std::optional<std::string> why_no_rejection() const override;
};

/// Jacobi decoding with a KV cache of the final tokens (form=kv).
class JacobiDecoder : public Decoder {
 public:
  /// @param options  with form=kv
  JacobiDecoder(const DecoderContext& context, const JacobiOptions& options);
  void begin(const Sequence& prefix) override;
  Wants wants() const override { return {.logits = rejects_}; }
  TokenTree propose(const Sequence& prefix) override;
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::vector<Event> take_events() override;
  SizeDecision size_decision() const override {
    return chosen_ ? chosen_->decision() : SizeDecision();
  }
  std::vector<std::int32_t> take_choices() override { return control_.take_choices(); }
  std::vector<float> proposal_probabilities() const override;
  std::map<std::string, std::int64_t> counts() const override;
  std::map<std::string, double> figures() const override;

 private:
  Decision verify_drawn(const Sequence& prefix, const TokenTree& tree, const StepOutput& out);
  int size_for(const Sequence& prefix) const;
  void fill(const Sequence& prefix);
  void open_block(const Sequence& prefix);
  void keep_refined(std::size_t end);

  LanguageModel& target_;  // owned by the engine
  Limits limits_;
  Sampling sampling_;
  bool rejects_;
  Uniforms uniforms_;
  int block_;
  JacobiOptions::Refill refill_;
  BlockFiller filler_;
  ControlUse control_;
  std::optional<LastingSize> chosen_;  // with block=auto

  std::vector<TokenId> cur_;  // the rows: last emitted token, then guesses
  // [cur_.size()] with rejects_: the distribution from which each guess was drawn; empty for the
  // last emitted token and for first guesses, which are not drawn from the target
  std::vector<std::vector<double>> drawn_from_;
  std::vector<TokenId> refined_;  // [cur_.size()] the target's pick after each row of the step
  std::vector<std::vector<double>> refined_from_;  // with rejects_: likewise, as drawn_from_
  std::vector<TokenId> state_;                     // the whole block, its final tokens included
  int first_pos_ = 0;                              // position of state_[0] in the sequence
  int n_kept_ = 0;                                 // rows on the accepted path of the current step
  std::uint32_t n_drawn_ = 0;  // iterations that drew guesses; numbers their random numbers

  BlockCounts counts_;
  std::vector<Event> events_;
};

}  // namespace engine
