// Chimera: heads over the last hidden state and an encoder of what is drafted, asked one after
// another.
//   paper     Zeng et al. 2024 (arXiv:2402.15758); the tree is that of its program
//   lossless  as medusa: greedy and coupled token for token; rejection in distribution;
//             verify=typical is not
//   needs     heads trained on the target (--heads)
//   cost      a pass of one transformer block and one head a level, 1 target step of the tree's
//             rows; the prompt is read a second time, for its hidden states
//   differs   published code and paper leave open how branches get their encoder state: 'chain'
//             drafts along the likeliest tokens and gives every branch of a level the same ranks,
//             'branch' asks for every parent by itself (docs/decoders/chimera.md)
#pragma once

#include <memory>

#include "engine/decode/draft/head_tree.h"
#include "engine/model/draft_heads.h"

namespace engine {

class ChimeraDecoder : public HeadTreeDecoder {
 public:
  /// @param context  with Chimera's heads
  explicit ChimeraDecoder(const DecoderContext& context);
  /// Runs the prompt through the target for its hidden states.
  void begin(const Sequence& prefix) override;
  /// gram_lookups, gram_hits, gram_evictions beside those of the tree.
  std::map<std::string, std::int64_t> counts() const override;

 protected:
  bool begin_draft(const Sequence& prefix, int depth) override;
  std::vector<RankedTokens> rank(const TokenTree& tree,
                                 int depth,
                                 std::span<const int> parents,
                                 int width) override;

 private:
  void take_in(std::span<const TokenId> tokens, std::span<const float> hidden);
  void add_gram(std::vector<TokenId>& grams,
                std::span<const TokenId> tokens,
                std::span<const TokenId> drafted) const;
  std::vector<RankedTokens> level(std::span<const int> parents,
                                  std::span<const TokenId> grams,
                                  int width);

  LanguageModel& target_;  // owned by the engine
  ChimeraHeads& heads_;    // owned by the engine
  bool branches_;          // every parent by itself
  std::unique_ptr<ChimeraText> text_;

  // Of the draft under way.
  std::span<const TokenId> tokens_;  // the text's
  std::vector<TokenId> chain_;       // drafted along the likeliest tokens
  std::vector<int> place_;           // [rows of the tree] which row of the draft they are, or -1
  int n_places_ = 0;
};

}  // namespace engine
