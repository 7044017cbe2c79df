// Forward and backward of draft heads over texts that a target wrote, with its hidden states.
//   place    a position i of a text at which decoding would draft: the target has read tokens 0 to
//            i and picked token i + 1. The first is the prompt's last token
//   head k   reads h_i and is asked for token i + 2 + k (k from 0)
//   Medusa   h_i alone.                             Cai et al. 2024 (arXiv:2401.10774), section 2.1
//   Chimera  [h_i ; f], where f is the encoder's answer at token i + 1 + k of a chain of k-grams
//            that hangs on h_0 .. h_i and sees these states, the k-grams g_1 .. g_i of the same
//            tokens (unless the heads see none), its own earlier rows and itself, as it does when a
//            draft is made.                         Zeng et al. 2024 (arXiv:2402.15758), section 3
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/types.h"
#include "engine/train/core/train_device.h"
#include "engine/train/heads/parameters.h"
#include "engine/train/ops/bf16.h"

namespace engine {

/// One text as heads learn from it.
struct HeadsText {
  std::span<const TokenId> tokens;
  std::span<const Bf16> hidden;  // [tokens - 1, dim]
  int n_prompt = 0;

  /// Places at which head k has a token to be asked for.
  int n_places(int head) const {
    return std::max(0, static_cast<int>(tokens.size()) - 1 - n_prompt - head);
  }
};

/// How the parts of the loss count.
struct HeadsLoss {
  std::vector<float> of_head;  // [n_heads] of each of its rows
  float of_feature = 0;        // Chimera: of the square of each element of f - h
  bool self_fed = false;       // Chimera: chains of the heads' own guesses, not of the text
};

/// Of one or several passes.
struct HeadsSums {
  std::vector<double> loss;     // [n_heads] of -log p
  std::vector<std::int64_t> n;  // [n_heads] rows
  double feature = 0;           // of squares
  std::int64_t n_feature = 0;   // elements
  explicit HeadsSums(int n_heads)
      : loss(static_cast<std::size_t>(n_heads)), n(static_cast<std::size_t>(n_heads)) {}
  void operator+=(const HeadsSums& other);
  /// Whether all losses are finite numbers.
  bool finite() const;
};

inline constexpr int kRanks = 10;

/// How often the token asked for had rank 0, 1, .. in what a head said.
struct HeadsRanks {
  std::vector<std::array<std::int64_t, kRanks>> hits;  // [n_heads]
  std::vector<std::int64_t> n;                         // [n_heads] rows
  explicit HeadsRanks(int n_heads)
      : hits(static_cast<std::size_t>(n_heads)), n(static_cast<std::size_t>(n_heads)) {}
  void add(int head, int rank);
  void operator+=(const HeadsRanks& other);
  /// Share of rows whose token is among the best `best` of head k.
  double top(int head, int best) const;
};

/// Memory for the losses of rows: arrays [n_heads, n_rows] on the device, zero until written.
struct HeadsLosses {
  float* loss = nullptr;     // -log p
  float* squares = nullptr;  // Chimera: each row's sum of squares of f - h
  std::int64_t n_rows = 0;   // of a head
  std::int64_t first = 0;    // the first row of a pass

  float* loss_of(int head) const { return loss + head * n_rows + first; }
  float* squares_of(int head) const { return squares + head * n_rows + first; }
};

/// Forward and backward of heads of one kind on a device.
class HeadsPass {
 public:
  virtual ~HeadsPass() = default;
  /// Forward and backward of the texts, at most max_rows rows in all. Waits only for the guesses of
  /// self-fed chains.
  /// @param gradient  of all weights, on the device, added to
  virtual void forward_backward(const kernels::TrainWeights& weights,
                                std::span<const HeadsText> texts,
                                const HeadsLoss& loss,
                                float* gradient,
                                const HeadsLosses& losses) = 0;
  /// Forward alone, along the texts' own tokens. Waits once.
  /// @param n_valid  the first n_valid token ids may be proposed
  virtual void rank(const kernels::TrainWeights& weights,
                    std::span<const HeadsText> texts,
                    int n_valid,
                    HeadsRanks& ranks) = 0;
};

/// Rows that a text takes of a pass.
int rows_of(const HeadsText& text, const HeadsConfig& config);
/// The texts in their order, as many to a pass as fit.
/// @param max_rows  of a pass; a longer text has one for itself
std::vector<std::span<const HeadsText>> passes_of(std::span<const HeadsText> texts,
                                                  const HeadsConfig& config,
                                                  int max_rows);

/// Takes all its memory.
/// @param on         its device outlives the pass
/// @param embedding  [vocab_size, dim] the target's, on the device, for heads without their own;
///                   outlives the pass
/// @param max_rows   of a pass
std::unique_ptr<HeadsPass> make_heads_pass(const TrainDevice& on,
                                           const HeadsConfig& config,
                                           const float* embedding,
                                           int max_rows);
std::unique_ptr<HeadsPass> make_medusa_pass(const TrainDevice& on,
                                            const HeadsConfig& config,
                                            int max_rows);
std::unique_ptr<HeadsPass> make_chimera_pass(const TrainDevice& on,
                                             const HeadsConfig& config,
                                             const float* embedding,
                                             int max_rows);

/// Purposes of the passes' memory (Ops::allocate).
inline constexpr const char* kRowsOfHeads = "the rows of draft heads";
inline constexpr const char* kStatesOfTarget = "the target's hidden states";

}  // namespace engine
