// SEED: serves several requests at a time with rounds-scheduled speculative execution.
//   paper     Wang et al. 2024 (arXiv:2406.18200), Algorithm 1
//   lossless  every completion has the same tokens as if it ran alone, for any schedule, policy and
//             stage times, because a token depends only on its own sequence and random numbers
//   needs     a draft model on a separate device, because two threads work at the same time
//   cost      two caches per branch (target and draft), which share prompts; the weights of each
//             model exist once
//   differs   one thread drafts for all branches, so the speed-up of rounds is at most 2
//             (speedup_bound()); in the published program the branches wait for each other
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/step/prompt_caches.h"
#include "engine/run/completion.h"
#include "engine/seed/overlap.h"
#include "engine/seed/rounds.h"

namespace engine {

struct SeedOptions;  // engine/decode/seed.h

/// Settings of the schedule.
struct RoundsSettings {
  int n_branches = 3;
  int n_together = 1;  // largest number of branches in one forward of the target
  std::string policy = "fcfs";
  std::string overlap = "auto";
  // the target's threads while both models work at the same time; 0: all threads of its device
  int target_threads = 0;
  int draft_threads = 1;  // while both models work at the same time
};
/// The schedule's part of the options of `seed`.
RoundsSettings rounds_settings(const SeedOptions& options);

/// Serves requests as branches that take turns at the draft model and the target.
class RoundsScheduler : public Scheduler {
 public:
  /// @param models  target and draft model on separate devices: ModelStore::get_with_draft() with
  ///                 draft_threads
  RoundsScheduler(const RunModels& models, const RoundsSettings& settings);
  /// @throws  the exceptions of the models, from either thread
  std::vector<Completion> run(std::span<const CompletionRequest> requests,
                              const SchedulerWatch& watch) override;
  /// figures_of(), and:
  ///     branches                                 the largest number that is allowed
  ///     most_branches                            the largest number that was active at one time
  ///     drafts, verifications, longest_queue
  ///     wait_for_target_ms, wait_for_draft_ms    of branches
  ///     target_idle_ms, draft_idle_ms
  ///     draft_prefill_ms                         the draft's part of prefill_ms
  ///     round_draft_ms, round_verify_ms          means of one draft and of one verification
  ///     rounds_bound                             bound of the speed-up: speedup_bound() for
  ///                                              most_branches, these means and the mean number of
  ///                                              branches per verification
  ///     overlap                                  (compute of both models, including prompts) /
  ///                                              wall; 1 if nothing overlapped
  ///     overlapped                               share of verifications during which the draft was
  ///                                              allowed to work
  /// and with overlap=auto, once it has measured: overlap_chosen, overlap_looks, overlap_changes,
  /// overlapped_round_ms, in_turn_round_ms.
  std::map<std::string, double> figures() const override;

 private:
  RunModels models_;  // owned by the store, as long as this is used
  RoundsSettings settings_;
  /// The decided choice of overlap=auto with the most branches; null: none has measured enough.
  const ModeChoice* choice() const;
  void report_choice(EventSink& events);

  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Overlap> overlap_;
  std::string reported_;        // the mode that the last notice reported
  PromptCaches prompts_;        // of the target; used by its thread
  PromptCaches draft_prompts_;  // of the draft; used by the thread that drafts
  ScheduleTotals totals_;
  RoundsTotals rounds_;
};

}  // namespace engine
