#include <algorithm>
#include <exception>
#include <memory>

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
#include "app/commands/repeats.h"
#include "app/commands/report.h"
#include "engine/base/table.h"
#include "engine/base/text.h"
#include "engine/decode/guess/earlier_texts.h"
#include "engine/event/clock.h"
#include "engine/event/run_rules.h"
#include "engine/model/model.h"
#include "engine/run/agreement.h"
#include "engine/run/row_cost.h"
#include "engine/run/run.h"
#include "engine/run/scheduler.h"

namespace app {
namespace {

/// Progress of the comparison: the prompt, the decoder, and the fraction of the current turn.
class RaceProgress {
 public:
  RaceProgress(std::size_t n_prompts, std::size_t n_decoders, const GenerationOptions& options)
      : n_prompts_(n_prompts),
        n_repeats_(static_cast<std::size_t>(options.repeat)),
        n_runs_(static_cast<double>(n_prompts * n_decoders * n_repeats_)),
        max_tokens_(options.max_tokens) {}

  /// @param prompt  index of the turn's first prompt among all prompts
  void begin(std::size_t prompt, std::size_t n_texts, int repeat, const std::string& lane) {
    place_ = n_texts > 1 ? fmt::format("prompts {}-{}/{}", prompt + 1, prompt + n_texts, n_prompts_)
                         : fmt::format("prompt {}/{}", prompt + 1, n_prompts_);
    if (n_repeats_ > 1) place_ += fmt::format(", repeat {}/{}", repeat + 1, n_repeats_);
    place_ += ", " + lane;
    show_tokens(0);
  }
  void show_tokens(std::size_t n_tokens) {
    show(static_cast<double>(n_tokens) / max_tokens_, fmt::format("{} tokens", n_tokens));
  }
  void show_texts(int n_ended, int n_texts) {
    show(n_ended, fmt::format("{} of {} texts", n_ended, n_texts));
  }
  void show_rows_alone(std::size_t n_texts) {
    show(static_cast<double>(n_texts), "its rows alone");
  }
  void end(std::size_t n_texts) { n_runs_done_ += static_cast<double>(n_texts); }
  void finish() { line_.finish(); }

 private:
  /// @param n_runs  number of runs in this turn
  void show(double n_runs, const std::string& words) {
    line_.show_words((n_runs_done_ + n_runs) / n_runs_, place_ + ", " + words);
  }

  ProgressLine line_{"compare"};
  std::size_t n_prompts_, n_repeats_;
  double n_runs_, n_runs_done_ = 0;
  int max_tokens_;
  std::string place_;
};

/// Totals of one lane over its prompts.
struct Totals {
  double tokens = 0, steps = 0;
  double decode_ms = 0;                 // time that counts for the lane
  double rows_ms = 0, drafting_ms = 0;  // times of these runs' rows alone and of their drafts
  double whole_decode_ms = 0,
         ar_decode_ms = 0;  // times of runs that no bound ended, and of AR for the same prompts
  int n = 0, n_identical = 0, n_compared = 0;
  int n_alone = 0;  // runs whose rows were repeated
  std::vector<RepeatSums> repeats;
  LoadOverTime load;     // of the machine, during the lane's turns
  bool lossless = true;  // with the given options and sampling
};

/// A lane with its models, and its baseline: plain decoding by the same model.
struct RacingLane {
  LaneOption of;
  engine::RunModels models;
  std::size_t baseline = 0;  // index among the lanes
  bool is_requested = true;  // false: added as a baseline
  /// Decodes the prompts of a group concurrently; null: one after the other.
  std::unique_ptr<engine::Scheduler> scheduler = nullptr;
  std::size_t n_branches = 1;  // maximum number of concurrent sequences
  /// [repeats] the texts of earlier prompts. A repeat does not copy from the text that it repeats.
  std::vector<std::shared_ptr<engine::EarlierTexts>> texts = {};
};

/// Makes the scheduler of a lane that decodes prompts concurrently, if there are several prompts.
void schedule(RacingLane& lane, const GenerationOptions& options, std::size_t n_prompts) {
  if (!engine::takes_turns(lane.of.decoder) || n_prompts < 2) return;
  const engine::OptionValues set = options_for(lane.of.decoder, options.decoders, options.set);
  lane.scheduler = engine::make_scheduler(lane.models, lane.of.decoder, set, 1);
  print_once(lane.scheduler->notices());
  const auto branches = static_cast<std::size_t>(lane.scheduler->figures().at("branches"));
  lane.n_branches = std::min(branches, n_prompts);
}

/// The requested lanes, preceded by plain decoding for each model without such a lane: the baseline
/// for speed-up and agreement.
std::vector<RacingLane> lanes_of(engine::ModelStore& store,
                                 const GenerationOptions& options,
                                 std::size_t n_prompts) {
  const auto is_baseline = [&](const LaneOption& lane, const std::string& model) {
    return lane.decoder == "ar" && model_of(lane, options) == model;
  };
  std::vector<LaneOption> all = options.lanes;
  for (const LaneOption& lane : options.lanes) {
    const std::string model = model_of(lane, options);
    const bool is_listed = std::ranges::any_of(
        all, [&](const LaneOption& other) { return is_baseline(other, model); });
    const std::string name = lane.model.empty() ? "ar" : "ar@" + lane.model;
    if (!is_listed) all.insert(all.begin(), {.name = name, .decoder = "ar", .model = lane.model});
  }
  const std::vector<engine::RunModels> models = load_lanes(store, options, all, n_prompts > 1);
  const std::size_t n_added = all.size() - options.lanes.size();
  std::vector<RacingLane> lanes;
  std::map<const engine::Model*, std::shared_ptr<const engine::PoolFile>> pools;
  for (std::size_t i = 0; i < all.size(); i++) {
    const std::string& model = model_of(all[i], options);
    const engine::Model& target = *models[i].target.model;
    if (!pools.contains(&target)) pools[&target] = read_pool(options.pool, target);
    const auto baseline = std::ranges::find_if(
        all, [&](const LaneOption& other) { return is_baseline(other, model); });
    lanes.push_back({.of = all[i],
                     .models = models[i],
                     .baseline = static_cast<std::size_t>(baseline - all.begin()),
                     .is_requested = i >= n_added});
    for (int repeat = 0; repeat < options.repeat; repeat++)
      lanes.back().texts.push_back(std::make_shared<engine::EarlierTexts>(pools[&target]));
    schedule(lanes.back(), options, n_prompts);
  }
  return lanes;
}

/// Prompts that are decoded and reported together, with their requests [prompts][lanes].
struct Group {
  std::size_t first = 0;  // index among all prompts
  std::vector<std::vector<engine::RunRequest>> requests;

  std::size_t n_texts() const { return requests.size(); }
};

/// The place of the first repeat of a prompt.
engine::PlaceInSet place_of(const std::vector<Prompt>& prompts, std::size_t at, int n_repeats) {
  return {.set = prompts.size() > 1 || n_repeats > 1 ? 1u : 0u,
          .prompt = static_cast<int>(at),
          .n_prompts = static_cast<int>(prompts.size()),
          .n_repeats = n_repeats,
          .task = prompts[at].task};
}

/// The request of a later repeat of the same race.
engine::RunRequest at_repeat(engine::RunRequest request, int repeat) {
  request.place.repeat = repeat;
  request.race += static_cast<std::uint32_t>(repeat * request.place.n_prompts);
  return request;
}

/// The next group of prompts. It has as many prompts as the lane that decodes most concurrently. If
/// a lane cannot decode a prompt, the group ends before it, so that the prompts before it are
/// decoded and reported before the failure.
/// @throws Error  the first prompt cannot be decoded
Group next_group(const std::vector<RacingLane>& lanes,
                 const GenerationOptions& options,
                 const std::vector<Prompt>& prompts,
                 std::size_t first) {
  std::size_t n_texts = 1;
  for (const RacingLane& lane : lanes) n_texts = std::max(n_texts, lane.n_branches);
  Group group{.first = first, .requests = {}};
  for (std::size_t at = first; at < std::min(first + n_texts, prompts.size()); at++) {
    std::vector<engine::RunRequest> requests;
    try {
      for (const RacingLane& lane : lanes) {
        requests.push_back(request_for(options, prompts[at], lane.of.decoder, lane.models.target));
        requests.back().race = static_cast<std::uint32_t>(at) + 1;
        requests.back().lane = static_cast<int>(requests.size()) - 1;
        requests.back().place = place_of(prompts, at, options.repeat);
      }
    } catch (const engine::Error&) {
      if (at == first) throw;
      break;  // this prompt begins the next group instead
    }
    group.requests.push_back(std::move(requests));
  }
  return group;
}

/// The results of a group of prompts in one lane. Times are medians over the repeats.
struct LaneResults {
  std::vector<engine::RunResult> texts;
  std::vector<RepeatSums> repeats;
  /// Time that counts for the lane: the sum of its runs or, if they are concurrent, elapsed time.
  double decode_ms = 0;
  /// [prompts] time of each run's forwards repeated without the decoder, and time of its drafts.
  /// Empty: not measured.
  std::vector<double> rows_ms, drafting_ms;
};

/// The output of a run, for comparison with plain decoding.
struct Output {
  engine::RunId run = 0;
  std::vector<engine::TokenId> tokens;
  bool whole = false;
};

/// The results of a turn.
struct Decoded {
  std::vector<engine::RunResult> texts;  // after Ctrl+C only the texts that had been started
  double wall_ms = 0;                    // of concurrent runs: elapsed time without prefill
};

/// Decodes one prompt in a lane that decodes them one after the other.
Decoded decode_text(const RacingLane& lane,
                    const engine::RunRequest& request,
                    engine::RunId run,
                    engine::EventSink* events,
                    const std::shared_ptr<engine::EarlierTexts>& texts,
                    RaceProgress& progress) {
  const auto show = [&](const engine::Lane& running) {
    progress.show_tokens(running.sequence.generated().size());
  };
  engine::RunModels models = lane.models;
  models.texts = texts;
  return {.texts = {engine::run_to_end(models, request, run, events, interrupted, show)}};
}

/// Runs one turn of a repeat.
/// @param run     id of the first run; the others follow
/// @param events  may be null
Decoded decode_turn(const RacingLane& lane,
                    const Turn& turn,
                    const Group& group,
                    int repeat,
                    engine::RunId run,
                    engine::EventSink* events,
                    RaceProgress& progress) {
  if (!lane.scheduler) {
    return decode_text(lane, at_repeat(group.requests[turn.text][turn.lane], repeat), run, events,
                       lane.texts[static_cast<std::size_t>(repeat)], progress);
  }
  std::vector<engine::CompletionRequest> requests(turn.n_texts);
  for (std::size_t i = 0; i < turn.n_texts; i++)
    requests[i].run = at_repeat(group.requests[turn.text + i][turn.lane], repeat);
  engine::SchedulerWatch watch;
  watch.events = events;
  watch.first_run = run;
  watch.stop = interrupted;
  watch.ended = [&](int n_ended, int n) { progress.show_texts(n_ended, n); };
  const std::size_t n_at_once = std::min(lane.n_branches, turn.n_texts);
  const double before_ms = decode_wall_ms(lane.scheduler->figures(), n_at_once);
  Decoded decoded;
  for (engine::Completion& completion : lane.scheduler->run(requests, watch))
    decoded.texts.push_back(std::move(completion.result));
  decoded.wall_ms = decode_wall_ms(lane.scheduler->figures(), n_at_once) - before_ms;
  return decoded;
}

/// True if every forward of a lane so far had one sequence. Only then can its forwards be repeated
/// one run after the other.
bool judges_texts_alone(const RacingLane& lane) {
  if (!lane.scheduler) return true;
  const std::map<std::string, double> figures = lane.scheduler->figures();
  return figures.at("forwards") >= figures.at("steps");
}

/// Compares each output with that of plain decoding.
/// @param ar  results of the baseline for the same group; may be `lane` itself
void compare_texts(LaneResults& lane, const LaneResults& ar) {
  for (std::size_t i = 0; i < lane.texts.size(); i++) engine::agree(lane.texts[i], ar.texts[i]);
}

/// Pushes the results of the same comparison for all repeats.
/// @param lane, ar  outputs of a prompt's repeats
void push_agreements(const std::vector<Output>& lane,
                     const std::vector<Output>& ar,
                     engine::EventSink& events) {
  for (std::size_t i = 0; i < lane.size(); i++) {
    engine::Agreement agreement =
        engine::agreement_of({lane[i].tokens, lane[i].whole}, {ar[i].tokens, ar[i].whole});
    agreement.t = engine::now_ns();
    agreement.run = lane[i].run;
    agreement.baseline = ar[i].run;
    events.push(agreement);
  }
}

double sum_of_decode_ms(const std::vector<engine::RunResult>& results) {
  double sum = 0;
  for (const engine::RunResult& result : results) sum += result.decode_ms;
  return sum;
}

/// Sets the speed-up of each run. In a lane that decodes the group concurrently all runs get the
/// speed-up of the group, because a run's own compute time excludes waiting and other runs' work.
void set_speedups(const RacingLane& of, LaneResults& lane, const LaneResults& ar) {
  for (std::size_t i = 0; i < lane.texts.size(); i++) {
    engine::RunResult& result = lane.texts[i];
    const double own = of.scheduler ? lane.decode_ms : result.decode_ms;
    const double plain = of.scheduler ? sum_of_decode_ms(ar.texts) : ar.texts[i].decode_ms;
    if (own > 0 && result.whole()) result.speedup = plain / own;
  }
}

/// The outputs and times (in ms) of a lane's repeats so far.
struct LaneTimes {
  explicit LaneTimes(std::size_t n_texts)
      : outputs(n_texts), decode(n_texts), prefill(n_texts), rows(n_texts), drafting(n_texts) {}
  std::vector<std::vector<Output>> outputs;          // [prompts][repeats]
  std::vector<std::vector<double>> decode, prefill;  // [prompts][repeats]
  std::vector<std::vector<double>> rows, drafting;   // [prompts][repeats], or empty
  std::vector<double> wall;                          // [repeats], of concurrent runs
  std::vector<double> steps;                         // [repeats], sum over the prompts

  void add(std::size_t text, int repeat, engine::RunId run, const engine::RunResult& result) {
    outputs[text].push_back({run, result.tokens, result.whole()});
    decode[text].push_back(result.decode_ms);
    prefill[text].push_back(result.prefill_ms);
    steps.resize(static_cast<std::size_t>(repeat) + 1);
    steps.back() += result.n_steps;
  }

  /// The sums of each repeat over its prompts.
  /// @param ar       of the baseline
  /// @param at_once  the runs of a repeat are concurrent
  std::vector<RepeatSums> sums(const LaneTimes& ar, bool at_once) const {
    std::vector<RepeatSums> all(steps.size());
    for (std::size_t i = 0; i < all.size(); i++) {
      RepeatSums& one = all[i];
      one.steps = steps[i];
      for (std::size_t text = 0; text < outputs.size(); text++) {
        const bool whole = outputs[text][i].whole;
        one.tokens += static_cast<double>(outputs[text][i].tokens.size());
        one.decode_ms += decode[text][i];
        one.whole_decode_ms += whole ? decode[text][i] : 0;
        one.ar_decode_ms += whole ? ar.decode[text][i] : 0;
      }
      if (at_once) one.decode_ms = one.whole_decode_ms = wall[i];
    }
    return all;
  }

  void set_medians(LaneResults& lane, bool at_once) const {
    for (std::size_t text = 0; text < decode.size(); text++) {
      lane.texts[text].decode_ms = median(decode[text]);
      lane.texts[text].prefill_ms = median(prefill[text]);
    }
    lane.decode_ms = at_once ? median(wall) : sum_of_decode_ms(lane.texts);
    for (std::size_t text = 0; text < rows.size() && !rows[text].empty(); text++) {
      lane.rows_ms.push_back(median(rows[text]));
      lane.drafting_ms.push_back(median(drafting[text]));
    }
  }
};

/// Directly after a turn: repeats the forwards of its runs without the decoder, and times them.
/// @param run  id of the first run
void run_rows_alone(const RacingLane& lane,
                    const Turn& turn,
                    const Group& group,
                    engine::StepRecorder& steps,
                    engine::RunId run,
                    LaneTimes& times,
                    RaceProgress& progress) {
  progress.show_rows_alone(turn.n_texts);
  for (std::size_t text = turn.text; text < turn.text + turn.n_texts; text++, run++) {
    times.rows[text].push_back(engine::row_cost_ms(
        *lane.models.target.model, group.requests[text][turn.lane], steps.of(run), interrupted));
    times.drafting[text].push_back(static_cast<double>(steps.of(run).drafting) * 1e-6);
  }
}

/// Decodes a group of prompts in all lanes, --repeat times.
/// @param events  receives the events of all repeats; may be null
/// @param totals  [lanes] `load` is extended
/// @param run     the next run id; counts up
/// @return        the results of each lane; empty after Ctrl+C
std::vector<LaneResults> race(const std::vector<RacingLane>& lanes,
                              const Group& group,
                              const GenerationOptions& options,
                              engine::EventSink* events,
                              engine::RunId& run,
                              std::vector<Totals>& totals,
                              RaceProgress& progress) {
  const std::size_t n_texts = group.n_texts();
  std::vector<LaneResults> results(lanes.size());
  std::vector<LaneTimes> times(lanes.size(), LaneTimes(n_texts));
  std::vector<bool> at_once;
  for (std::size_t i = 0; i < lanes.size(); i++) {
    at_once.push_back(lanes[i].scheduler != nullptr);
    results[i].texts.resize(n_texts);
  }
  for (int repeat = 0; repeat < options.repeat; repeat++) {
    for (const Turn& turn : lane_turns(group.first, n_texts, repeat, at_once)) {
      LaneResults& lane = results[turn.lane];
      LaneTimes& its = times[turn.lane];
      progress.begin(group.first + turn.text, turn.n_texts, repeat, lanes[turn.lane].of.name);
      engine::StepRecorder steps(events);
      totals[turn.lane].load.begin();
      Decoded decoded = decode_turn(lanes[turn.lane], turn, group, repeat, run + 1,
                                    options.rows_alone ? &steps : events, progress);
      totals[turn.lane].load.end();
      if (options.rows_alone && !interrupted() && judges_texts_alone(lanes[turn.lane]))
        run_rows_alone(lanes[turn.lane], turn, group, steps, run + 1, its, progress);
      if (interrupted()) return {};
      progress.end(turn.n_texts);
      its.wall.push_back(decoded.wall_ms);
      for (std::size_t i = 0; i < turn.n_texts; i++) {
        const std::size_t text = turn.text + i;
        run++;
        its.add(text, repeat, run, decoded.texts[i]);
        lane.texts[text] = std::move(decoded.texts[i]);
      }
    }
  }
  for (std::size_t i = 0; i < lanes.size(); i++) times[i].set_medians(results[i], at_once[i]);
  for (std::size_t i = 0; i < lanes.size(); i++) {
    const LaneResults& ar = results[lanes[i].baseline];
    const LaneTimes& of_ar = times[lanes[i].baseline];
    results[i].repeats = times[i].sums(of_ar, at_once[i]);
    if (i != lanes[i].baseline && !engine::comparable(group.requests[0][i].sampling)) continue;
    compare_texts(results[i], ar);
    for (std::size_t text = 0; events && i != lanes[i].baseline && text < n_texts; text++)
      push_agreements(times[i].outputs[text], of_ar.outputs[text], *events);
    set_speedups(lanes[i], results[i], ar);
  }
  return results;
}

void add(Totals& totals, const RacingLane& of, const LaneResults& lane, const LaneResults& ar) {
  totals.decode_ms += lane.decode_ms;
  add(totals.repeats, lane.repeats);
  totals.n_alone += static_cast<int>(lane.rows_ms.size());
  for (const double ms : lane.rows_ms) totals.rows_ms += ms;
  for (const double ms : lane.drafting_ms) totals.drafting_ms += ms;
  for (std::size_t i = 0; i < lane.texts.size(); i++) {
    const engine::RunResult& result = lane.texts[i];
    totals.n++;
    totals.tokens += static_cast<double>(result.tokens.size());
    totals.steps += result.n_steps;
    if (result.whole()) {
      if (!of.scheduler) totals.whole_decode_ms += result.decode_ms;
      totals.ar_decode_ms += ar.texts[i].decode_ms;
    }
    totals.lossless = totals.lossless && is_lossless(result.request);
    if (result.identical_to_ar) totals.n_compared++, totals.n_identical += *result.identical_to_ar;
  }
  if (of.scheduler) totals.whole_decode_ms += lane.decode_ms;
}

double speedup_of(const Totals& t) {
  return t.whole_decode_ms > 0 ? t.ar_decode_ms / t.whole_decode_ms : 0;
}

/// The speed-up divided by the speed-up that would result if only rows and drafts took time, also
/// in plain decoding. 0 unless measured for every prompt.
double of_its_rows(const Totals& t, const Totals& plain) {
  if (t.n_alone < t.n || t.rows_ms <= 0 || plain.rows_ms <= 0 || t.decode_ms <= 0) return 0;
  return (t.rows_ms + t.drafting_ms) / t.decode_ms / (plain.rows_ms / plain.decode_ms);
}

RepeatedLane repeats_of(const RacingLane& lane, const Totals& t) {
  return {lane.of.name, t.repeats, t.load.stolen_percent(), t.load.load_average()};
}

/// @param plain  the totals of the lane's baseline, plain decoding by the same model
nlohmann::json summary_json(const RacingLane& lane, const Totals& t, const Totals& plain) {
  nlohmann::json summary = {
      {"lane", lane.of.name},
      {"decoder", lane.of.decoder},
      {"model", lane.models.target.model->name()},
      {"tokens_per_second", t.decode_ms > 0 ? t.tokens / t.decode_ms * 1e3 : 0},
      {"speedup", t.whole_decode_ms > 0 ? nlohmann::json(speedup_of(t)) : nlohmann::json(nullptr)},
      {"tokens_per_step", t.steps > 0 ? t.tokens / t.steps : 0},
      {"lossless", t.lossless},
      {"identical", t.n_compared ? nlohmann::json(t.n_identical) : nlohmann::json(nullptr)},
      {"n", t.n}};
  if (engine::takes_turns(lane.of.decoder)) {
    summary["branches"] = lane.n_branches;
    summary["decode_ms"] = t.decode_ms;
  }
  summary["repeats"] = repeats_json(repeats_of(lane, t));
  if (const double share = of_its_rows(t, plain); share > 0) {
    summary["rows_ms"] = t.rows_ms;
    summary["drafting_ms"] = t.drafting_ms;
    summary["of_its_rows"] = share;
  }
  return summary;
}

std::string summary_table(const std::vector<RacingLane>& lanes, const std::vector<Totals>& totals) {
  std::vector<std::vector<std::string>> rows = {
      {"decoder", "tokens/s", "speedup", "tokens/step", "identical to AR"}};
  const bool has_rows = std::ranges::any_of(totals, [](const Totals& t) { return t.rows_ms > 0; });
  if (has_rows) rows.front().push_back("of its rows");
  for (std::size_t i = 0; i < lanes.size(); i++) {
    const Totals& t = totals[i];
    if (!lanes[i].is_requested || t.n == 0) continue;
    rows.push_back({lanes[i].of.name,
                    fmt::format("{:.1f}", t.decode_ms > 0 ? t.tokens / t.decode_ms * 1e3 : 0),
                    t.whole_decode_ms > 0 ? fmt::format("{:.2f}x", speedup_of(t)) : "-",
                    fmt::format("{:.2f}", t.steps > 0 ? t.tokens / t.steps : 0),
                    (t.n_compared ? fmt::format("{} of {}", t.n_identical, t.n_compared) : "-") +
                        (t.lossless ? "" : kNotLossless)});
    if (!has_rows) continue;
    const double share = of_its_rows(t, totals[lanes[i].baseline]);
    rows.back().push_back(share > 0 ? fmt::format("{:.2f}", share) : "-");
  }
  return engine::aligned_table(rows);
}

/// The table of the repeats; empty without repeats.
std::string table_of_repeats(const std::vector<RacingLane>& lanes,
                             const std::vector<Totals>& totals) {
  std::vector<RepeatedLane> all;
  for (std::size_t i = 0; i < lanes.size(); i++)
    if (lanes[i].is_requested && totals[i].repeats.size() > 1)
      all.push_back(repeats_of(lanes[i], totals[i]));
  return repeats_table(all);
}

/// One line on each lane that decoded prompts concurrently.
std::string branches_words(const std::vector<RacingLane>& lanes) {
  std::string text;
  for (const RacingLane& lane : lanes) {
    if (!lane.scheduler) continue;
    text += fmt::format(
        "{}: {} at a time; tokens/s and speed-up are totals of these prompts, by elapsed time "
        "without prefill\n",
        lane.of.name, engine::counted(static_cast<std::int64_t>(lane.n_branches), "prompt"));
    const std::string how = schedule_text(lane.scheduler->figures());
    if (!how.empty()) text += fmt::format("{}: {}", lane.of.name, how);
  }
  return text;
}

/// Lists each model once: "demo-target bf16, 2.8 M parameters at 4x2".
std::string models_words(const std::vector<RacingLane>& lanes) {
  std::string text;
  std::vector<std::string> listed;  // a scheduler may have a copy of the model
  for (const RacingLane& lane : lanes) {
    const engine::LoadedModel& loaded = lane.models.target;
    if (std::ranges::find(listed, loaded.request.model) != listed.end()) continue;
    listed.push_back(loaded.request.model);
    const engine::Model& model = *loaded.model;
    text +=
        fmt::format("{}{} {}, {:.1f} M parameters at {}", text.empty() ? "" : "; ", model.name(),
                    model.weight_type(), static_cast<double>(model.config().n_params()) * 1e-6,
                    engine::name_of(model.scale()));
  }
  return text;
}

/// The report: the machine, the models, the table of results, and notes if the results could
/// mislead.
std::string report(const std::vector<RacingLane>& lanes,
                   const std::vector<Totals>& totals,
                   const std::string& differences) {
  std::vector<double> speedups;
  std::vector<std::string> compared;
  bool all_compared = true;  // true: every lossless lane was compared
  bool several_models = false;
  const engine::Model& model = *lanes.front().models.target.model;
  for (std::size_t i = 0; i < lanes.size(); i++) {
    several_models = several_models || lanes[i].models.target.request.model !=
                                           lanes.front().models.target.request.model;
    if (!lanes[i].is_requested || i == lanes[i].baseline) continue;
    speedups.push_back(speedup_of(totals[i]));
    compared.push_back(lanes[i].of.name);
    all_compared = all_compared && (totals[i].n_compared > 0 || !totals[i].lossless);
  }
  return fmt::format("{}, {} threads, {}; speed-ups are wall time against AR{}, measured here\n",
                     models_words(lanes), machine_json(model.device())["threads"].get<int>(),
                     engine::counted(totals.front().n, "prompt"),
                     several_models ? " of the same model" : "") +
         summary_table(lanes, totals) + table_of_repeats(lanes, totals) + branches_words(lanes) +
         differences +
         (all_compared ? ""
                       : "not compared with AR: --sampling rejection draws other tokens of the "
                         "same distribution\n") +
         why_no_speedup(compared, engine::name_of(model.scale()), model.weight_bytes(),
                        engine::last_level_cache_bytes(), speedups);
}

nlohmann::json document(const std::vector<RacingLane>& lanes,
                        nlohmann::json results,
                        const std::vector<Totals>& totals,
                        const std::string& notice) {
  nlohmann::json summary = nlohmann::json::array();
  for (std::size_t i = 0; i < lanes.size(); i++)
    if (lanes[i].is_requested && totals[i].n > 0)
      summary.push_back(summary_json(lanes[i], totals[i], totals[lanes[i].baseline]));
  nlohmann::json out = {{"machine", machine_json(lanes.front().models.target.model->device())},
                        {"results", std::move(results)},
                        {"summary", summary},
                        {"notices", nlohmann::json::array()}};
  if (!notice.empty()) out["notices"].push_back(notice);
  if (interrupted()) out["stopped"] = true;
  return out;
}

}  // namespace

int compare(const GenerationOptions& options) {
  check_usage(options);
  check_outputs(options.record, options.trace);
  const std::vector<Prompt> prompts = prompts_of(options);
  engine::ModelStore store(assets_dir(), options.model.n_threads);
  const std::vector<RacingLane> lanes = lanes_of(store, options, prompts.size());
  const std::string notice = prompts.size() > 1 ? "" : single_prompt_note(options.decoders);

  nlohmann::json results = nlohmann::json::array();
  std::vector<Totals> totals(lanes.size());
  std::vector<std::string> notices;  // of the decoders
  std::string differences;           // a line for each run whose tokens differ from those of ar
  for (const RacingLane& lane : lanes)
    engine::check_stops(*lane.models.target.model, options.stop_texts, options.stop_ids);
  Outputs outputs(options.record, options.trace);
  for (const RacingLane& lane : lanes) outputs.announce(lane.models);
  engine::RunId run = 0;
  std::size_t n_done = 0;  // prompts decoded in every lane
  // the failure of a prompt; the results of earlier prompts are still printed
  std::exception_ptr failure;
  RaceProgress progress(prompts.size(), lanes.size(), options);
  while (n_done < prompts.size() && !interrupted()) {
    try {
      const Group group = next_group(lanes, options, prompts, n_done);
      const auto by_lane = race(lanes, group, options, outputs.sink(), run, totals, progress);
      if (by_lane.empty()) break;
      for (std::size_t i = 0; i < lanes.size(); i++)
        add(totals[i], lanes[i], by_lane[i], by_lane[lanes[i].baseline]);
      for (std::size_t text = 0; text < group.n_texts(); text++) {
        for (std::size_t i = 0; i < lanes.size(); i++) {
          if (!lanes[i].is_requested) continue;
          const engine::RunResult& result = by_lane[i].texts[text];
          notices.insert(notices.end(), result.notices.begin(), result.notices.end());
          if (options.json) {
            results.push_back(to_json(result, lanes[i].models));
            results.back()["lane"] = lanes[i].of.name;
          }
          if (result.difference)
            differences += fmt::format("{}, {}: {}\n", lanes[i].of.name, result.request.prompt_id,
                                       difference_words(*result.difference));
        }
      }
      n_done += group.n_texts();
    } catch (const engine::Error& error) {
      if (error.code() != engine::ErrorCode::Cancelled) failure = std::current_exception();
      break;
    }
  }
  progress.finish();
  print_once(notices);

  std::string found;
  if (options.json) {
    found = dumped(document(lanes, std::move(results), totals, notice));
  } else if (n_done > 0) {
    found = report(lanes, totals, differences);
  }
  if (!notice.empty()) print_error("note: " + notice);
  outputs.print_notes(store);
  print_and_close(found, outputs, failure);
  if (!interrupted()) return 0;
  print_error(fmt::format("cancelled after {} of {} prompts", n_done, prompts.size()));
  return static_cast<int>(engine::ErrorCode::Cancelled);
}

}  // namespace app
