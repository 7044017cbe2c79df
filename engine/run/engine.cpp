#include "engine/run/engine.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/verify/sampling_mode.h"
#include "engine/event/clock.h"
#include "engine/run/agreement.h"
#include "engine/run/failure.h"
#include "engine/run/prompt_text.h"
#include "engine/run/race_models.h"

namespace engine {
namespace {

constexpr Nanoseconds kProgressPeriod = 30'000'000;

Sampling sampling_of(const StartRun& command) {
  Sampling sampling;
  sampling.temperature = command.temperature;
  sampling.top_k = command.top_k;
  sampling.top_p = command.top_p;
  sampling.min_p = command.min_p;
  sampling.repetition_penalty = command.repetition_penalty;
  sampling.seed = command.seed;
  sampling.mode = sampling_mode(command.sampling);
  return sampling;
}

RunRequest request_of(const StartRun& command, const SetPrompt& prompt, const LaneRequest& lane) {
  RunRequest request{.prompt_id = prompt.id,
                     .prompt = prompt.text,
                     .prompt_tokens = {},
                     .decoder = lane.decoder,
                     .options = lane.options,
                     .sampling = sampling_of(command),
                     .max_tokens = command.max_tokens,
                     .ignore_eos = command.ignore_eos,
                     .stop_texts = command.stop_texts,
                     .stop_ids = command.stop_ids,
                     .no_special = command.no_special,
                     .choices = lane.choices};
  request.sampling.seed = prompt.seed.value_or(command.seed);
  return request;
}

std::vector<ChatMessage> messages_of(const SetPrompt& prompt) {
  std::vector<ChatMessage> messages;
  for (const auto& [role, content] : prompt.messages) messages.push_back({role, content});
  return messages;
}

/// The system message of a lane's model.
std::string system_for(const RunModels& models, const StartRun& command) {
  return models.target.files.chat_template.empty() ? std::string() : command.system;
}

/// The model request of a command that names a model, its scale, dtypes, device and context.
template <typename C>
ModelRequest model_of(const C& command, bool allow_external_shards, const FileLimits& limits) {
  return {.model = command.model,
          .scale = command.scale,
          .dtype = command.dtype,
          .cache_type = command.cache_type,
          .device = command.device,
          .allow_external_shards = allow_external_shards,
          .limits = limits,
          .context = command.context};
}

/// The draft model and heads that a command names.
template <typename C>
DraftResources draft_resources_of(const C& command) {
  return {command.draft, command.heads, command.draft_scale};
}

/// The texts that runs of this model share in a session.
std::shared_ptr<EarlierTexts> texts_of(LoadedModel& model) {
  if (!model.texts) model.texts = std::make_shared<EarlierTexts>();
  return model.texts;
}

}  // namespace

Engine::Engine(std::string assets_dir, int n_threads, CommandQueue& commands, EventSink& events)
    : commands_(commands), events_(events), store_(std::move(assets_dir), n_threads) {}

Engine::~Engine() = default;

void Engine::serve() {
  while (true) {
    const bool can_step = race_ && (!held_ || steps_requested_ > 0);
    std::optional<Command> command;
    if (!pending_.empty()) {
      command = std::move(pending_.front());
      pending_.pop_front();
    } else {
      command = can_step ? commands_.try_take() : commands_.wait();
    }
    if (commands_.closed()) return;
    try {
      if (command) {
        handle(*command);
      } else if (can_step) {
        step_race();
      }
    } catch (...) {
      const Failure failure = current_failure();
      if (command) {
        fail(0, failure);
      } else {
        fail_race(failure);
      }
    }
    for (std::string& note : store_.take_notes()) notice(Notice::Level::Warning, std::move(note));
    if (!race_) store_.drop_failed_devices();
  }
}

void Engine::handle(const Command& command) {
  std::visit(
      [this](const auto& c) {
        using C = std::decay_t<decltype(c)>;
        if constexpr (std::is_same_v<C, StartRun>) start(c);
        if constexpr (std::is_same_v<C, StopRun>) stop(c.run);
        if constexpr (std::is_same_v<C, Hold>) hold(c.held);
        if constexpr (std::is_same_v<C, StepOnce>) steps_requested_ += held_;
        if constexpr (std::is_same_v<C, LoadModel>) load(c);
        if constexpr (std::is_same_v<C, CheckAgreement>) check_agreement(c.run);
        if constexpr (std::is_same_v<C, RecordTo>) events_.record_to(c.path);
        if constexpr (std::is_same_v<C, StartReasoning>) reason(c);
      },
      command);
}

void Engine::hold(bool held) {
  held_ = held;
  steps_requested_ = 0;
  events_.push(Held{now_ns(), held_});
}

bool Engine::queue_command(Command command) {
  const auto* stop = std::get_if<StopRun>(&command);
  if (!stop || stop->run != 0) {
    pending_.push_back(std::move(command));
    return false;
  }
  // A stop command also cancels the work that was requested before it.
  std::erase_if(pending_, [](const Command& c) {
    return std::holds_alternative<StartRun>(c) || std::holds_alternative<StartReasoning>(c) ||
           std::holds_alternative<LoadModel>(c) || std::holds_alternative<CheckAgreement>(c);
  });
  return true;
}

bool Engine::stop_requested() {
  if (commands_.closed()) return true;
  bool stop = false;
  while (std::optional<Command> command = commands_.try_take())
    stop |= queue_command(std::move(*command));
  return stop;
}

LoadProgress Engine::load_progress(const std::string& name) {
  return [this, name, last = Nanoseconds{0}](std::int64_t done, std::int64_t total) mutable {
    if (last == 0 || now_ns() - last > kProgressPeriod || done == total) {
      last = now_ns();
      events_.push(Phase{last, 0, "load", done, total, name});
    }
    return !stop_requested();
  };
}

void Engine::describe_once(const LoadedModel& model) {
  if (!described_.insert(model.id).second) return;
  for (const std::string& text : model.files.notices) notice(Notice::Level::Info, text);
  events_.push(describe(model));
}

void Engine::describe_once(const RunModels& models) {
  describe_once(models.target);
  if (models.draft) {
    describe_once(*models.draft);
    if (described_pairs_.emplace(models.target.id, models.draft->id).second)
      for (const std::string& text : pair_notices(models)) notice(Notice::Level::Warning, text);
  }
  for (const LoadedHeads* heads : {models.medusa, models.chimera}) {
    if (!heads || !described_.insert(heads->id).second) continue;
    for (const std::string& text : heads->files.notices) notice(Notice::Level::Info, text);
    events_.push(describe(*heads, models.target));
  }
}

LoadedModel& Engine::loaded(const ModelRequest& request) {
  LoadedModel& model = store_.get(request, load_progress(request.model));
  describe_once(model);
  return model;
}

void Engine::load(const LoadModel& command) {
  end_set();
  loaded(model_of(command, allow_external_shards_, limits_));
}

std::vector<RunModels> Engine::loaded_by_lane(const StartRun& command) {
  return models_of_lanes(
      store_, model_of(command, allow_external_shards_, limits_), draft_resources_of(command),
      command.lanes, [this](const std::string& name) { return load_progress(name); },
      [this](const RunModels& models) { describe_once(models); });
}

Engine::Read Engine::read_prompt(LoadedModel& model, const std::vector<RunBegun>& runs) {
  const Nanoseconds begun = now_ns();
  Nanoseconds last = 0;
  const std::vector<TokenId>* prompt = nullptr;
  bool with_state = false;  // true if a decoder of a lane starts from the prompt's hidden state
  for (const RunBegun& run : runs) {
    if (&run.models.target != &model) continue;
    prompt = &run.request.prompt_tokens;
    with_state |= decoder_named(run.request.decoder).reads_prompt_state;
  }
  ensure(prompt != nullptr, "no run needs this model's prompt");
  const auto progress = [&](int done, int total) {
    if (last == 0 || now_ns() - last > kProgressPeriod || done == total) {
      last = now_ns();
      // All lanes of a model share one prefill. It is reported as a phase of each lane's run.
      for (const RunBegun& run : runs)
        if (&run.models.target == &model)
          events_.push(Phase{last, run.id, "prefill", done, total, {}});
    }
    return !stop_requested();
  };
  Sequence sequence = prefilled(*model.model, *prompt, progress, with_state);
  return {std::move(sequence), static_cast<double>(now_ns() - begun) * 1e-6};
}

PlaceInSet Engine::RaceSet::place() const {
  const auto n_repeats = static_cast<std::size_t>(command->n_repeats);
  const std::size_t prompt = next / n_repeats;
  return {.set = id,
          .prompt = static_cast<int>(prompt),
          .n_prompts = static_cast<int>(command->prompts.size()),
          .repeat = static_cast<int>(next % n_repeats),
          .n_repeats = command->n_repeats,
          .task = command->prompts[prompt].task};
}

void Engine::start(const StartRun& command) {
  end_set();
  ensure(!command.lanes.empty() && command.lanes.size() <= kMaxLanes,
         "a run must have 1 to 5 lanes");
  ensure(command.n_repeats >= 1 && command.n_repeats <= kMaxRepeats,
         "a run must be repeated 1 to 100 times");
  StartRun all = command;
  if (all.prompts.empty()) all.prompts.push_back({command.prompt_id, command.prompt});
  const bool is_set = all.prompts.size() > 1 || all.n_repeats > 1;
  set_ = RaceSet{.command = std::make_shared<const StartRun>(std::move(all)),
                 .id = is_set ? ++n_sets_ : 0};
  try {
    begin_next_race();
  } catch (...) {
    drop_set();
    throw;
  }
}

void Engine::drop_set() {
  if (!set_) return;
  set_->next = set_->n_races();
  report_set();
  set_.reset();
}

void Engine::report_set() {
  if (set_->id == 0) return;
  events_.push(Phase{now_ns(),
                     0,
                     "set",
                     static_cast<std::int64_t>(set_->next),
                     static_cast<std::int64_t>(set_->n_races()),
                     {}});
}

void Engine::begin_next_race() {
  while (set_) {
    const std::shared_ptr<const StartRun> command = set_->command;
    const auto n_repeats = static_cast<std::size_t>(command->n_repeats);
    const std::size_t prompt = set_->next / n_repeats, n_prompts = command->prompts.size();
    if (prompt == n_prompts) return drop_set();
    const PlaceInSet place = set_->place();
    set_->next++;
    try {
      start_race(*command, place, !set_->has_begun);
      if (!set_) return;  // it was stopped
      set_->has_begun = true;
      return report_set();
    } catch (const Error& error) {
      const bool others = set_->has_begun || prompt + 1 < n_prompts;
      if (error.code() != ErrorCode::BadInput || n_prompts == 1 || !others) throw;
      set_->next = (prompt + 1) * n_repeats;
      notice(Notice::Level::Error,
             fmt::format("Prompt {} is skipped: {}", command->prompts[prompt].id, error.what()));
    }
  }
}

void Engine::continue_set() {
  try {
    begin_next_race();
  } catch (...) {
    drop_set();
    fail(0, current_failure());
  }
}

void Engine::end_set() {
  drop_set();
  if (race_) end_race();
}

void Engine::start_race(const StartRun& command, const PlaceInSet& place, bool is_first) {
  const SetPrompt& prompt = command.prompts[static_cast<std::size_t>(place.prompt)];
  std::vector<RunModels> models = loaded_by_lane(command);
  for (RunModels& own : models) {
    own.texts = texts_of(own.target);
    own.texts->set_file(pool_texts_.of(command.pool, *own.target.model, own.target.id));
  }
  const std::uint32_t race = command.lanes.size() > 1 ? ++n_races_ : 0;
  std::vector<RunBegun> runs;
  // makes all events before emitting the first, because an option may be refused
  std::vector<RunStarted> started;
  // Lanes of a model share one prefill, so they share one rendering: a template may write the time.
  std::map<const LoadedModel*, PromptTokens> prompts;
  for (const LaneRequest& lane : command.lanes) {
    RunRequest request = request_of(command, prompt, lane);
    const RunModels& own = models[runs.size()];
    if (!prompts.contains(&own.target))
      prompts[&own.target] =
          prompt_tokens_of(*own.target.model, {.text = prompt.text,
                                               .messages = messages_of(prompt),
                                               .chat = command.chat,
                                               .system = system_for(own, command),
                                               .symbols = !command.no_special});
    set_prompt(request, prompts.at(&own.target));
    check_stops(*own.target.model, request.stop_texts, request.stop_ids);
    request.race = race;
    request.lane = static_cast<int>(runs.size());
    request.place = place;
    runs.push_back({++n_runs_, std::move(request), own});
    started.push_back(started_event(runs.back().request, own, n_runs_));
  }
  if (is_first) {
    held_ = command.start_held;
    steps_requested_ = 0;
    events_.push(Held{now_ns(), held_});
  }
  for (RunStarted& event : started) {
    event.t = now_ns();
    events_.push(std::move(event));
  }
  for (const RunBegun& run : runs)
    if (auto notice = notice_of_sizes(run.request)) events_.push(*std::move(notice));
  try {
    begin_race(runs);
  } catch (...) {
    const Failure failure = current_failure();
    if (failure.is_stop()) {
      // A requested stop is not a failure, even before the first step.
      drop_set();
      discard_race();
      for (const RunBegun& run : runs)
        events_.push(RunFinished{.t = now_ns(), .run = run.id, .stop_reason = "stopped"});
      return;
    }
    for (const RunBegun& run : runs) active_[run.id].reported = false;
    fail_race(failure);
  }
}

void Engine::begin_race(const std::vector<RunBegun>& runs) {
  std::map<const LoadedModel*, Read> read;
  for (const RunBegun& run : runs) {
    LoadedModel& target = run.models.target;
    if (!read.contains(&target)) read.emplace(&target, read_prompt(target, runs));
  }
  Model& first = *runs.front().models.target.model;
  race_ = std::make_unique<Race>(first, &events_);
  sampler_.emplace(first.device(), events_);
  race_compute_ = 0;
  for (const RunBegun& run : runs) {
    LoadedModel& target = run.models.target;
    const Read& prompt = read.at(&target);
    prepare_costs(run.models, run.request);  // not a part of the lane's time
    const Nanoseconds lane_begun = now_ns();
    race_->add(make_lane(run.models, run.request, run.id, &prompt.sequence), *target.model);
    // Draft heads read the prompt too.
    const double own_ms = static_cast<double>(now_ns() - lane_begun) * 1e-6;
    active_[run.id] = {run.request, prompt.ms + own_ms, false, &target};
    events_.push(Phase{now_ns(), run.id, "decode", 0, run.request.max_tokens, {}});
  }
}

void Engine::reason(const StartReasoning& command) {
  ensure(reasoner_ != nullptr, "an engine without a reasoner cannot run reasoning commands");
  end_set();
  const std::string& decoder = command.decoder.decoder;
  const OptionValues& options = command.decoder.options;
  RunModels models =
      models_for(store_, model_of(command, allow_external_shards_, limits_),
                 draft_resources_of(command), decoder, options, load_progress(command.model));
  models.texts = texts_of(models.target);
  describe_once(models);
  held_ = command.start_held;
  steps_requested_ = 0;
  events_.push(Held{now_ns(), held_});
  const auto scheduler = make_scheduler(models, decoder, options, command.batch);
  RunTracker tracker(events_);
  bool stopped = false, ended = false;
  const auto report = [&](std::int64_t done, std::int64_t total, const std::string& words) {
    ended = done >= total;
    events_.push(Phase{now_ns(), 0, "reason", done, total, words});
  };
  report(0, 1, "reading the questions");
  try {
    reasoner_(
        command,
        {.target = *models.target.model,
         .scheduler = *scheduler,
         .watch = {.events = &tracker,
                   .first_run = n_runs_ + 1,
                   .stop = [&] { return stopped = stopped || reasoning_stop_requested(tracker); }},
         .first_search = n_searches_ + 1,
         .report = report});
  } catch (...) {
    const Failure failure = current_failure();
    if (!failure.is_stop()) fail_reasoning(tracker, failure);
  }
  keep_tracked(tracker, models.target.request);
  if (!ended) report(1, 1, {});
}

/// Reserves the run and search ids that a reasoning command used, and keeps its runs for
/// comparisons.
void Engine::keep_tracked(const RunTracker& tracker, const ModelRequest& model) {
  n_searches_ = std::max(n_searches_, tracker.last_search());
  for (const auto& [run, what] : tracker.runs()) {
    n_runs_ = std::max(n_runs_, run);
    RunResult end;
    end.stop_reason = what.stop_reason;
    finished_[run] = {model, request_of(what.started), what.tokens, end.whole()};
  }
}

void Engine::fail_reasoning(const RunTracker& tracker, const Failure& failure) {
  // true if the failure was already reported by a run whose prompt could not be read
  bool reported = false;
  for (const auto& [run, what] : tracker.runs()) {
    reported |= what.failed;
    if (what.over()) continue;
    fail(run, failure);
    reported = true;
  }
  if (!reported) fail(0, failure);
}

bool Engine::reasoning_stop_requested(RunTracker& tracker) {
  if (tracker.stepped() && steps_requested_ > 0) steps_requested_--;
  bool stop = stop_requested();
  bool is_reported = !held_;  // a hold command that arrives now emits its own Held event
  apply_queued_controls();
  while (!stop && !is_superseded() && held_ && steps_requested_ == 0) {
    // Reports that the started work is on hold; without this event the device would seem to hang.
    if (!std::exchange(is_reported, true)) events_.push(Held{now_ns(), true});
    std::optional<Command> command = commands_.wait();
    stop = !command || queue_command(std::move(*command));
    apply_queued_controls();
  }
  return stop || is_superseded();
}

bool Engine::is_superseded() const {
  return std::ranges::any_of(pending_, [](const Command& command) {
    return std::holds_alternative<StartRun>(command) ||
           std::holds_alternative<StartReasoning>(command) ||
           std::holds_alternative<LoadModel>(command);
  });
}

void Engine::apply_queued_controls() {
  std::deque<Command> later;
  for (Command& command : std::exchange(pending_, {})) {
    const bool is_control = std::holds_alternative<Hold>(command) ||
                            std::holds_alternative<StepOnce>(command) ||
                            std::holds_alternative<RecordTo>(command);
    if (!is_control) {
      later.push_back(std::move(command));
      continue;
    }
    try {
      handle(command);
    } catch (...) {
      fail(0, current_failure());
    }
  }
  pending_ = std::move(later);
}

void Engine::step_race() {
  const auto compute = [this] {
    Nanoseconds sum = 0;
    for (const auto& lane : race_->lanes()) sum += lane->compute_ns;
    return sum;
  };
  const Nanoseconds before = compute();
  if (held_) {
    steps_requested_--;
    race_->step_each();
  } else {
    race_->step_next();
  }
  race_compute_ += compute() - before;
  sampler_->step(race_compute_);
  if (race_->finished()) sampler_->end(race_compute_);
  report_finished();
  if (!race_->finished()) return;
  end_race();
  continue_set();
}

void Engine::report_finished() {
  for (const auto& lane : race_->lanes()) {
    ActiveRun& run = active_[lane->run];
    const bool over = lane->sequence.finished() || race_->stopped(*lane);
    if (!over || run.reported) continue;
    run.reported = true;
    const RunResult result =
        result_of(*lane, run.request, run.model->model->tokenizer(), run.prefill_ms);
    events_.push(finished_event(result, lane->run));
    finished_[lane->run] = {run.model->request, run.request, result.tokens,
                            ended_by_token_or_limit(lane->sequence.stop_reason())};
  }
}

/// Keeps the texts of the current race's lanes for later runs. Lanes of one race must not copy from
/// each other: how far each has come depends on time.
void Engine::keep_texts() {
  for (const auto& lane : race_->lanes())
    keep_text(active_[lane->run].model->texts.get(), lane->sequence, *lane->options, lane->run);
}

/// Ends the current race. Compares each lane with the AR lane of its model, if there is one, and
/// emits the result.
void Engine::end_race() {
  if (!race_) return;
  for (const auto& lane : race_->lanes()) race_->stop(lane->run);
  report_finished();
  // A repeat must not copy from the text that it repeats.
  if (!set_ || !set_->repeats_prompt()) keep_texts();
  std::map<const LoadedModel*, RunId> plain;  // the AR lane of each model
  for (const auto& [run, state] : active_) {
    if (state.request.decoder == "ar") plain[state.model] = run;
  }
  for (const auto& [run, state] : active_) {
    const auto found = plain.find(state.model);
    if (found == plain.end() || run == found->second) continue;
    const Finished &other = finished_[run], &ar = finished_[found->second];
    if (!comparable(other.request.sampling)) continue;
    Agreement agreement = agreement_of({other.tokens, other.whole}, {ar.tokens, ar.whole});
    agreement.t = now_ns();
    agreement.run = run;
    agreement.baseline = found->second;
    events_.push(agreement);
  }
  discard_race();
}

/// Ends the current race, and its set, with a failure of every lane that has not ended.
void Engine::fail_race(const Failure& failure) {
  drop_set();
  for (auto& [run, state] : active_) {
    if (!state.reported) fail(run, failure);
    state.reported = true;
  }
  discard_race();
}

// The sampler uses the devices of the race's models, so it is destroyed before those devices can
// be. Its counts since the last sample are dropped, because a sample covers 100 ms.
void Engine::discard_race() {
  active_.clear();
  sampler_.reset();
  race_.reset();
  store_.keep_together({});
  steps_requested_ = 0;
}

void Engine::stop(RunId run) {
  if (!race_) return;
  if (run == 0) {
    end_set();
    return;
  }
  race_->stop(run);
  report_finished();
  if (!race_->finished()) return;
  end_race();
  continue_set();
}

void Engine::check_agreement(RunId run) {
  const auto it = finished_.find(run);
  if (it == finished_.end()) {
    notice(Notice::Level::Warning, "The agreement can be checked once the run has ended.");
    return;
  }
  if (race_) {
    notice(Notice::Level::Warning, "The agreement can be checked when the current race has ended.");
    return;
  }
  const Finished& state = it->second;
  if (!comparable(state.request.sampling)) {
    notice(
        Notice::Level::Info,
        "Under rejection sampling a run has the distribution of plain decoding, not its tokens.");
    return;
  }
  LoadedModel& model = loaded(state.model);
  RunRequest request = state.request;
  request.decoder = "ar";
  request.options.clear();
  const Nanoseconds begun = now_ns();
  const auto progress = [&](const Lane& lane) {
    const auto done = static_cast<int>(lane.sequence.generated().size());
    if (lane.n_steps % 32 == 0)
      events_.push(Phase{now_ns(), run, "check", done, request.max_tokens, {}});
  };
  bool stopped = false;
  const auto stop = [&] { return stopped = stopped || stop_requested(); };
  RunResult ar;
  try {
    ar = run_to_end(model, request, 0, nullptr, stop, progress);
  } catch (const Error& error) {
    // a stop while the prompt is read is not a failure
    if (error.code() != ErrorCode::Cancelled) throw;
  }
  if (stopped) return;
  Agreement agreement = agreement_of({state.tokens, state.whole}, {ar.tokens});
  agreement.t = now_ns();
  agreement.run = run;
  agreement.cost = agreement.t - begun;
  events_.push(agreement);
}

void Engine::fail(RunId run, const Failure& failure) {
  events_.push(failed_event(failure, run));
}

void Engine::notice(Notice::Level level, std::string text) {
  events_.push(Notice{now_ns(), level, std::move(text)});
}

}  // namespace engine
