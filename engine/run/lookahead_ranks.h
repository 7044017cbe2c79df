// The ranks of one text under Lookahead parallelism (engine/decode/guess/lookahead_rank.h) as threads of
// this process: rank 0 is whoever steps the lane, each other has a thread, a model on a device of
// its own, and a lane over it that makes the same steps.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/decode/guess/lookahead_rank.h"
#include "engine/decode/step/stepper.h"
#include "engine/run/thread_exchange.h"

namespace engine {

/// What a rank but the first computes with.
struct RankPlace {
  LanguageModel& model;  // with the weights of the first's; outlives the ranks
  std::mutex& at_work;   // held while the model works: lanes may share it
  std::string device;    // for messages
};

/// What every rank decodes.
struct RankedText {
  std::vector<TokenId> prompt;
  std::string decoder;
  DecoderContext context;  // of the first rank; options complete
};

class LookaheadRanks final : public LaneModel {
 public:
  /// Starts the other ranks, which read the prompt at once.
  /// @param model     of rank 0
  /// @param others    of ranks 1, 2, ...: as many as the option "ranks" says, less one
  /// @param at_work   called by rank 0 around each of its forwards, true before it; or empty
  /// @throws Error(Resources)  if a thread cannot be started
  LookaheadRanks(LanguageModel& model,
                 std::vector<RankPlace> others,
                 RankedText text,
                 std::function<void(bool)> at_work = {});
  /// The other ranks end with the step they are at.
  ~LookaheadRanks() override;

  /// Until every rank has read the prompt.
  /// @param go_on  asked now and then; false ends it with Error(Cancelled). Or empty
  /// @throws whatever a rank met
  void wait_until_ready(const std::function<bool()>& go_on = {});

  int vocab_size() const override { return model_.vocab_size(); }
  int max_seq_len() const override { return model_.max_seq_len(); }
  int rotation_key(int n_prompt) const override { return model_.rotation_key(n_prompt); }
  std::unique_ptr<SequenceCache> make_cache() override { return first_.make_cache(); }
  /// @throws whatever a rank met, an Error naming the rank; no step can be made any more
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override;
  void finish() override { model_.finish(); }

  Sequence taken(Sequence sequence) override;
  Sequence given_back(Sequence sequence) override;
  /// rank_rows_0, rank_rows_1, ...: computed by each; rows_again: of these, for tokens another
  /// rank had won; won_elsewhere: steps whose longest match was not rank 0's; told_numbers: that
  /// crossed between ranks for the text.
  std::map<std::string, std::int64_t> counts() const override;
  /// ranks; exchange_ms: of rank 0, waiting for slower ranks included; longest_rank_ms: of each
  /// step the longest forward.
  std::map<std::string, double> figures() const override;

 private:
  void start(int rank);
  void serve(int rank);
  Sequence read_prompt(LanguageModel& model) const;
  void run_steps(int rank);
  void close();

  LanguageModel& model_;
  std::vector<RankPlace> others_;
  RankedText text_;
  std::function<void(bool)> at_work_;
  ThreadExchange exchange_;
  LookaheadRank first_;
  std::mutex ready_mutex_;
  std::condition_variable ready_;
  int n_ready_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace engine
