#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/cli/prompt_file.h"
#include "app/cli/terminal.h"
#include "app/commands/generation.h"
#include "app/commands/lane_schedule.h"
#include "app/commands/notes.h"
#include "app/commands/outputs.h"
#include "app/commands/reason/run.h"
#include "app/commands/report.h"
#include "engine/base/text.h"
#include "engine/decode/guess/earlier_texts.h"
#include "engine/event/clock.h"
#include "engine/event/run_rules.h"
#include "engine/model/model.h"
#include "engine/run/agreement.h"
#include "engine/run/run.h"
#include "engine/run/scheduler.h"

namespace app {
namespace {

/// Runs AR on the same request and compares the tokens. After Ctrl+C there is no comparison.
/// @param run     run id of `result`
/// @param events  receives the agreement; may be null
/// @return        decoding time of AR in ms; 0 if not compared
double compare_with_ar(const engine::RunModels& models,
                       engine::RunResult& result,
                       engine::RunId run,
                       engine::EventSink* events) {
  if (result.request.decoder == "ar") {
    result.identical_to_ar = true;
    return 0;
  }
  if (!engine::comparable(result.request.sampling)) return 0;
  engine::RunRequest request = result.request;
  request.decoder = "ar";
  request.options.clear();
  engine::RunResult ar;
  const engine::Nanoseconds begun = engine::now_ns();
  ProgressLine line("checking against ar");
  try {
    ar =
        engine::run_to_end(models, request, 0, nullptr, interrupted, [&](const engine::Lane& lane) {
          line.show(static_cast<std::int64_t>(lane.sequence.generated().size()),
                    static_cast<std::int64_t>(result.tokens.size()), "tokens");
        });
  } catch (const engine::Error& error) {
    if (error.code() != engine::ErrorCode::Cancelled) throw;
  }
  line.finish();
  if (interrupted()) return 0;
  engine::Agreement agreement = engine::agree(result, ar);
  if (events) {
    agreement.t = engine::now_ns();
    agreement.run = run;
    agreement.cost = agreement.t - begun;
    events->push(agreement);
  }
  if (result.decode_ms > 0 && result.whole()) result.speedup = ar.decode_ms / result.decode_ms;
  return ar.decode_ms;
}

/// Prints text while it is decoded; holds back an end that may be the beginning of a stop string.
class LiveText {
 public:
  LiveText(const engine::Tokenizer& tokenizer, const engine::RunRequest& request, bool on)
      : stream_(tokenizer, request.prompt_tokens), before_stop_(request.stop_texts), on_(on) {}
  void show(const engine::Lane& lane) {
    const auto generated = lane.sequence.generated();
    const bool at_stop_id = lane.sequence.stop_reason() == engine::StopReason::StopId;
    const std::size_t n = generated.size() - (at_stop_id ? 1 : 0);
    if (on_)
      print(
          for_terminal(before_stop_.push(stream_.push(generated.subspan(n_shown_, n - n_shown_)))));
    n_shown_ = n;
  }
  /// @param approximate  unverified text, printed last
  void finish(const std::string& approximate) {
    if (!on_) return;
    const std::string last = before_stop_.push(stream_.finish());
    print(for_terminal(last + before_stop_.finish()));
    if (!approximate.empty()) print(for_terminal(" ~" + approximate + "~"));
    print("\n");
  }

 private:
  engine::TextStream stream_;
  engine::TextBeforeStop before_stop_;
  std::size_t n_shown_ = 0;
  bool on_;
};

/// The reason why --check does not apply; empty if it applies.
std::string why_unchecked(const GenerationOptions& options, const engine::RunRequest& request) {
  if (!options.check || request.decoder == "ar" || engine::comparable(request.sampling)) return "";
  return fmt::format(
      "--check: {} with --sampling rejection is not compared with ar, because it draws other "
      "tokens{}; --sampling coupled draws the tokens of ar",
      request.decoder,
      is_lossless(request) ? " from the same distribution"
                           : ", and with these options from another distribution");
}

/// @param of_several  whether there are several prompts
std::string summary_line(const engine::RunResult& result, bool of_several) {
  std::string line = of_several ? engine::escaped(result.request.prompt_id) + ", " : "";
  line += fmt::format(
      "{}: {} tokens in {} steps ({:.2f} tokens/step), {:.0f} tokens/s, prefill {:.1f} ms, {}",
      result.request.decoder, result.tokens.size(), result.n_steps, result.tokens_per_step(),
      result.tokens_per_second(), result.prefill_ms, result.stop_reason);
  if (!is_lossless(result.request)) line += kNotLossless;
  if (result.identical_to_ar)
    line += *result.identical_to_ar ? ", identical to AR" : ", DIFFERS from AR";
  if (result.difference) line += ": " + difference_words(*result.difference);
  if (const auto& repetition = result.repetition) {
    line += !repetition->same_tokens ? ", DIFFERS from the recorded run"
            : repetition->same_steps ? ", same tokens and steps as recorded"
                                     : ", same tokens as recorded, in another number of steps";
  }
  if (result.speedup) line += fmt::format(", speedup {:.2f}x", *result.speedup);
  return line;
}

/// After a run: compares it with AR if requested, or reports why it cannot be compared.
/// @param run  run id, from 1
/// @return     decoding time of AR in ms; 0 if not compared
double finish(const engine::RunModels& models,
              const GenerationOptions& options,
              engine::RunResult& result,
              engine::RunId run,
              engine::EventSink* events) {
  const bool ended = result.stop_reason != "stopped";
  double ar_ms = 0;
  if ((options.check || options.json) && ended && !interrupted())
    ar_ms = compare_with_ar(models, result, run, events);
  if (run > 1) return ar_ms;
  if (const std::string why = why_unchecked(options, result.request); !why.empty())
    print_error("note: " + why);
  return ar_ms;
}

/// Prints the heading for one of several prompts.
void print_id(const std::string& id) {
  print(for_terminal(engine::escaped(id) + ":\n"));
}

/// Decodes one prompt, printing text as it comes; then compares it with AR if requested.
/// @param of_several  whether there are several prompts
/// @param run         run id, from 1
engine::RunResult decode(const engine::RunModels& models,
                         const GenerationOptions& options,
                         const Prompt& prompt,
                         bool of_several,
                         engine::RunId run,
                         engine::EventSink* events) {
  const engine::Model& model = *models.target.model;
  const engine::RunRequest request =
      request_for(options, prompt, options.decoders.front(), models.target);
  if (!options.json && of_several) print_id(prompt.id);
  LiveText text(*model.tokenizer(), request, !options.json);
  engine::RunResult result = engine::run_to_end(models, request, run, events, interrupted,
                                                [&](const engine::Lane& lane) { text.show(lane); });
  text.finish(result.approximate_text);
  print_once(result.notices);
  compare_with_recording(options, result);
  finish(models, options, result, run, events);
  return result;
}

/// A line on all concurrent runs together.
std::string together_line(const std::map<std::string, double>& figures) {
  std::string line =
      fmt::format("{:.0f} prompts in {:.2f} s", figures.at("runs"), figures.at("wall_ms") * 1e-3);
  if (const auto rate = figures.find("tokens_per_second"); rate != figures.end())
    line += fmt::format(", {:.0f} tokens/s", rate->second);
  std::string schedule = schedule_text(figures);
  while (schedule.ends_with('\n')) schedule.pop_back();
  return schedule.empty() ? line : line + "; " + schedule;
}

/// Reports the results of runs: prints a line when a run ends, or one JSON document at the end.
class Results {
 public:
  Results(const engine::RunModels& models, bool as_json, std::size_t n_prompts)
      : models_(models), json_(as_json), n_prompts_(n_prompts) {}
  void take(const engine::RunResult& result) {
    if (result.speedup) speedups_.push_back(*result.speedup);
    decoder_ = result.request.decoder;
    if (json_) {
      documents_.push_back(to_json(result, models_));
    } else {
      print_error(summary_line(result, n_prompts_ > 1));
    }
  }
  /// The JSON document: the result of one prompt, or a list of results.
  std::string document() const {
    if (!json_) return "";
    if (n_prompts_ > 1) return dumped(documents_);
    return documents_.empty() ? "" : dumped(documents_.front());
  }
  /// Prints a note if no run was faster than AR and the reason is known.
  void print_why_slow() const {
    const engine::Model& model = *models_.target.model;
    const std::string why =
        why_no_speedup({&decoder_, 1}, engine::name_of(model.scale()), model.weight_bytes(),
                       engine::last_level_cache_bytes(), speedups_);
    if (!json_ && !why.empty())
      print_error("note: " + why.substr(0, why.size() - 1));  // without its last line feed
  }

 private:
  const engine::RunModels& models_;
  bool json_;
  std::size_t n_prompts_;
  std::string decoder_;  // the decoder of all runs
  nlohmann::json documents_ = nlohmann::json::array();
  std::vector<double> speedups_;  // of the runs checked against ar
};

void decode_in_turn(const engine::RunModels& models,
                    const GenerationOptions& options,
                    const std::vector<Prompt>& prompts,
                    engine::EventSink* events,
                    Results& results) {
  engine::RunId run = 0;
  for (const Prompt& prompt : prompts) {
    if (interrupted()) return;
    results.take(decode(models, options, prompt, prompts.size() > 1, ++run, events));
  }
}

/// Decodes prompts concurrently, as branches of a scheduler; prints the texts at the end.
void decode_in_rounds(const engine::RunModels& models,
                      const GenerationOptions& options,
                      const std::vector<Prompt>& prompts,
                      engine::EventSink* events,
                      Results& results) {
  const std::string& decoder = options.decoders.front();
  std::vector<engine::CompletionRequest> requests(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); i++)
    requests[i].run = request_for(options, prompts[i], decoder, models.target);
  const auto scheduler = engine::make_scheduler(models, decoder, requests[0].run.options, 1);
  print_once(scheduler->notices());
  ProgressLine line(decoder);
  engine::SchedulerWatch watch;
  watch.events = events;
  watch.stop = interrupted;
  watch.ended = [&](int done, int n) { line.show(done, n, "prompts"); };
  auto completions = scheduler->run(requests, watch);
  line.finish();
  double ar_ms = 0;
  std::size_t n_finished = 0;
  std::exception_ptr failure;  // the failure of a comparison; the results are still printed
  try {
    for (; n_finished < completions.size(); n_finished++) {
      engine::RunResult& result = completions[n_finished].result;
      print_once(result.notices);
      if (!options.json) {
        print_id(result.request.prompt_id);
        print(for_terminal(result.text) + "\n");
      }
      const engine::RunId run = watch.first_run + static_cast<engine::RunId>(n_finished);
      ar_ms += finish(models, options, result, run, events);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  // The speed-up of the group, because a run's own compute time excludes waiting and other runs'
  // work.
  const auto figures = scheduler->figures();
  const double wall_ms =
      decode_wall_ms(figures, static_cast<std::size_t>(figures.at("most_branches")));
  const bool all_compared = std::ranges::all_of(
      completions, [](const auto& completion) { return completion.result.speedup.has_value(); });
  for (std::size_t i = 0; i < n_finished; i++) {
    engine::RunResult& result = completions[i].result;
    result.speedup.reset();
    if (all_compared && wall_ms > 0) result.speedup = ar_ms / wall_ms;
    results.take(result);
  }
  if (failure) std::rethrow_exception(failure);
  if (!options.json) print_error(together_line(figures));
}

}  // namespace

int generate(const GenerationOptions& given) {
  const GenerationOptions options = given.repeat_file.empty() ? given : repeating(given);
  check_usage(options);
  check_outputs(options.record, options.trace);
  const std::vector<Prompt> prompts = prompts_of(options);
  engine::ModelStore store(assets_dir(), options.model.n_threads);
  const std::string& decoder = options.decoders.front();
  const bool in_rounds = engine::takes_turns(decoder) && prompts.size() > 1;
  const engine::ModelRequest wanted = model_request(options.model);
  const engine::OptionValues set = options_for(decoder, options.decoders, options.set);
  engine::RunModels models =
      in_rounds ? load_scheduled(store, wanted, draft_resources_of(options.model), decoder, set)
                : load(store, wanted, draft_resources_of(options.model), options.decoders);
  check_repeated(options, models);
  if (!in_rounds) load_ranks(store, models, decoder, set);
  models.texts =
      std::make_shared<engine::EarlierTexts>(read_pool(options.pool, *models.target.model));
  engine::check_stops(*models.target.model, options.stop_texts, options.stop_ids);
  const Leading leading = lead_processes(models, decoder, set);
  if (!leading) return 0;
  Outputs outputs(options.record, options.trace);
  outputs.announce(models);

  Results results(models, options.json, prompts.size());
  std::exception_ptr failure;  // the results of earlier prompts are still printed
  try {
    const auto decode_all = in_rounds ? decode_in_rounds : decode_in_turn;
    decode_all(models, options, prompts, outputs.sink(), results);
  } catch (const engine::Error& error) {
    if (error.code() != engine::ErrorCode::Cancelled) failure = std::current_exception();
  } catch (const OutputClosed&) {  // standard output has no reader; still writes the output files
    failure = std::current_exception();
  }
  results.print_why_slow();
  if (const std::string why = single_prompt_note(options.decoders); !why.empty() && !in_rounds)
    print_error("note: " + why);
  outputs.print_notes(store);
  print_and_close(results.document(), outputs, failure);
  return interrupted() ? static_cast<int>(engine::ErrorCode::Cancelled) : 0;
}

}  // namespace app
