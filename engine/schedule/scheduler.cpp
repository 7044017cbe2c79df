#include "engine/schedule/scheduler.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "engine/event/clock.h"
#include "engine/schedule/load_sampler.h"

namespace engine {
namespace {

/// Where one of `texts` begins in `text`, or npos.
std::size_t first_of(const std::string& text, const std::vector<std::string>& texts) {
  std::size_t at = std::string::npos;
  for (const std::string& one : texts) at = std::min(at, text.find(one));
  return at;
}

/// A run that is over.
void add(ScheduleTotals& totals, const Lane& lane, double prefill_ms) {
  totals.prefill += static_cast<Nanoseconds>(prefill_ms * 1e6);
  totals.target_busy += lane.compute_ns - lane.propose_ns;
  totals.draft_busy += lane.propose_ns;
  totals.n_runs++;
  totals.n_tokens += std::ssize(lane.sequence.generated());
  totals.n_steps += lane.n_steps;
  totals.n_proposed += lane.n_proposed;
  totals.n_accepted += lane.n_accepted;
  totals.n_rejected += lane.n_rejected;
}

/// A request that was begun.
struct Job {
  std::size_t index;
  RunId run;
  double prefill_ms;
  Lane lane;
  TextStream stream;
  std::string text;
  std::size_t n_read = 0;  // generated tokens that are in text
  bool met_stop = false;

  bool over() const { return met_stop || lane.sequence.finished(); }
};

class Batch {
 public:
  Batch(const RunModels& models,
        std::span<const CompletionRequest> requests,
        const SchedulerWatch& watch,
        ScheduleTotals& totals)
      : models_(models),
        totals_(totals),
        loaded_(models.target),
        requests_(requests),
        watch_(watch),
        stepper_(*loaded_.model, watch.events),
        done_(requests.size()) {
    if (watch.events) sampler_.emplace(loaded_.model->device(), *watch.events);
  }

  std::vector<Completion> run(std::size_t n_at_once) {
    std::size_t next = 0;
    while (next < requests_.size() || !jobs_.empty()) {
      while (jobs_.size() < n_at_once && next < requests_.size() && !stopped()) begin(next++);
      if (stopped()) break;
      step();
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

  void begin(std::size_t index) {
    const CompletionRequest& request = requests_[index];
    const RunId run = watch_.first_run + static_cast<RunId>(index);
    if (watch_.events) watch_.events->push(started_event(request.run, models_, run));
    try {
      const Nanoseconds start = now_ns();
      Lane lane = lane_of(request, run);
      const double ms = static_cast<double>(now_ns() - start) * 1e-6;
      jobs_.push_back(std::make_unique<Job>(
          Job{index, run, ms, std::move(lane), TextStream(*loaded_.model->tokenizer()), {}}));
    } catch (const Error& error) {
      if (watch_.events)
        watch_.events->push(RunFinished{.t = now_ns(), .run = run, .stop_reason = "stopped"});
      if (error.code() != ErrorCode::Cancelled) throw;
    }
  }

  Lane lane_of(const CompletionRequest& request, RunId run) {
    const auto go_on = [this](int, int) { return !stopped(); };
    if (!request.from) return make_lane(models_, request.run, run, nullptr, go_on);
    ensure(std::ranges::equal(request.from->tokens(), request.run.prompt_tokens),
           "a request goes on from a sequence of its own tokens");
    Sequence prompt = request.from->restarted();
    prefill(*loaded_.model, prompt, 256, go_on);
    return make_lane(models_, request.run, run, &prompt, go_on);
  }

  void step() {
    std::vector<Lane*> lanes;
    for (const auto& job : jobs_) lanes.push_back(&job->lane);
    for (const Lane* lane : lanes) compute_ns_ -= lane->compute_ns;
    stepper_.step(lanes);
    totals_.n_forwards++;
    for (const Lane* lane : lanes) compute_ns_ += lane->compute_ns;
    if (sampler_) sampler_->step(compute_ns_);
    for (const auto& job : jobs_) read(*job);
    const auto over = std::stable_partition(jobs_.begin(), jobs_.end(),
                                            [](const auto& job) { return !job->over(); });
    for (auto job = over; job != jobs_.end(); ++job) finish(**job);
    jobs_.erase(over, jobs_.end());
  }

  void read(Job& job) {
    const auto generated = job.lane.sequence.generated();
    job.text += job.stream.push(generated.subspan(job.n_read));
    job.n_read = generated.size();
    job.met_stop = first_of(job.text, requests_[job.index].stop_texts) != std::string::npos;
  }

  void finish(Job& job) {
    const CompletionRequest& request = requests_[job.index];
    const Tokenizer& tokenizer = *loaded_.model->tokenizer();
    RunResult result = result_of(job.lane, request.run, &tokenizer, job.prefill_ms);
    add(totals_, job.lane, job.prefill_ms);
    Sequence end = std::move(job.lane.sequence);
    const std::size_t at = first_of(result.text, request.stop_texts);
    if (at != std::string::npos) result.stop_reason = "text";
    if (watch_.events) watch_.events->push(finished_event(result, job.run));
    if (at != std::string::npos) {
      // The tokens of what stands before it: whoever goes on from here has read no more.
      std::size_t n = result.tokens.size();
      while (n > 0 && tokenizer.decode(std::span(result.tokens).first(n)).size() > at) n--;
      end = end.shortened(end.prompt().size() + n);
      result.tokens.resize(n);
      result.text.resize(at);
      result.approximate.clear();
      result.approximate_text.clear();
    }
    done_[job.index].emplace(Completion{std::move(result), std::move(end)});
    if (watch_.ended) watch_.ended(++n_done_, static_cast<int>(requests_.size()));
  }

  RunModels models_;
  ScheduleTotals& totals_;
  LoadedModel& loaded_;  // the target
  std::span<const CompletionRequest> requests_;
  const SchedulerWatch& watch_;
  Stepper stepper_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::optional<Completion>> done_;
  int n_done_ = 0;
  std::optional<LoadSampler> sampler_;
  Nanoseconds compute_ns_ = 0;  // of all steps
};

}  // namespace

std::map<std::string, double> figures_of(const ScheduleTotals& totals) {
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
  share("accepted_per_step", totals.n_accepted, totals.n_steps);
  share("block_efficiency", totals.n_tokens, totals.n_steps);
  share("tokens_per_second", totals.n_tokens * 1'000'000'000, totals.wall);
  return figures;
}

std::unique_ptr<Scheduler> make_scheduler(const RunModels& models,
                                          const std::string& decoder,
                                          const OptionValues& options,
                                          int n_at_once) {
  complete_options(decoder_named(decoder), options);
  return std::make_unique<BatchScheduler>(models, n_at_once);
}

RunModels models_for(ModelStore& store,
                     const ModelRequest& request,
                     const std::string& draft,
                     const std::string& decoder,
                     const OptionValues& options,
                     const LoadProgress& progress) {
  const DecoderInfo& info = decoder_named(decoder);
  complete_options(info, options);
  if (!info.needs_draft) return store.get(request, progress);
  return store.get_with_draft(request, draft, decoder, progress);
}

BatchScheduler::BatchScheduler(const RunModels& models, int n_at_once)
    : models_(models), n_at_once_(n_at_once) {
  ensure(n_at_once > 0, "a batch holds at least one request");
}

std::vector<Completion> BatchScheduler::run(std::span<const CompletionRequest> requests,
                                            const SchedulerWatch& watch) {
  const Nanoseconds begun = now_ns();
  auto done = Batch(models_, requests, watch, totals_).run(static_cast<std::size_t>(n_at_once_));
  totals_.wall += now_ns() - begun;
  return done;
}

}  // namespace engine
