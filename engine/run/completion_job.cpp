#include "engine/run/completion_job.h"

#include <algorithm>
#include <utility>

#include "engine/decode/options.h"
#include "engine/event/clock.h"
#include "engine/run/failure.h"

namespace engine {

std::optional<int> draft_depth(const DecoderOptions& options) {
  if (!options.info().needs_draft) return 0;
  const std::optional<TreeShape> shape = options.draft_shape();
  return shape ? std::optional(shape->depth) : std::nullopt;
}

std::int64_t full_path_tokens(const DecoderOptions& options,
                              std::int64_t n_steps,
                              const std::map<std::string, std::int64_t>& counts) {
  if (const auto depth = draft_depth(options)) return n_steps * *depth;
  const auto drafted = counts.find("draft_depth");
  return drafted == counts.end() ? 0 : drafted->second;
}

int CompletionJob::take_new_tokens() {
  const std::size_t n_now = lane.sequence.generated().size();
  return static_cast<int>(n_now - std::exchange(n_read, n_now));
}

Completion CompletionJob::complete(EventSink* events, ScheduleTotals& totals) {
  RunResult result = result_of(lane, request.run, &tokenizer, static_cast<double>(prefill) * 1e-6);
  Sequence end =
      lane.own_model ? lane.own_model->detach(std::move(lane.sequence)) : std::move(lane.sequence);
  if (events) events->push(finished_event(result, run));
  if (end.stop_reason() == StopReason::Text) {
    // Keeps only the tokens before the stop text, because a continuation starts from there.
    const std::size_t at = result.text.size();
    std::size_t n = result.tokens.size();
    const auto text_of_first = [&](std::size_t n_tokens) {
      return continuation_text(tokenizer, request.run.prompt_tokens,
                               std::span(result.tokens).first(n_tokens));
    };
    while (n > 0 && text_of_first(n).size() > at) n--;
    end = end.shortened(end.prompt().size() + n);
    result.tokens.resize(n);
    result.facts.resize(n);
  }
  totals.n_tokens += std::ssize(result.tokens);
  totals.prefill += prefill + lane.draft_prefill_ns;
  totals.draft_prefill += lane.draft_prefill_ns;
  totals.target_busy += lane.compute_ns - lane.times.propose;
  totals.draft_busy += lane.times.propose;
  totals.n_runs++;
  totals.n_steps += lane.n_steps;
  if (draft_depth(*lane.options) != 0) {
    totals.drafting += lane.times.propose;
    totals.n_drafts += lane.n_drafted;
    totals.n_depth += full_path_tokens(*lane.options, lane.n_steps, lane.decoder->counts());
  }
  totals.n_proposed += lane.n_proposed;
  totals.n_accepted += lane.n_accepted;
  totals.n_rejected += lane.n_rejected;
  return {std::move(result), std::move(end)};
}

bool report_thrown(EventSink* events, RunId run) {
  const Failure failure = current_failure();
  const bool is_stop = failure.is_stop();
  if (events && is_stop)
    events->push(RunFinished{.t = now_ns(), .run = run, .stop_reason = "stopped"});
  if (events && !is_stop) events->push(failed_event(failure, run));
  return is_stop;
}

std::unique_ptr<CompletionJob> begin_job(std::span<const CompletionRequest> requests,
                                         std::size_t index,
                                         const RunModels& models,
                                         RunId first_run,
                                         EventSink* events,
                                         const std::function<Lane(RunId)>& make) {
  const CompletionRequest& request = requests[index];
  const RunId run = first_run + static_cast<RunId>(index);
  if (events) events->push(started_event(request.run, models, run));
  try {
    const Nanoseconds start = now_ns();
    Lane lane = make(run);
    const Nanoseconds prefill = now_ns() - start;
    std::unique_ptr<CompletionJob> job(new CompletionJob{
        request, index, run, prefill, std::move(lane), *models.target.model->tokenizer()});
    ensure(request.stop_texts.empty() || request.run.stop_texts.empty(),
           "a request must not have both a task's stop texts and a user's stop strings");
    if (!request.stop_texts.empty())
      stop_at(job->lane, job->tokenizer, request.stop_texts, StopReason::Text);
    return job;
  } catch (...) {
    if (!report_thrown(events, run)) throw;
    return nullptr;
  }
}

Sequence read_prompt(PromptCaches& prompts,
                     const RunModels& models,
                     const CompletionRequest& request,
                     const std::function<bool(int, int)>& progress) {
  const std::vector<TokenId>& tokens = request.run.prompt_tokens;
  ensure(!request.from || std::ranges::equal(request.from->tokens(), tokens),
         "the continued sequence must begin with the tokens of the request's prompt");
  return prefilled(prompts, *models.target.model, tokens, request.from, progress,
                   decoder_named(request.run.decoder).reads_prompt_state);
}

}  // namespace engine
