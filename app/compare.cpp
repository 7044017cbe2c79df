#include <algorithm>
#include <exception>
#include <map>

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
#include "engine/event/counted.h"
#include "engine/event/table.h"
#include "engine/model/model.h"
#include "engine/schedule/agreement.h"

namespace app {
namespace {

/// Where the race stands: which prompt and decoder, and how far that run is.
class RaceProgress {
 public:
  RaceProgress(std::size_t n_prompts, std::size_t n_decoders, const GenerationOptions& options)
      : n_prompts_(n_prompts),
        n_repeats_(static_cast<std::size_t>(options.repeat)),
        n_runs_(static_cast<double>(n_prompts * n_decoders * n_repeats_)),
        max_tokens_(options.max_tokens) {}

  void begin(std::size_t prompt, int repeat, const std::string& decoder) {
    place_ = fmt::format("prompt {}/{}", prompt + 1, n_prompts_);
    if (n_repeats_ > 1) place_ += fmt::format(", repeat {}/{}", repeat + 1, n_repeats_);
    place_ += ", " + decoder;
    show(0);
  }
  void show(std::size_t n_tokens) {
    const double of_this_run = static_cast<double>(n_tokens) / max_tokens_;
    line_.show_words((n_runs_done_ + of_this_run) / n_runs_,
                     fmt::format("{}, {} tokens", place_, n_tokens));
  }
  void end() { n_runs_done_++; }
  void finish() { line_.finish(); }

 private:
  ProgressLine line_{"compare"};
  std::size_t n_prompts_, n_repeats_;
  double n_runs_, n_runs_done_ = 0;
  int max_tokens_;
  std::string place_;
};

/// Sums over the prompts of one decoder.
struct Totals {
  double tokens = 0, steps = 0, decode_ms = 0;
  double whole_decode_ms = 0, ar_decode_ms = 0;  // of runs that no bound cut, and of AR there
  int n = 0, n_identical = 0, n_compared = 0;
};

/// One prompt through every decoder, `repeat` times. The order turns with every prompt and repeat,
/// so that drift of the machine hits all alike; times are medians.
/// @param turn    of the prompt
/// @param events  where the first repeat is told, or null; `run` counts runs
std::map<std::string, engine::RunResult> race(const engine::RunModels& models,
                                              const GenerationOptions& options,
                                              const Prompt& prompt,
                                              const std::vector<std::string>& decoders,
                                              std::size_t turn,
                                              engine::EventSink* events,
                                              engine::RunId& run,
                                              RaceProgress& progress) {
  std::map<std::string, engine::RunResult> results;
  std::map<std::string, std::vector<double>> decode_ms, prefill_ms;
  std::map<std::string, engine::RunId> run_of;  // of the first repeat
  for (int repeat = 0; repeat < options.repeat; repeat++) {
    for (std::size_t i = 0; i < decoders.size(); i++) {
      const std::string& decoder =
          decoders[(i + turn + static_cast<std::size_t>(repeat)) % decoders.size()];
      engine::RunRequest request = request_for(options, prompt, decoder, *models.target.model);
      request.race = static_cast<std::uint32_t>(turn) + 1;
      request.lane = static_cast<int>(&decoder - decoders.data());
      if (repeat == 0) run_of[decoder] = run + 1;
      progress.begin(turn, repeat, decoder);
      engine::RunResult result = engine::run_to_end(
          models, request, ++run, repeat == 0 ? events : nullptr, interrupted,
          [&](const engine::Lane& lane) { progress.show(lane.sequence.generated().size()); });
      if (interrupted()) return {};
      progress.end();
      decode_ms[decoder].push_back(result.decode_ms);
      prefill_ms[decoder].push_back(result.prefill_ms);
      results[decoder] = std::move(result);
    }
  }
  for (auto& [decoder, result] : results) {
    result.decode_ms = median(decode_ms[decoder]);
    result.prefill_ms = median(prefill_ms[decoder]);
  }
  const engine::RunResult& ar = results.at("ar");
  for (auto& [decoder, result] : results) {
    if (decoder != "ar" && !engine::comparable(result.request.sampling)) continue;
    engine::Agreement agreement = engine::agree(result, ar);
    if (events && decoder != "ar") {
      agreement.t = engine::now_ns();
      agreement.run = run_of.at(decoder);
      agreement.baseline = run_of.at("ar");
      events->push(agreement);
    }
    if (result.decode_ms > 0 && result.whole()) result.speedup = ar.decode_ms / result.decode_ms;
  }
  return results;
}

void add(Totals& totals, const engine::RunResult& result, const engine::RunResult& ar) {
  totals.n++;
  totals.tokens += static_cast<double>(result.tokens.size());
  totals.steps += result.n_steps;
  totals.decode_ms += result.decode_ms;
  if (result.whole()) {
    totals.whole_decode_ms += result.decode_ms;
    totals.ar_decode_ms += ar.decode_ms;
  }
  if (result.identical_to_ar) totals.n_compared++, totals.n_identical += *result.identical_to_ar;
}

double speedup_of(const Totals& t) {
  return t.whole_decode_ms > 0 ? t.ar_decode_ms / t.whole_decode_ms : 0;
}

nlohmann::json summary_json(const std::string& decoder, const Totals& t) {
  return {
      {"decoder", decoder},
      {"tokens_per_second", t.decode_ms > 0 ? t.tokens / t.decode_ms * 1e3 : 0},
      {"speedup", t.whole_decode_ms > 0 ? nlohmann::json(speedup_of(t)) : nlohmann::json(nullptr)},
      {"tokens_per_step", t.steps > 0 ? t.tokens / t.steps : 0},
      {"identical", t.n_compared ? nlohmann::json(t.n_identical) : nlohmann::json(nullptr)},
      {"n", t.n}};
}

std::string summary_table(const std::vector<std::string>& decoders,
                          const std::map<std::string, Totals>& totals) {
  std::vector<std::vector<std::string>> rows = {
      {"decoder", "tokens/s", "speedup", "tokens/step", "identical to AR"}};
  for (const std::string& decoder : decoders) {
    const auto found = totals.find(decoder);
    if (found == totals.end()) continue;
    const Totals& t = found->second;
    rows.push_back({decoder,
                    fmt::format("{:.1f}", t.decode_ms > 0 ? t.tokens / t.decode_ms * 1e3 : 0),
                    t.whole_decode_ms > 0 ? fmt::format("{:.2f}x", speedup_of(t)) : "-",
                    fmt::format("{:.2f}", t.steps > 0 ? t.tokens / t.steps : 0),
                    t.n_compared ? fmt::format("{} of {}", t.n_identical, t.n_compared) : "-"});
  }
  return engine::aligned_table(rows);
}

/// The table of what was done, below what it was measured on; a sentence where it would mislead.
std::string report(const engine::Model& model,
                   const GenerationOptions& options,
                   const std::map<std::string, Totals>& totals,
                   const std::string& differences) {
  std::vector<double> speedups;
  std::vector<std::string> compared;
  bool all_compared = true;
  for (const auto& [decoder, t] : totals) {
    if (decoder == "ar") continue;
    speedups.push_back(speedup_of(t));
    compared.push_back(decoder);
    all_compared = all_compared && t.n_compared > 0;
  }
  return fmt::format(
             "{} {}, {:.1f} M parameters at {}, {} threads, {}; speed-ups are wall time "
             "against AR, measured here\n",
             model.name(), kernels::name_of(model.dtype()),
             static_cast<double>(model.config().n_params()) * 1e-6, engine::name_of(model.scale()),
             model.device().n_threads(), engine::counted(totals.begin()->second.n, "prompt")) +
         summary_table(options.decoders, totals) + differences +
         (all_compared ? ""
                       : "identical to AR is not asked of --sampling rejection: it draws other "
                         "tokens of the same distribution\n") +
         why_no_speedup(compared, engine::name_of(model.scale()), model.weight_bytes(),
                        engine::last_level_cache_bytes(), speedups);
}

nlohmann::json document(const engine::Model& model,
                        const GenerationOptions& options,
                        nlohmann::json results,
                        const std::map<std::string, Totals>& totals) {
  nlohmann::json summary = nlohmann::json::array();
  for (const std::string& decoder : options.decoders) {
    if (totals.count(decoder)) summary.push_back(summary_json(decoder, totals.at(decoder)));
  }
  nlohmann::json out = {{"machine", machine_json(model.device())},
                        {"results", std::move(results)},
                        {"summary", summary},
                        {"notices", nlohmann::json::array()}};
  if (const std::string why = why_one_branch(options.decoders); !why.empty())
    out["notices"].push_back(why);
  if (interrupted()) out["stopped"] = true;
  return out;
}

}  // namespace

int compare(const GenerationOptions& options) {
  check_usage(options);
  check_outputs(options.record, options.trace);
  const std::vector<Prompt> prompts = prompts_of(options);
  engine::ModelStore store(assets_dir(), options.model.n_threads);
  const engine::RunModels models =
      load(store, model_request(options.model), helpers_of(options.model), options.decoders);
  const engine::Model& model = *models.target.model;
  // AR always runs: without it there is neither a speed-up nor an agreement to report.
  std::vector<std::string> decoders = options.decoders;
  if (std::find(decoders.begin(), decoders.end(), "ar") == decoders.end())
    decoders.insert(decoders.begin(), "ar");

  nlohmann::json results = nlohmann::json::array();
  std::map<std::string, Totals> totals;
  std::string differences;  // a line for each run that wrote other tokens than ar
  Outputs outputs(options.record, options.trace);
  outputs.tell(models);
  engine::RunId run = 0;
  std::size_t n_done = 0;      // prompts through every decoder
  std::exception_ptr failure;  // of a prompt: what was done before it is printed all the same
  RaceProgress progress(prompts.size(), decoders.size(), options);
  while (n_done < prompts.size() && !interrupted()) {
    try {
      const auto by_decoder =
          race(models, options, prompts[n_done], decoders, n_done, outputs.sink(), run, progress);
      if (by_decoder.empty()) break;
      for (const std::string& decoder : options.decoders) {
        const engine::RunResult& result = by_decoder.at(decoder);
        if (options.json) results.push_back(to_json(result, models));
        add(totals[decoder], result, by_decoder.at("ar"));
        if (result.difference)
          differences += fmt::format("{}, {}: {}\n", decoder, result.request.prompt_id,
                                     difference_words(*result.difference));
      }
      n_done++;
    } catch (const engine::Error& error) {
      if (error.code() != engine::ErrorCode::Cancelled) failure = std::current_exception();
      break;
    }
  }
  progress.finish();

  std::string found;
  if (options.json) {
    found = dumped(document(model, options, std::move(results), totals));
  } else if (n_done > 0) {
    found = report(model, options, totals, differences);
  }
  if (const std::string why = why_one_branch(options.decoders); !why.empty())
    print_error("note: " + why);
  print_and_close(found, outputs);
  if (failure) std::rethrow_exception(failure);
  if (!interrupted()) return 0;
  print_error(fmt::format("cancelled after {} of {} prompts", n_done, prompts.size()));
  return static_cast<int>(engine::ErrorCode::Cancelled);
}

}  // namespace app
