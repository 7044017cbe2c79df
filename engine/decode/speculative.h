// Speculative decoding with one draft model and a chain of drafted tokens.
//   paper     Leviathan, Kalman, Matias 2023 (arXiv:2211.17192), Algorithm 1; Chen et al. 2023
//             (arXiv:2302.01318)
//   lossless  greedy and coupled: token for token; rejection: in distribution, after the target's
//             penalty, temperature and filters, whatever those of the draft
//   needs     a draft model with the target's vocabulary
//   cost      gamma draft steps and 1 target step of at most 1 + gamma rows; in the rejection mode
//             q, [gamma, vocab_size] doubles
//   differs   drafts no further than the text may go; may stop where the draft is unsure
//             (stop_below, our addition); coupled: the draft picks with the target's noise
#pragma once

#include "engine/decode/draft/draft_verify.h"

namespace engine {

class SpeculativeDecoder : public DraftVerifyDecoder {
 public:
  explicit SpeculativeDecoder(const DecoderContext& context);
};

}  // namespace engine
