// Medusa: several heads on the target's last hidden state; head d guesses the token d positions
// further on.
//   paper     Cai et al. 2024 (arXiv:2401.10774), with the trees of the authors' program
//   lossless  greedy and coupled: token for token; rejection: in distribution, with one drawn token
//             per node (verify=sample) or candidates tried in turn; verify=typical is not lossless
//   needs     heads trained on the target (--heads)
//   cost      one row through the heads and 1 target step of the tree's rows
//   differs   the heads read only the last kept row (the authors' program: every row of the tree);
//             paths are not padded (the authors' program pads them with token 0 and may accept the
//             padding); a token is drawn once per node; nothing is kept after an end token
#pragma once

#include "engine/decode/draft/head_tree.h"
#include "engine/model/draft_heads.h"

namespace engine {

/// The options of `medusa`: those of every decoder with draft heads.
struct MedusaOptions final : HeadTreeOptions {
  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override { bind_heads(binder); }
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
};

/// Fills the tree of ranks with Medusa's heads, all from one hidden state.
class MedusaDecoder : public HeadTreeDecoder {
 public:
  /// @param context  with Medusa's heads
  MedusaDecoder(const DecoderContext& context, const MedusaOptions& options);

  /// If prefill() kept a hidden state, the first draft starts from it.
  void begin(const Sequence& prefix) override;

 protected:
  bool begin_draft(const Sequence& prefix, int depth) override;
  std::vector<RankedTokens> rank(const TokenTree& tree,
                                 int depth,
                                 std::span<const int> parents,
                                 int width) override;

 private:
  MedusaHeads& heads_;                // owned by the engine
  std::vector<RankedTokens> ranked_;  // [depth] for the current step
};

}  // namespace engine
