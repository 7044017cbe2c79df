// Chimera: draft heads over the last hidden state and an encoder of the drafted tokens; each head
// sees the drafts before it.
//   paper     Zeng et al. 2024 (arXiv:2402.15758); the tree is that of the authors' program
//   lossless  as medusa: greedy and coupled token for token; rejection in distribution;
//             verify=typical is not lossless
//   needs     heads trained on the target (--heads)
//   cost      a pass of one transformer block and one head per level, 1 target step of the tree's
//             rows; the prompt runs through the target a second time, for its hidden states
//   differs   neither the paper nor the published code says how branches get their encoder state.
//             'chain' runs the heads only along the likeliest tokens, and every branch of a level
//             gets the same candidates; 'branch' runs them for every parent separately
//             (docs/decoders/chimera.md)
#pragma once

#include <memory>

#include "engine/decode/draft/head_tree.h"
#include "engine/model/draft_heads.h"
#include "engine/model/gram_cache.h"

namespace engine {

/// The options of `chimera`.
struct ChimeraOptions final : HeadTreeOptions {
  /// Chain: one candidate list per level, from the likeliest tokens. Branch: one per parent.
  enum class Drafting { Chain, Branch };

  Drafting drafting = Drafting::Chain;
  int cache = 1024;   // encoded k-grams that are kept
  bool keep = false;  // keep them for the next texts

  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& binder) override;
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
};

/// Fills the tree of ranks with Chimera's heads, level by level.
class ChimeraDecoder : public HeadTreeDecoder {
 public:
  /// @param context  with Chimera's heads
  ChimeraDecoder(const DecoderContext& context, const ChimeraOptions& options);
  /// Runs the prompt through the target for its hidden states.
  void begin(const Sequence& prefix) override;
  /// gram_lookups, gram_hits, gram_evictions, and the counts of the tree.
  std::map<std::string, std::int64_t> counts() const override;

 protected:
  bool begin_draft(const Sequence& prefix, int depth) override;
  std::vector<RankedTokens> rank(const TokenTree& tree,
                                 int depth,
                                 std::span<const int> parents,
                                 int width) override;

 private:
  void append_states(std::span<const TokenId> tokens, std::span<const float> hidden);
  void add_gram(std::vector<TokenId>& grams,
                std::span<const TokenId> tokens,
                std::span<const TokenId> drafted) const;
  std::vector<RankedTokens> level(std::span<const int> parents,
                                  std::span<const TokenId> grams,
                                  int width);

  LanguageModel& target_;  // owned by the engine
  ChimeraHeads& heads_;    // owned by the engine
  bool branches_;          // the heads run for every parent separately
  std::shared_ptr<GramCache> cache_;
  std::unique_ptr<ChimeraSequence> sequence_;

  // The current draft:
  std::span<const TokenId> tokens_;  // the sequence
  std::vector<TokenId> chain_;       // drafted along the likeliest tokens
  // [rows of the tree] the row's index in the heads' draft, or -1
  std::vector<int> place_;
  int n_places_ = 0;
};

}  // namespace engine
