// Draft heads: small networks on a target's hidden states that predict the next tokens.
// checkpoint/heads_files.h loads them; tests define other ones.
//   hidden  the target's state of a position after its final norm, [dim] f32, host memory
//   head k  (from 0) predicts the token k + 2 positions after its hidden state; the target itself picks the next token
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/types.h"
#include "engine/model/ranked.h"

namespace engine {

class GramCache;

/// Heads of any kind.
class DraftHeads {
 public:
  virtual ~DraftHeads() = default;
  /// Number of heads.
  virtual int n_heads() const = 0;
  /// The vocabulary size, which is the target's.
  virtual int vocab_size() const = 0;
  /// Bytes of packed matrices, copies of the target's included, and of tables.
  virtual std::int64_t weight_bytes() const { return 0; }
};

/// Medusa heads (Cai et al. 2024): every head reads only the last hidden state.
class MedusaHeads : public DraftHeads {
 public:
  /// Logits of the first n_heads heads; -inf for tokens that the heads do not rank.
  /// @param hidden  [dim]
  /// @return  [n_heads, vocab_size] logits
  virtual std::vector<float> logits(std::span<const float> hidden, int n_heads) = 0;
  /// The k most likely tokens of each head, k at most kernels::kMaxRanked; none for a head with a logit that is NaN or +inf. Tokens with the
  /// logit -inf are left out.
  /// The default ranks logits() on the host.
  /// @return  [n_heads]
  virtual std::vector<RankedTokens> ranked(std::span<const float> hidden, int n_heads, int k);
};

/// Statistics of a k-gram cache.
struct GramCounts {
  std::int64_t n_looked_up = 0, n_found = 0, n_evicted = 0;
  GramCounts& operator+=(const GramCounts& more) {
    n_looked_up += more.n_looked_up, n_found += more.n_found, n_evicted += more.n_evicted;
    return *this;
  }
  GramCounts& operator-=(const GramCounts& less) {
    n_looked_up -= less.n_looked_up, n_found -= less.n_found, n_evicted -= less.n_evicted;
    return *this;
  }
};

/// One sequence as input of Chimera heads (Zeng et al. 2024): hidden states and k-grams of the committed tokens, and k-grams of
/// the drafted tokens after them, each at its token's position.
class ChimeraSequence {
 public:
  virtual ~ChimeraSequence() = default;
  /// Number of positions with a hidden state.
  virtual int length() const = 0;
  /// Adds committed positions.
  /// @param hidden  [n, dim] their hidden states
  /// @param grams   [n, gram] for each position its last `gram` tokens, including its own, oldest
  ///                first; -1 before the start of the sequence. Ignored by heads that see no
  ///                committed k-grams
  virtual void append(std::span<const float> hidden, std::span<const TokenId> grams) = 0;
  /// Removes the positions from `length` on.
  virtual void truncate(int length) = 0;
  /// Starts a new draft after the last hidden state, which must exist.
  virtual void begin_draft() = 0;
  /// Adds a level of rows to the draft and returns the predictions of head k after each row, where k is the number of earlier
  /// levels. A row sees every hidden state, the k-grams of positions from 1 on (if the heads see committed ones), its ancestors
  /// and itself.
  /// @param parent  [n] index of each row's parent among the rows of all levels of this draft; -1:
  ///                the committed sequence
  /// @param grams   [n, gram] for each row its last `gram` tokens, including its own, oldest first;
  ///                -1 before the start of the sequence
  /// @return        [n, vocab_size] logits
  virtual std::vector<float> level(std::span<const int> parent, std::span<const TokenId> grams) = 0;
  /// The same, but returns the k most likely tokens of each row, as MedusaHeads::ranked() does.
  /// @return  [n]
  virtual std::vector<RankedTokens> ranked_level(std::span<const int> parent,
                                                 std::span<const TokenId> grams,
                                                 int k);
  /// Encodes k-grams into the cache, before any is looked up.
  /// @param grams  [n, gram]
  virtual void fill_cache(std::span<const TokenId> grams) = 0;
  /// Counts of this sequence's look-ups in the cache, without those of fill_cache().
  virtual GramCounts gram_counts() const = 0;
};

/// Chimera heads.
class ChimeraHeads : public DraftHeads {
 public:
  /// Tokens of a k-gram.
  virtual int gram() const = 0;
  /// An empty sequence.
  /// @param cache  of k-grams that these heads encoded; null: none. Sequences that share it run on one thread
  virtual std::unique_ptr<ChimeraSequence> make_sequence(std::shared_ptr<GramCache> cache) = 0;
  /// The cache that sequences of these heads may share. It is a new one after a call with another capacity.
  std::shared_ptr<GramCache> kept_cache(int capacity);

 private:
  std::shared_ptr<GramCache> kept_cache_;
};

}  // namespace engine
