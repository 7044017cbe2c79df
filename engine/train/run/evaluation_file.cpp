// The file: a line with the settings, then a line for each finished task, its to_json().
#include "engine/train/run/evaluation_file.h"

#include <cmath>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "engine/base/input_file.h"
#include "engine/base/output_file.h"
#include "engine/base/types.h"
#include "engine/data/record.h"

namespace engine {
namespace {

using nlohmann::json;

TaskScore task_score_from(const json& entry) {
  TaskScore s;
  entry.at("task").get_to(s.task);
  entry.at("level").get_to(s.level);
  entry.at("n").get_to(s.n);
  entry.at("n_checked").get_to(s.n_checked);
  entry.at("n_correct").get_to(s.n_correct);
  entry.at("tokens").get_to(s.n_tokens);
  s.read_only = entry.at("n_ended").is_null();
  if (s.read_only) {
    s.loss = std::log(entry.at("perplexity").get<double>());
  } else {
    entry.at("n_ended").get_to(s.n_ended);
    entry.at("entropy").get_to(s.entropy);
  }
  for (const auto& [name, form] : entry.at("forms").items())
    s.forms[name] = {form.at("n").get<int>(), form.at("n_checked").get<int>(),
                     form.at("n_correct").get<int>()};
  if (entry.contains("end_sentences")) {
    entry.at("end_sentences").get_to(s.ends);
    entry.at("subjects").get_to(s.subjects);
  }
  return s;
}

json settings_header(const Model& model,
                     const EvaluationSettings& settings,
                     const std::string& weights) {
  return {{"evaluation", 1},
          {"model", model.name()},
          {"weights", weights},
          {"dtype", model.weight_type()},
          {"split", std::string(split_name(settings.split))},
          {"levels", settings.levels},
          {"count", settings.n_problems},
          {"max_tokens", settings.max_tokens},
          {"decoder", settings.decoder},
          {"options", settings.options},
          {"entropy", settings.entropy}};
}

// Throws if the file is not one of saved scores, which may be replaced.
void refuse_foreign(const std::string& path, const std::string& first_line) {
  const json header = json::parse(first_line, nullptr, false);
  if (header.is_object() && header.contains("evaluation")) return;
  throw Error(ErrorCode::BadInput,
              path + ": found another file, expected figures of `model score`; name another file");
}

/// The scores of finished tasks, by name; ignores a partial last line.
class KeptScores {
 public:
  KeptScores(const std::string& path, const std::string& header)
      : path_(path), text_(header + "\n") {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return;
    std::string text = read_text_input(path, Pipes::Refuse);
    std::string_view line;
    if (!InputLines(text).next(line)) return;
    refuse_foreign(path, std::string(line));
    text.resize(text.rfind('\n') + 1);  // npos + 1 = 0: none
    InputLines lines(text);
    if (!lines.next(line) || line != header) return;
    while (lines.next(line)) {
      const Evaluation one = evaluation_from(std::string(line), path);
      if (one.scores.empty()) continue;
      scores_[one.scores[0].task] = one.scores;
      text_ += std::string(line) + "\n";
    }
  }
  const std::vector<TaskScore>* of(const std::string& task) const {
    const auto found = scores_.find(task);
    return found == scores_.end() ? nullptr : &found->second;
  }
  void add(const Evaluation& done) {
    text_ += nlohmann::ordered_json::parse(to_json(done)).dump() + "\n";
    write_whole_file(path_, text_);
  }

 private:
  std::string path_, text_;
  std::map<std::string, std::vector<TaskScore>> scores_;
};

}  // namespace

Evaluation evaluation_from(const std::string& text, const std::string& where) {
  Evaluation evaluation;
  try {
    const json object = json::parse(text);
    object.at("model").get_to(evaluation.model);
    object.at("split").get_to(evaluation.split);
    object.at("complete").get_to(evaluation.complete);
    for (const json& entry : object.at("scores"))
      evaluation.scores.push_back(task_score_from(entry));
  } catch (const json::exception& error) {
    throw Error(ErrorCode::BadInput, where + ": not the scores of a model: " + error.what());
  }
  return evaluation;
}

Evaluation evaluate_on(Model& model,
                       const EvaluationSettings& settings,
                       const std::string& path,
                       const std::string& weights,
                       const std::function<bool(int, int)>& progress) {
  const OutputLock lock = OutputLock::beside(path);
  check_can_be_written(path);
  KeptScores kept(path, settings_header(model, settings, weights).dump());
  const std::vector<std::string> tasks = settings.tasks.empty() ? task_names() : settings.tasks;
  Evaluation all{model.name(), std::string(split_name(settings.split)), {}, true};
  const int n_of_task = static_cast<int>(settings.levels.size()) * settings.n_problems;
  const int n_all = static_cast<int>(tasks.size()) * n_of_task;
  int n_before = 0;
  for (const std::string& task : tasks) {
    const std::vector<TaskScore>* scores = kept.of(task);
    Evaluation one;
    if (!scores) {
      EvaluationSettings alone = settings;
      alone.tasks = {task};
      one = evaluate(model, alone,
                     [&](int done, int) { return !progress || progress(n_before + done, n_all); });
      if (one.complete) kept.add(one);
      scores = &one.scores;
    }
    all.scores.insert(all.scores.end(), scores->begin(), scores->end());
    all.complete = one.complete;
    if (!all.complete) break;
    n_before += n_of_task;
    if (progress) progress(n_before, n_all);
  }
  return all;
}

}  // namespace engine
