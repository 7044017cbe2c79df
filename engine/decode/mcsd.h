// Multi-candidate speculative decoding: the draft model proposes a tree, several tokens a place.
//   paper     Yang et al. 2024 (arXiv:2401.06706): candidates without replacement; its baselines
//             with replacement (SpecInfer, arXiv:2305.09781), naive, and K-SEQ (SpecTr,
//             arXiv:2310.15141)
//   lossless  greedy and coupled: token for token; rejection: in distribution, with every rule;
//             not with as_released where a node has several certain candidates
//   needs     a draft model with the target's vocabulary
//   cost      a draft step a level and 1 target step of 1 + sum over levels of k_1 ... k_j rows; in
//             the rejection mode q of every node that has children
//   sized     k_config=auto, our addition: the tree of each step by what trees were measured to cost
//             and bring here (tree_tuner.h); not under rejection sampling, where it would show
//   differs   at draft temperature 0 the candidates are judged as what they are, certain, where the
//             published program takes a softmax for q and loses exactness (as_released shows it);
//             a token drawn twice shares a row and what is drafted behind it; coupled: candidates
//             are the draft's k best picks under the target's noise
#pragma once

#include "engine/decode/draft/draft_verify.h"

namespace engine {

class McsdDecoder : public DraftVerifyDecoder {
 public:
  explicit McsdDecoder(const DecoderContext& context);
};

}  // namespace engine
