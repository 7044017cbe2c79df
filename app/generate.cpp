#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/generation.h"
#include "app/notes.h"
#include "app/outputs.h"
#include "app/paths.h"
#include "app/report.h"
#include "app/terminal.h"
#include "engine/event/clock.h"
#include "engine/model/model.h"
#include "engine/schedule/agreement.h"

namespace app {
namespace {

/// Runs AR on the same request and says whether it wrote the same. Stopped by Ctrl+C it says
/// nothing: half a comparison is none.
/// @param run     of `result`
/// @param events  where the agreement is told, or null
void compare_with_ar(const engine::RunModels& models,
                     engine::RunResult& result,
                     engine::RunId run,
                     engine::EventSink* events) {
  if (result.request.decoder == "ar") {
    result.identical_to_ar = true;
    return;
  }
  if (!engine::comparable(result.request.sampling)) return;
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
  if (interrupted()) return;
  engine::Agreement agreement = engine::agree(result, ar);
  if (events) {
    agreement.t = engine::now_ns();
    agreement.run = run;
    agreement.cost = agreement.t - begun;
    events->push(agreement);
  }
  if (result.decode_ms > 0 && result.whole()) result.speedup = ar.decode_ms / result.decode_ms;
}

/// Prints text as it is decoded.
class LiveText {
 public:
  LiveText(const engine::Tokenizer& tokenizer, bool on) : stream_(tokenizer), on_(on) {}
  void show(const engine::Lane& lane) {
    const auto generated = lane.sequence.generated();
    if (on_) print(for_terminal(stream_.push(generated.subspan(n_shown_))));
    n_shown_ = generated.size();
  }
  void finish() {
    if (on_) print(for_terminal(stream_.finish()) + "\n");
  }

 private:
  engine::TextStream stream_;
  std::size_t n_shown_ = 0;
  bool on_;
};

/// Why --check compares nothing; empty where it does.
std::string why_unchecked(const GenerationOptions& options, const engine::RunRequest& request) {
  if (!options.check || request.decoder == "ar" || engine::comparable(request.sampling)) return "";
  return fmt::format(
      "--check: {} with --sampling rejection is not compared with ar: it draws other tokens of the "
      "same distribution, by design; --sampling coupled gives the tokens of ar",
      request.decoder);
}

std::string summary_line(const engine::RunResult& result) {
  std::string line = fmt::format(
      "{}: {} tokens in {} steps ({:.2f} tokens/step), {:.0f} tokens/s, prefill {:.1f} ms, {}",
      result.request.decoder, result.tokens.size(), result.n_steps, result.tokens_per_step(),
      result.tokens_per_second(), result.prefill_ms, result.stop_reason);
  if (!is_lossless(result.request)) line += ", NOT lossless with these options";
  if (result.identical_to_ar)
    line += *result.identical_to_ar ? ", identical to AR" : ", DIFFERS from AR";
  if (result.difference) line += ": " + difference_words(*result.difference);
  if (result.speedup) line += fmt::format(", speedup {:.2f}x", *result.speedup);
  return line;
}

/// One prompt decoded: its text as it comes, and then AR beside it where that is asked for.
/// @param run  of this session, from 1
engine::RunResult decode(const engine::RunModels& models,
                         const GenerationOptions& options,
                         const Prompt& prompt,
                         engine::RunId run,
                         engine::EventSink* events) {
  const engine::Model& model = *models.target.model;
  const engine::RunRequest request = request_for(options, prompt, options.decoders.front(), model);
  LiveText text(*model.tokenizer(), !options.json);
  engine::RunResult result = engine::run_to_end(models, request, run, events, interrupted,
                                                [&](const engine::Lane& lane) { text.show(lane); });
  if (!options.json && !result.approximate_text.empty())
    print(for_terminal(" ~" + result.approximate_text + "~"));  // not verified
  text.finish();
  const bool ended = result.stop_reason != "stopped";
  if ((options.check || options.json) && ended && !interrupted())
    compare_with_ar(models, result, run, events);
  if (run == 1) {
    if (const std::string why = why_unchecked(options, request); !why.empty())
      print_error("note: " + why);
  }
  return result;
}

/// One prompt, one result, wherever the prompt came from; several, a list of those that were done.
std::string document_of(const nlohmann::json& results, std::size_t n_prompts) {
  if (n_prompts > 1) return dumped(results);
  return results.empty() ? "" : dumped(results.front());
}

}  // namespace

int generate(const GenerationOptions& options) {
  check_usage(options);
  check_outputs(options.record, options.trace);
  const std::vector<Prompt> prompts = prompts_of(options);
  engine::ModelStore store(assets_dir(), options.model.n_threads);
  const engine::RunModels models =
      load(store, model_request(options.model), options.model.draft, options.decoders);
  const engine::Model& model = *models.target.model;
  Outputs outputs(options.record, options.trace);
  outputs.tell(models);

  nlohmann::json documents = nlohmann::json::array();
  engine::RunId run = 0;
  std::vector<double> speedups;  // of the runs checked against ar
  std::exception_ptr failure;    // of a prompt: what was done before it is printed all the same
  for (const Prompt& prompt : prompts) {
    if (interrupted()) break;
    try {
      const engine::RunResult result = decode(models, options, prompt, ++run, outputs.sink());
      if (result.speedup) speedups.push_back(*result.speedup);
      if (options.json) {
        documents.push_back(to_json(result, models));
      } else {
        print_error(summary_line(result));
      }
    } catch (const engine::Error& error) {
      if (error.code() != engine::ErrorCode::Cancelled) failure = std::current_exception();
      break;
    } catch (const OutputClosed&) {  // nobody reads the text; the files asked for are written still
      failure = std::current_exception();
      break;
    }
  }
  const std::string why_slow = why_no_speedup(engine::name_of(model.scale()), model.weight_bytes(),
                                              engine::last_level_cache_bytes(), speedups);
  if (!options.json && !why_slow.empty())
    print_error("note: " + why_slow.substr(0, why_slow.size() - 1));  // without its last line feed
  print_and_close(options.json ? document_of(documents, prompts.size()) : "", outputs);
  if (failure) std::rethrow_exception(failure);
  return interrupted() ? static_cast<int>(engine::ErrorCode::Cancelled) : 0;
}

}  // namespace app
