// Multi-candidate speculative decoding: the draft model proposes a tree with several candidates per
// position.
//   paper     Yang et al. 2024 (arXiv:2401.06706), candidates without replacement; its baselines
//             with replacement (recursive rejection, SpecInfer, arXiv:2305.09781), naive, and K-SEQ
//             (SpecTr, arXiv:2310.15141)
//   lossless  greedy and coupled: token for token; rejection: in distribution, with every rule; not
//             with as_released if a node has several deterministic candidates
//   needs     a draft model with the target's vocabulary
//   cost      a draft step per level and 1 target step of 1 + sum over levels of k_1 ... k_j rows;
//             rejection sampling also keeps q for every node that has children
//   sized     k_config=auto, our addition: chooses each step's tree, or none, by measured costs and
//             acceptance (tree_choice.h). Under rejection sampling the tokens of a seed then depend
//             on measured times; their distribution does not
//   differs   at draft temperature 0 the candidates are deterministic and verified as such; the
//             published program takes a softmax for q and is not exact (as_released shows it). A
//             token that was drawn twice shares one row and one subtree. Coupled: the candidates
//             are the k tokens with the largest draft score after adding the target's Gumbel noise
//   code      engine/decode/draft/draft_verify.h
#pragma once

#include "engine/decode/draft/draft_options.h"

namespace engine {

/// The options of `mcsd`.
struct McsdOptions final : DraftTreeOptions {
  std::optional<LevelCounts> k_config;  // nullopt is "auto"
  bool as_released = false;

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  void check() const override;
  bool chooses_sizes() const override { return !k_config; }
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
  bool keeps_distribution(const Sampling& sampling) const override;
  std::optional<TreeShape> draft_shape() const override;
};

}  // namespace engine
