// `reason cot`: answers questions by chain of thought and reports accuracy and cost.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "app/commands/generation.h"
#include "app/commands/reason/questions.h"
#include "app/commands/reason/run.h"
#include "app/commands/report.h"
#include "engine/base/table.h"
#include "engine/data/text.h"
#include "engine/decode/registry.h"
#include "engine/reason/cot.h"
#include "engine/reason/questions.h"
#include "engine/reason/reveal.h"

namespace app {
namespace {

using nlohmann::json;

struct SelectedQuestions {
  std::vector<engine::Question> questions;
  std::optional<std::size_t>
      drawn_from;  // size of the random sample's source; nullopt: not sampled
};

/// Selects the first questions. With --find-bound it draws a random sample instead, unless the
/// questions are generated, because those are random already.
SelectedQuestions questions_of(const CotOptions& options) {
  const auto records = records_of_file(options);
  if (!records) engine::check_task(options.task, engine::cot_task_names());
  const bool draws =
      options.find_bound && (records.has_value() || !engine::is_generated(options.task));
  engine::QuestionRange range = range_of(options);
  if (draws) range.count = std::numeric_limits<int>::max();
  SelectedQuestions selected;
  selected.questions = records ? engine::cot_questions_of(*records)
                               : engine::cot_questions(options.task, range, data_dir_of(options));
  if (draws) {
    selected.drawn_from = selected.questions.size();
    selected.questions =
        engine::sample_of(std::move(selected.questions), options.count, options.sample_seed);
  }
  if (std::ssize(selected.questions) > options.count)
    selected.questions.resize(static_cast<std::size_t>(options.count));
  return selected;
}

/// @param model  with --defaults model, its files set the repetition penalty unless the option or the
///               decoder's preset does. They set nothing else, because a chain is always greedy
engine::CotSettings settings_of(const CotOptions& options,
                                const engine::GenerationDefaults& model) {
  engine::CotSettings settings;
  settings.decoder = options.decoder;
  settings.options = options_for(options.decoder, {options.decoder}, options.set);
  settings.sampling.repetition_penalty = options.repetition_penalty;
  const auto of_preset = engine::parse_options(options.decoder, settings.options)->preset_penalty();
  if (!options.penalty_given && of_preset)
    settings.sampling.repetition_penalty = *of_preset;
  else if (options.model.model_defaults && !options.penalty_given && model.repetition_penalty)
    settings.sampling.repetition_penalty = *model.repetition_penalty;
  settings.max_tokens = options.max_tokens;
  settings.keep_approximate = !options.drop_approximate;
  settings.n_shots = options.n_shots;
  settings.no_special = options.no_special;
  settings.chat = options.chat;
  settings.system = options.system;
  const ReadingInput reading(options.prompts, "worked examples, one JSON object per line,");
  settings.exemplars = options.prompts.empty() ? engine::exemplars_of(assets_dir(), options.task)
                                               : engine::read_exemplars(options.prompts);
  return settings;
}

/// The sum of each count over the runs of all rationales.
std::map<std::string, std::int64_t> summed(const engine::CotReport& report) {
  std::map<std::string, std::int64_t> sums;
  for (const engine::CotItem& item : report.items)
    for (const auto& [name, n] : item.counts) sums[name] += n;
  return sums;
}

double share(std::int64_t part, std::int64_t of) {
  return static_cast<double>(part) / static_cast<double>(of);
}

/// The parts of the compute time, seconds.
json time_split_json(const engine::CotReport& report) {
  const engine::StepTimes times = report.times();
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  return {{"prefill", report.prefill_seconds()}, {"propose", seconds(times.propose)},
          {"forward", seconds(times.forward)},   {"choice", seconds(times.choice)},
          {"verify", seconds(times.verify)},     {"commit", seconds(times.commit)}};
}

json json_of(const engine::CotReport& report,
             const CotOptions& options,
             const engine::CotSettings& settings) {
  const std::map<std::string, std::int64_t> sums = summed(report);
  std::int64_t n_tokens = 0;
  json items = json::array();
  for (const engine::CotItem& item : report.items) {
    n_tokens += item.n_tokens;
    items.push_back({{"id", item.id},
                     {"question", item.question},
                     {"expected", item.expected},
                     {"answer", item.answer},
                     {"correct", item.correct},
                     {"text", item.text},
                     {"rationale", item.exact},
                     {"steps", item.n_steps},
                     {"tokens", item.n_tokens},
                     {"approximate", item.approximate},
                     {"approximate_tokens", item.n_approximate},
                     {"stop_reason", item.stop_reason},
                     {"seconds", item.seconds}});
  }
  const double seconds = report.seconds();
  const auto proposed = sums.find("proposed");
  json document = {{"task", options.task},
                   {"data", engine::is_generated(options.task) ? "generated" : "real"},
                   {"decoder", options.decoder},
                   {"n", report.items.size()},
                   {"n_correct", report.n_correct()},
                   {"n_shots", report.n_shots},
                   {"repetition_penalty", settings.sampling.repetition_penalty},
                   {"tokens", n_tokens},
                   {"seconds", seconds},
                   {"tokens_per_second",
                    seconds > 0 ? json(static_cast<double>(n_tokens) / seconds) : json(nullptr)},
                   {"acceptance_rate", proposed != sums.end() && proposed->second > 0
                                           ? json(share(sums.at("accepted"), proposed->second))
                                           : json(nullptr)},
                   {"time_split", time_split_json(report)},
                   {"metrics", json::object()},
                   {"complete", report.complete},
                   {"items", items}};
  for (const auto& [name, n] : sums) document["metrics"][name] = n;
  return document;
}

/// One line: the shares of the compute time.
std::string time_split_text(const engine::CotReport& report) {
  const engine::StepTimes times = report.times();
  const double all = report.seconds();
  if (all <= 0) return "";
  const auto percent = [&](std::int64_t ns) { return static_cast<double>(ns) * 1e-7 / all; };
  return fmt::format(
      "time: prompts {:.1f} %, forwards {:.1f} %, choice of tokens {:.1f} %, proposals {:.1f} %, "
      "verification "
      "{:.1f} %, KV cache and bookkeeping {:.1f} %\n",
      100 * report.prefill_seconds() / all, percent(times.forward), percent(times.choice),
      percent(times.propose), percent(times.verify), percent(times.commit));
}

std::string summary_of(const engine::CotReport& report, const CotOptions& options) {
  std::int64_t n_tokens = 0, n_steps = 0, n_approximate = 0;
  for (const engine::CotItem& item : report.items) {
    n_tokens += item.n_tokens;
    n_steps += item.n_steps;
    n_approximate += item.n_approximate;
  }
  const auto n = static_cast<double>(std::max<std::size_t>(1, report.items.size()));
  std::string text = fmt::format(
      "{} ({}), {}: {} of {} correct ({:.1f} %)\nper question {:.1f} ms, {:.1f} steps, ",
      options.task, engine::is_generated(options.task) ? "generated" : "real", options.decoder,
      report.n_correct(), report.items.size(), 100 * report.accuracy(), 1e3 * report.seconds() / n,
      static_cast<double>(n_steps) / n);
  const std::map<std::string, std::int64_t> sums = summed(report);
  // Only decoders that guess a window of tokens have unverified text from which an answer can
  // continue.
  text +=
      sums.contains("windows")
          ? fmt::format("{:.1f} exact tokens, {:.1f} approximate ones used\n",
                        static_cast<double>(n_tokens) / n, static_cast<double>(n_approximate) / n)
          : fmt::format("{:.1f} tokens\n", static_cast<double>(n_tokens) / n);
  if (const auto slots = sums.find("window_slots"); slots != sums.end() && slots->second > 0)
    text += fmt::format(
        "guesses correct at their position: {:.1f} % of {}, the first of a window {:.1f} %; "
        "anywhere in the window's text: {:.1f} %; tokens of that text guessed anywhere: {:.1f} %\n",
        100 * share(sums.at("token_hits"), slots->second), slots->second,
        100 * share(sums.at("first_hits"), std::max(std::int64_t{1}, sums.at("windows"))),
        100 * share(sums.at("guesses_in_text"), slots->second),
        100 * share(sums.at("text_in_guesses"), slots->second));
  text += time_split_text(report);
  if (!report.complete) text += "stopped early\n";
  return text;
}

/// Indents all lines of a text but the first.
std::string indented(std::string_view text) {
  return engine::replaced_all(std::string(engine::trimmed(text)), "\n", "\n  ");
}

/// One question with its rationale and answer as text; unverified text is put between tildes.
std::string shown(const engine::CotItem& item) {
  std::string written = item.exact;
  if (!item.approximate.empty()) written += " ~" + item.approximate + "~";
  written += engine::kTrigger + item.answer;
  return fmt::format("{}: {}\n  {}\n  {}, expected: {}\n\n", item.id, indented(item.question),
                     indented(written), item.correct ? "right" : "wrong", item.expected);
}

int search_bound(const CotOptions& options, ReasonRun& run, const SelectedQuestions& selected) {
  const std::vector<engine::Question>& questions = selected.questions;
  std::vector<std::vector<std::string>> rows = {{"bound", "accuracy", "ms/question"}};
  json trials = json::array();
  ProgressLine line("reason");
  engine::SchedulerWatch watch = run.watch();
  watch.ended = [&](int done, int n) { line.show(done, n, "of a bound"); };
  const auto report = [&](const engine::BoundTrial& trial) {
    const double ms = 1e3 * trial.seconds / static_cast<double>(questions.size());
    rows.push_back({trial.bound ? std::to_string(trial.bound) : "none",
                    fmt::format("{:.1f} %", 100 * trial.accuracy), fmt::format("{:.1f}", ms)});
    trials.push_back({{"bound", trial.bound ? json(trial.bound) : json(nullptr)},
                      {"accuracy", trial.accuracy},
                      {"seconds", trial.seconds}});
    return !interrupted();
  };
  const engine::BoundSearch found = engine::find_bound(run.scheduler(), run.target(), questions,
                                                       settings_of(options, run.defaults()),
                                                       options.tolerance / 100, report, watch);
  line.finish();
  std::string text;
  if (options.json) {
    text = dumped({{"task", options.task},
                   {"n", questions.size()},
                   {"drawn_from", selected.drawn_from ? json(*selected.drawn_from) : json(nullptr)},
                   {"sample_seed", selected.drawn_from ? json(options.sample_seed) : json(nullptr)},
                   {"tolerance", options.tolerance},
                   {"stopped", interrupted()},
                   {"bound", found.bound ? json(found.bound) : json(nullptr)},
                   {"trials", trials}});
  } else {
    text = engine::aligned_table(rows);
    if (!interrupted())
      text +=
          found.bound
              ? fmt::format(
                    "--set stop=bound --set bound={} loses at most {:g} points on "
                    "these {} questions{}\n",
                    found.bound, options.tolerance, questions.size(),
                    selected.drawn_from ? fmt::format(", drawn from {} with seed {}",
                                                      *selected.drawn_from, options.sample_seed)
                                        : "")
              : fmt::format("every bound tried loses more than {:g} points\n", options.tolerance);
  }
  return run.finish(text);
}

/// The limits of --reveal. @throws Error(Usage)  for one above --max-tokens
std::vector<int> limits_of(const CotOptions& options) {
  std::vector<int> limits = options.limits;
  if (limits.empty()) {
    limits = {10, 20, 40, 60, 80, 100, 120};
    std::erase_if(limits, [&](int limit) { return limit > options.max_tokens; });
  }
  for (const int limit : limits)
    if (limit > options.max_tokens)
      throw engine::Error(engine::ErrorCode::Usage,
                          fmt::format("--limits: found {}, expected at most --max-tokens {}", limit,
                                      options.max_tokens));
  return limits;
}

json json_of(const engine::RevealRun& run) {
  return {{"n_correct", run.n_correct},
          {"steps", run.n_steps},
          {"rows", run.n_rows},
          {"approximate_tokens", run.n_approximate},
          {"seconds", run.seconds}};
}

int show_reveal(const CotOptions& options,
                ReasonRun& run,
                const std::vector<engine::Question>& questions) {
  const std::vector<int> limits = limits_of(options);
  const auto n = static_cast<double>(questions.size());
  std::vector<std::vector<std::string>> rows = {
      {"steps", "Truncated-CoT", "ms/question", "FastCoT", "ms/question", "approximate tokens"}};
  json points = json::array();
  ProgressLine line("reason");
  engine::SchedulerWatch watch = run.watch();
  watch.ended = [&](int done, int all) {
    line.show(done, all, fmt::format("of limit {} of {}", points.size() + 1, limits.size() + 1));
  };
  const auto right = [&](const engine::RevealRun& found) {
    return fmt::format("{} ({:.1f} %)", found.n_correct, 100 * found.n_correct / n);
  };
  const auto report = [&](const engine::RevealPoint& point) {
    rows.push_back({point.limit ? std::to_string(point.limit) : "all", right(point.truncated),
                    fmt::format("{:.1f}", 1e3 * point.truncated.seconds / n), right(point.fastcot),
                    fmt::format("{:.1f}", 1e3 * point.fastcot.seconds / n),
                    fmt::format("{:.1f}", static_cast<double>(point.fastcot.n_approximate) / n)});
    points.push_back({{"limit", point.limit ? json(point.limit) : json(nullptr)},
                      {"truncated", json_of(point.truncated)},
                      {"fastcot", json_of(point.fastcot)}});
    return !interrupted();
  };
  engine::reveal_curve(run.scheduler(), run.target(), questions,
                       settings_of(options, run.defaults()), limits, report, watch);
  line.finish();
  if (!options.json)
    return run.finish(fmt::format("{}: right answers of {} by the most steps of a rationale\n",
                                  options.task, questions.size()) +
                      engine::aligned_table(rows));
  json document = {{"task", options.task},
                   {"n", questions.size()},
                   {"complete", points.size() == limits.size() + 1},
                   {"points", points}};
  run.add_run_info(document);
  return run.finish(dumped(document));
}

int answer_all(const CotOptions& options,
               ReasonRun& run,
               const std::vector<engine::Question>& questions) {
  ProgressLine line("reason");
  engine::SchedulerWatch watch = run.watch();
  watch.ended = [&](int done, int n) { line.show(done, n, "parts"); };
  const engine::CotSettings settings = settings_of(options, run.defaults());
  const engine::CotReport report =
      engine::answer(run.scheduler(), run.target(), questions, settings, watch);
  line.finish();
  std::string text;
  if (options.json) {
    json document = json_of(report, options, settings);
    run.add_run_info(document);
    text = dumped(document);
  } else {
    for (const engine::CotItem& item : report.items) text += for_terminal(shown(item));
    text += summary_of(report, options) + schedule_text(run.scheduler().figures());
  }
  return run.finish(text);
}

}  // namespace

int reason_cot(const CotOptions& given) {
  CotOptions options = given;
  const engine::OptionValues set = checked_reason_options(options);
  const SelectedQuestions selected = questions_of(options);
  const std::vector<engine::Question>& questions = selected.questions;
  if (questions.empty())
    throw engine::Error(
        engine::ErrorCode::BadInput,
        "reason cot: found no question of " + options.task + "; try another --level or --start");
  options.task = questions.front().record.task;  // a file of records has its own task
  if (options.find_bound && options.decoder != "fastcot")
    throw engine::Error(engine::ErrorCode::Usage,
                        "--find-bound: " + options.decoder + " has no bound; use fastcot");
  if (options.find_bound && !(options.record.empty() && options.trace.empty()))
    throw engine::Error(engine::ErrorCode::Usage,
                        "--find-bound: runs are not recorded; remove --record and --trace");
  if (options.find_bound) {  // checks the options before the first run
    engine::OptionValues with_bound = set;
    with_bound["stop"] = "bound";
    check_options(options.decoder, with_bound);
  }
  if (options.reveal) {
    if (options.decoder != "fastcot" || options.find_bound)
      throw engine::Error(engine::ErrorCode::Usage,
                          "--reveal: compares fastcot with plain decoding; remove --decoder and "
                          "--find-bound");
    limits_of(options);  // refuses a limit before the model is loaded
  }
  ReasonRun run(options, set);
  if (options.reveal) return show_reveal(options, run, questions);
  return options.find_bound ? search_bound(options, run, selected)
                            : answer_all(options, run, questions);
}

}  // namespace app
