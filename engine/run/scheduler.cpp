#include "engine/run/scheduler.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/seed.h"
#include "engine/event/clock.h"
#include "engine/run/completion_job.h"
#include "engine/run/load_sampler.h"
#include "engine/run/rounds_scheduler.h"

namespace engine {
namespace {

/// One call of BatchScheduler::run().
class Batch {
 public:
  Batch(const RunModels& models,
        std::span<const CompletionRequest> requests,
        const SchedulerWatch& watch,
        PromptCaches& prompts,
        PromptCaches* draft_prompts,
        ScheduleTotals& totals)
      : models_(models),
        prompts_(prompts),
        draft_prompts_(draft_prompts),
        totals_(totals),
        loaded_(models.target),
        requests_(requests),
        watch_(watch),
        stepper_(*loaded_.model, watch.events),
        done_(requests.size()) {
    if (watch.events) sampler_.emplace(loaded_.model->device(), *watch.events);
  }

  std::vector<Completion> run(std::size_t n_at_once) {
    try {
      run_steps(n_at_once);
    } catch (...) {
      for (const auto& job : jobs_) report_thrown(watch_.events, job->run);
      throw;
    }
    for (const auto& job : jobs_) finish(*job);
    if (sampler_) sampler_->end(compute_ns_);
    std::vector<Completion> completions;
    for (std::optional<Completion>& one : done_)
      if (one) completions.push_back(std::move(*one));
    return completions;
  }

 private:
  bool stopped() const { return watch_.stop && watch_.stop(); }

  void run_steps(std::size_t n_at_once) {
    std::size_t next = 0;
    while (next < requests_.size() || !jobs_.empty()) {
      while (jobs_.size() < n_at_once && next < requests_.size() && !stopped()) begin(next++);
      if (stopped()) return;
      step();
    }
  }

  void begin(std::size_t index) {
    const RunRequest& request = requests_[index].run;
    const auto make = [&](RunId run) {
      const Sequence prompt =
          read_prompt(prompts_, models_, requests_[index], [this](int, int) { return !stopped(); });
      return make_lane(models_, request, run, &prompt, {}, draft_prompts_);
    };
    if (auto job = begin_job(requests_, index, models_, watch_.first_run, watch_.events, make))
      jobs_.push_back(std::move(job));
  }

  void step() {
    std::vector<Lane*> lanes;
    for (const auto& job : jobs_) lanes.push_back(&job->lane);
    for (const Lane* lane : lanes) compute_ns_ -= lane->compute_ns;
    stepper_.step(lanes);
    totals_.n_forwards++;
    for (const Lane* lane : lanes) compute_ns_ += lane->compute_ns;
    if (sampler_) sampler_->step(compute_ns_);
    for (const auto& job : jobs_) job->take_new_tokens();
    count_caches();
    const auto over = std::stable_partition(jobs_.begin(), jobs_.end(),
                                            [](const auto& job) { return !job->finished(); });
    for (auto job = over; job != jobs_.end(); ++job) finish(**job);
    jobs_.erase(over, jobs_.end());
  }

  void count_caches() {
    std::int64_t own = 0;
    for (const auto& job : jobs_) own += job->lane.sequence.cache().own_bytes();
    totals_.branch_cache_bytes = std::max(totals_.branch_cache_bytes, own);
    totals_.cache_bytes = std::max(totals_.cache_bytes, models_.target.model->cache_bytes());
    if (!models_.draft) return;
    totals_.draft_cache_bytes =
        std::max(totals_.draft_cache_bytes, models_.draft->model->cache_bytes());
  }

  void finish(CompletionJob& job) {
    keep_text(models_.texts.get(), job.lane.sequence, *job.lane.options, job.run);
    done_[job.index].emplace(job.complete(watch_.events, totals_));
    if (watch_.ended) watch_.ended(++n_done_, static_cast<int>(requests_.size()));
  }

  RunModels models_;
  PromptCaches& prompts_;
  PromptCaches* draft_prompts_;  // or null
  ScheduleTotals& totals_;
  LoadedModel& loaded_;  // the target
  std::span<const CompletionRequest> requests_;
  const SchedulerWatch& watch_;
  Stepper stepper_;
  std::vector<std::unique_ptr<CompletionJob>> jobs_;
  std::vector<std::optional<Completion>> done_;
  int n_done_ = 0;
  std::optional<LoadSampler> sampler_;
  Nanoseconds compute_ns_ = 0;  // of all steps
};

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(const RunModels& models,
                                          const std::string& decoder,
                                          const OptionValues& options,
                                          int n_at_once) {
  const ParsedOptions parsed = parse_options(decoder, options);
  if (const auto* seed = dynamic_cast<const SeedOptions*>(parsed.get()))
    return std::make_unique<RoundsScheduler>(models, rounds_settings(*seed));
  return std::make_unique<BatchScheduler>(models, n_at_once);
}

RunModels models_for(ModelStore& store,
                     const ModelRequest& request,
                     const DraftResources& draft_resources,
                     const std::string& decoder,
                     const OptionValues& options,
                     const LoadProgress& progress) {
  const ParsedOptions parsed = parse_options(decoder, options);
  const auto* seed = dynamic_cast<const SeedOptions*>(parsed.get());
  if (!seed) {
    RunModels models = store.get_for(request, draft_resources, {decoder}, progress);
    add_ranks(store, models, *parsed, progress);
    return models;
  }
  ModelRequest target = request;
  target.own_threads = seed->target_threads;
  int draft_threads = seed->draft_threads;
  if (seed->overlap != "always") {  // when the models take turns, each works with all threads
    const int all = store.device(request.device).n_threads();
    if (target.own_threads <= all) target.own_threads = 0;
    draft_threads = std::max(draft_threads, all);
  }
  return store.get_with_draft(target, draft_resources, decoder, progress, draft_threads);
}

void add_ranks(ModelStore& store,
               RunModels& models,
               const DecoderOptions& options,
               const LoadProgress& progress) {
  if (options.n_ranks() > 1)
    models.ranks = store.get_ranks(models.target, options.n_ranks(), progress);
}

void add_ranks(ModelStore& store,
               RunModels& models,
               const std::string& decoder,
               const OptionValues& options,
               const LoadProgress& progress) {
  add_ranks(store, models, *parse_options(decoder, options), progress);
}

BatchScheduler::BatchScheduler(const RunModels& models, int n_at_once)
    : models_(models), n_at_once_(n_at_once), prompts_(*models.target.model) {
  ensure(n_at_once > 0, "a batch must have at least one request");
  if (!models_.texts) models_.texts = std::make_shared<EarlierTexts>();
  if (models_.draft) draft_prompts_.emplace(*models_.draft->model);
}

std::vector<Completion> BatchScheduler::run(std::span<const CompletionRequest> requests,
                                            const SchedulerWatch& watch) {
  const Nanoseconds begun = now_ns();
  PromptCaches* const draft_prompts = draft_prompts_ ? &*draft_prompts_ : nullptr;
  auto done = Batch(models_, requests, watch, prompts_, draft_prompts, totals_)
                  .run(static_cast<std::size_t>(n_at_once_));
  totals_.wall += now_ns() - begun;
  return done;
}

}  // namespace engine
