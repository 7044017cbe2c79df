// Medusa: several heads on the target's last hidden state, each guessing a token further on.
//   paper     Cai et al. 2024 (arXiv:2401.10774), with the trees of its program
//   lossless  greedy and coupled: token for token; rejection: in distribution, one token drawn for
//             each node (verify=sample) or candidates tried in turn; verify=typical is not
//   needs     heads trained on the target (--heads)
//   cost      one row through the heads and 1 target step of the tree's rows
//   differs   heads read the last kept row alone, where the program reads every row of the tree;
//             a path ends where its nodes do (the program pads paths with token 0, and can keep the
//             padding); a draw is made once for each node; nothing is kept behind an end token
#pragma once

#include "engine/decode/draft/head_tree.h"
#include "engine/model/draft_heads.h"

namespace engine {

class MedusaDecoder : public HeadTreeDecoder {
 public:
  /// @param context  with Medusa's heads
  explicit MedusaDecoder(const DecoderContext& context);

  /// The first draft hangs on the state that the prompt's forward brought, where it did.
  void begin(const Sequence& prefix) override;

 protected:
  bool begin_draft(const Sequence& prefix, int depth) override;
  std::vector<RankedTokens> rank(const TokenTree& tree,
                                 int depth,
                                 std::span<const int> parents,
                                 int width) override;

 private:
  MedusaHeads& heads_;                // owned by the engine
  std::vector<RankedTokens> ranked_;  // [depth] of the step under way
};

}  // namespace engine
