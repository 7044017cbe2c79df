// The ranks of Lookahead parallelism as processes (ranks=mpi): mpirun starts the same command several times. Rank 0 runs it; the
// others load the model and follow rank 0's runs, which it describes to them (mpi_processes.h).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/decode/ranks/lookahead_ranks.h"

namespace engine {

/// The model of rank 0's lane, over the other processes.
class MpiRanks final : public LaneModel {
 public:
  /// Describes the run to the other processes, which begin to read its prompt.
  /// @throws Error(Usage)  if there is no MpiProcesses: the command does not decode over several processes
  /// @param model         of rank 0, outlives this object
  /// @param weights_hash  its
  MpiRanks(LanguageModel& model, const std::string& weights_hash, const RankedRun& run);
  /// Ends the run of the other processes. If a step failed, they wait in the middle of one: ends all processes.
  ~MpiRanks() override;
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  /// Blocks until every process has read the prompt.
  void wait_until_ready();

  int vocab_size() const override { return rank_.vocab_size(); }
  int max_seq_len() const override { return rank_.max_seq_len(); }
  int rotation_key(int n_prompt) const override { return rank_.rotation_key(n_prompt); }
  std::unique_ptr<SequenceCache> make_cache() override { return rank_.make_cache(); }
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override;
  void finish() override { rank_.finish(); }
  Sequence attach(Sequence sequence) override;
  Sequence detach(Sequence sequence) override;
  std::map<std::string, std::int64_t> counts() const override { return counts_of(rank_.totals()); }
  std::map<std::string, double> figures() const override { return figures_of(rank_.totals()); }
  const RankExchange* exchange() const override { return rank_.exchange(); }

 private:
  Exchange& exchange_;
  LookaheadRank rank_;
  bool in_step_ = false;
};

}  // namespace engine
