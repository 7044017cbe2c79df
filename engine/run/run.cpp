#include "engine/run/run.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/ranks/lookahead_ranks.h"
#include "engine/decode/ranks/mpi_exchange.h"
#include "engine/decode/ranks/mpi_ranks.h"
#include "engine/decode/verify/sampling.h"
#include "engine/decode/verify/sampling_mode.h"
#include "engine/event/clock.h"
#include "engine/run/failure.h"
#include "engine/run/load_sampler.h"
#include "engine/store/calibration.h"
#include "kernels/thread_sharing.h"

namespace engine {
namespace {

/// The decoder's context for a request.
DecoderContext context_for(const RunModels& models,
                           const RunRequest& request,
                           PromptCaches* prompts) {
  Model& model = *models.target.model;
  const LoadedHeads* heads = models.heads_of(request.decoder);
  return {.target = model,
          .sampling = request.sampling,
          .limits = {.max_tokens = request.max_tokens,
                     .max_seq_len = model.max_seq_len(),
                     .ignore_eos = request.ignore_eos,
                     .eos_ids = model.config().eos_ids,
                     .stop_ids = request.stop_ids},
          .draft_model = models.drafts_with ? models.drafts_with
                         : models.draft     ? models.draft->model.get()
                                            : nullptr,
          .probe = request.probe,
          .draft_prompts = prompts,
          .control = models.target.control.get(),
          .draft_id = heads          ? heads->id
                      : models.draft ? models.draft->id
                                     : 0,
          .successors = models.target.successors.get(),
          .heads = heads ? heads->heads.get() : nullptr,
          .trees_dir = models.trees_dir,
          .heads_tree = heads ? heads->tree : "",
          .texts = models.texts,
          .choices = request.choices};
}

/// A lane whose decoder has not begun.
Lane lane_of(RunId run,
             const RunModels& models,
             const RunRequest& request,
             const ParsedOptions& options,
             Sequence prompt,
             std::unique_ptr<Decoder> decoder,
             const DecoderContext& context) {
  const Model& model = *models.target.model;
  check_stops(model, request.stop_texts, request.stop_ids);
  Lane lane{.run = run,
            .sequence = std::move(prompt),
            .decoder = std::move(decoder),
            .options = options,
            .sampling = context.sampling,
            .limits = context.limits,
            .control = context.control};
  if (!request.stop_texts.empty())
    stop_at(lane, *model.tokenizer(), request.stop_texts, StopReason::StopString);
  return lane;
}

/// The model of a lane whose rows several ranks share, and the wait for them.
struct SharedModel {
  std::unique_ptr<LaneModel> model;  // null: one rank
  std::function<void(const std::function<bool()>& keep_going)> wait_until_ready;
};

/// Starts the ranks that share the lane's rows; they begin to read the prompt immediately.
SharedModel ranks_for(const RunModels& models,
                      const RunRequest& request,
                      const ParsedOptions& options,
                      const DecoderContext& context) {
  const auto n_others = static_cast<std::size_t>(options->n_ranks()) - 1;
  if (options->shares_over_mpi() && context.n_processes > 1) {
    auto ranks = std::make_unique<MpiRanks>(*models.target.model, models.target.weights_hash,
                                            RankedRun{request.prompt_tokens, options, context});
    MpiRanks* const started = ranks.get();
    return {std::move(ranks), [started](const auto&) { started->wait_until_ready(); }};
  }
  if (n_others == 0) return {};
  ensure(models.ranks.size() >= n_others, "every rank needs a model");
  std::vector<RankPlace> others;
  for (LoadedModel* const rank : std::span(models.ranks).first(n_others))
    others.push_back({*rank->model, rank->at_work, rank->model->device().name()});
  kernels::Device& device = models.target.model->device();
  const auto at_work = [&device, n_ranks = static_cast<int>(n_others) + 1,
                        n_before = kernels::active_threads(device)](bool begins) {
    kernels::set_active_threads(device, begins ? threads_of_rank(device, n_ranks) : n_before);
  };
  auto ranks =
      std::make_unique<LookaheadRanks>(*models.target.model, std::move(others),
                                       RankedRun{request.prompt_tokens, options, context}, at_work);
  LookaheadRanks* const started = ranks.get();
  return {std::move(ranks),
          [started](const auto& keep_going) { started->wait_until_ready(keep_going); }};
}

}  // namespace

void check_stops(const Model& model,
                 std::span<const std::string> stop_texts,
                 std::span<const TokenId> stop_ids) {
  if (!stop_texts.empty() && !model.tokenizer()) {
    throw Error(ErrorCode::Usage, fmt::format("stop strings: {} has no tokenizer, so it writes no "
                                              "text; stop ids end its runs",
                                              model.name()));
  }
  for (const TokenId id : stop_ids) {
    if (id >= 0 && id < model.vocab_size()) continue;
    throw Error(ErrorCode::Usage,
                fmt::format("stop id {}: {} has {} tokens, expected an id from 0 to {}", id,
                            model.name(), model.vocab_size(), model.vocab_size() - 1));
  }
}

void stop_at(Lane& lane,
             const Tokenizer& tokenizer,
             std::vector<std::string> stops,
             StopReason reason) {
  ensure(lane.sequence.generated().empty(), "stop strings apply from the first generated token");
  lane.stops =
      std::make_shared<StopReader>(TextStream(tokenizer, lane.sequence.prompt()), std::move(stops));
  lane.limits.text_end = [reader = lane.stops](std::span<const TokenId> emitted) {
    return reader->read(emitted);
  };
  lane.limits.text_reason = reason;
}

void check_prompt_length(const Model& model, std::size_t n_tokens) {
  if (n_tokens == 0) throw Error(ErrorCode::Usage, "the prompt has no tokens");
  if (static_cast<std::int64_t>(n_tokens) < model.max_seq_len()) return;
  throw Error(ErrorCode::BadInput, fmt::format("prompt: {} tokens, the context of {} holds {} "
                                               "and one must be free; shorten the prompt, "
                                               "or set a longer context with --context N",
                                               n_tokens, model.name(), model.max_seq_len()));
}

std::vector<TokenId> tokenize_prompt(const Model& model, const std::string& prompt, bool symbols) {
  if (!model.tokenizer()) {
    throw Error(ErrorCode::Usage,
                fmt::format("{} has no tokenizer: it cannot take a text prompt", model.name()));
  }
  std::vector<TokenId> ids = model.tokenizer()->encode(prompt, TextReading{.symbols = symbols});
  // A prompt that was rendered elsewhere begins with the name of the begin token.
  const std::optional<TokenId> bos = model.tokenizer()->bos_id();
  if (ids.size() > 1 && bos && ids[0] == *bos && ids[1] == *bos) ids.erase(ids.begin());
  check_prompt_length(model, ids.size());
  return ids;
}

void keep_text(EarlierTexts* texts,
               const Sequence& sequence,
               const DecoderOptions& options,
               RunId run) {
  const int n_kept = options.n_kept_tokens();
  if (texts && n_kept > 0) texts->add(run, sequence.tokens(), sequence.prompt().size(), n_kept);
}

Sequence prefilled(Model& model,
                   const std::vector<TokenId>& prompt,
                   const std::function<bool(int, int)>& progress,
                   bool with_state) {
  check_prompt_length(model, prompt.size());
  Sequence sequence(prompt, model.make_cache());
  prefill(model, sequence, 256, progress, with_state);
  return sequence;
}

void prepare_costs(const RunModels& models, const RunRequest& request) {
  if (parse_options(request.decoder, request.options)->chooses_sizes()) calibrate(models.target);
}

Lane lane_over(const RunModels& models,
               const RunRequest& request,
               RunId run,
               Sequence prompt,
               PromptCaches* prompts) {
  prepare_costs(models, request);
  const ParsedOptions options = parse_options(request.decoder, request.options);
  const DecoderContext context = context_for(models, request, prompts);
  return lane_of(run, models, request, options, std::move(prompt), make_decoder(*options, context),
                 context);
}

Sequence prefilled(PromptCaches& prompts,
                   const Model& model,
                   const std::vector<TokenId>& prompt,
                   const Sequence* known,
                   const std::function<bool(int, int)>& progress,
                   bool with_state) {
  check_prompt_length(model, prompt.size());
  return prompts.read(prompt, known, progress, with_state);
}

Lane make_lane(const RunModels& models,
               const RunRequest& request,
               RunId run,
               const Sequence* shared,
               const std::function<bool(int, int)>& progress,
               PromptCaches* draft_prompts) {
  prepare_costs(models, request);
  const ParsedOptions options = parse_options(request.decoder, request.options);
  DecoderContext context = context_for(models, request, draft_prompts);
  if (options->shares_over_mpi()) context.n_processes = mpi_exchange().n_ranks();
  std::unique_ptr<Decoder> decoder = make_decoder(*options, context);
  SharedModel ranks = ranks_for(models, request, options, context);
  Sequence prompt = shared ? shared->fork()
                           : prefilled(*models.target.model, request.prompt_tokens, progress,
                                       options->info().reads_prompt_state);
  if (ranks.model) prompt = ranks.model->attach(std::move(prompt));
  Lane lane =
      lane_of(run, models, request, options, std::move(prompt), std::move(decoder), context);
  lane.decoder->begin(lane.sequence);
  const auto n_read = static_cast<int>(request.prompt_tokens.size()) - 1;
  if (ranks.model) ranks.wait_until_ready([&] { return !progress || progress(n_read, n_read); });
  lane.own_model = std::move(ranks.model);
  return lane;
}

namespace {

/// Removes the stop string and all text after it, or the stop id's text, from the end of the
/// result's text.
void cut_text(RunResult& result, const Lane& lane, const Tokenizer& tokenizer) {
  if (lane.stops && lane.stops->found()) {
    result.text.resize(std::min(result.text.size(), lane.stops->found()->begin));
    if (lane.limits.text_reason == StopReason::StopString) result.stop_string = lane.stops->stop();
  } else if (lane.sequence.stop_reason() == StopReason::StopId) {
    result.text = continuation_text(tokenizer, lane.sequence.prompt(),
                                    std::span(result.tokens).first(result.tokens.size() - 1));
  }
}

}  // namespace

RunResult result_of(const Lane& lane,
                    const RunRequest& request,
                    const Tokenizer* tokenizer,
                    double prefill_ms) {
  RunResult result;
  result.request = request;
  const auto generated = lane.sequence.generated();
  result.tokens.assign(generated.begin(), generated.end());
  result.margins = lane.margins;
  result.facts = lane.facts;
  result.approximate = lane.decoder->approximate();
  if (tokenizer) {
    const auto tokens = lane.sequence.tokens();
    result.text = continuation_text(*tokenizer, lane.sequence.prompt(), result.tokens);
    result.approximate_text = continuation_text(*tokenizer, tokens, result.approximate);
    cut_text(result, lane, *tokenizer);
  }
  result.stop_reason = lane.sequence.finished() ? name_of(lane.sequence.stop_reason()) : "stopped";
  result.n_steps = lane.n_steps;
  result.n_rows = lane.n_rows;
  result.prefill_ms = prefill_ms + static_cast<double>(lane.draft_prefill_ns) * 1e-6;
  result.decode_ms = static_cast<double>(lane.compute_ns) * 1e-6;
  result.times = lane.times;
  result.metrics = metrics_of(lane);
  result.counts = counts_of(lane);
  result.notices = lane.notices;
  return result;
}

RunStarted started_event(const RunRequest& request, const RunModels& models, RunId run) {
  RunStarted event;
  event.t = now_ns();
  event.run = run;
  event.race = request.race;
  event.lane = request.lane;
  event.place = request.place;
  event.model = models.target.id;
  if (models.draft && decoder_named(request.decoder).needs_draft) event.draft = models.draft->id;
  if (const LoadedHeads* heads = models.heads_of(request.decoder)) event.draft = heads->id;
  event.decoder = request.decoder;
  event.options = complete_options(decoder_named(request.decoder), request.options);
  event.temperature = request.sampling.temperature;
  event.top_p = request.sampling.top_p;
  event.min_p = request.sampling.min_p;
  event.repetition_penalty = request.sampling.repetition_penalty;
  event.top_k = request.sampling.top_k;
  event.seed = request.sampling.seed;
  event.sampling = name_of(request.sampling.mode);
  event.max_tokens = request.max_tokens;
  event.ignore_eos = request.ignore_eos;
  event.prompt = request.prompt;
  event.prompt_tokens = request.prompt_tokens;
  event.prompt_id = request.prompt_id;
  event.first_approximate = request.first_approximate;
  event.n_approximate = request.n_approximate;
  event.stop_texts = request.stop_texts;
  event.stop_ids = request.stop_ids;
  event.no_special = request.no_special;
  event.read_as = request.rendered_prompt.empty() ? ReadAs::Raw : ReadAs::Chat;
  event.system = request.system;
  if (models.texts && models.texts->file() && decoder_named(request.decoder).reads_pool)
    event.pool = models.texts->file()->name;
  return event;
}

std::optional<Notice> notice_of_sizes(const RunRequest& request) {
  const ParsedOptions options = parse_options(request.decoder, request.options);
  if (!rejects(request.sampling) || !options->chooses_sizes() || !request.choices.empty())
    return std::nullopt;
  return Notice{.t = now_ns(),
                .text = request.decoder +
                        ": sizes follow measured times, so with sampling=rejection the same seed "
                        "may give another text; give sizes by hand, or repeat a recorded run "
                        "with its sizes"};
}

RunFinished finished_event(const RunResult& result, RunId run) {
  RunFinished event;
  event.t = now_ns();
  event.run = run;
  event.stop_reason = result.stop_reason;
  event.n_tokens = static_cast<int>(result.tokens.size());
  event.n_steps = result.n_steps;
  event.prefill = static_cast<Nanoseconds>(result.prefill_ms * 1e6);
  event.decode = static_cast<Nanoseconds>(result.decode_ms * 1e6);
  event.metrics = result.metrics;
  event.approximate = result.approximate;
  event.stop_string = result.stop_string;
  return event;
}

namespace {

/// Makes the lane of run_to_end(). If the run is stopped while it reads its prompt, emits its
/// RunFinished event, because a run without an end looks cut off in a recording.
Lane begin_lane(const RunModels& models,
                const RunRequest& request,
                RunId run,
                EventSink* events,
                const std::function<bool()>& stop) {
  try {
    return make_lane(models, request, run, nullptr, [&](int done, int total) {
      if (events) events->push(Phase{now_ns(), run, "prefill", done, total, {}});
      return !(stop && stop());
    });
  } catch (const Error& error) {
    if (events && error.code() == ErrorCode::Cancelled)
      events->push(RunFinished{.t = now_ns(), .run = run, .stop_reason = "stopped"});
    throw;
  }
}

/// The part of run_to_end() after the RunStarted event.
/// @param at_step  number of the current step, -1 between steps
RunResult run_steps(const RunModels& models,
                    const RunRequest& request,
                    RunId run,
                    EventSink* events,
                    const std::function<bool()>& stop,
                    const std::function<void(const Lane&)>& step,
                    int& at_step) {
  Model& model = *models.target.model;
  prepare_costs(models, request);  // not a part of the prefill's time
  const Nanoseconds start = now_ns();
  Lane lane = begin_lane(models, request, run, events, stop);
  const double prefill_ms = static_cast<double>(now_ns() - start) * 1e-6;
  if (events) events->push(Phase{now_ns(), run, "decode", 0, request.max_tokens, {}});
  std::optional<LoadSampler> sampler;
  if (events) sampler.emplace(model.device(), *events);
  Stepper stepper(model, events);
  Lane* const one = &lane;
  while (!lane.sequence.finished() && !(stop && stop())) {
    at_step = lane.n_steps;
    stepper.step(std::span(&one, 1));
    at_step = -1;
    if (sampler) sampler->step(lane.compute_ns);
    if (step) step(lane);
  }
  if (sampler) sampler->end(lane.compute_ns);
  keep_text(models.texts.get(), lane.sequence, *lane.options, run);
  RunResult result = result_of(lane, request, model.tokenizer(), prefill_ms);
  if (events) events->push(finished_event(result, run));
  return result;
}

}  // namespace

RunResult run_to_end(const RunModels& models,
                     const RunRequest& request,
                     RunId run,
                     EventSink* events,
                     const std::function<bool()>& stop,
                     const std::function<void(const Lane&)>& step) {
  if (events) {
    events->push(started_event(request, models, run));
    if (auto notice = notice_of_sizes(request)) events->push(*std::move(notice));
  }
  int at_step = -1;
  try {
    return run_steps(models, request, run, events, stop, step, at_step);
  } catch (...) {
    const Failure failure = current_failure();
    if (events && !failure.is_stop()) events->push(failed_event(failure, run));
    // Adds the step to a device's error message, which names only kernels.
    if (at_step >= 0 && failure.code == static_cast<int>(ErrorCode::Device))
      throw Error(ErrorCode::Device, fmt::format("{}; at step {}", failure.message, at_step));
    throw;
  }
}

int first_difference(std::span<const TokenId> found, std::span<const TokenId> expected) {
  const auto [f, e] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  if (f == found.end() && e == expected.end()) return -1;
  return static_cast<int>(f - found.begin());
}

}  // namespace engine
