// What a decoder's loop needs of a model: rows in, chosen tokens out, a cache that keeps a path.
// The transformer is one; the tests' toy models are others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/token_tree.h"
#include "engine/base/types.h"
#include "engine/model/ranked.h"
#include "engine/model/verify_request.h"
#include "kernels/ops.h"
#include "kernels/philox.h"

namespace engine {

/// Which outputs a forward must bring back besides the chosen ids.
struct Wants {
  bool logits = false;  // [n_rows, vocab_size] f32 of every row
  bool hidden = false;  // [n_rows, dim] after the final norm
  /// A row whose attention to the rows of its chain comes back; -1: none. Of one decoder: the
  /// stepper passes it on with the decoder's own rows (BatchItem).
  int attention_of = -1;
  bool row_p = false;  // the probability of every row's own token
  /// So many likeliest tokens of every row in place of a choice, as a draft model is asked for
  /// them; 0: a choice. Not together with row_p.
  int n_ranked = 0;
  /// Candidates drawn as the items ask (BatchItem::draw) in place of choices. Of a model with
  /// laws_device(); not together with row_p or n_ranked.
  bool draws = false;
};

/// How tokens are chosen. Part of a run's settings; the same for every decoder.
struct Sampling {
  float temperature = 0;
  int top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;
  std::uint64_t seed = 1;
  enum class Mode { Coupled, Rejection } mode = Mode::Coupled;

  bool greedy() const { return temperature < 1e-5f; }
  bool operator==(const Sampling&) const = default;
};

/// The committed keys and values of one sequence. Committed prefixes may be shared between caches.
class SequenceCache {
 public:
  virtual ~SequenceCache() = default;
  /// Committed positions.
  virtual int length() const = 0;
  /// Of them, from the first: those that came as whole blocks of a prompt (BatchItem::in_blocks).
  virtual int n_in_blocks() const { return 0; }
  /// Appends the rows `path` (indices into the tree of the last forward of this cache, in order) to
  /// the committed prefix; the other rows of that forward vanish. Once, and before the model's next
  /// forward of any cache: what was not committed by then is gone.
  virtual void commit(std::span<const int> path) = 0;
  /// Forgets the committed positions from `length` on, and the rows of the last forward with them.
  virtual void truncate(int length) = 0;
  /// A cache with the same prefix, which is shared until either grows.
  virtual std::unique_ptr<SequenceCache> fork() const = 0;
  /// Bytes of pages only this cache holds.
  virtual std::int64_t own_bytes() const { return 0; }
};

/// One sequence's part of a forward.
struct BatchItem {
  SequenceCache* cache = nullptr;
  const TokenTree* tree = nullptr;
  std::span<const TokenId> prefix;  // tokens of the committed positions; [cache->length()]
  Sampling sampling;
  bool pick_rows = true;  // false: a prefill, nothing is chosen and no logits are computed
  /// The step is told: rows that decide nothing are answered too, where that costs more.
  bool shown = false;
  /// A chain of whole blocks of a prompt, LanguageModel::prompt_block() rows each, behind such
  /// blocks alone; nothing is chosen. Of all items of a forward, or of none.
  bool in_blocks = false;
  kernels::RandomStream stream = kernels::RandomStream::TargetGumbel;
  /// Tokens of the sequence's prompt, read at once: models whose rotary frequencies depend on the
  /// length rotate those of its tokens that this item feeds for a sequence of that length
  /// (engine/model/rope.h). 0: every row as the last of its sequence. Rows after the prompt and its
  /// last token need no such number.
  int n_prompt = 0;
  /// [n_rows] or empty: rows marked 1 take the largest logit whatever the temperature.
  std::span<const std::uint8_t> greedy_rows;
  int attention_of = -1;  // a row of the tree, or -1
  /// What the model's device judges by its distributions, of a model with laws_device(); null: nothing.
  /// Filters and penalty are the item's.
  const VerifyRequest* verify_request = nullptr;
  /// What it draws, if that is wanted; null: nothing.
  const DrawRequest* draw = nullptr;
  /// Of an item without picks that is alone in its forward: a row whose state after the final norm
  /// comes back by itself, StepOutput::hidden being its [dim]; -1: none. Others cost no more.
  int hidden_of = -1;
};

/// What one sequence got back from a forward. Rows in the order of its tree.
struct StepOutput {
  std::vector<kernels::Picked> picked;  // [n_rows]; row r: the token that follows it
  /// [n_rows] if wanted: the likeliest tokens by the item's penalty, temperature and filters; by
  /// the plain distribution of temperature 1 where that is greedy. Rows of `picked` then hold no choice.
  std::vector<RankedTokens> ranked;
  std::vector<float> logits;  // [n_rows, vocab_size] if wanted
  std::vector<float> hidden;  // [n_rows, dim] if wanted; [dim] of the item's row hidden_of
  /// [n_rows] what the item's row `attention_of` attends to: mean over the heads of the last
  /// quarter of the layers, 0 for rows it does not see. The rest of each head's 1 goes to the
  /// prefix. Empty: not asked for, or this model does not tell.
  std::vector<float> attention;
  /// [n_rows] if wanted: the probability of the row's own token under the distribution its parent's pick was
  /// made by (T as asked; T = 1 if greedy). -1 where that is not told: behind the prefix, and where
  /// filters or a penalty shape the distribution. Empty: not asked for, or this model does not tell.
  std::vector<float> row_p;
  VerifyResult verify_result;  // on the item's questions
  DrawnCandidates drawn;  // as the item asked. Rows of `picked` then hold no choice
  int vocab_size = 0;

  std::span<const float> logits_of(int row) const {
    return std::span(logits).subspan(static_cast<std::size_t>(row) * vocab_size, vocab_size);
  }
};

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  /// Tokens that may be chosen or fed (the tokenizer's, without padding rows).
  virtual int vocab_size() const = 0;
  virtual int max_seq_len() const = 0;
  /// Rows of a block of a prompt, where these have bits of their own; 0: they have a step's. Which
  /// positions then come in blocks engine/decode/step/prefill_blocks.h says.
  virtual int prompt_block() { return 0; }
  /// Caches that were filled for prompts of the same key hold the same keys for the same tokens
  /// (RopeConfig::rotation_key).
  /// @param n_prompt  tokens of a prompt
  virtual int rotation_key(int n_prompt) const {
    static_cast<void>(n_prompt);
    return 0;
  }
  virtual std::unique_ptr<SequenceCache> make_cache() = 0;
  /// Where its distributions stay when forwards judge by them and draw from them; null: forwards do neither,
  /// and who needs distributions makes them of logits (engine/decode/verify/sampling.h).
  virtual kernels::Device* distributions_device() { return nullptr; }
  /// One forward over the rows of all items. A row sees its sequence's committed prefix, its
  /// ancestors and itself; its position is its parent's plus one. The choice for a row is made at
  /// the position after it, over the penalty history prefix + chain.
  /// @return  one output an item, in their order
  /// @throws Error(Resources)  if a sequence would exceed max_seq_len or memory
  /// @throws Error(BadInput)   if a picked row's logits are not finite, naming row and index
  virtual std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) = 0;
  /// Waits until all that was asked of the model's device is done, or says why it is not: a forward
  /// that brings nothing back, a commit, may only stand in line.
  /// @throws Error(Device, Resources)  what was in line has failed
  virtual void finish() {}
};

}  // namespace engine
