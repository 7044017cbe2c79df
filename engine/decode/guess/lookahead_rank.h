// Lookahead parallelism: the rows of one step computed by several ranks, each with all the weights
// on a device of its own.
//   paper     Fu, Bailis, Stoica, Zhang 2024 (arXiv:2402.02057), Lookahead Parallelism
//   lossless  greedy and coupled: a row's answer does not depend on the rows beside it, so every
//             token, and every step, is that of one rank alone
//   needs     `owner` of every row (lookahead.h); every rank proposes the same tree
//   cost      a rank computes its own rows, those they hang on, and again what another rank won
//   differs   works for coupled sampling too; a rank that already has the winner's rows keeps them
//
// Within a forward nothing is told. Behind it, in this order:
//     broadcast from 0   the answer to the last token
//     all-gather         how many rows of its own each rank's longest match has
//     broadcast          from the rank of the longest, the lowest of equals: its rows and answers
//     all-gather         the window's new row, each its own columns
// With each token go its score, margin and logarithm, which a report tells and nothing depends on.
// A rank without the winner's rows has no keys and values of them: the accepted tokens lead its
// next forward as a chain of further rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/decode/guess/exchange.h"
#include "engine/decode/step/sequence.h"
#include "engine/event/event.h"
#include "engine/model/language_model.h"

namespace engine {

/// A rank's part of a text's keys and values: all of them to who asks, and behind it a cache that
/// may lack the last ones.
class LookaheadRankCache final : public SequenceCache {
 public:
  /// @param own  of the rank's model, with every committed position
  explicit LookaheadRankCache(std::unique_ptr<SequenceCache> own);

  int length() const override { return length_; }
  int n_in_blocks() const override { return own_->n_in_blocks(); }
  void commit(std::span<const int> path) override;
  void truncate(int length) override;
  std::unique_ptr<SequenceCache> fork() const override;
  std::int64_t own_bytes() const override { return own_->own_bytes(); }

  /// What the rank really has: length() positions or fewer.
  SequenceCache& own() { return *own_; }
  /// Says what became of a tree's rows in the forward under way.
  /// @param n_again  rows that led it: committed tokens, in order
  /// @param place    [n_rows] the row of the own forward that each is, -1: another rank's
  void set_staged(int n_again, std::vector<int> place);

 private:
  std::unique_ptr<SequenceCache> own_;
  int length_;
  int n_again_ = 0;
  std::vector<int> place_;
  std::vector<int> path_;  // of one commit, kept for its memory
};

/// The same sequence over such a cache, from one over the rank's own.
Sequence ranked(const Sequence& sequence);

/// What a rank has seen so far, all steps together.
struct LookaheadRankTotals {
  std::vector<std::int64_t> n_rows;  // [n_ranks] that each computed
  std::int64_t n_again = 0;          // of these: tokens that another rank had won
  std::int64_t n_told = 0;  // numbers that all ranks told, but for what only a picture shows
  std::int64_t n_won_elsewhere = 0;  // steps whose longest match was not rank 0's
  Nanoseconds exchanging = 0;        // from the own forward's end to the last answer
  Nanoseconds longest = 0;           // of each step the longest of all forwards
};

/// One rank's side of every forward: computes its share and brings the answers that decide.
class LookaheadRank : public LanguageModel {
 public:
  /// @param model     the rank's, outlives this; its caches come as LookaheadRankCache
  /// @param exchange  outlives this
  LookaheadRank(LanguageModel& model, Exchange& exchange);

  int vocab_size() const override { return model_.vocab_size(); }
  int max_seq_len() const override { return model_.max_seq_len(); }
  int rotation_key(int n_prompt) const override { return model_.rotation_key(n_prompt); }
  std::unique_ptr<SequenceCache> make_cache() override;
  /// One step of one text. Rows of other ranks come back without a choice (id -1), but for those of
  /// the longest match and the window's new row, and where the step is shown (BatchItem::shown).
  /// Rank 0's call begins the step for all; the others wait for it first (wait_for_step()).
  /// @throws ContractError  if the ranks' trees differ
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override;
  void finish() override { model_.finish(); }

  /// Of a rank that is not 0: until rank 0 begins a step. @return  false: there is none any more
  bool wait_for_step();
  /// Of rank 0: no step comes any more.
  void end_steps();

  const LookaheadRankTotals& totals() const { return totals_; }

 private:
  /// Its rows of a tree: `part_`, with `place_` as of the cache.
  /// @return  rows that lead it
  int cut(const BatchItem& whole, const SequenceCache& own);
  /// What the rank tells of its own step beside its match.
  struct Own {
    std::int32_t tree = 0;  // a fingerprint of what it proposed
    std::int32_t n_again = 0;
    Nanoseconds forward = 0;
  };
  std::vector<int> own_match(const StepOutput& out, int n_again) const;
  void tell_match(StepOutput& out, const Own& step);
  void tell_window(const TokenTree& tree, StepOutput& out);
  void show_rest(const TokenTree& tree, StepOutput& out);
  Numbers broadcast(int from, Numbers numbers);
  std::vector<Numbers> all_gather(std::span<const std::int32_t> own);

  LanguageModel& model_;
  Exchange& exchange_;
  bool shown_ = false;  // the step under way
  TokenTree part_;
  std::vector<int> place_;
  std::vector<std::uint8_t> greedy_rows_;
  LookaheadRankTotals totals_;
};

}  // namespace engine
