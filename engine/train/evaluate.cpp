#include "engine/train/evaluate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/decode/stepper.h"
#include "engine/types.h"

namespace engine {
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

// Summed over the answer: one forward over prompt and answer, as a chain of rows.
double answer_entropy(Model& model, const Sequence& sequence) {
  const auto cache = model.make_cache();
  const auto tokens = sequence.tokens();
  TokenTree tree;
  for (std::size_t i = 0; i + 1 < tokens.size(); i++) {
    tree.add(tokens[i], static_cast<int>(i) - 1, RowTag{});
  }
  const BatchItem item{cache.get(), &tree, {}, Sampling{}};
  const auto out = model.forward(std::span(&item, 1), Wants{.logits = true, .hidden = false});
  double sum = 0;
  for (std::size_t row = sequence.prompt().size() - 1; row + 1 < tokens.size(); row++) {
    sum += entropy_of(out[0].logits_of(static_cast<int>(row)));
  }
  return sum;
}

void score(
    Model& model, const Record& record, const Lane& lane, bool with_entropy, TaskScore& task) {
  const auto answer = lane.sequence.generated();
  const CheckResult result =
      task_generator(task.task).check(record, model.tokenizer()->decode(answer));
  task.n++;
  if (!result.skipped) task.n_checked++;
  if (result.correct) task.n_correct++;
  if (lane.sequence.stop_reason() == StopReason::Eos) task.n_ended++;
  task.n_tokens += static_cast<std::int64_t>(answer.size());
  task.n_steps += lane.n_steps;
  for (const auto& [name, value] : metrics_of(lane)) task.metrics[name] += value;
  if (with_entropy)
    task.entropy += answer_entropy(model, lane.sequence);  // a sum until all are done
}

// Decodes problems [begin, end) together; false if `go_on` said no in between, and nothing counted.
bool run_group(Model& model,
               const EvaluationSettings& settings,
               int begin,
               int end,
               const std::function<bool()>& go_on,
               TaskScore& task) {
  const Tokenizer& tokenizer = *model.tokenizer();
  std::vector<Record> records;
  std::vector<Lane> lanes;
  for (int i = begin; i < end; i++) {
    auto record = task_generator(task.task).make(settings.split, task.level, i);
    if (!record) continue;
    std::vector<TokenId> prompt;
    if (tokenizer.bos_id()) prompt.push_back(*tokenizer.bos_id());
    const auto ids = tokenizer.encode(record->prompt, false);
    prompt.insert(prompt.end(), ids.begin(), ids.end());
    Limits limits;
    limits.max_tokens = settings.max_tokens;
    limits.eos_ids = model.config().eos_ids;
    lanes.push_back(make_lane(i, model, std::move(prompt), settings.decoder,
                              {model, {}, limits, settings.options}));
    records.push_back(std::move(*record));
  }
  std::vector<Lane*> running;
  for (Lane& lane : lanes) {
    prefill(model, lane.sequence);
    lane.decoder->begin(lane.sequence);
    running.push_back(&lane);
  }
  Stepper stepper(model, nullptr);
  while (!running.empty()) {
    if (!go_on()) return false;
    stepper.step(running);
    std::erase_if(running, [](const Lane* lane) { return lane->sequence.finished(); });
  }
  for (std::size_t i = 0; i < lanes.size(); i++)
    score(model, records[i], lanes[i], settings.entropy, task);
  return true;
}

double percent(int part, int whole) {
  return whole ? 100.0 * part / whole : 0;
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
  const auto go_on = [&] { return !progress || progress(n_done, n_all); };
  for (const std::string& name : tasks) {
    for (const int level : settings.levels) {
      if (!evaluation.complete) break;
      TaskScore task;
      task.task = name;
      task.level = level;
      for (int begin = 0; begin < settings.n_problems; begin += settings.n_lanes) {
        const int end = std::min(begin + settings.n_lanes, settings.n_problems);
        evaluation.complete = run_group(model, settings, begin, end, go_on, task);
        if (!evaluation.complete) break;
        n_done += end - begin;
      }
      if (task.n_tokens > 0) task.entropy /= static_cast<double>(task.n_tokens);
      if (task.n > 0) evaluation.scores.push_back(task);
    }
  }
  if (evaluation.complete) go_on();  // the last of the progress
  return evaluation;
}

std::string to_json(const Evaluation& evaluation) {
  auto scores = nlohmann::ordered_json::array();
  for (const TaskScore& s : evaluation.scores) {
    scores.push_back({{"task", s.task},
                      {"level", s.level},
                      {"n", s.n},
                      {"n_checked", s.n_checked},
                      {"n_correct", s.n_correct},
                      {"accuracy", s.accuracy()},
                      {"n_ended", s.n_ended},
                      {"tokens", s.n_tokens},
                      {"entropy", s.entropy}});
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
    const std::string right =
        s.n_checked ? fmt::format("{:.1f} %", 100 * s.accuracy()) : std::string("not checked");
    table += fmt::format("| {} | {} | {} | {} | {:.1f} % | {:.0f} | {:.3f} |\n", s.task, s.level,
                         s.n, right, percent(s.n_ended, s.n),
                         s.n ? static_cast<double>(s.n_tokens) / s.n : 0, s.entropy);
  }
  if (!evaluation.complete) table += "\nStopped before all problems were decoded.\n";
  return table;
}

}  // namespace engine
