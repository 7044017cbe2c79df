// The ranks of one run under Lookahead parallelism (engine/decode/ranks/lookahead_rank.h) as
// threads of this process. Rank 0 is the thread that steps the lane. Each other rank has a thread,
// a model on its own device, and a lane that makes the same steps.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/decode/ranks/lookahead_rank.h"
#include "engine/decode/ranks/thread_exchange.h"
#include "engine/decode/step/stepper.h"

namespace engine {

/// The model of a rank other than rank 0.
struct RankPlace {
  LanguageModel& model;  // with the weights of rank 0's model; outlives the ranks
  std::mutex& at_work;   // locked while the model works, because lanes may share the model
  std::string device;    // for messages
};

/// The run that every rank decodes.
struct RankedRun {
  std::vector<TokenId> prompt;
  ParsedOptions options;
  DecoderContext context;  // of rank 0; its models are not used
};

/// Callbacks of follow(); each may be empty.
struct FollowHooks {
  std::function<bool()> keep_reading = {};  // false: stop reading the prompt
  std::function<void()> ready = {};         // the prompt was read
  /// Waits by calling its argument, and returns the result.
  std::function<bool(const std::function<bool()>&)> wait = {};
};

/// Decodes a run as a rank other than 0, until rank 0 ends it.
/// @param target  the rank's model
void follow(LanguageModel& target,
            Exchange& exchange,
            const RankedRun& run,
            const FollowHooks& hooks);

/// Totals of a rank as a lane reports them (LaneModel).
std::map<std::string, std::int64_t> counts_of(const LookaheadRankTotals& totals);
std::map<std::string, double> figures_of(const LookaheadRankTotals& totals);

/// The model of rank 0's lane, which runs its forwards together with the other ranks.
class LookaheadRanks final : public LaneModel {
 public:
  /// Starts the other ranks. They begin to read the prompt immediately.
  /// @param model     of rank 0
  /// @param others    models of ranks 1, 2, ...; one fewer than the option `ranks`
  /// @param at_work   rank 0 calls it with true before each of its forwards and with false after
  ///                  it; may be empty
  /// @throws Error(Resources)  if a thread cannot be started
  LookaheadRanks(LanguageModel& model,
                 std::vector<RankPlace> others,
                 RankedRun run,
                 std::function<void(bool)> at_work = {});
  /// Ends the other ranks after their current step.
  ~LookaheadRanks() override;

  /// Blocks until every rank has read the prompt.
  /// @param keep_going  called every 100 ms; false ends the wait with Error(Cancelled). May be empty
  /// @throws  the exception of a rank that failed
  void wait_until_ready(const std::function<bool()>& keep_going = {});

  int vocab_size() const override { return model_.vocab_size(); }
  int max_seq_len() const override { return model_.max_seq_len(); }
  int rotation_key(int n_prompt) const override { return model_.rotation_key(n_prompt); }
  std::unique_ptr<SequenceCache> make_cache() override { return first_.make_cache(); }
  /// One step of all ranks.
  /// @throws  the exception of a rank that failed (an Error names the rank); after that no step is
  ///          possible
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override;
  void finish() override { model_.finish(); }

  Sequence attach(Sequence sequence) override;
  Sequence detach(Sequence sequence) override;
  /// rank_rows_0, rank_rows_1, ...: rows that each rank computed; rows_again: the rows computed
  /// again for tokens that another rank accepted; won_elsewhere: steps whose longest match was not
  /// rank 0's; exchanged_numbers: numbers that the ranks exchanged.
  std::map<std::string, std::int64_t> counts() const override;
  /// ranks; exchange_ms: rank 0's time in the exchange, including waits for slower ranks;
  /// longest_rank_ms: sum of each step's longest forward.
  std::map<std::string, double> figures() const override;
  const RankExchange* exchange() const override { return first_.exchange(); }

 private:
  void start(int rank);
  void serve(int rank);
  void run_steps(int rank);
  void close();

  LanguageModel& model_;
  std::vector<RankPlace> others_;
  RankedRun run_;
  std::function<void(bool)> at_work_;
  ThreadExchange exchange_;
  LookaheadRank first_;
  std::mutex ready_mutex_;
  std::condition_variable ready_;
  int n_ready_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace engine
