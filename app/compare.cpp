#include <algorithm>
#include <exception>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/generation.h"
#include "app/outputs.h"
#include "app/paths.h"
#include "app/report.h"
#include "app/terminal.h"
#include "engine/event/clock.h"
#include "engine/schedule/agreement.h"

namespace app {
namespace {

/// Sums over the prompts of one decoder.
struct Totals {
  double tokens = 0, steps = 0, decode_ms = 0;
  double ar_decode_ms = 0;  // of AR on the same prompts
  int n = 0, n_identical = 0, n_compared = 0;
};

/// One prompt through every decoder, `repeat` times. The order turns with every prompt and repeat,
/// so that drift of the machine hits all alike; times are medians.
/// @param turn    of the prompt
/// @param events  where the first repeat is told, or null; `run` counts runs
std::map<std::string, engine::RunResult> race(engine::LoadedModel& loaded,
                                              const GenerationOptions& options,
                                              const Prompt& prompt,
                                              const std::vector<std::string>& decoders,
                                              std::size_t turn,
                                              engine::EventSink* events,
                                              engine::RunId& run) {
  std::map<std::string, engine::RunResult> results;
  std::map<std::string, std::vector<double>> decode_ms, prefill_ms;
  std::map<std::string, engine::RunId> run_of;  // of the first repeat
  for (int repeat = 0; repeat < options.repeat; repeat++) {
    for (std::size_t i = 0; i < decoders.size(); i++) {
      const std::string& decoder =
          decoders[(i + turn + static_cast<std::size_t>(repeat)) % decoders.size()];
      engine::RunRequest request = request_for(options, prompt, decoder, *loaded.model);
      request.race = static_cast<std::uint32_t>(turn) + 1;
      request.lane = static_cast<int>(&decoder - decoders.data());
      if (repeat == 0) run_of[decoder] = run + 1;
      engine::RunResult result =
          engine::run_to_end(loaded, request, ++run, repeat == 0 ? events : nullptr, interrupted);
      if (interrupted()) return {};
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
    engine::Agreement agreement = engine::agreement_of({result.tokens}, {ar.tokens});
    result.identical_to_ar = agreement.first_difference < 0;
    if (events && decoder != "ar") {
      agreement.t = engine::now_ns();
      agreement.run = run_of.at(decoder);
      agreement.baseline = run_of.at("ar");
      events->push(agreement);
    }
    if (result.decode_ms > 0) result.speedup = ar.decode_ms / result.decode_ms;
  }
  return results;
}

void add(Totals& totals, const engine::RunResult& result, const engine::RunResult& ar) {
  totals.n++;
  totals.tokens += static_cast<double>(result.tokens.size());
  totals.steps += result.n_steps;
  totals.decode_ms += result.decode_ms;
  totals.ar_decode_ms += ar.decode_ms;
  if (result.identical_to_ar) totals.n_compared++, totals.n_identical += *result.identical_to_ar;
}

nlohmann::json summary_json(const std::string& decoder, const Totals& t) {
  return {{"decoder", decoder},
          {"tokens_per_second", t.decode_ms > 0 ? t.tokens / t.decode_ms * 1e3 : 0},
          {"speedup", t.decode_ms > 0 ? nlohmann::json(t.ar_decode_ms / t.decode_ms)
                                      : nlohmann::json(nullptr)},
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
                    t.decode_ms > 0 ? fmt::format("{:.2f}x", t.ar_decode_ms / t.decode_ms) : "-",
                    fmt::format("{:.2f}", t.steps > 0 ? t.tokens / t.steps : 0),
                    t.n_compared ? fmt::format("{} of {}", t.n_identical, t.n_compared) : "-"});
  }
  return table(rows);
}

}  // namespace

int compare(const GenerationOptions& options) {
  check_usage(options);
  const std::vector<Prompt> prompts = prompts_of(options);
  engine::ModelStore store(assets_dir(), options.model.n_threads);
  engine::LoadedModel& loaded = load(store, model_request(options.model));
  // AR always runs: without it there is neither a speed-up nor an agreement to report.
  std::vector<std::string> decoders = options.decoders;
  if (std::find(decoders.begin(), decoders.end(), "ar") == decoders.end())
    decoders.insert(decoders.begin(), "ar");

  nlohmann::json results = nlohmann::json::array();
  std::map<std::string, Totals> totals;
  Outputs outputs(options.record, options.trace);
  if (outputs.wanted()) outputs.push(engine::describe(loaded));
  engine::RunId run = 0;
  std::exception_ptr failure;  // of a prompt: what was done before it is printed all the same
  ProgressLine line("compare");
  for (std::size_t i = 0; i < prompts.size() && !interrupted(); i++) {
    line.show(static_cast<std::int64_t>(i), static_cast<std::int64_t>(prompts.size()),
              prompts[i].id);
    try {
      const auto by_decoder = race(loaded, options, prompts[i], decoders, i, outputs.sink(), run);
      if (by_decoder.empty()) break;
      for (const std::string& decoder : options.decoders) {
        const engine::RunResult& result = by_decoder.at(decoder);
        if (options.json) results.push_back(to_json(result, loaded));
        add(totals[decoder], result, by_decoder.at("ar"));
      }
    } catch (const engine::Error& error) {
      if (error.code() != engine::ErrorCode::Cancelled) failure = std::current_exception();
      break;
    }
  }
  line.finish();
  outputs.close();

  if (options.json) {
    nlohmann::json summary = nlohmann::json::array();
    for (const std::string& decoder : options.decoders) {
      if (totals.count(decoder)) summary.push_back(summary_json(decoder, totals.at(decoder)));
    }
    print(dumped({{"machine", machine_json(loaded.model->device())},
                  {"results", results},
                  {"summary", summary}}));
  } else {
    const engine::Model& model = *loaded.model;
    print(fmt::format(
        "{} {}, {:.1f} M parameters at {}, {} threads, {} prompts; speed-ups are wall time against "
        "AR, measured here\n",
        model.name(), kernels::name_of(model.dtype()),
        static_cast<double>(model.config().n_params()) * 1e-6, engine::name_of(model.scale()),
        model.device().n_threads(), totals.empty() ? 0 : totals.begin()->second.n));
    print(summary_table(options.decoders, totals));
  }
  if (failure) std::rethrow_exception(failure);
  return interrupted() ? static_cast<int>(engine::ErrorCode::Cancelled) : 0;
}

}  // namespace app
