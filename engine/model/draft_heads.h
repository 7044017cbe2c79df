// What decoders with draft heads ask of the heads: small networks over a target's hidden states
// that say which tokens come next. The packed ones are made by heads_files.h; tests bring others.
//   hidden  of a position: the target's state after its final norm, [dim] f32, host memory
//   head k  (from 0) speaks of the token k + 2 places behind its hidden state: the one that follows
//           at once is the target's own pick
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/ranked.h"
#include "engine/base/types.h"

namespace engine {

class DraftHeads {
 public:
  virtual ~DraftHeads() = default;
  virtual int n_heads() const = 0;
  /// Tokens they speak of: the target's.
  virtual int vocab_size() const = 0;
};

/// Medusa's: every head reads the one hidden state alone.
class MedusaHeads : public DraftHeads {
 public:
  /// @param n_heads  the first so many
  /// @return  [n_heads, vocab_size] logits
  virtual std::vector<float> logits(std::span<const float> hidden, int n_heads) = 0;
  /// The k largest of each head's logits, at most kernels::kMaxRanked; none where one of them is
  /// NaN or +inf. Heads on a device rank there.
  /// @return  [n_heads]
  virtual std::vector<RankedTokens> ranked(std::span<const float> hidden, int n_heads, int k);
};

/// What a text's k-grams cost: looked up, found, and let go for others.
struct GramCounts {
  std::int64_t n_looked_up = 0, n_found = 0, n_evicted = 0;
};

/// One text before Chimera's heads: the hidden states of what is committed with the k-grams of its
/// tokens, and the k-grams of what is drafted behind it. States and k-grams stand at their tokens'
/// positions.
class ChimeraText {
 public:
  virtual ~ChimeraText() = default;
  /// Positions with a hidden state, from 0.
  virtual int length() const = 0;
  /// The next positions.
  /// @param hidden  [n, dim] their hidden states
  /// @param grams   [n, gram] the tokens that end with each position's own, oldest first; -1 where
  ///                the text has not that many. Heads that see no committed k-grams pass them over
  virtual void append(std::span<const float> hidden, std::span<const TokenId> grams) = 0;
  /// Forgets the positions from `length` on.
  virtual void truncate(int length) = 0;
  /// Drafting begins anew behind the last hidden state; there is one.
  virtual void begin_draft() = 0;
  /// One level deeper: what head k says after each of these rows, k being the number of levels
  /// before this one. A row sees every hidden state, the k-grams of the same positions from 1 on
  /// (where the heads see committed ones), its ancestors and itself.
  /// @param parent  [n] rows of this draft, counted over all its levels from 0; -1: the text itself
  /// @param grams   [n, gram] the last tokens down to and with the row's own, oldest first; -1
  ///                where the text has not that many
  /// @return        [n, vocab_size] logits
  virtual std::vector<float> level(std::span<const int> parent, std::span<const TokenId> grams) = 0;
  /// The same level, of each row the k largest logits; as MedusaHeads::ranked().
  /// @return  [n]
  virtual std::vector<RankedTokens> ranked_level(std::span<const int> parent,
                                                 std::span<const TokenId> grams,
                                                 int k);
  virtual GramCounts gram_counts() const = 0;
};

class ChimeraHeads : public DraftHeads {
 public:
  virtual int gram() const = 0;
  /// @param n_cached_grams  encoded k-grams kept for their next use, the least recently used goes
  ///                        first; 0: none
  virtual std::unique_ptr<ChimeraText> make_text(int n_cached_grams) = 0;
};

}  // namespace engine
