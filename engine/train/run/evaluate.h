// Evaluation of a trained model: greedy answers to unseen problems, scored by the tasks' checkers.
//   decoding  by any decoder of the engine, many problems in one forward pass
//   entropy   the mean entropy of the model's distributions along its own answers, in nats per
//             token. Below 0.05 the answers are mostly copied, above 0.5 they are mostly noise
//   plain     the task "plain" has no questions; its score is the perplexity of its texts
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/data/record.h"
#include "engine/decode/decoder.h"
#include "engine/decode/options.h"
#include "engine/model/model.h"

namespace engine {

struct Lane;  // engine/decode/step/stepper.h

/// Reads the prompts of the lanes and decodes all of them together to their ends.
/// @param keep_going  called before each step; false ends the decoding
/// @return            false if keep_going() ended it
bool decode_lanes(Model& model, std::vector<Lane>& lanes, const std::function<bool()>& keep_going);

/// Settings of an evaluation.
struct EvaluationSettings {
  std::vector<std::string> tasks;  // empty: all of task_names()
  std::vector<int> levels = {1, 2};
  Split split = Split::Test;
  int n_problems = 500;  // problems of each task and level
  int max_tokens = 256;  // maximum length of an answer; doubled for write and chat
  int n_lanes = 32;      // problems decoded together
  std::string decoder = "ar";
  OptionValues options;  // options of the decoder
  bool entropy = true;   // measure the entropy, by one more forward pass per problem
};

/// Counts for one form of problems, or for one category of chat.
struct FormCounts {
  int n = 0;
  int n_checked = 0;
  int n_correct = 0;
};

/// Scores of a task at a level.
struct TaskScore {
  std::string task;
  int level = 0;
  int n = 0;          // problems decoded
  int n_checked = 0;  // answers that the checker could check
  int n_correct = 0;
  int n_ended = 0;                        // answers with an end token within max_tokens
  std::int64_t n_tokens = 0;              // tokens of all answers
  std::int64_t n_steps = 0;               // steps of all answers
  std::map<std::string, double> metrics;  // sums over the runs of the metrics of a lane
  double entropy = 0;                     // mean over the tokens of all answers
  std::map<std::string, FormCounts> forms;
  // For passages with four end sentences: ends[i] counts the answers in which i paragraphs end with
  // their sentence, subjects[i] those in which i paragraphs name the subject of their sentence.
  std::array<int, 5> ends{};
  std::array<int, 5> subjects{};
  bool read_only = false;  // the texts have no prompt; only their loss is measured
  double loss = 0;         // loss of texts without a prompt, in nats per token
  /// Share of checked answers that are correct.
  double accuracy() const { return n_checked ? static_cast<double>(n_correct) / n_checked : 0; }
  /// Mean number of tokens per step.
  double tokens_per_step() const {
    return n_steps ? static_cast<double>(n_tokens) / static_cast<double>(n_steps) : 0;
  }
};

/// Result of an evaluation.
struct Evaluation {
  std::string model;
  std::string split;
  std::vector<TaskScore> scores;  // scores of the tasks that were begun
  bool complete = true;           // false: stopped, so the last score counts fewer problems
};

/// Evaluates all tasks and levels.
/// @param progress  called after every step with the number of finished problems and of all
///                  problems; returns false to stop. Answers of an unfinished group are not
///                  counted, because the short answers of a group end first
Evaluation evaluate(Model& model,
                    const EvaluationSettings& settings,
                    const std::function<bool(int, int)>& progress = {});

/// The result as JSON.
std::string to_json(const Evaluation& evaluation);
/// The table of the model card's section "Scores".
std::string to_markdown(const Evaluation& evaluation);

}  // namespace engine
