// SEED: several requests at a time under rounds-scheduled speculative execution.
//   paper     Wang et al. 2024 (arXiv:2406.18200), Algorithm 1
//   lossless  every completion has the tokens it has alone, whatever the schedule, the policy and
//             the times: a token depends on its own text and its own random numbers only
//   needs     a draft model on a device of its own: two threads work at the same time
//   cost      a cache of the target and one of the draft for each branch, prompts shared; each
//             model's weights once
//   differs   one thread drafts for all branches, so rounds gain 2 at the most (rounds_bound());
//             the published program's branches wait for each other
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/seed/overlap.h"
#include "engine/seed/rounds.h"
#include "engine/run/scheduler.h"

namespace engine {

struct RoundsSettings {
  int n_branches = 3;
  int n_together = 1;  // branches in one forward of the target
  std::string policy = "fcfs";
  std::string overlap = "auto";
  int target_threads = 0;  // while both work at once; 0: all of its device
  int draft_threads = 1;   // likewise
};
/// Of the options of "seed", complete.
RoundsSettings rounds_settings(const OptionValues& options);

class RoundsScheduler : public Scheduler {
 public:
  /// @param models  of devices of their own: ModelStore::get_with_draft() with draft_threads
  RoundsScheduler(const RunModels& models, const RoundsSettings& settings);
  /// @throws whatever the models throw, on either thread
  std::vector<Completion> run(std::span<const CompletionRequest> requests,
                              const SchedulerWatch& watch) override;
  /// figures_of(), and: branches, most_branches (at once), drafts, verifications, longest_queue,
  /// wait_for_target_ms and wait_for_draft_ms (of branches), target_idle_ms and draft_idle_ms,
  /// draft_prefill_ms (of prefill_ms, the draft's), round_draft_ms (of texts that are drafted for)
  /// and round_verify_ms (of one), rounds_bound of most_branches with these and the texts of a
  /// verification, overlap (own compute of both models, prompts
  /// included, / wall: 1 where nothing was done at the same time), overlapped (share of the
  /// verifications beside which the draft might work); with overlap=auto, where it was measured,
  /// overlap_chosen, overlap_looks and overlap_changes, overlapped_round_ms and in_turn_round_ms.
  std::map<std::string, double> figures() const override;

 private:
  RunModels models_;  // owned by the store, as long as this is used
  RoundsSettings settings_;
  /// What the choice is told by; null: nothing was measured, or not both ways.
  const OverlapTuner* tuner() const;
  void tell_choice(EventSink& events);

  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Overlap> overlap_;
  std::string told_;            // of what was chosen
  PromptCaches prompts_;        // of the target; its thread's
  PromptCaches draft_prompts_;  // of the draft; its thread's
  ScheduleTotals totals_;
  RoundsTotals rounds_;
};

}  // namespace engine
