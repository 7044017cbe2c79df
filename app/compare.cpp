#include <algorithm>
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

/// Sums over the prompts of one lane.
struct Totals {
  double tokens = 0, steps = 0, decode_ms = 0;
  double whole_decode_ms = 0, ar_decode_ms = 0;  // of runs that no bound cut, and of AR there
  int n = 0, n_identical = 0, n_compared = 0;
  bool lossless = true;  // with the options and the sampling asked for
};

/// A lane with its models, and the lane it is compared with: plain decoding by the same model.
struct RacingLane {
  LaneOption of;
  engine::RunModels models;
  std::size_t baseline = 0;  // index among the lanes
  bool asked = true;         // else it runs to be compared with alone
};

/// The lanes asked for, behind plain decoding of each model that has no such lane: without it there
/// is neither a speed-up nor an agreement to report.
std::vector<RacingLane> lanes_of(engine::ModelStore& store, const GenerationOptions& options) {
  const auto is_baseline = [&](const LaneOption& lane, const std::string& model) {
    return lane.decoder == "ar" && model_of(lane, options) == model;
  };
  std::vector<LaneOption> all = options.lanes;
  for (const LaneOption& lane : options.lanes) {
    const std::string model = model_of(lane, options);
    const bool there = std::ranges::any_of(
        all, [&](const LaneOption& other) { return is_baseline(other, model); });
    const std::string name = lane.model.empty() ? "ar" : "ar@" + lane.model;
    if (!there) all.insert(all.begin(), {.name = name, .decoder = "ar", .model = lane.model});
  }
  const std::vector<engine::RunModels> models = load_lanes(store, options, all);
  const std::size_t n_added = all.size() - options.lanes.size();
  std::vector<RacingLane> lanes;
  for (std::size_t i = 0; i < all.size(); i++) {
    const std::string& model = model_of(all[i], options);
    const auto baseline = std::ranges::find_if(
        all, [&](const LaneOption& other) { return is_baseline(other, model); });
    lanes.push_back({.of = all[i],
                     .models = models[i],
                     .baseline = static_cast<std::size_t>(baseline - all.begin()),
                     .asked = i >= n_added});
  }
  return lanes;
}

/// One prompt through every lane, `repeat` times. The order turns with every prompt and repeat, so
/// that drift of the machine hits all alike; times are medians.
/// @param turn    of the prompt
/// @param events  where the first repeat is told, or null; `run` counts runs
/// @return        a result a lane; none after Ctrl+C
std::vector<engine::RunResult> race(const std::vector<RacingLane>& lanes,
                                    const GenerationOptions& options,
                                    const Prompt& prompt,
                                    std::size_t turn,
                                    engine::EventSink* events,
                                    engine::RunId& run,
                                    RaceProgress& progress) {
  std::vector<engine::RunResult> results(lanes.size());
  std::vector<std::vector<double>> decode_ms(lanes.size()), prefill_ms(lanes.size());
  std::vector<engine::RunId> run_of(lanes.size());  // of the first repeat
  for (int repeat = 0; repeat < options.repeat; repeat++) {
    for (std::size_t i = 0; i < lanes.size(); i++) {
      const std::size_t at = (i + turn + static_cast<std::size_t>(repeat)) % lanes.size();
      const RacingLane& lane = lanes[at];
      engine::RunRequest request =
          request_for(options, prompt, lane.of.decoder, *lane.models.target.model);
      request.race = static_cast<std::uint32_t>(turn) + 1;
      request.lane = static_cast<int>(at);
      if (repeat == 0) run_of[at] = run + 1;
      progress.begin(turn, repeat, lane.of.name);
      engine::RunResult result = engine::run_to_end(
          lane.models, request, ++run, repeat == 0 ? events : nullptr, interrupted,
          [&](const engine::Lane& running) { progress.show(running.sequence.generated().size()); });
      if (interrupted()) return {};
      progress.end();
      decode_ms[at].push_back(result.decode_ms);
      prefill_ms[at].push_back(result.prefill_ms);
      results[at] = std::move(result);
    }
  }
  for (std::size_t i = 0; i < lanes.size(); i++) {
    results[i].decode_ms = median(decode_ms[i]);
    results[i].prefill_ms = median(prefill_ms[i]);
  }
  for (std::size_t i = 0; i < lanes.size(); i++) {
    engine::RunResult& result = results[i];
    const engine::RunResult& ar = results[lanes[i].baseline];
    const bool is_ar = i == lanes[i].baseline;
    if (!is_ar && !engine::comparable(result.request.sampling)) continue;
    engine::Agreement agreement = engine::agree(result, ar);
    if (events && !is_ar) {
      agreement.t = engine::now_ns();
      agreement.run = run_of[i];
      agreement.baseline = run_of[lanes[i].baseline];
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
  totals.lossless = totals.lossless && is_lossless(result.request);
  if (result.identical_to_ar) totals.n_compared++, totals.n_identical += *result.identical_to_ar;
}

double speedup_of(const Totals& t) {
  return t.whole_decode_ms > 0 ? t.ar_decode_ms / t.whole_decode_ms : 0;
}

nlohmann::json summary_json(const RacingLane& lane, const Totals& t) {
  return {
      {"lane", lane.of.name},
      {"decoder", lane.of.decoder},
      {"model", lane.models.target.model->name()},
      {"tokens_per_second", t.decode_ms > 0 ? t.tokens / t.decode_ms * 1e3 : 0},
      {"speedup", t.whole_decode_ms > 0 ? nlohmann::json(speedup_of(t)) : nlohmann::json(nullptr)},
      {"tokens_per_step", t.steps > 0 ? t.tokens / t.steps : 0},
      {"lossless", t.lossless},
      {"identical", t.n_compared ? nlohmann::json(t.n_identical) : nlohmann::json(nullptr)},
      {"n", t.n}};
}

std::string summary_table(const std::vector<RacingLane>& lanes, const std::vector<Totals>& totals) {
  std::vector<std::vector<std::string>> rows = {
      {"decoder", "tokens/s", "speedup", "tokens/step", "identical to AR"}};
  for (std::size_t i = 0; i < lanes.size(); i++) {
    const Totals& t = totals[i];
    if (!lanes[i].asked || t.n == 0) continue;
    rows.push_back({lanes[i].of.name,
                    fmt::format("{:.1f}", t.decode_ms > 0 ? t.tokens / t.decode_ms * 1e3 : 0),
                    t.whole_decode_ms > 0 ? fmt::format("{:.2f}x", speedup_of(t)) : "-",
                    fmt::format("{:.2f}", t.steps > 0 ? t.tokens / t.steps : 0),
                    (t.n_compared ? fmt::format("{} of {}", t.n_identical, t.n_compared) : "-") +
                        (t.lossless ? "" : kNotLossless)});
  }
  return engine::aligned_table(rows);
}

/// "demo-target bf16, 2.8 M parameters at 4x2", of each model once.
std::string models_words(const std::vector<RacingLane>& lanes) {
  std::string text;
  std::vector<const engine::LoadedModel*> told;
  for (const RacingLane& lane : lanes) {
    const engine::LoadedModel* loaded = &lane.models.target;
    if (std::ranges::find(told, loaded) != told.end()) continue;
    told.push_back(loaded);
    const engine::Model& model = *loaded->model;
    text += fmt::format("{}{} {}, {:.1f} M parameters at {}", text.empty() ? "" : "; ",
                        model.name(), kernels::name_of(model.dtype()),
                        static_cast<double>(model.config().n_params()) * 1e-6,
                        engine::name_of(model.scale()));
  }
  return text;
}

/// The table of what was done, below what it was measured on; a sentence where it would mislead.
std::string report(const std::vector<RacingLane>& lanes,
                   const std::vector<Totals>& totals,
                   const std::string& differences) {
  std::vector<double> speedups;
  std::vector<std::string> compared;
  bool all_compared = true;  // of those that keep the distribution
  bool several_models = false;
  const engine::Model& model = *lanes.front().models.target.model;
  for (std::size_t i = 0; i < lanes.size(); i++) {
    several_models = several_models || &*lanes[i].models.target.model != &model;
    if (!lanes[i].asked || i == lanes[i].baseline) continue;
    speedups.push_back(speedup_of(totals[i]));
    compared.push_back(lanes[i].of.name);
    all_compared = all_compared && (totals[i].n_compared > 0 || !totals[i].lossless);
  }
  return fmt::format("{}, {} threads, {}; speed-ups are wall time against AR{}, measured here\n",
                     models_words(lanes), model.device().n_threads(),
                     engine::counted(totals.front().n, "prompt"),
                     several_models ? " of the same model" : "") +
         summary_table(lanes, totals) + differences +
         (all_compared ? ""
                       : "identical to AR is not asked of --sampling rejection: it draws other "
                         "tokens of the same distribution\n") +
         why_no_speedup(compared, engine::name_of(model.scale()), model.weight_bytes(),
                        engine::last_level_cache_bytes(), speedups);
}

nlohmann::json document(const std::vector<RacingLane>& lanes,
                        const GenerationOptions& options,
                        nlohmann::json results,
                        const std::vector<Totals>& totals) {
  nlohmann::json summary = nlohmann::json::array();
  for (std::size_t i = 0; i < lanes.size(); i++)
    if (lanes[i].asked && totals[i].n > 0) summary.push_back(summary_json(lanes[i], totals[i]));
  nlohmann::json out = {{"machine", machine_json(lanes.front().models.target.model->device())},
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
  const std::vector<RacingLane> lanes = lanes_of(store, options);

  nlohmann::json results = nlohmann::json::array();
  std::vector<Totals> totals(lanes.size());
  std::string differences;  // a line for each run that wrote other tokens than ar
  Outputs outputs(options.record, options.trace);
  for (const RacingLane& lane : lanes) outputs.tell(lane.models);
  engine::RunId run = 0;
  std::size_t n_done = 0;      // prompts through every lane
  std::exception_ptr failure;  // of a prompt: what was done before it is printed all the same
  RaceProgress progress(prompts.size(), lanes.size(), options);
  while (n_done < prompts.size() && !interrupted()) {
    try {
      const auto by_lane =
          race(lanes, options, prompts[n_done], n_done, outputs.sink(), run, progress);
      if (by_lane.empty()) break;
      for (std::size_t i = 0; i < lanes.size(); i++) {
        const engine::RunResult& result = by_lane[i];
        add(totals[i], result, by_lane[lanes[i].baseline]);
        if (!lanes[i].asked) continue;
        if (options.json) {
          results.push_back(to_json(result, lanes[i].models));
          results.back()["lane"] = lanes[i].of.name;
        }
        if (result.difference)
          differences += fmt::format("{}, {}: {}\n", lanes[i].of.name, result.request.prompt_id,
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
    found = dumped(document(lanes, options, std::move(results), totals));
  } else if (n_done > 0) {
    found = report(lanes, totals, differences);
  }
  if (const std::string why = why_one_branch(options.decoders); !why.empty())
    print_error("note: " + why);
  outputs.tell_notes(store);
  print_and_close(found, outputs);
  if (failure) std::rethrow_exception(failure);
  if (!interrupted()) return 0;
  print_error(fmt::format("cancelled after {} of {} prompts", n_done, prompts.size()));
  return static_cast<int>(engine::ErrorCode::Cancelled);
}

}  // namespace app
