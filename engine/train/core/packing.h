// Several texts in one row of the context's length, so that little of a batch is padding. Best fit:
// a text goes to the open row that it fills most; when none has room and no more may be opened, the
// fullest is closed. Which rows come out depends on the texts and their order alone.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engine/train/ops/train_ops.h"
#include "engine/base/types.h"

namespace engine {

/// A tokenized text: the model reads all but the last token and predicts all but the first.
struct TokenText {
  std::vector<TokenId> tokens;
  int n_prompt = 0;                      // leading tokens whose prediction counts as prompt
  int answer_begin = 0, answer_end = 0;  // the tokens that say what was asked; equal: none
};

/// What the prediction of a token counts in the loss, by its place; the rest of a completion is 1.
struct LossWeights {
  float prompt = 0.1f;
  float answer = 1;
};

struct PackedRow {
  std::vector<TokenId> token;        // [context], 0 where nothing is
  std::vector<TokenId> target;       // [context]
  std::vector<float> weight;         // [context] of the loss, 0 where nothing is
  std::vector<std::int32_t> pos;     // [context], from 0 in every text
  std::vector<std::int32_t> length;  // rows of each text, in order
  int n_used = 0;
};

class Packer {
 public:
  Packer(int context, int max_open, LossWeights weights)
      : context_(context), max_open_(max_open), weights_(weights) {}

  /// Texts of fewer than two tokens are dropped; longer ones than fit are cut at the context's end.
  void add(const TokenText& text);
  int n_ready() const { return static_cast<int>(ready_.size()); }
  /// The oldest closed row; there must be one.
  PackedRow take();

  std::int64_t n_cut() const { return n_cut_; }
  /// Rows closed so far and tokens in them: how well the rows are filled.
  std::int64_t n_closed() const { return n_closed_; }
  std::int64_t n_tokens() const { return n_tokens_; }

  /// Everything it holds as bytes, and back; for checkpoints.
  std::string save() const;
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

/// The segments of rows laid one after the other: one for each text, none for padding.
std::vector<Segment> segments_of(const std::vector<PackedRow>& rows, int context);

}  // namespace engine
