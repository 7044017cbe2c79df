// Speculative sampling with one draft model and a chain of drafted tokens.
//   paper     Leviathan, Kalman, Matias 2023 (arXiv:2211.17192), Algorithm 1; Chen et al. 2023
//             (arXiv:2302.01318)
//   lossless  greedy and coupled: token for token; rejection: in distribution, after the target's
//             penalty, temperature and filters, for any settings of the draft
//   needs     a draft model with the target's vocabulary
//   cost      gamma draft steps and 1 target step of at most 1 + gamma rows; rejection sampling
//             also keeps q, [gamma, vocab_size] doubles
//   sized     gamma=auto, our addition (engine/decode/draft/tree_choice.h)
//   differs   does not draft tokens that the run cannot emit; may end a draft early when the draft
//             model is unsure (stop_below, our addition); coupled: the draft picks with the
//             target's Gumbel noise
//   code      engine/decode/draft/draft_verify.h, with a chain as the tree
#pragma once

#include "engine/decode/draft/draft_options.h"

namespace engine {

/// The options of `speculative`.
struct SpeculativeOptions final : DraftOptions {
  std::optional<int> gamma;  // drafted tokens of a step; nullopt is "auto"

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
  std::optional<TreeShape> draft_shape() const override;
  bool chooses_sizes() const override { return !gamma; }
};

}  // namespace engine
