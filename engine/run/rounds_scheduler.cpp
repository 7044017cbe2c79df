#include "engine/run/rounds_scheduler.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "engine/decode/control/step_control.h"
#include "engine/decode/seed.h"
#include "engine/event/clock.h"
#include "engine/run/completion_job.h"
#include "engine/run/load_sampler.h"
#include "engine/seed/rounds_threads.h"
#include "kernels/thread_sharing.h"

namespace engine {
namespace {

/// Collects events of several threads and forwards them on the thread that created it. StepBegun,
/// RunStarted and Phase events of that thread are forwarded at once, because the device may hang in
/// the work that follows them.
class GatheredEvents final : public EventSink {
 public:
  explicit GatheredEvents(EventSink& to) : to_(to) {}
  void push(Event event) override {
    const bool begins = std::holds_alternative<StepBegun>(event) ||
                        std::holds_alternative<RunStarted>(event) ||
                        std::holds_alternative<Phase>(event);
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    if (begins && std::this_thread::get_id() == owner_) forward();
  }
  /// Call it on the thread that created this object.
  void forward() {
    std::vector<Event> events;
    {
      const std::lock_guard lock(mutex_);
      events.swap(events_);
    }
    for (Event& event : events) to_.push(std::move(event));
  }

 private:
  EventSink& to_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::vector<Event> events_;
};

/// Data of one call of run() that all threads share.
struct Call {
  RunModels models;
  std::span<const CompletionRequest> requests;
  const SchedulerWatch& watch;
  GatheredEvents* events;  // or null
  PromptCaches& prompts;
  std::span<const std::unique_ptr<DraftingModel>> drafting;  // one, or one for each branch
  std::span<kernels::Device* const> drafter_devices;
  ScheduleTotals& totals;
  const RoundsSettings& settings;
};

/// Sets how many of a device's threads work. The destructor restores the number, and the device's own
/// threads if it borrowed others.
class ThreadsAtWork {
 public:
  explicit ThreadsAtWork(kernels::Device& device)
      : device_(device), n_before_(kernels::active_threads(device)) {}
  ~ThreadsAtWork() {
    set(0);
    kernels::borrow_threads(device_, device_);
  }
  ThreadsAtWork(const ThreadsAtWork&) = delete;
  ThreadsAtWork& operator=(const ThreadsAtWork&) = delete;
  /// @param n  0: as many as before
  void set(int n) {
    kernels::set_active_threads(device_, n == 0 ? n_before_ : std::min(n, n_before_));
  }

 private:
  kernels::Device& device_;
  int n_before_;
};

/// Serves requests as the work of rounds. One thread at a time uses a branch's job. The model that
/// drafts for a branch, with its caches, belongs to the thread that drafts for the branch at the
/// moment; with one drafter that is the same model for all branches.
class JobRounds final : public RoundsWork {
 public:
  JobRounds(const Call& call, int n_branches)
      : call_(call),
        target_threads_(call.models.target.model->device()),
        draft_threads_(call.models.draft->model->device()),
        verifying_(*call.models.target.model, call.events),
        drafting_(*call.models.target.model, call.events),
        jobs_(static_cast<std::size_t>(n_branches)),
        done_(call.requests.size()),
        retired_(call.drafting.size()),
        draft_cache_bytes_(call.drafting.size()) {}

  std::optional<Admitted> begin(int branch) override {
    while (next_ < call_.requests.size() && !stopped()) {
      const std::size_t index = next_++;
      const CompletionRequest& request = call_.requests[index];
      const auto make = [&](RunId run) {
        RunModels models = call_.models;
        models.drafts_with = &drafting(branch).model;
        Lane lane = lane_over(models, request.run, run,
                              read_prompt(call_.prompts, call_.models, request,
                                          [this](int, int) { return !stopped(); }),
                              &drafting(branch).prompts);
        // Safe while drafters work, because begin() runs no model.
        lane.decoder->begin(lane.sequence);
        return lane;
      };
      auto job =
          begin_job(call_.requests, index, call_.models, call_.watch.first_run, call_.events, make);
      if (!job) continue;
      const Admitted admitted{.run = job->run, .value = request.value};
      at(branch) = std::move(job);
      return admitted;
    }
    return std::nullopt;
  }

  // No two operations share threads: a drafter is used by one thread at a time, and in turn nothing
  // else works.
  void about_to_draft(int drafter, int branch, bool at_once) override {
    kernels::Device& device = drafting(branch).model.device();
    if (at_once) {
      if (drafter == 0) draft_threads_.set(call_.settings.draft_threads);
      kernels::borrow_threads(device, *call_.drafter_devices[static_cast<std::size_t>(drafter)]);
    } else {
      forward_events();
      target_threads_.set(0);
      kernels::borrow_threads(device, call_.models.target.model->device());
    }
  }
  void about_to_verify(bool at_once) override {
    forward_events();
    target_threads_.set(at_once ? call_.settings.target_threads : 0);
    control().set_overlapped(at_once ? n_active() : 0, call_.settings.n_drafters);
  }

  void draft(int branch) override {
    destroy_retired(branch);
    drafting_.propose(at(branch)->lane);
    count_draft_cache(branch);
  }

  std::vector<VerifiedBranch> verify(std::span<const int> branches) override {
    std::vector<Lane*> lanes;
    for (const int branch : branches) lanes.push_back(&at(branch)->lane);
    const Nanoseconds before = target_compute(lanes);
    control().set_lanes(static_cast<int>(lanes.size()));
    control().set_positions(lanes.front()->sequence.cache().length());
    verifying_.verify(lanes);
    compute_ += target_compute(lanes) - before;
    call_.totals.n_forwards++;
    count_caches();
    std::vector<VerifiedBranch> verified;
    for (const int branch : branches) {
      CompletionJob& job = *at(branch);
      const int n = job.take_new_tokens();
      const float expected = job.lane.decision.tokens;
      verified.push_back({branch, n, job.finished(), expected > 0 ? expected : 1.0});
    }
    return verified;
  }

  void end(int branch) override {
    CompletionJob& job = *at(branch);
    done_[job.index].emplace(job.complete(call_.events, call_.totals));
    {
      const std::lock_guard lock(drafts_mutex_);
      retired_[drafting_index(branch)].push_back(std::move(job.lane.decoder));
    }
    at(branch) = nullptr;
    if (call_.watch.ended) call_.watch.ended(++n_done_, static_cast<int>(call_.requests.size()));
  }

  /// Reports the exception being handled as the end of every started run. Call it within a catch
  /// block, after all threads have stopped.
  void report_thrown() {
    for (const auto& job : jobs_)
      if (job) engine::report_thrown(call_.events, job->run);
  }

  bool stopped() const { return call_.watch.stop && call_.watch.stop(); }
  /// Compute time of the target so far.
  Nanoseconds compute() const { return compute_; }

  /// Completes the started requests as they are. Call it after all threads have stopped.
  std::vector<Completion> take() {
    for (int branch = 0; branch < static_cast<int>(jobs_.size()); branch++)
      if (at(branch)) end(branch);
    call_.totals.draft_cache_bytes =
        std::max(call_.totals.draft_cache_bytes, most_draft_cache_bytes_);
    std::vector<Completion> completions;
    for (std::optional<Completion>& one : done_)
      if (one) completions.push_back(std::move(*one));
    return completions;
  }

 private:
  std::unique_ptr<CompletionJob>& at(int branch) { return jobs_[static_cast<std::size_t>(branch)]; }
  int n_active() const {
    return static_cast<int>(
        std::ranges::count_if(jobs_, [](const auto& job) { return job != nullptr; }));
  }
  /// Index in Call::drafting of the model that drafts for a branch.
  std::size_t drafting_index(int branch) const {
    return call_.drafting.size() == 1 ? 0 : static_cast<std::size_t>(branch);
  }
  DraftingModel& drafting(int branch) const { return *call_.drafting[drafting_index(branch)]; }
  StepControl& control() { return *call_.models.target.control; }

  /// Forwards the events before a model works, because the device may hang in that work. Runs on
  /// the caller's thread.
  void forward_events() {
    if (call_.events) call_.events->forward();
  }

  static Nanoseconds target_compute(std::span<Lane* const> lanes) {
    Nanoseconds sum = 0;
    for (const Lane* lane : lanes) sum += lane->compute_ns - lane->times.propose;
    return sum;
  }

  /// Updates the peak sizes of the target's caches. Only this thread changes these caches, even
  /// while another thread drafts for the branch.
  void count_caches() {
    std::int64_t own = 0;
    for (const auto& job : jobs_)
      if (job) own += std::as_const(job->lane.sequence).cache().own_bytes();
    ScheduleTotals& totals = call_.totals;
    totals.branch_cache_bytes = std::max(totals.branch_cache_bytes, own);
    totals.cache_bytes = std::max(totals.cache_bytes, call_.models.target.model->cache_bytes());
  }

  /// Updates the peak size of all caches of drafting models.
  void count_draft_cache(int branch) {
    const std::int64_t bytes = drafting(branch).model.cache_bytes();
    const std::lock_guard lock(drafts_mutex_);
    draft_cache_bytes_[drafting_index(branch)] = bytes;
    most_draft_cache_bytes_ = std::max(
        most_draft_cache_bytes_,
        std::accumulate(draft_cache_bytes_.begin(), draft_cache_bytes_.end(), std::int64_t{0}));
  }

  /// Destroys the decoders of finished runs whose caches belong to the model that drafts for this
  /// branch, on the thread that uses that model now.
  void destroy_retired(int branch) {
    std::vector<std::unique_ptr<Decoder>> retired;
    const std::lock_guard lock(drafts_mutex_);
    retired.swap(retired_[drafting_index(branch)]);
  }

  const Call& call_;
  ThreadsAtWork target_threads_, draft_threads_;
  Stepper verifying_, drafting_;
  std::vector<std::unique_ptr<CompletionJob>> jobs_;  // by branch; null: free
  std::vector<std::optional<Completion>> done_;
  std::size_t next_ = 0;
  int n_done_ = 0;
  Nanoseconds compute_ = 0;
  std::mutex drafts_mutex_;  // guards the members below
  // decoders of finished runs, by the index of their drafting model
  std::vector<std::vector<std::unique_ptr<Decoder>>> retired_;
  std::vector<std::int64_t> draft_cache_bytes_;  // of each drafting model
  std::int64_t most_draft_cache_bytes_ = 0;      // peak of their sum
};

void add(RoundsTotals& sum, const RoundsTotals& more) {
  sum.n_drafts += more.n_drafts;
  sum.n_verifications += more.n_verifications;
  sum.n_overlapped += more.n_overlapped;
  sum.longest_queue = std::max(sum.longest_queue, more.longest_queue);
  sum.most_branches = std::max(sum.most_branches, more.most_branches);
  sum.most_drafting = std::max(sum.most_drafting, more.most_drafting);
  sum.wait_for_target += more.wait_for_target;
  sum.wait_for_draft += more.wait_for_draft;
  sum.drafting += more.drafting;
  sum.verifying += more.verifying;
  sum.target_idle += more.target_idle;
  sum.draft_idle += more.draft_idle;
}

}  // namespace

RoundsSettings rounds_settings(const SeedOptions& options) {
  return {.n_branches = options.branches,
          .n_together = options.batch_verify,
          .policy = options.policy,
          .overlap = options.overlap,
          .target_threads = options.target_threads,
          .draft_threads = options.draft_threads,
          .n_drafters = options.n_drafters()};
}

RoundsScheduler::RoundsScheduler(const RunModels& models, const RoundsSettings& settings)
    : models_(models),
      settings_(settings),
      policy_(policy_named(settings.policy)),
      overlap_(overlap_named(settings.overlap, settings.n_drafters)),
      prompts_(*models.target.model) {
  ensure(models.draft != nullptr, "rounds need a draft model");
  Model& draft = *models.draft->model;
  kernels::Device& device = draft.device();
  ensure(&models.target.model->device() != &device,
         "two models that work at the same time need separate devices");
  ensure(settings.n_drafters >= 1 && settings.n_drafters <= settings.n_branches,
         "a drafter needs a branch to draft for");
  drafter_devices_.assign(static_cast<std::size_t>(settings.n_drafters), &device);
  if (settings.n_drafters == 1) {
    drafting_.push_back(std::make_unique<DraftingModel>(draft));
    return;
  }
  const bool on_cpu = kernels::is_cpu(device.name());
  for (int branch = 0; branch < settings.n_branches; branch++)
    drafting_.push_back(std::make_unique<DraftingModel>(
        draft, on_cpu ? kernels::open_cpu(1, device.ops()) : kernels::open_gpu(device.name())));
  for (std::size_t drafter = 1; on_cpu && drafter < drafter_devices_.size(); drafter++) {
    own_devices_.push_back(kernels::open_cpu(settings.draft_threads, device.ops()));
    drafter_devices_[drafter] = own_devices_.back().get();
  }
}

std::vector<Completion> RoundsScheduler::run(std::span<const CompletionRequest> requests,
                                             const SchedulerWatch& watch) {
  const Nanoseconds begun = now_ns();
  std::optional<GatheredEvents> events;
  std::optional<LoadSampler> sampler;
  if (watch.events) {
    events.emplace(*watch.events);
    sampler.emplace(models_.target.model->device(), *watch.events, drafting_devices());
    if (!std::exchange(has_reported_notices_, true))
      for (std::string& text : notices())
        watch.events->push(Notice{now_ns(), Notice::Level::Info, std::move(text)});
  }
  const Call call{
      models_,          requests, watch,    events ? &*events : nullptr, prompts_, drafting_,
      drafter_devices_, totals_,  settings_};
  Rounds rounds(settings_.n_branches, *policy_, settings_.n_together, call.events, rounds_,
                overlap_.get(), settings_.n_drafters);
  JobRounds work(call, settings_.n_branches);
  const auto report = [&] {
    if (!events) return;
    events->forward();
    sampler->step(work.compute());
  };
  try {
    run_rounds(
        rounds, work, [&work] { return work.stopped(); }, report);
  } catch (...) {
    models_.target.control->set_overlapped(0);
    work.report_thrown();
    if (events) events->forward();  // emits the events before the failure, and the end of each run
    throw;
  }
  std::vector<Completion> completions = work.take();
  models_.target.control->set_overlapped(0);
  if (events) {
    report_choice(*events);
    events->forward();
    sampler->end(work.compute());
  }
  add(rounds_, rounds.totals());
  totals_.wall += now_ns() - begun;
  return completions;
}

/// The devices whose threads or streams draft.
std::vector<const kernels::Device*> RoundsScheduler::drafting_devices() const {
  std::vector<const kernels::Device*> devices;
  if (kernels::is_cpu(models_.draft->model->device().name()))
    devices.assign(drafter_devices_.begin(), drafter_devices_.end());
  else
    for (const auto& one : drafting_) devices.push_back(&one->model.device());
  return devices;
}

std::vector<std::string> RoundsScheduler::notices() const {
  const int n_threads = settings_.n_drafters * settings_.draft_threads;
  const auto n_processors = static_cast<int>(std::thread::hardware_concurrency());
  const bool on_cpu = kernels::is_cpu(models_.draft->model->device().name());
  if (settings_.n_drafters == 1 || !on_cpu || n_threads < n_processors) return {};
  return {
      fmt::format("seed: {} drafters use {} threads in addition to the target's, on {} "
                  "processors; a drafter without a processor of its own slows the target",
                  settings_.n_drafters, n_threads, n_processors)};
}

const ModeChoice* RoundsScheduler::choice() const {
  const auto* chosen = dynamic_cast<const ChosenOverlap*>(overlap_.get());
  return chosen ? chosen->largest_decided() : nullptr;
}

/// Emits a notice about the chosen mode if it has changed since the last notice.
void RoundsScheduler::report_choice(EventSink& events) {
  const ModeChoice* found = choice();
  if (!found) return;
  const std::string how = found->kept() == ModeChoice::Overlapped ? "while the target verifies"
                                                                  : "in turn with the target";
  if (how == reported_) return;
  reported_ = how;
  std::string why =
      fmt::format("a round of a text took {:.2f} ms in turn, ", found->ms(ModeChoice::InTurn));
  why += found->cannot_gain()
             ? "of which drafting was too small a part to gain from overlapping"
             : fmt::format("{:.2f} ms overlapped", found->ms(ModeChoice::Overlapped));
  events.push(Notice{now_ns(), Notice::Level::Info,
                     fmt::format("seed: the draft model works {}; {}", how, why)});
}

std::map<std::string, double> RoundsScheduler::figures() const {
  std::map<std::string, double> figures = figures_of(totals_, models_);
  const auto ms = [](Nanoseconds ns) { return static_cast<double>(ns) * 1e-6; };
  figures["branches"] = settings_.n_branches;
  figures["most_branches"] = rounds_.most_branches;
  figures["drafters"] = settings_.n_drafters;
  figures["most_drafting"] = rounds_.most_drafting;
  figures["drafts"] = static_cast<double>(totals_.n_drafts);
  figures["verifications"] = static_cast<double>(rounds_.n_verifications);
  figures["longest_queue"] = rounds_.longest_queue;
  figures["wait_for_target_ms"] = ms(rounds_.wait_for_target);
  figures["wait_for_draft_ms"] = ms(rounds_.wait_for_draft);
  figures["target_idle_ms"] = ms(rounds_.target_idle);
  figures["draft_idle_ms"] = ms(rounds_.draft_idle);
  figures["draft_prefill_ms"] = ms(totals_.draft_prefill);
  if (totals_.wall > 0) {
    const Nanoseconds work = totals_.prefill + totals_.draft_busy + totals_.target_busy;
    figures["overlap"] = ms(work) / ms(totals_.wall);
  }
  if (const ModeChoice* found = choice()) {
    figures["overlap_chosen"] = found->kept() == ModeChoice::Overlapped;
    figures["overlap_looks"] = found->n_probes();
    figures["overlap_changes"] = found->n_changes();
    figures["in_turn_round_ms"] = found->ms(ModeChoice::InTurn);
    const double overlapped = found->ms(ModeChoice::Overlapped);
    if (overlapped > 0) figures["overlapped_round_ms"] = overlapped;
  }
  if (rounds_.n_verifications == 0) return figures;
  figures["overlapped"] =
      static_cast<double>(rounds_.n_overlapped) / static_cast<double>(rounds_.n_verifications);
  const double verify = ms(totals_.target_busy) / static_cast<double>(rounds_.n_verifications);
  figures["round_verify_ms"] = verify;
  if (totals_.n_drafts == 0) return figures;
  const double draft = ms(totals_.drafting) / static_cast<double>(totals_.n_drafts);
  figures["round_draft_ms"] = draft;
  const double together =
      static_cast<double>(totals_.n_steps) / static_cast<double>(rounds_.n_verifications);
  figures["rounds_bound"] =
      speedup_bound(rounds_.most_branches, settings_.n_drafters, draft, verify, together);
  return figures;
}

}  // namespace engine
