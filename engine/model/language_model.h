// The interface of a model for decoders: it takes a batch of token trees, returns chosen tokens,
// and keeps accepted paths in a KV cache. The transformer implements it; tests use toy models.
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

/// Outputs of a forward besides the chosen tokens.
struct Wants {
  bool logits = false;  // [n_rows, vocab_size] f32 of every row
  bool hidden = false;  // [n_rows, dim] after the final norm
  /// A row of the decoder's tree whose attention weights are returned; -1: none. The stepper copies it to
  /// BatchItem::attention_of.
  int attention_of = -1;
  bool row_p = false;  // the probability of every row's own token
  /// Above 0: the n most likely tokens of every row are returned instead of a choice (for draft
  /// models). 0: a choice. Not together with row_p.
  int n_ranked = 0;
  /// Above 0: the n_top tokens with the largest logits of every row are returned as well, at most
  /// kernels::kMaxRanked. Penalty, temperature and filters do not apply. Not together with n_ranked or draws.
  int n_top = 0;
  /// Samples candidates for each item's DrawRequest instead of choosing tokens. Needs a model with
  /// distributions_device(); not together with row_p or n_ranked.
  bool draws = false;
};

/// The settings by which tokens are chosen. They belong to a run and are the same for every
/// decoder.
struct Sampling {
  float temperature = 0;         // below 1e-5: greedy
  int top_k = 0;                 // 0: off
  float top_p = 1;               // 1: off
  float min_p = 0;               // 0: off
  float repetition_penalty = 1;  // 1: off
  std::uint64_t seed = 1;
  /// Coupled: a token depends only on logits, seed and position (Gumbel-max trick), so every
  /// decoder emits the same tokens. Rejection: speculative sampling, under which decoders have the
  /// same distribution but not the same tokens.
  enum class Mode { Coupled, Rejection } mode = Mode::Coupled;

  /// True if the largest logit is chosen.
  bool greedy() const { return temperature < 1e-5f; }
  bool operator==(const Sampling&) const = default;
};

/// The committed keys and values of one sequence. Caches may share committed prefixes.
class SequenceCache {
 public:
  virtual ~SequenceCache() = default;
  /// Number of committed positions.
  virtual int length() const = 0;
  /// Number of leading positions that were computed as whole blocks of a prompt
  /// (BatchItem::in_blocks).
  virtual int n_in_blocks() const { return 0; }
  /// Appends rows of this cache's last forward to the committed prefix and discards the other rows
  /// of that forward. Call it at most once per forward. The model's next forward, for any cache,
  /// discards rows that are not committed.
  /// @param path  row indices in the tree; the first is a child of the prefix, each further one a
  ///              child of the row before
  virtual void commit(std::span<const int> path) = 0;
  /// Removes the committed positions from `length` on, and the rows of the last forward.
  virtual void truncate(int length) = 0;
  /// A cache with the same prefix. Both share its pages until one of them grows.
  virtual std::unique_ptr<SequenceCache> fork() const = 0;
  /// Bytes of pages that only this cache uses.
  virtual std::int64_t own_bytes() const { return 0; }
};

/// One sequence's part of a forward.
struct BatchItem {
  SequenceCache* cache = nullptr;
  const TokenTree* tree = nullptr;
  std::span<const TokenId> prefix;  // tokens of the committed positions; [cache->length()]
  Sampling sampling;
  bool pick_rows = true;  // false: a prefill, without logits and choices
  /// true: the step is recorded, and outputs of every row are computed even if that costs more.
  bool shown = false;
  /// The tree is a chain of whole blocks of a prompt, LanguageModel::prompt_block() rows each, and the cache holds only such
  /// blocks. Needs pick_rows = false. All items of a forward are in blocks, or none.
  bool in_blocks = false;
  kernels::RandomStream stream = kernels::RandomStream::TargetGumbel;
  /// Number of tokens of the sequence's prompt. If RoPE frequencies depend on the length, rows of
  /// this item that belong to the prompt get the frequencies of this length (engine/model/rope.h).
  /// 0: each row gets the frequencies of a sequence that ends with it, which is right for the
  /// prompt's last token and all later tokens.
  int n_prompt = 0;
  /// [n_rows] or empty: for rows marked 1, the token with the largest logit is chosen at any
  /// temperature.
  std::span<const std::uint8_t> greedy_rows;
  int attention_of = -1;  // the row of the tree whose attention weights are returned, or -1
  /// The candidates that the device verifies (only for a model with distributions_device()); null:
  /// none. Filters and penalty are those of `sampling`.
  const VerifyRequest* verify_request = nullptr;
  /// Candidates that the device samples (Wants::draws); null: none.
  const DrawRequest* draw = nullptr;
  /// The row whose hidden state is returned as StepOutput::hidden [dim]; -1: none. Only for an item
  /// with pick_rows = false that is the only item of its forward.
  int hidden_of = -1;
};

/// The outputs of one sequence. Rows are in the order of its tree.
struct StepOutput {
  std::vector<kernels::Picked> picked;  // [n_rows] the token chosen after each row
  /// [n_rows] with Wants::n_ranked: the most likely tokens after penalty, temperature and filters; a greedy row uses
  /// temperature 1 without filters. `picked` then has no choices.
  std::vector<RankedTokens> ranked;
  /// [n_rows, n_top] with Wants::n_top: tokens in the order of their logits, ties by id; -1 after the last one
  /// if fewer tokens have a logit above -inf.
  std::vector<TokenId> top;
  std::vector<float> logits;  // [n_rows, vocab_size] with Wants::logits
  std::vector<float> hidden;  // [n_rows, dim] with Wants::hidden; [dim] with BatchItem::hidden_of
  /// [n_rows] attention weights of the item's row `attention_of`: the mean over the heads of the
  /// last quarter of the layers, 0 for rows that it does not see. The weights of these rows and of
  /// the prefix sum to 1. Empty: not requested or not supported.
  std::vector<float> attention;
  /// [n_rows] with Wants::row_p: the probability of the row's own token in its parent's
  /// distribution (greedy: at T = 1). It is -1 (unknown) for rows directly after the prefix, and
  /// for all rows if filters or a penalty apply. Empty: not requested or not supported.
  std::vector<float> row_p;
  VerifyResult verify_result;  // of the item's verify_request
  DrawnCandidates drawn;       // of the item's draw. `picked` then has no choices
  /// Time in which tokens were chosen from the logits, a part of the forward, divided among its items by rows. On a
  /// GPU only the host's part. 0: not measured.
  std::int64_t choice_ns = 0;
  int vocab_size = 0;

  /// [n_top] the row's tokens in `top`.
  std::span<const TokenId> top_of(int row) const {
    const std::size_t width = top.size() / picked.size();
    return std::span(top).subspan(static_cast<std::size_t>(row) * width, width);
  }
  /// [vocab_size] logits of a row.
  std::span<const float> logits_of(int row) const {
    return std::span(logits).subspan(static_cast<std::size_t>(row) * vocab_size, vocab_size);
  }
};

/// A model that computes forwards over token trees.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  /// Number of tokens that may be chosen or fed (the tokenizer's tokens, without padding rows).
  virtual int vocab_size() const = 0;
  /// The tokens that the model can propose, ascending; empty: all. Others have probability 0 (logit -inf). Such a model
  /// serves as a draft: it chooses greedily or ranks tokens, but does not choose with noise.
  virtual std::span<const TokenId> output_tokens() const { return {}; }
  /// Largest number of positions of a sequence.
  virtual int max_seq_len() const = 0;
  /// Number of rows of a prompt block, if the model computes whole blocks of a prompt by a path
  /// whose results differ in the last bits from a step's; 0: a prompt is computed as in a step.
  /// engine/decode/step/prefill_blocks.h decides which positions come in blocks.
  virtual int prompt_block() { return 0; }
  /// Prompts with the same rotation key have equal cached keys at positions with equal tokens
  /// (RopeConfig::rotation_key).
  /// @param n_prompt  tokens of a prompt
  virtual int rotation_key(int n_prompt) const {
    static_cast<void>(n_prompt);
    return 0;
  }
  /// An empty cache for a new sequence.
  virtual std::unique_ptr<SequenceCache> make_cache() = 0;
  /// The device that samples candidates and verifies them by distributions in its memory; null: the
  /// model does neither, and decoders compute distributions from logits
  /// (engine/decode/verify/sampling.h).
  virtual kernels::Device* distributions_device() { return nullptr; }
  /// One forward over the rows of all items. A row sees its sequence's committed prefix, its ancestors and itself (tree
  /// attention); its position is its parent's plus one. A row's choice uses the random numbers of the next position and the
  /// penalty history of prefix and ancestors.
  /// @return  one output per item, in their order
  /// @throws Error(Resources)  if a sequence would exceed max_seq_len or memory
  /// @throws Error(BadInput)   if the logits of a picked row are not finite; the message names row
  ///                           and index
  virtual std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) = 0;
  /// Waits until the device has finished all work. A forward without outputs, or a commit, may otherwise still be pending.
  /// @throws Error(Device, Resources)  if pending work has failed
  virtual void finish() {}
};

}  // namespace engine
