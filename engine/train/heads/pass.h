// Forward and backward of draft heads over texts that a target wrote, with its hidden states.
//   place    a position i of a text at which decoding would draft: the target has read tokens 0 to
//            i and has chosen token i + 1. The first place is the last token of the prompt
//   head k   predicts token i + 2 + k from h_i (k from 0)
//   Medusa   the input is h_i.                      Cai et al. 2024 (arXiv:2401.10774), section 2.1
//   Chimera  the input is [h_i ; f]. f is the encoder's output at token i + 1 + k of a chain of
//            k-grams. As in drafting, the chain attends to h_0 .. h_i, to the k-grams g_1 .. g_i of
//            the same tokens (unless disabled), and to itself.
//                                                   Zeng et al. 2024 (arXiv:2402.15758), section 3
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/types.h"
#include "engine/model/encode/first_layer.h"
#include "engine/train/core/train_device.h"
#include "engine/train/heads/parameters.h"
#include "engine/train/ops/bf16.h"

namespace engine {

/// The row of a token that the heads do not rank.
inline constexpr std::int32_t kNotRanked = -2;

/// A training text of draft heads.
struct HeadsText {
  std::span<const TokenId> tokens;
  std::span<const Bf16> hidden;  // [tokens - 1, dim]
  int n_prompt = 0;
  // [tokens] the tokens' rows in the heads' output matrix, or kNotRanked; empty: row i is token i
  std::span<const std::int32_t> rows = {};

  /// Number of places of a head: each has a token that the head should predict.
  int n_places(int head) const {
    return std::max(0, static_cast<int>(tokens.size()) - 1 - n_prompt - head);
  }
  /// The row of token i in the output matrix, or kNotRanked.
  std::int32_t row_of(int i) const {
    return rows.empty() ? tokens[static_cast<std::size_t>(i)] : rows[static_cast<std::size_t>(i)];
  }
  /// Number of a head's places whose token the heads rank: only these have a loss.
  int n_targets(int head) const;
};

/// The rows of tokens in the heads' output matrix, or kNotRanked; empty if row i is token i.
std::vector<std::int32_t> output_rows_of(std::span<const TokenId> tokens,
                                         const HeadsConfig& config);

/// Weights of the parts of the loss.
struct HeadsLoss {
  std::vector<float> of_head;  // [n_heads] weight of the loss of each row, by head
  float of_feature = 0;        // Chimera: weight of the square of each element of f - h
  bool self_fed = false;       // Chimera: chains hold the heads' own guesses instead of the text
};

/// Sums of the losses of one or several passes.
struct HeadsSums {
  std::vector<double> loss;     // [n_heads] sum of -log p over the rows of a head
  std::vector<std::int64_t> n;  // [n_heads] rows in that sum, whose target is ranked
  double feature = 0;           // sum of the squares of f - h
  std::int64_t n_feature = 0;   // elements in that sum
  /// Sets all sums to zero.
  explicit HeadsSums(int n_heads)
      : loss(static_cast<std::size_t>(n_heads)), n(static_cast<std::size_t>(n_heads)) {}
  void operator+=(const HeadsSums& other);
};

/// Each of the ranks 0 to kRanks - 1 has its own count.
inline constexpr int kRanks = 10;

/// For each head, counts of the ranks that targets have in its distribution. The most likely token
/// has rank 0; a token that the heads do not rank has a rank above all.
struct HeadsRanks {
  std::vector<std::array<std::int64_t, kRanks>> hits;  // [n_heads] places by rank of their target
  std::vector<std::int64_t> n;                         // [n_heads] all places
  /// Sets all counts to zero.
  explicit HeadsRanks(int n_heads)
      : hits(static_cast<std::size_t>(n_heads)), n(static_cast<std::size_t>(n_heads)) {}
  /// Counts a place.
  void add(int head, int rank);
  /// Top-k accuracy with k = `best`: the share of places whose target has a rank below `best`.
  double top(int head, int best) const;
};

/// Ranks of the targets of the same places, counted in two ways.
struct MeasuredRanks {
  HeadsRanks all;  // every place of a head
  /// Only the places at which the likeliest tokens of all heads before were right. At other places
  /// a head's guess cannot be accepted after theirs.
  HeadsRanks after_right;
  /// Sets all counts to zero.
  explicit MeasuredRanks(int n_heads) : all(n_heads), after_right(n_heads) {}
  /// Counts a place.
  /// @param ranks  of the targets of heads 0, 1, ...; fewer than n_heads near the end of a text
  void add_place(std::span<const int> ranks);
};

/// Memory on the device for the losses of rows: arrays [n_heads, n_rows], initially zero.
struct HeadsLosses {
  float* loss = nullptr;     // -log p
  float* squares = nullptr;  // Chimera: sum of the squares of f - h of each row
  std::int64_t n_rows = 0;   // rows of each head in the arrays
  std::int64_t first = 0;    // index in the arrays of the pass's first row

  /// The place for the losses of a head's rows.
  float* loss_of(int head) const { return loss + head * n_rows + first; }
  /// The place for the sums of squares of a head's rows.
  float* squares_of(int head) const { return squares + head * n_rows + first; }
};

/// Forward and backward of heads of one kind on a device.
class HeadsPass {
 public:
  virtual ~HeadsPass() = default;
  /// Forward and backward of texts with at most max_rows rows in all. Waits for the device only if
  /// chains are self-fed, for their guesses.
  /// @param gradient  gradient of all weights, on the device; the gradient of this pass is added to
  ///                  it
  virtual void forward_backward(const kernels::TrainWeights& weights,
                                std::span<const HeadsText> texts,
                                const HeadsLoss& loss,
                                float* gradient,
                                const HeadsLosses& losses) = 0;
  /// Computes only the forward and counts the ranks of the targets. Waits for the device once, and
  /// for each guess of self-fed chains.
  /// @param n_valid   the first n_valid token ids may be proposed
  /// @param self_fed  Chimera: chains hold the heads' own guesses instead of the text
  virtual void rank(const kernels::TrainWeights& weights,
                    std::span<const HeadsText> texts,
                    int n_valid,
                    bool self_fed,
                    MeasuredRanks& ranks) = 0;
};

/// Number of rows of a text in a pass.
int rows_of(const HeadsText& text, const HeadsConfig& config);
/// Divides the texts, in order, into passes.
/// @param max_rows  maximum rows of a pass; a longer text has a pass of its own
std::vector<std::span<const HeadsText>> passes_of(std::span<const HeadsText> texts,
                                                  const HeadsConfig& config,
                                                  int max_rows);

/// The target's parts that stay constant; matrices are on the device.
struct TargetMatrices {
  const float* embedding = nullptr;   // [vocab_size, dim], for heads without their own embedding
  kernels::TrainWeights output;       // [n_outputs, dim], for heads without their own outputs
  FirstLayer* first_layer = nullptr;  // for heads whose tokens it encodes
};

/// Makes the pass for a kind of heads. Allocates all its memory.
/// @param on        its device outlives the pass
/// @param target    outlives the pass
/// @param max_rows  maximum rows of a call
std::unique_ptr<HeadsPass> make_heads_pass(const TrainDevice& on,
                                           const HeadsConfig& config,
                                           const TargetMatrices& target,
                                           int max_rows);
/// The pass of Medusa's heads; as make_heads_pass().
std::unique_ptr<HeadsPass> make_medusa_pass(const TrainDevice& on,
                                            const HeadsConfig& config,
                                            const TargetMatrices& target,
                                            int max_rows);
/// The pass of Chimera's heads; as make_heads_pass().
std::unique_ptr<HeadsPass> make_chimera_pass(const TrainDevice& on,
                                             const HeadsConfig& config,
                                             const TargetMatrices& target,
                                             int max_rows);

/// Descriptions of the passes' memory for Ops::allocate.
inline constexpr const char* kRowsOfHeads = "the rows of draft heads";
inline constexpr const char* kStatesOfTarget = "the target's hidden states";

}  // namespace engine
