#include "engine/train/run/evaluate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "engine/data/data_tool.h"
#include "engine/data/text.h"
#include "engine/data/write/passage.h"
#include "engine/decode/step/stepper.h"

namespace engine {

bool decode_lanes(Model& model, std::vector<Lane>& lanes, const std::function<bool()>& keep_going) {
  std::vector<Lane*> running;
  for (Lane& lane : lanes) {
    prefill(model, lane.sequence);
    lane.decoder->begin(lane.sequence);
    running.push_back(&lane);
  }
  Stepper stepper(model, nullptr);
  while (!running.empty()) {
    if (!keep_going()) return false;
    stepper.step(running);
    std::erase_if(running, [](const Lane* lane) { return lane->sequence.finished(); });
  }
  return true;
}
namespace {

double entropy_of(std::span<const float> logits) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0, weighted = 0;
  for (const float z : logits) {
    const double e = std::exp(static_cast<double>(z - top));
    sum += e;
    weighted += e * static_cast<double>(z - top);
  }
  return std::log(sum) - weighted / sum;
}

double loss_of(std::span<const float> logits, TokenId token) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float z : logits) sum += std::exp(static_cast<double>(z - top));
  return std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(token)] - top);
}

// Runs a forward pass over all tokens of a text but the last, as a chain of rows.
std::vector<StepOutput> read_text(Model& model, std::span<const TokenId> tokens) {
  const auto cache = model.make_cache();
  TokenTree tree;
  for (std::size_t i = 0; i + 1 < tokens.size(); i++) {
    tree.add(tokens[i], static_cast<int>(i) - 1, RowTag{});
  }
  const BatchItem item{cache.get(), &tree, {}, Sampling{}};
  return model.forward(std::span(&item, 1), Wants{.logits = true, .hidden = false});
}

// The sum of the entropies over the tokens of an answer.
double answer_entropy(Model& model, const Sequence& sequence) {
  const auto tokens = sequence.tokens();
  const auto out = read_text(model, tokens);
  double sum = 0;
  for (std::size_t row = sequence.prompt().size() - 1; row + 1 < tokens.size(); row++) {
    sum += entropy_of(out[0].logits_of(static_cast<int>(row)));
  }
  return sum;
}

std::vector<TokenId> tokens_of(const Model& model, const std::string& text) {
  std::vector<TokenId> tokens;
  if (const auto bos = model.tokenizer()->bos_id()) tokens.push_back(*bos);
  const auto ids = model.tokenizer()->encode(text, false);
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  return tokens;
}

// Adds the loss of a text without a prompt to `task`. Truncates the text to the context.
void read(Model& model, const Record& record, TaskScore& task) {
  auto tokens = tokens_of(model, record.completion);
  tokens.resize(std::min<std::size_t>(tokens.size(), model.config().max_seq_len));
  task.read_only = true;
  task.n++;
  task.forms[form_name(record)].n++;
  if (tokens.size() < 2) return;
  const auto out = read_text(model, tokens);
  for (std::size_t row = 0; row + 1 < tokens.size(); row++)
    task.loss += loss_of(out[0].logits_of(static_cast<int>(row)), tokens[row + 1]);
  task.n_tokens += static_cast<std::int64_t>(tokens.size()) - 1;
}

// Counts the paragraphs of a passage that end with the given sentence, and that name the subject.
void count_paragraphs(const Record& record, std::string_view text, TaskScore& task) {
  const auto check = nlohmann::json::parse(record.check);
  const std::string form = check.at("form");
  if (task.task != "write" || !form.ends_with("passage")) return;
  const PassageCount count = count_passage(text, check.at("sentences"), check.at("subjects"));
  if (count.ends.size() + 1 != task.ends.size()) return;
  task.ends[static_cast<std::size_t>(count.n_ends())]++;
  task.subjects[static_cast<std::size_t>(count.n_subjects())]++;
}

void score(
    Model& model, const Record& record, const Lane& lane, bool with_entropy, TaskScore& task) {
  const auto answer = lane.sequence.generated();
  const std::string text = continuation_text(*model.tokenizer(), lane.sequence.prompt(), answer);
  const CheckResult result = task_generator(task.task).check(record, text);
  FormCounts& form = task.forms[form_name(record)];
  task.n++, form.n++;
  if (!result.skipped) task.n_checked++, form.n_checked++;
  if (result.correct) task.n_correct++, form.n_correct++;
  count_paragraphs(record, completion_body(text), task);
  if (lane.sequence.stop_reason() == StopReason::Eos) task.n_ended++;
  task.n_tokens += static_cast<std::int64_t>(answer.size());
  task.n_steps += lane.n_steps;
  for (const auto& [name, value] : metrics_of(lane)) task.metrics[name] += value;
  if (with_entropy)
    task.entropy += answer_entropy(model, lane.sequence);  // divided at the end of the task
}

// Decodes problems [begin, end) together. If `keep_going` returns false, counts none of them and returns
// false.
bool run_group(Model& model,
               const EvaluationSettings& settings,
               int begin,
               int end,
               const std::function<bool()>& keep_going,
               TaskScore& task) {
  std::vector<Record> records;
  std::vector<Lane> lanes;
  for (int i = begin; i < end; i++) {
    auto record = task_generator(task.task).make(settings.split, task.level, i);
    if (!record) continue;
    if (record->prompt.empty()) {
      if (!keep_going()) return false;
      read(model, *record, task);
      continue;
    }
    Limits limits;
    limits.max_tokens = settings.max_tokens * (max_record_tokens(task.task) / 512);
    limits.eos_ids = model.config().eos_ids;
    lanes.push_back(make_lane(i, model, tokens_of(model, record->prompt), settings.decoder,
                              {.target = model, .limits = limits}, settings.options));
    records.push_back(std::move(*record));
  }
  if (!decode_lanes(model, lanes, keep_going)) return false;
  for (std::size_t i = 0; i < lanes.size(); i++)
    score(model, records[i], lanes[i], settings.entropy, task);
  return true;
}

double percent(int part, int whole) {
  return whole ? 100.0 * part / whole : 0;
}

nlohmann::ordered_json forms_json(const TaskScore& task) {
  auto forms = nlohmann::ordered_json::object();
  for (const auto& [name, form] : task.forms)
    forms[name] = {{"n", form.n}, {"n_checked", form.n_checked}, {"n_correct", form.n_correct}};
  return forms;
}

bool has_passages(const TaskScore& task) {
  return std::ranges::any_of(task.ends, [](int n) { return n > 0; });
}

std::string right_of(int n_correct, int n_checked) {
  return n_checked ? fmt::format("{:.1f} %", percent(n_correct, n_checked)) : "not checked";
}

// Lines below the table: categories of chat, forms of write, perplexity.
std::string further_lines(const TaskScore& task) {
  std::string text;
  if (task.read_only)
    text += fmt::format("\n{}, level {}: perplexity {:.2f} a token, {} texts read.\n", task.task,
                        task.level, std::exp(task.loss), task.n);
  if (has_passages(task))
    text += fmt::format(
        "\n{}, level {}: passages in which 0, 1, 2, 3, 4 paragraphs end in their sentence: {}; "
        "name "
        "its subject: {}.\n",
        task.task, task.level, fmt::join(task.ends, ", "), fmt::join(task.subjects, ", "));
  if (task.task != "write" && task.task != "chat") return text;
  text += fmt::format("\n{}, level {}, right by form:", task.task, task.level);
  for (const auto& [name, form] : task.forms)
    text += fmt::format("{} {} {} of {}", &form == &task.forms.begin()->second ? "" : ",", name,
                        right_of(form.n_correct, form.n_checked), form.n);
  return text + ".\n";
}

}  // namespace

Evaluation evaluate(Model& model,
                    const EvaluationSettings& settings,
                    const std::function<bool(int, int)>& progress) {
  ensure(model.tokenizer() != nullptr, "evaluation reads and writes text: it needs a tokenizer");
  ensure(settings.n_lanes > 0 && settings.n_problems > 0, "evaluation needs problems and lanes");
  const std::vector<std::string> tasks = settings.tasks.empty() ? task_names() : settings.tasks;
  Evaluation evaluation{model.name(), std::string(split_name(settings.split)), {}, true};
  const int n_all = static_cast<int>(tasks.size() * settings.levels.size()) * settings.n_problems;
  int n_done = 0;
  const auto keep_going = [&] { return !progress || progress(n_done, n_all); };
  for (const std::string& name : tasks) {
    for (const int level : settings.levels) {
      if (!evaluation.complete) break;
      TaskScore task;
      task.task = name;
      task.level = level;
      for (int begin = 0; begin < settings.n_problems; begin += settings.n_lanes) {
        const int end = std::min(begin + settings.n_lanes, settings.n_problems);
        evaluation.complete = run_group(model, settings, begin, end, keep_going, task);
        if (!evaluation.complete) break;
        n_done += end - begin;
      }
      if (task.n_tokens > 0) {
        task.entropy /= static_cast<double>(task.n_tokens);
        task.loss /= static_cast<double>(task.n_tokens);
      }
      if (task.n > 0) evaluation.scores.push_back(task);
    }
  }
  if (evaluation.complete) keep_going();  // reports the final progress
  return evaluation;
}

std::string to_json(const Evaluation& evaluation) {
  auto scores = nlohmann::ordered_json::array();
  for (const TaskScore& s : evaluation.scores) {
    const auto answered = [&](nlohmann::ordered_json value) {
      return s.read_only ? nlohmann::ordered_json(nullptr) : std::move(value);
    };
    nlohmann::ordered_json entry = {{"task", s.task},
                                    {"level", s.level},
                                    {"n", s.n},
                                    {"n_checked", s.n_checked},
                                    {"n_correct", s.n_correct},
                                    {"accuracy", answered(s.accuracy())},
                                    {"n_ended", answered(s.n_ended)},
                                    {"tokens", s.n_tokens},
                                    {"entropy", answered(s.entropy)},
                                    {"forms", forms_json(s)}};
    if (s.read_only) entry["perplexity"] = std::exp(s.loss);
    if (has_passages(s)) {
      entry["end_sentences"] = s.ends;
      entry["subjects"] = s.subjects;
    }
    scores.push_back(std::move(entry));
  }
  const nlohmann::ordered_json object = {{"model", evaluation.model},
                                         {"split", evaluation.split},
                                         {"complete", evaluation.complete},
                                         {"scores", scores}};
  return object.dump(2);
}

std::string to_markdown(const Evaluation& evaluation) {
  std::string table = fmt::format(
      "Generated problems of the {} split, greedy decoding. Entropy is the model's own, in nats a "
      "token over its answers.\n\n| task | level | problems | right | ended by itself | tokens an "
      "answer | entropy |\n|---|---|---|---|---|---|---|\n",
      evaluation.split);
  for (const TaskScore& s : evaluation.scores) {
    if (s.read_only) continue;
    table += fmt::format("| {} | {} | {} | {} | {:.1f} % | {:.0f} | {:.3f} |\n", s.task, s.level,
                         s.n, right_of(s.n_correct, s.n_checked), percent(s.n_ended, s.n),
                         s.n ? static_cast<double>(s.n_tokens) / s.n : 0, s.entropy);
  }
  for (const TaskScore& s : evaluation.scores) table += further_lines(s);
  if (!evaluation.complete) table += "\nStopped before all problems were decoded.\n";
  return table;
}

}  // namespace engine
