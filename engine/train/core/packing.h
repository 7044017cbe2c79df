// Packs several texts into one row of the context's length, to reduce padding. Best fit: a text goes
// to the open row with the least room that is enough. If no row has room and no more may be opened,
// the fullest row is closed. The packed rows depend only on the texts and their order.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engine/base/types.h"
#include "engine/train/ops/train_ops.h"

namespace engine {

/// A tokenized text: the model reads all but the last token and predicts all but the first.
struct TokenText {
  std::vector<TokenId> tokens;
  // number of leading tokens whose predictions have the prompt's weight
  int n_prompt = 0;
  // begin and end of the final answer's tokens; equal if there is none
  int answer_begin = 0, answer_end = 0;
};

/// Loss weights of prompt and answer tokens; other tokens of a completion have weight 1.
struct LossWeights {
  float prompt = 0.1f;
  float answer = 1;
};

/// A packed row.
struct PackedRow {
  std::vector<TokenId> token;        // [context], 0 in padding
  std::vector<TokenId> target;       // [context]
  std::vector<float> weight;         // [context] weight of the loss, 0 in padding
  std::vector<std::int32_t> pos;     // [context], from 0 in every text
  std::vector<std::int32_t> length;  // length of each text, in order
  int n_used = 0;
};

/// Packs a stream of texts.
class Packer {
 public:
  /// @param max_open  rows that may be open at a time
  Packer(int context, int max_open, LossWeights weights)
      : context_(context), max_open_(max_open), weights_(weights) {}

  /// Drops texts of fewer than two tokens; cuts longer ones at the context.
  void add(const TokenText& text);
  /// Number of closed rows that take() has not returned.
  int n_ready() const { return static_cast<int>(ready_.size()); }
  /// Removes and returns the oldest closed row. Needs n_ready() > 0.
  PackedRow take();

  /// Texts cut so far.
  std::int64_t n_cut() const { return n_cut_; }
  /// Rows closed so far.
  std::int64_t n_closed() const { return n_closed_; }
  /// Tokens in the rows closed so far.
  std::int64_t n_tokens() const { return n_tokens_; }

  /// The packer's state as bytes, for checkpoints.
  std::string save() const;
  /// Restores the state.
  /// @param where  for messages
  /// @throws Error(BadInput)  if the bytes are not what save() gives for this context
  void load(const std::string& bytes, const std::string& where);

 private:
  PackedRow open_row() const;
  float weight_of(const TokenText& text, int token) const;
  void close(std::size_t index);

  int context_, max_open_;
  LossWeights weights_;
  std::vector<PackedRow> open_;
  std::deque<PackedRow> ready_;
  std::int64_t n_cut_ = 0, n_closed_ = 0, n_tokens_ = 0;
};

/// The segments of concatenated rows: one for each text, none for padding.
std::vector<Segment> segments_of(const std::vector<PackedRow>& rows, int context);

}  // namespace engine
