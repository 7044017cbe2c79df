#include "engine/reason/known_states.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/data/random.h"
#include "engine/data/text.h"
#include "engine/reason/state_value.h"

namespace engine {
namespace {

using Json = nlohmann::json;

constexpr int kGoodScore = 8;  // of a plan or a passage

bool has_form(const Record& record, const std::string& form) {
  return form_of(record) == form;
}

/// The text between two marks; nothing if one of them is missing.
std::optional<std::string> between(const std::string& text,
                                   std::string_view begin,
                                   std::string_view end) {
  const auto from = text.find(begin);
  if (from == std::string::npos) return std::nullopt;
  const auto to = text.find(end, from + begin.size());
  if (to == std::string::npos) return std::nullopt;
  return text.substr(from + begin.size(), to - from - begin.size());
}

/// "Question: ..\nStep 1: ..\nStep 2: ..\nEvaluation:"
std::optional<KnownState> sums_state(const Record& record) {
  if (!has_form(record, "evaluation") || !record.prompt.ends_with("\nEvaluation:"))
    return std::nullopt;
  KnownState state{.question = record, .good = Json::parse(record.check).at("good")};
  const auto problem = between(record.prompt, "Question: ", "\n");
  if (!problem) return std::nullopt;
  state.question.prompt = *problem;
  for (const std::string& line : split_text(record.prompt, '\n'))
    if (line.starts_with("Step ") && line.find(": ") != std::string::npos)
      state.chain.push_back({{"answer", line.substr(line.find(": ") + 2)}});
  if (state.chain.empty()) return std::nullopt;
  return state;
}

std::optional<KnownState> blocks_state(const Record& record) {
  if (!has_form(record, "evaluation")) return std::nullopt;
  const Json check = Json::parse(record.check);
  return KnownState{.question = record,
                    .chain = {{{"action", check.at("action").get<std::string>()}}},
                    .good = check.at("good")};
}

/// A task, then "Plan:" or "Passage:" and the text to be valued, then an empty line.
std::optional<KnownState> writing_state(const Record& record) {
  const bool is_plan = has_form(record, "plan score");
  if (!is_plan && !has_form(record, "passage score")) return std::nullopt;
  constexpr std::string_view kAsked = "\n\nDo";  // "Does this plan ..", "Does each paragraph .."
  const std::string mark = is_plan ? "\nPlan:\n" : "\nPassage:\n";
  const auto begin = record.prompt.find(mark), end = record.prompt.rfind(kAsked);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return std::nullopt;
  const std::string shown = record.prompt.substr(begin + mark.size(), end - begin - mark.size());
  KnownState state{.question = record, .good = std::stoi(record.answer) >= kGoodScore};
  state.question.prompt = record.prompt.substr(0, begin);
  if (!is_plan) state.chain.emplace_back();  // the first thought is the plan, which is not shown
  state.chain.push_back({{is_plan ? "plan" : "passage", shown}});
  return state;
}

std::optional<KnownState> state_of(const Record& record) {
  if (record.task == "arith") return sums_state(record);
  return record.task == "blocks" ? blocks_state(record) : writing_state(record);
}

}  // namespace

std::vector<KnownState> known_states(const std::string& task, const QuestionRange& range) {
  check_task(task, {"arith", "blocks", "write"});
  std::vector<KnownState> states;
  const auto records = matching_records(
      task, range, "", [](const Record& record) { return state_of(record).has_value(); });
  for (const Record& record : records) states.push_back(*state_of(record));
  return states;
}

std::vector<EvaluatedState> evaluate_states(Scheduler& scheduler,
                                            Model& model,
                                            std::span<const KnownState> states,
                                            const TotSettings& settings,
                                            const SchedulerWatch& watch) {
  ensure(model.tokenizer() != nullptr, "a state evaluator needs a tokenizer");
  const TextReading reading{.symbols = !settings.no_special};
  std::vector<EvaluationPrompt> prompts;
  std::vector<CompletionRequest> requests;
  for (const KnownState& state : states) {
    const Record& record = state.question;
    const auto fitting =
        prompts_for(settings.prompts, TotPrompt::Use::Value, static_cast<int>(state.chain.size()));
    if (fitting.empty())
      throw Error(ErrorCode::BadInput,
                  "prompts: found no line with use \"value\", expected one for " + record.task);
    const TotPrompt& prompt = *fitting.front();
    const TotTask& task = tot_task(record.task);
    const ThoughtChain before(state.chain.begin(), state.chain.end() - 1);
    Slots slots = task.slots(record, before);
    for (const auto& [part, text] : state.chain.back()) slots[part] = text;
    prompts.push_back(evaluation_prompt(prompt, slots, state.chain.back()));
    CompletionRequest request;
    RunRequest& run = request.run;
    run.prompt_id = record.id + "/value";
    run.prompt = prompts.back().text;
    run.no_special = settings.no_special;
    run.prompt_tokens = model.tokenizer()->encode(run.prompt, reading);
    run.decoder = settings.decoder;
    run.options = settings.options;
    run.sampling = settings.thoughts;
    run.sampling.temperature = settings.temperature_of_values();
    run.sampling.seed = fnv1a(std::to_string(settings.thoughts.seed) + "/" + run.prompt_id);
    run.max_tokens = prompt.max_tokens;
    request.stop_texts = prompt.stop_texts;
    requests.push_back(std::move(request));
  }
  std::vector<EvaluatedState> evaluated;
  const auto completions = scheduler.run(requests, watch);
  for (std::size_t i = 0; i < completions.size(); i++) {
    const RunResult& result = completions[i].result;
    if (result.stop_reason == "stopped") break;
    const StateEvaluation evaluation{prompts[i], completions[i].end, result.text, reading};
    const auto value = [&](ValueSource source) {
      return state_value(source, model, *model.tokenizer(), evaluation);
    };
    evaluated.push_back({.id = states[i].question.id,
                         .good = states[i].good,
                         .text = std::string(completion_body(result.text)),
                         .written = value(ValueSource::Written),
                         .expected = value(ValueSource::Expected),
                         .likelihood = value(ValueSource::Likelihood)});
  }
  return evaluated;
}

std::optional<double> area_under_curve(std::span<const double> good, std::span<const double> bad) {
  if (good.empty() || bad.empty()) return std::nullopt;
  double wins = 0;
  for (const double g : good)
    for (const double b : bad) wins += g > b ? 1 : g == b ? 0.5 : 0;
  return wins / static_cast<double>(good.size() * bad.size());
}

}  // namespace engine
