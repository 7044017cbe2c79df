// Lookahead parallelism: several ranks share the rows of a step, each with all the weights on a
// device of its own.
//   paper     Fu, Bailis, Stoica, Zhang 2024 (arXiv:2402.02057), Lookahead Parallelism
//   lossless  greedy and coupled: the forward is batch-invariant, so every token and every step
//             equals that of a single rank
//   needs     a tree that names the `owner` rank of each row (lookahead.h); every rank proposes the
//             same tree
//   cost      a rank computes its own rows, their ancestors, and again the accepted tokens whose
//             rows only another rank has computed
//   differs   works for coupled sampling too; a rank that computed the accepted rows itself keeps
//             their keys and values
//
// There is no communication within a forward. After it, in this order:
//     broadcast from 0   the pick after the last token
//     all-gather         the number of rows in each rank's longest match
//     broadcast          from the rank with the longest match (the lowest such rank): its rows and
//                        picks
//     all-gather         the window's new level; each rank sends its own columns
// Each token is sent with its score, margin and log probability, which only reports use. A rank
// that did not compute the accepted rows lacks their keys and values, so its next forward begins
// with the accepted tokens as a chain of additional rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/decode/ranks/exchange.h"
#include "engine/decode/step/sequence.h"
#include "engine/event/event.h"
#include "engine/model/language_model.h"

namespace engine {

/// A rank's KV cache. It reports the length of the whole sequence; the underlying cache may lack
/// the last positions.
class LookaheadRankCache final : public SequenceCache {
 public:
  /// @param own  a cache of the rank's model with every committed position
  explicit LookaheadRankCache(std::unique_ptr<SequenceCache> own);

  int length() const override { return length_; }
  int n_in_blocks() const override { return own_->n_in_blocks(); }
  void commit(std::span<const int> path) override;
  void truncate(int length) override;
  std::unique_ptr<SequenceCache> fork() const override;
  std::int64_t own_bytes() const override { return own_->own_bytes(); }

  /// The underlying cache, with length() positions or fewer.
  SequenceCache& own() { return *own_; }
  /// Maps a tree's rows to the rows of the rank's forward, for the next commit.
  /// @param n_again  number of leading rows of the forward that hold committed tokens which the
  ///                 cache lacked
  /// @param place    [n_rows] each row's index in the rank's forward, -1: only another rank
  ///                 computed it
  void set_staged(int n_again, std::vector<int> place);

 private:
  std::unique_ptr<SequenceCache> own_;
  int length_;
  int n_again_ = 0;
  std::vector<int> place_;
  std::vector<int> path_;  // the path of one commit; a member only to reuse its memory
};

/// A copy of a rank's sequence, whose cache is wrapped in a LookaheadRankCache.
Sequence ranked(const Sequence& sequence);

/// A rank's counters over all steps.
struct LookaheadRankTotals {
  std::vector<std::int64_t> n_rows;  // [n_ranks] rows that each rank computed
  // rows this rank computed again for tokens accepted on another rank
  std::int64_t n_again = 0;
  // numbers that all ranks sent, without those that are only displayed
  std::int64_t n_sent = 0;
  std::int64_t n_won_elsewhere = 0;  // steps whose longest match was not rank 0's
  Nanoseconds exchanging = 0;        // time from the end of the own forward to the last message
  Nanoseconds longest = 0;           // sum over steps of the longest rank's forward
};

/// The model of one rank. Computes the rank's share of every forward and exchanges the picks that
/// decide the step.
class LookaheadRank : public LanguageModel {
 public:
  /// @param model     the rank's, outlives this object; its caches are wrapped in
  ///                  LookaheadRankCache
  /// @param exchange  outlives this object
  LookaheadRank(LanguageModel& model, Exchange& exchange);

  int vocab_size() const override { return model_.vocab_size(); }
  int max_seq_len() const override { return model_.max_seq_len(); }
  int rotation_key(int n_prompt) const override { return model_.rotation_key(n_prompt); }
  std::unique_ptr<SequenceCache> make_cache() override;
  /// One step of one sequence. Rows of other ranks are returned without a pick (id -1), except the
  /// longest match, the window's new level, and all rows if the step is displayed
  /// (BatchItem::shown). Rank 0's call begins the step for all ranks; the others call
  /// wait_for_step() first.
  /// @throws ContractError  if the ranks' trees differ
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override;
  void finish() override { model_.finish(); }

  /// For ranks other than 0: blocks until rank 0 begins a step. @return  false if there will be no
  /// more steps
  bool wait_for_step();
  /// For rank 0: ends the other ranks' wait_for_step().
  void end_steps();

  /// This rank's counters.
  const LookaheadRankTotals& totals() const { return totals_; }
  /// The exchange of the last step; nullptr before the first one.
  const RankExchange* exchange() const { return step_.forward.empty() ? nullptr : &step_; }

 private:
  /// Sets part_ to the rank's rows of a tree, and place_ to the argument of set_staged().
  /// @return  number of leading rows that hold committed tokens which the cache lacks
  int select_rows(const BatchItem& whole, const SequenceCache& own);
  /// Data about a rank's own step, which it sends together with its longest match.
  struct Own {
    std::int32_t tree = 0;  // a hash of the tree that the rank proposed
    std::int32_t n_again = 0;
    Nanoseconds forward = 0;
  };
  std::vector<int> own_match(const StepOutput& out, int n_again) const;
  void exchange_match(StepOutput& out, const Own& step);
  void exchange_window(const TokenTree& tree, StepOutput& out);
  void exchange_displayed_rows(const TokenTree& tree, StepOutput& out);
  Numbers broadcast(int from, Numbers numbers);
  std::vector<Numbers> all_gather(std::span<const std::int32_t> own);

  LanguageModel& model_;
  Exchange& exchange_;
  bool shown_ = false;  // the current step is displayed
  TokenTree part_;
  std::vector<int> place_;
  std::vector<std::uint8_t> greedy_rows_;
  LookaheadRankTotals totals_;
  RankExchange step_;  // of the current step
};

}  // namespace engine
