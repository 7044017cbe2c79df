// SEED: serves several requests at a time with rounds-scheduled speculative execution.
//   paper     Wang et al. 2024 (arXiv:2406.18200), Algorithm 1
//   lossless  every completion has the same tokens as if it ran alone, for any schedule, policy and
//             stage times, because a token depends only on its own sequence and random numbers
//   needs     a draft model on a separate device, because it works at the same time as the target
//   cost      two caches per branch (target and draft), which share prompts; the weights of each
//             model exist once
//   drafters  with one, the default, one thread drafts for all branches, so the speed-up of rounds is
//             at most 2 (speedup_bound()). With several, as in the paper, every branch has a model of
//             its own that shares the weights (Model::share_weights): a cache belongs to one model,
//             and one thread at a time uses a model. A free drafter takes any branch
//   threads   each drafter has a device with draft_threads threads. A branch's model borrows those of
//             the drafter that drafts for it, or those of the target in turn (kernels/thread_sharing.h)
//   differs   fewer drafters than branches are possible; in the published program the branches wait
//             for each other
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
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
  int draft_threads = 1;  // of each drafter, while both models work at the same time
  int n_drafters = 1;     // branches that draft at the same time, at most n_branches
};
/// The schedule's part of the options of `seed`.
RoundsSettings rounds_settings(const SeedOptions& options);

/// A model that drafts, and the prompts that it has read. One thread at a time uses it.
struct DraftingModel {
  explicit DraftingModel(Model& drafts) : model(drafts), prompts(drafts) {}
  /// A model of its own with the weights of `shared`, on `device`.
  DraftingModel(Model& shared, std::unique_ptr<kernels::Device> device)
      : own_device(std::move(device)),
        own_model(shared.share_weights(*own_device)),
        model(*own_model),
        prompts(*own_model) {}

  std::unique_ptr<kernels::Device> own_device;  // null: the model is the store's
  std::unique_ptr<Model> own_model;             // likewise
  Model& model;
  PromptCaches prompts;
};

/// Serves requests as branches that take turns at the draft model and the target.
class RoundsScheduler : public Scheduler {
 public:
  /// @param models  target and draft model on separate devices: ModelStore::get_with_draft() with
  ///                 draft_threads
  /// @throws Error(Resources, Device)  if the devices of several drafters cannot be opened
  RoundsScheduler(const RunModels& models, const RoundsSettings& settings);
  /// @throws  the exceptions of the models, from any thread
  std::vector<Completion> run(std::span<const CompletionRequest> requests,
                              const SchedulerWatch& watch) override;
  /// figures_of(), and:
  ///     branches, drafters                       the largest numbers that are allowed
  ///     most_branches                            the largest number that was active at one time
  ///     most_drafting                            the largest number that drafted at one time
  ///     drafts, verifications, longest_queue
  ///     wait_for_target_ms, wait_for_draft_ms    of branches
  ///     target_idle_ms, draft_idle_ms
  ///     draft_prefill_ms                         the draft's part of prefill_ms
  ///     round_draft_ms, round_verify_ms          means of one draft and of one verification
  ///     rounds_bound                             bound of the speed-up: speedup_bound() for
  ///                                              most_branches, the drafters, these means and the
  ///                                              mean number of branches per verification
  ///     overlap                                  (compute of both models, including prompts) /
  ///                                              wall; 1 if nothing overlapped
  ///     overlapped                               share of verifications during which the draft was
  ///                                              allowed to work
  /// and with overlap=auto, once it has measured: overlap_chosen, overlap_looks, overlap_changes,
  /// overlapped_round_ms, in_turn_round_ms.
  std::map<std::string, double> figures() const override;
  /// Says if the drafters' threads leave no processor for the target.
  std::vector<std::string> notices() const override;

 private:
  RunModels models_;  // owned by the store, as long as this is used
  RoundsSettings settings_;
  /// The decided choice of overlap=auto with the most branches; null: none has measured enough.
  const ModeChoice* choice() const;
  void report_choice(EventSink& events);
  std::vector<const kernels::Device*> drafting_devices() const;

  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Overlap> overlap_;
  std::string reported_;  // the mode that the last notice reported
  bool has_reported_notices_ = false;
  PromptCaches prompts_;  // of the target; used by its thread
  // devices with the threads of the drafters after the first, which uses those of the draft's device
  std::vector<std::unique_ptr<kernels::Device>> own_devices_;
  // one for all branches if there is one drafter, else one for each branch
  std::vector<std::unique_ptr<DraftingModel>> drafting_;
  std::vector<kernels::Device*> drafter_devices_;  // [n_drafters]; on a GPU all are the draft's
  ScheduleTotals totals_;
  RoundsTotals rounds_;
};

}  // namespace engine
