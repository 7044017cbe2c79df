// What a trained model can do: greedy answers to unseen problems, scored by the tasks' own
// checkers.
//   decoding  the engine's own, plain autoregressive or what is asked for, many problems in one
//             forward
//   entropy   of the model's distribution over its own answers, in nats a token: between 0.05 and
//             0.5 the text is neither copied nor noise
//   plain     has no questions: its texts are read, and what is told is the perplexity
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

struct EvaluationSettings {
  std::vector<std::string> tasks;  // empty: all of task_names()
  std::vector<int> levels = {1, 2};
  Split split = Split::Test;
  int n_problems = 500;  // a task and level
  int max_tokens = 256;  // of an answer; of write and chat, whose texts may be longer, twice that
  int n_lanes = 32;      // problems decoded together
  std::string decoder = "ar";
  OptionValues options;  // of that decoder
  bool entropy = true;   // one forward more a problem
};

/// Problems of one form, or of one category of chat.
struct FormScore {
  int n = 0;
  int n_checked = 0;
  int n_correct = 0;
};

struct TaskScore {
  std::string task;
  int level = 0;
  int n = 0;          // problems decoded
  int n_checked = 0;  // of those, the checker could run
  int n_correct = 0;
  int n_ended = 0;                        // ended by themselves within max_tokens
  std::int64_t n_tokens = 0;              // of all answers
  std::int64_t n_steps = 0;               // of all answers
  std::map<std::string, double> metrics;  // of the runs, summed (metrics_of a lane)
  double entropy = 0;                     // mean over those tokens
  std::map<std::string, FormScore> forms;
  // Of passages with four end sentences, the answers in which 0, 1, .. 4 paragraphs end in theirs,
  // and in which so many name its subject.
  std::array<int, 5> ends{};
  std::array<int, 5> subjects{};
  bool read_only = false;  // texts without a prompt: read, not answered
  double loss = 0;         // of those, in nats a token
  double accuracy() const { return n_checked ? static_cast<double>(n_correct) / n_checked : 0; }
  double tokens_per_step() const {
    return n_steps ? static_cast<double>(n_tokens) / static_cast<double>(n_steps) : 0;
  }
};

struct Evaluation {
  std::string model;
  std::string split;
  std::vector<TaskScore> scores;  // of the tasks begun
  bool complete = true;           // false: stopped, so the last score has fewer problems
};

/// @param progress  called after every step of a group of problems with those done and all; false
///                  stops. The group under way is not counted: its short answers end first.
Evaluation evaluate(Model& model,
                    const EvaluationSettings& settings,
                    const std::function<bool(int, int)>& progress = {});

std::string to_json(const Evaluation& evaluation);
/// The table of the model card's section "Scores".
std::string to_markdown(const Evaluation& evaluation);

}  // namespace engine
