// Lookahead decoding: a window of Jacobi states feeds a pool of n-grams, whose guesses are verified
// in the same forward.
//   paper     Fu, Bailis, Stoica, Zhang 2024 (arXiv:2402.02057); W = window, N = ngram_size, G =
//             n_guesses
//   lossless  greedy and coupled: token for token; rejection: in distribution
//   needs     nothing; gains where text repeats itself or is locally predictable
//   cost      1 target step of at most (W + G)(N - 1) rows; fewer where guesses share beginnings,
//             and, where W < N - 2, up to (W + N - 1)^2 / 4 of the window's while it fills;
//             `ranks` shares them out among devices (lookahead_rank.h)
//   differs   keeps the bonus token behind a full match, merges equal beginnings of guesses,
//             verifies while the window warms up, looks n-grams up in prompt and text correctly;
//             preset=paper turns the first three off; `adapt` chooses W, N and G by measured time
//
// The window is N - 1 levels. Level 0 is a chain behind the last token; column k of the higher
// levels is a branch below cell k of [last token, level 0...]:
//
//     last - L0[0] - L0[1] ...        each level is what the model answered to the one before,
//      |      |       |               one step earlier, so a column with the newest answer at its
//     L1[0]  L1[1]   L1[2]            foot is an n-gram: key cell k, then down the column
//      |      |       |
//     L2[0]  L2[1]   L2[2]
//
// Where W, N and G follow measured time, the leftmost columns and the first levels work and the
// others rest: they keep their cells until they are sent again. A column moves by itself, so one
// that rested whole still holds an n-gram of the model's answers, for a place further on, as every
// cell is where several tokens are accepted at once; n-grams are shorter where fewer levels work.
// Levels sent again hang below cells that they did not follow, for as many steps as they are: worse
// guesses, never a wrong token.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/decode/guess/lookahead_sizes.h"
#include "engine/decode/guess/ngram_pool.h"
#include "engine/decode/verify/verify.h"
#include "engine/decode/guess/window_tuner.h"

namespace engine {

class LookaheadDecoder : public Decoder {
 public:
  explicit LookaheadDecoder(const DecoderContext& context);
  void begin(const Sequence& prefix) override;
  Wants wants() const override { return verifier_.wants(); }
  TokenTree propose(const Sequence& prefix) override;
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override {
    return verifier_.verify_request(prefix, tree);
  }
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;
  void committed(const Sequence& prefix, const Decision& cut) override;
  std::vector<Event> take_events() override;
  std::map<std::string, std::int64_t> counts() const override;
  std::map<std::string, double> figures() const override;

  const NgramPool& pool() const { return pool_; }
  /// The window's levels; fewer than N - 1 while it warms up.
  const std::vector<std::vector<TokenId>>& levels() const { return levels_; }

 private:
  bool warm() const { return static_cast<int>(levels_.size()) == most_.ngram_size - 1; }
  /// Levels that this step sends: while the window warms up, as many as there are.
  std::size_t n_levels() const {
    return warm() ? static_cast<std::size_t>(size_.ngram_size - 1) : levels_.size();
  }
  bool window_fits(const Sequence& prefix) const;
  void measure_step(const TokenTree& tree);
  void count_gain(const Decision& cut);
  void add_window(TokenTree& tree);
  void add_guesses(TokenTree& tree, const Sequence& prefix);
  void share_out(TokenTree& tree) const;
  void advance_window(const std::vector<TokenId>& newest);
  void shift_window(const Sequence& prefix, int n);
  void insert_window_ngrams(TokenId last, const std::vector<TokenId>& newest);
  void insert_text_ngrams(std::span<const TokenId> text, std::size_t first_end, StepId born);

  LanguageModel& target_;  // owned by the engine
  Sampling sampling_;
  Limits limits_;
  LookaheadSize most_;  // as asked for
  LookaheadSize size_;  // of this step
  int n_ranks_;
  bool prompt_pool_;
  bool bonus_;
  bool merge_;
  bool verify_while_warming_;
  bool advance_accepted_;
  bool whole_guesses_;  // as published: guesses are not cut to what may still be emitted
  Verifier verifier_;
  std::optional<WindowTuner> tuner_;  // by columns and guesses together
  LookaheadSizes sizes_;
  int n_unfilled_ = 0;  // steps since the tuner's size changed that had far fewer rows
  /// Of n-grams collected in the window, where the tuner asks: an entry a column and step at most,
  /// for the run.
  std::map<std::vector<TokenId>, int> column_of_;

  NgramPool pool_;
  std::vector<std::vector<TokenId>> levels_;
  std::vector<PoolNgram> guesses_;  // of the step under way
  int guess_depth_ = 0;             // tokens of them that it sends, at most
  bool window_sent_ = false;
  std::chrono::steady_clock::time_point proposed_;
  int newest_first_row_ = 0;  // row of the first cell whose answer makes the next level
  int n_newest_ = 0;
  std::vector<TokenId> newest_;  // those answers
  StepId step_ = 0;
  std::int64_t n_tries_ = 0;
  std::int64_t n_hits_ = 0;  // guesses that gave at least one token
  std::int64_t n_hit_steps_ = 0;
  std::int64_t n_window_rows_ = 0;
};

}  // namespace engine
