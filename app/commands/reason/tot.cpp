// `reason tot`: answers questions by a tree of thoughts and reports accuracy and cost.
#include <algorithm>

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
#include "engine/base/text.h"
#include "engine/data/text.h"
#include "engine/decode/registry.h"
#include "engine/decode/verify/sampling_mode.h"
#include "engine/reason/early_stop.h"
#include "engine/reason/known_states.h"
#include "engine/reason/questions.h"
#include "engine/reason/tot.h"
#include "engine/run/run.h"

namespace app {
namespace {

using engine::TotCost;
using engine::TotItem;
using engine::TotNode;
using nlohmann::json;

engine::QuestionRange range_of_tree(const TotOptions& options) {
  engine::QuestionRange range = range_of(options);
  if (range.level == 0) range.level = engine::tot_task_info(options.task).level;
  return range;
}

std::vector<engine::Record> questions_of(const TotOptions& options) {
  if (auto records = records_of_file(options)) {
    auto questions = engine::tot_questions_of(std::move(*records), options.n_actions);
    if (std::ssize(questions) > options.count)
      questions.resize(static_cast<std::size_t>(options.count));
    return questions;
  }
  const engine::QuestionRange range = range_of_tree(options);  // refuses an unknown task first
  return engine::tot_questions(options.task, range, options.n_actions, data_dir_of(options));
}

engine::TotSettings settings_of(const TotOptions& options) {
  const engine::TotTaskInfo& info = engine::tot_task_info(options.task);
  engine::TotSettings settings;
  settings.decoder = options.decoder;
  settings.options = options_for(options.decoder, {options.decoder}, options.set);
  settings.thoughts.temperature = options.temperature;
  settings.thoughts.seed = options.seed;
  settings.thoughts.mode = engine::sampling_mode(options.sampling);
  settings.value_temperature = options.value_temperature;
  if (!options.value_source.empty())
    settings.value_source = engine::value_source(options.value_source);
  settings.depth = options.depth > 0 ? options.depth : info.depth;
  settings.n_thoughts = options.n_thoughts;
  settings.beam = options.beam;
  settings.no_special = options.no_special;
  const ReadingInput reading(options.prompts, "prompts of a tree, one JSON object per line,");
  settings.prompts = engine::read_tot_prompts(
      options.prompts.empty() ? engine::tot_prompts_file(assets_dir(), info) : options.prompts);
  return settings;
}

/// With --defaults model, sampling options that were not given get their values from the model's
/// files. If the files request greedy decoding, the temperature of thoughts does not change,
/// because at temperature 0 all thoughts of a node would be equal.
void take_defaults(const TotOptions& options,
                   const engine::GenerationDefaults& defaults,
                   engine::Sampling& thoughts) {
  if (!options.model.model_defaults) return;
  const engine::Sampling own = sampling_by_model(defaults);
  thoughts.repetition_penalty = own.repetition_penalty;
  if (own.greedy()) return;
  if (!options.temperature_given) thoughts.temperature = own.temperature;
  thoughts.top_k = own.top_k;
  thoughts.top_p = own.top_p;
  thoughts.min_p = own.min_p;
}

/// Says if the same seed may give other thoughts, because sizes follow measured times.
void print_notice_of_sizes(const engine::TotSettings& settings) {
  engine::RunRequest request;
  request.decoder = settings.decoder;
  request.options = settings.options;
  request.sampling = settings.thoughts;
  if (const auto notice = engine::notice_of_sizes(request)) print_once({notice->text});
}

/// True if thoughts and evaluations have the distribution of plain decoding.
bool search_is_lossless(const engine::TotSettings& settings) {
  const engine::DecoderInfo& decoder = engine::decoder_named(settings.decoder);
  engine::Sampling values = settings.thoughts;
  values.temperature = settings.temperature_of_values();
  return engine::is_lossless(decoder, settings.options, settings.thoughts) &&
         engine::is_lossless(decoder, settings.options, values);
}

json ratio_json(double over, double under) {
  return under > 0 ? json(over / under) : json(nullptr);
}

/// Costs and rates, with both definitions of the acceptance rate.
json json_of(const TotCost& cost) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  return {{"calls", cost.n_calls},
          {"tokens", cost.n_tokens},
          {"steps", cost.n_steps},
          {"rows", cost.n_rows},
          {"seconds", cost.seconds},
          {"wall_seconds", cost.wall_seconds},
          {"tokens_per_second", ratio_json(real(cost.n_tokens), cost.wall_seconds)},
          {"tokens_per_step", ratio_json(real(cost.n_tokens), real(cost.n_steps))},
          {"proposed", cost.n_proposed},
          {"accepted", cost.n_accepted},
          {"rejected", cost.n_rejected},
          {"acceptance_rate", ratio_json(real(cost.n_accepted), real(cost.n_proposed))},
          {"accepted_of_verified",
           ratio_json(real(cost.n_accepted), real(cost.n_accepted + cost.n_rejected))},
          {"depth_accepted", ratio_json(real(cost.n_kept_of_depth), real(cost.n_draft_depth))},
          {"alpha", ratio_json(real(cost.n_accepted), real(cost.n_requested_depth))}};
}

const char* name_of(engine::ThoughtFate fate) {
  switch (fate) {
    case engine::ThoughtFate::Kept:
      return "kept";
    case engine::ThoughtFate::Pruned:
      return "pruned";
    case engine::ThoughtFate::Unreadable:
      return "unreadable";
  }
  return "";
}

json json_of(const TotItem& item) {
  json nodes = json::array();
  for (std::size_t i = 1; i < item.nodes.size(); i++) {
    const TotNode& node = item.nodes[i];
    const bool read = node.valued && node.valued->read;
    nodes.push_back({{"node", i},
                     {"parent", node.parent},
                     {"depth", node.depth},
                     {"parts", node.parts},
                     {"value", read ? json(node.valued->value) : json(nullptr)},
                     {"evaluation", node.valued ? json(node.valued->text) : json(nullptr)},
                     {"fate", name_of(node.fate)},
                     {"complete", node.complete}});
  }
  return {{"id", item.id},
          {"question", item.question},
          {"answer", item.answer},
          {"correct", item.correct},
          {"reason", item.reason},
          {"text", item.text},
          {"steps", item.thoughts.n_steps + item.values.n_steps + item.answers.n_steps},
          {"tokens", item.thoughts.n_tokens + item.values.n_tokens + item.answers.n_tokens},
          {"path", item.path_to(item.node)},
          {"nodes", nodes}};
}

struct Costs {
  TotCost thoughts, values, answers;
  /// The cost of thoughts and evaluations without the final answer, as the papers count it.
  TotCost searched() const {
    TotCost sum = thoughts;
    return sum += values;
  }
};

Costs costs_of(const engine::TotReport& report) {
  Costs costs;
  for (const TotItem& item : report.items) {
    costs.thoughts += item.thoughts;
    costs.values += item.values;
    costs.answers += item.answers;
  }
  return costs;
}

json json_of(const engine::TotReport& report,
             const TotOptions& options,
             const engine::TotSettings& settings) {
  const Costs costs = costs_of(report);
  json document = json_of(costs.searched());
  document.update({{"task", options.task},
                   {"data", engine::is_generated(options.task) ? "generated" : "real"},
                   {"decoder", options.decoder},
                   {"lossless", search_is_lossless(settings)},
                   {"depth", settings.depth},
                   {"thoughts", settings.n_thoughts},
                   {"beam", settings.beam},
                   {"temperature", settings.thoughts.temperature},
                   {"value_temperature", settings.temperature_of_values()},
                   {"value", engine::name_of(settings.value_source)},
                   {"seed", options.seed},
                   {"n", report.items.size()},
                   {"n_correct", report.n_correct()},
                   {"complete", report.complete},
                   {"by_use",
                    {{"thoughts", json_of(costs.thoughts)},
                     {"values", json_of(costs.values)},
                     {"answers", json_of(costs.answers)}}},
                   {"items", json::array()}});
  for (const TotItem& item : report.items) document["items"].push_back(json_of(item));
  return document;
}

/// The value of a thought: "9", "8.5", "?" for an evaluation without a score, "-" without
/// evaluation.
std::string shown_value(const TotNode& node) {
  if (!node.valued) return "-";
  return node.valued->read ? fmt::format("{:.3g}", node.valued->value) : "?";
}

/// One line per thought below its parent: its number, value, status and text.
void show_below(const TotItem& item,
                const std::vector<engine::TotPrompt>& prompts,
                const std::vector<int>& path,
                int parent,
                std::string& text) {
  for (std::size_t i = 1; i < item.nodes.size(); i++) {
    const TotNode& node = item.nodes[i];
    if (node.parent != parent) continue;
    const bool found = std::ranges::find(path, static_cast<int>(i)) != path.end();
    const std::string words =
        engine::replaced_all(engine::text_of(node.parts, prompts), "\n", " / ");
    text += fmt::format("  {:{}}{} {:>3}  {:>4}  {:<10}  {}{}\n", "", 2 * (node.depth - 1),
                        found ? '>' : ' ', i, shown_value(node), name_of(node.fate), words,
                        node.complete ? "  (complete)" : "");
    show_below(item, prompts, path, static_cast<int>(i), text);
  }
}

std::string shown(const TotItem& item, const std::vector<engine::TotPrompt>& prompts) {
  std::string text = fmt::format("{}: {}\n", item.id, item.question);
  text += fmt::format(
      "   {:>3} {:>5}  {:<10}  {}\n", "no.", "score", "fate",
      "thought, below its parent (> path of the answer, ? no score found, - not evaluated)");
  show_below(item, prompts, item.path_to(item.node), 0, text);
  text += fmt::format("  {}: {}{}\n\n", item.correct ? "right" : "wrong", item.answer,
                      item.correct ? "" : " (" + item.reason + ")");
  return text;
}

std::string percent(double over, double under) {
  return under > 0 ? fmt::format("{:.1f} %", 100 * over / under) : "none";
}

std::string summary_of(const engine::TotReport& report,
                       const TotOptions& options,
                       const engine::TotSettings& settings) {
  const Costs costs = costs_of(report);
  const TotCost all = costs.searched();
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  std::int64_t n_thoughts = 0;
  for (const TotItem& item : report.items) n_thoughts += std::ssize(item.nodes) - 1;
  std::string text = fmt::format(
      "{} ({}), {}{}: {} of {} correct ({:.1f} %); depth {}, {} per node, beam {}\n{} generated in "
      "{}, and {}: {} tokens in {:.2f} s, {:.1f} tokens/s, {:.2f} tokens/step\n",
      options.task, engine::is_generated(options.task) ? "generated" : "real", options.decoder,
      search_is_lossless(settings) ? "" : kNotLossless, report.n_correct(), report.items.size(),
      100 * report.accuracy(), settings.depth, engine::counted(settings.n_thoughts, "thought"),
      settings.beam, engine::counted(n_thoughts, "thought"),
      engine::counted(costs.thoughts.n_calls, "part"),
      engine::counted(costs.values.n_calls, "score"), all.n_tokens, all.wall_seconds,
      all.wall_seconds > 0 ? real(all.n_tokens) / all.wall_seconds : 0,
      all.n_steps > 0 ? real(all.n_tokens) / real(all.n_steps) : 0);
  if (all.n_proposed > 0)
    text += fmt::format(
        "accepted: {} of the proposed tokens, {} of the verified ones{}; thoughts {}, evaluations "
        "{}\n",
        percent(real(all.n_accepted), real(all.n_proposed)),
        percent(real(all.n_accepted), real(all.n_accepted + all.n_rejected)),
        all.n_draft_depth > 0
            ? fmt::format(", {} of the depth drafted, {} of the depth requested (SEED's rate)",
                          percent(real(all.n_kept_of_depth), real(all.n_draft_depth)),
                          percent(real(all.n_accepted), real(all.n_requested_depth)))
            : "",
        percent(real(costs.thoughts.n_accepted), real(costs.thoughts.n_proposed)),
        percent(real(costs.values.n_accepted), real(costs.values.n_proposed)));
  if (!report.complete) text += "stopped early\n";
  return text;
}

/// The values of good and of bad states, by one source.
struct ValuesByTruth {
  std::vector<double> good, bad;
  int n_unread = 0;  // states without a value; they count as 0, as in a search

  void add(const std::optional<double>& value, bool is_good) {
    (is_good ? good : bad).push_back(value.value_or(0));
    n_unread += !value;
  }
  static double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  }
};

json state_json(const engine::EvaluatedState& state) {
  const auto number = [](const std::optional<double>& value) {
    return value ? json(*value) : json(nullptr);
  };
  return {{"id", state.id},
          {"good", state.good},
          {"evaluation", state.text},
          {"written", number(state.written)},
          {"expected", number(state.expected)},
          {"likelihood", number(state.likelihood)}};
}

int evaluate_states(const TotOptions& options, const engine::OptionValues& set) {
  const auto states = engine::known_states(options.task, range_of_tree(options));
  engine::TotSettings settings = settings_of(options);
  ReasonRun run(options, set);
  take_defaults(options, run.defaults(), settings.thoughts);
  ProgressLine line("evaluate");
  engine::SchedulerWatch watch = run.watch();
  watch.ended = [&](int done, int n) { line.show(done, n, "states"); };
  const auto evaluated =
      engine::evaluate_states(run.scheduler(), run.target(), states, settings, watch);
  line.finish();
  std::map<std::string, ValuesByTruth> by_source;
  json items = json::array();
  for (const engine::EvaluatedState& state : evaluated) {
    by_source["written"].add(state.written, state.good);
    by_source["expected"].add(state.expected, state.good);
    by_source["likelihood"].add(state.likelihood, state.good);
    items.push_back(state_json(state));
  }
  const auto n_good = std::ranges::count(evaluated, true, &engine::EvaluatedState::good);
  json values = json::object();
  std::vector<std::vector<std::string>> rows = {
      {"value", "AUC", "mean of good", "mean of bad", "unread"}};
  for (const std::string& source : engine::value_source_names()) {
    const ValuesByTruth& found = by_source[source];
    const auto auc = engine::area_under_curve(found.good, found.bad);
    const double good = found.mean(found.good), bad = found.mean(found.bad);
    values[source] = {{"auc", auc ? json(*auc) : json(nullptr)},
                      {"mean_good", good},
                      {"mean_bad", bad},
                      {"unread", found.n_unread}};
    rows.push_back({source, auc ? fmt::format("{:.3f}", *auc) : "-", fmt::format("{:.2f}", good),
                    fmt::format("{:.2f}", bad), std::to_string(found.n_unread)});
  }
  if (!options.json)
    return run.finish(fmt::format("{}: {} good and {} bad states{}\n", options.task, n_good,
                                  std::ssize(evaluated) - n_good,
                                  evaluated.size() < states.size() ? ", stopped early" : "") +
                      engine::aligned_table(rows));
  json document = {{"task", options.task},
                   {"n", evaluated.size()},
                   {"n_good", n_good},
                   {"value_temperature", settings.temperature_of_values()},
                   {"complete", evaluated.size() == states.size()},
                   {"values", values},
                   {"states", items}};
  run.add_run_info(document);
  return run.finish(dumped(document));
}

}  // namespace

int reason_tot(const TotOptions& given) {
  TotOptions options = given;
  const engine::OptionValues set = checked_reason_options(options);
  engine::refuse_early_stop(options.decoder, set);
  if (options.evaluate_states) return evaluate_states(options, set);
  const std::vector<engine::Record> questions = questions_of(options);
  if (questions.empty())
    throw engine::Error(
        engine::ErrorCode::BadInput,
        fmt::format(
            "reason tot: found no question of {}; try another --level, --actions or --start",
            options.task));
  options.task = questions.front().task;  // a file of records has its own task
  engine::TotSettings settings = settings_of(options);
  const engine::DecoderInfo& info = engine::decoder_named(options.decoder);
  if (const auto why = engine::refusal(info, settings.thoughts, set))
    throw engine::Error(engine::ErrorCode::Usage, *why);
  ReasonRun run(options, set);
  take_defaults(options, run.defaults(), settings.thoughts);
  print_notice_of_sizes(settings);
  ProgressLine line("reason");
  const engine::TotReport report = engine::search(
      run.scheduler(), run.target(), questions, settings, run.watch(),
      [&](const engine::TotProgress& at) {
        const double share = static_cast<double>(at.question) / std::max(1, at.n_questions);
        line.show_words(
            share, fmt::format("question {}/{}, depth {} of {}, {} {}/{}", at.question + 1,
                               at.n_questions, at.depth, settings.depth, at.use, at.done, at.n));
      });
  line.finish();
  std::string text;
  if (options.json) {
    json document = json_of(report, options, settings);
    run.add_run_info(document);
    text = dumped(document);
  } else {
    for (const TotItem& item : report.items) text += for_terminal(shown(item, settings.prompts));
    text += summary_of(report, options, settings) + schedule_text(run.scheduler().figures());
  }
  return run.finish(text);
}

}  // namespace app
