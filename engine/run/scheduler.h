// Makes the scheduler that a decoder runs with and loads its models. Also defines BatchScheduler,
// which serves all decoders except SEED.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/step/prompt_caches.h"
#include "engine/run/completion.h"

namespace engine {

/// The scheduler that a decoder runs under.
/// @param options    of the decoder, as given
/// @param n_at_once  requests in one forward; ignored for "seed", whose options set the number
/// @throws Error(Usage)  as parse_options()
std::unique_ptr<Scheduler> make_scheduler(const RunModels& models,
                                          const std::string& decoder,
                                          const OptionValues& options,
                                          int n_at_once);
/// Loads the models for such a scheduler: the target, and the draft model, heads or ranks that the
/// decoder needs. The draft model of "seed" gets separate threads.
/// @param options  of the decoder, as given
/// @throws Error   as parse_options(), ModelStore::get_for() and ModelStore::get_ranks()
RunModels models_for(ModelStore& store,
                     const ModelRequest& request,
                     const DraftResources& draft_resources,
                     const std::string& decoder,
                     const OptionValues& options,
                     const LoadProgress& progress = {});

/// Loads the ranks that these options need (ModelStore::get_ranks()).
void add_ranks(ModelStore& store,
               RunModels& models,
               const DecoderOptions& options,
               const LoadProgress& progress = {});
/// The same for options given as text.
/// @throws Error(Usage)  as parse_options() too
void add_ranks(ModelStore& store,
               RunModels& models,
               const std::string& decoder,
               const OptionValues& options,
               const LoadProgress& progress = {});

/// Runs up to `n_at_once` requests in each forward; their lengths and decoders may differ. When one
/// ends, the next one takes its place. If `n_at_once` is 1, the requests run one after another. All
/// requests of one scheduler share their texts (RunModels::texts).
class BatchScheduler : public Scheduler {
 public:
  /// @param models  with a draft model for decoders that need one
  BatchScheduler(const RunModels& models, int n_at_once);
  std::vector<Completion> run(std::span<const CompletionRequest> requests,
                              const SchedulerWatch& watch) override;
  std::map<std::string, double> figures() const override { return figures_of(totals_, models_); }

 private:
  RunModels models_;  // owned by the store, as long as this is used
  int n_at_once_;
  PromptCaches prompts_;
  std::optional<PromptCaches> draft_prompts_;  // if there is a draft model
  ScheduleTotals totals_;
};

}  // namespace engine
