// Evaluation of a trained model: greedy answers to unseen problems, scored by the tasks' checkers.
//   decoding  by any decoder of the engine, many problems in one forward pass
//   entropy   of the model's distributions along its own answers, in nats per token: between 0.05 and
//             0.5 the text is neither copied nor noise
//   plain     a task without questions: measures the perplexity of its texts
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

/// Settings of an evaluation.
struct EvaluationSettings {
  std::vector<std::string> tasks;  // empty: all of task_names()
  std::vector<int> levels = {1, 2};
  Split split = Split::Test;
  int n_problems = 500;  // of each task and level
  int max_tokens = 256;  // of an answer; twice as many for write and chat
  int n_lanes = 32;      // problems decoded together
  std::string decoder = "ar";
  OptionValues options;  // of that decoder
  bool entropy = true;   // measure the entropy: one more forward pass per problem
};

/// Counts of one form of problems, or of one category of chat.
struct FormScore {
  int n = 0;
  int n_checked = 0;
  int n_correct = 0;
};

/// Scores of a task at a level.
struct TaskScore {
  std::string task;
  int level = 0;
  int n = 0;          // problems decoded
  int n_checked = 0;  // of those, answers that the checker could check
  int n_correct = 0;
  int n_ended = 0;                        // answers with an end token within max_tokens
  std::int64_t n_tokens = 0;              // of all answers
  std::int64_t n_steps = 0;               // of all answers
  std::map<std::string, double> metrics;  // of the runs, summed (metrics_of a lane)
  double entropy = 0;                     // mean over those tokens
  std::map<std::string, FormScore> forms;
  // Passages with four end sentences: number of answers in which 0, 1, .. 4 paragraphs end with their
  // sentence, and in which 0, 1, .. 4 paragraphs name its subject.
  std::array<int, 5> ends{};
  std::array<int, 5> subjects{};
  bool read_only = false;  // texts without a prompt, of which only the loss is measured
  double loss = 0;         // of such texts, in nats per token
  /// Share of checked answers that are correct.
  double accuracy() const { return n_checked ? static_cast<double>(n_correct) / n_checked : 0; }
  /// Mean over all steps.
  double tokens_per_step() const {
    return n_steps ? static_cast<double>(n_tokens) / static_cast<double>(n_steps) : 0;
  }
};

/// Result of an evaluation.
struct Evaluation {
  std::string model;
  std::string split;
  std::vector<TaskScore> scores;  // of the tasks begun
  bool complete = true;           // false: stopped, so the last score has fewer problems
};

/// Evaluates all tasks and levels.
/// @param progress  called after every step with the number of finished problems and of all; returns
///                  false to stop. An unfinished group is not counted: its first answers to end are
///                  the short ones
Evaluation evaluate(Model& model,
                    const EvaluationSettings& settings,
                    const std::function<bool(int, int)>& progress = {});

/// The result as JSON.
std::string to_json(const Evaluation& evaluation);
/// The table of the model card's section "Scores".
std::string to_markdown(const Evaluation& evaluation);

}  // namespace engine
