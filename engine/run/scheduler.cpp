#include "engine/run/scheduler.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "engine/decode/options.h"
#include "engine/event/clock.h"
#include "engine/event/run_rules.h"
#include "engine/run/completion_job.h"
#include "engine/run/load_sampler.h"
#include "engine/seed/rounds_scheduler.h"

namespace engine {
namespace {

class Batch {
 public:
  Batch(const RunModels& models,
        std::span<const CompletionRequest> requests,
        const SchedulerWatch& watch,
        PromptCaches& prompts,
        ScheduleTotals& totals)
      : models_(models),
        prompts_(prompts),
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
      for (const auto& job : jobs_) tell_thrown(watch_.events, job->run);
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
      return make_lane(models_, request, run, &prompt);
    };
    if (auto job = begun_job(requests_, index, models_, watch_.first_run, watch_.events, make))
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
    for (const auto& job : jobs_) job->read();
    count_caches();
    const auto over = std::stable_partition(jobs_.begin(), jobs_.end(),
                                            [](const auto& job) { return !job->over(); });
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
    done_[job.index].emplace(job.finished(watch_.events, totals_));
    if (watch_.ended) watch_.ended(++n_done_, static_cast<int>(requests_.size()));
  }

  RunModels models_;
  PromptCaches& prompts_;
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

std::map<std::string, double> figures_of(const ScheduleTotals& totals, const RunModels& models) {
  std::map<std::string, double> figures;
  const auto ms = [&](const char* name, Nanoseconds ns) {
    figures[name] = static_cast<double>(ns) * 1e-6;
  };
  const auto count = [&](const char* name, std::int64_t n) {
    figures[name] = static_cast<double>(n);
  };
  const auto share = [&](const char* name, std::int64_t part, std::int64_t whole) {
    if (whole > 0) figures[name] = static_cast<double>(part) / static_cast<double>(whole);
  };
  ms("wall_ms", totals.wall), ms("prefill_ms", totals.prefill);
  ms("target_busy_ms", totals.target_busy), ms("draft_busy_ms", totals.draft_busy);
  count("runs", totals.n_runs), count("tokens", totals.n_tokens), count("steps", totals.n_steps);
  count("forwards", totals.n_forwards), count("proposed", totals.n_proposed);
  count("accepted", totals.n_accepted), count("rejected", totals.n_rejected);
  share("target_busy", totals.target_busy, totals.wall);
  share("acceptance_rate", totals.n_accepted, totals.n_proposed);
  share("accepted_of_judged", totals.n_accepted, totals.n_accepted + totals.n_rejected);
  share("alpha", totals.n_accepted, totals.n_depth);
  share("block_efficiency", totals.n_tokens, totals.n_steps);
  share("tokens_per_second", totals.n_tokens * 1'000'000'000, totals.wall);
  count("weight_bytes", models.target.model->weight_bytes());
  count("branch_cache_bytes", totals.branch_cache_bytes);
  count("cache_bytes", totals.cache_bytes);
  if (totals.n_depth > 0) {
    count("draft_weight_bytes", models.draft->model->weight_bytes());
    count("draft_cache_bytes", totals.draft_cache_bytes);
  }
  return figures;
}

std::unique_ptr<Scheduler> make_scheduler(const RunModels& models,
                                          const std::string& decoder,
                                          const OptionValues& options,
                                          int n_at_once) {
  const OptionValues complete = complete_options(decoder_named(decoder), options);
  if (takes_turns(decoder))
    return std::make_unique<RoundsScheduler>(models, rounds_settings(complete));
  return std::make_unique<BatchScheduler>(models, n_at_once);
}

RunModels models_for(ModelStore& store,
                     const ModelRequest& request,
                     const DraftResources& draft_resources,
                     const std::string& decoder,
                     const OptionValues& options,
                     const LoadProgress& progress) {
  const OptionValues complete = complete_options(decoder_named(decoder), options);
  if (!takes_turns(decoder)) {
    RunModels models = store.get_for(request, draft_resources, {decoder}, progress);
    add_ranks(store, models, decoder, options, progress);
    return models;
  }
  ModelRequest target = request;
  target.own_threads = int_option(complete, "target_threads");
  int draft_threads = int_option(complete, "draft_threads");
  if (text_option(complete, "overlap") != "always") {  // in turn each has them all
    const int all = store.device(request.device).n_threads();
    if (target.own_threads <= all) target.own_threads = 0;
    draft_threads = std::max(draft_threads, all);
  }
  return store.get_with_draft(target, draft_resources.draft, decoder, progress, draft_threads);
}

void add_ranks(ModelStore& store,
               RunModels& models,
               const std::string& decoder,
               const OptionValues& options,
               const LoadProgress& progress) {
  const int n_ranks = n_ranks_of(complete_options(decoder_named(decoder), options));
  if (n_ranks > 1) models.ranks = store.get_ranks(models.target, n_ranks, progress);
}

BatchScheduler::BatchScheduler(const RunModels& models, int n_at_once)
    : models_(models), n_at_once_(n_at_once), prompts_(*models.target.model) {
  ensure(n_at_once > 0, "a batch holds at least one request");
}

std::vector<Completion> BatchScheduler::run(std::span<const CompletionRequest> requests,
                                            const SchedulerWatch& watch) {
  const Nanoseconds begun = now_ns();
  auto done =
      Batch(models_, requests, watch, prompts_, totals_).run(static_cast<std::size_t>(n_at_once_));
  totals_.wall += now_ns() - begun;
  return done;
}

}  // namespace engine
