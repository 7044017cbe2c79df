// Tree of thoughts: breadth-first search. On each level the model writes thoughts (thought generator) and
// scores them (state evaluator); the search keeps the best ones.
//   paper     Yao et al. 2023 (arXiv:2305.10601), algorithm 1 (ToT-BFS); scores and settings of Wang et
//             al. 2024 (SEED, arXiv:2406.18200), algorithm 2
//   lossless  greedy and coupled: each text is what plain decoding gives with the same seed, so the tree
//             does not depend on scheduler or decoder
//   differs   values are likelihoods by default (state_value.h); the search does not extend a complete chain
//             to depth T; the answer is greedy; of thoughts with equal values the one written first wins
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/reason/state_value.h"
#include "engine/reason/tot_prompts.h"
#include "engine/reason/tot_task.h"
#include "engine/run/scheduler.h"

namespace engine {

/// The settings of a search.
struct TotSettings {
  std::string decoder = "ar";
  OptionValues options;
  /// The sampling of thoughts. The seed of each text is a hash of this seed, the question and the node.
  Sampling thoughts = {.temperature = 1};
  std::optional<float> value_temperature;  // of evaluations; unset: that of the thoughts
  ValueSource value_source = ValueSource::Likelihood;
  int depth = 4;            // T: maximum number of levels
  int n_thoughts = 3;       // n: thoughts for each node
  int beam = 1;             // b: thoughts that stay on each level
  bool no_special = false;  // reads names of control symbols in a prompt as text
  std::vector<TotPrompt> prompts;

  /// The temperature of evaluations.
  float temperature_of_values() const { return value_temperature.value_or(thoughts.temperature); }
};

/// The cost of the completions of one kind.
struct TotCost {
  int n_calls = 0;
  std::int64_t n_tokens = 0;
  std::int64_t n_steps = 0;
  std::int64_t n_rows = 0;
  std::int64_t n_proposed = 0, n_accepted = 0, n_rejected = 0;
  /// For decoders that draft: n_steps times the draft depth that the options request.
  std::int64_t n_requested_depth = 0;
  /// For decoders that draft: the sums of the draft trees' depths and of the accepted tokens.
  std::int64_t n_draft_depth = 0, n_kept_of_depth = 0;
  double seconds = 0;       // compute time of the runs, including prefill
  double wall_seconds = 0;  // elapsed time

  /// Adds all counts and times.
  TotCost& operator+=(const TotCost& more);
};

/// A node of the tree. Node 0 is the question.
struct TotNode {
  int parent = -1;
  int depth = 0;
  Thought parts;
  bool readable = true;
  bool complete = false;
  std::optional<ThoughtValued> valued;
  ThoughtFate fate = ThoughtFate::Kept;
};

/// A searched question.
struct TotItem {
  std::string id;
  std::string question;
  std::vector<TotNode> nodes;
  int node = 0;        // the last thought of the chain that gives the answer
  std::string answer;  // the text written after that chain
  bool correct = false;
  std::string reason;  // why the answer is wrong
  /// All generated texts in the order of their requests: for each level the thoughts (part by part),
  /// the evaluations and the Kept parts; then the answer. Each ends in a line feed.
  std::string text;
  TotCost thoughts, values, answers;

  /// The nodes from the first thought to this one.
  std::vector<int> path_to(int node) const;
};

/// The result of search().
struct TotReport {
  std::vector<TotItem> items;
  bool complete = true;   // false: stopped early; `items` has the finished questions
  int n_correct() const;  ///< right answers
  /// Right answers over items; 0 without items.
  double accuracy() const {
    return items.empty() ? 0 : static_cast<double>(n_correct()) / static_cast<double>(items.size());
  }
};

/// The progress of a search.
struct TotProgress {
  int question = 0, n_questions = 0;  // current question, from 0
  int depth = 0;                      // current level
  const char* use = "";               // current kind of texts: thoughts, values, answer
  int done = 0, n = 0;                // completions of this kind
};

/// The parts of a thought, in the order of the prompts; only parts written by prompts with this
/// `use`.
std::string text_of(const Thought& thought,
                    std::span<const TotPrompt> prompts,
                    TotPrompt::Use use = TotPrompt::Use::Thought);

/// Searches all questions, one after the other. Reports the tree as events to watch.events.
/// @param watch   first_run is the number of the first completion; `ended` is not called
/// @param on_progress  called after each completion; may be empty
/// @param first_search  the number of the first question's search
/// @throws Error(Usage)     if decoder or options are invalid, or as refuse_early_stop()
/// @throws Error(BadInput)  if a question does not fit the model's context, or a prompt has a slot
///                          that its task does not fill
TotReport search(Scheduler& scheduler,
                 Model& model,
                 std::span<const Record> questions,
                 const TotSettings& settings,
                 const SchedulerWatch& watch = {},
                 const std::function<void(const TotProgress&)>& on_progress = {},
                 SearchId first_search = 1);

}  // namespace engine
