// Tree of thoughts: a question is searched level by level; every thought of a level is written and
// valued by the model, and the best go on.
//   paper     Yao et al. 2023 (arXiv:2305.10601), breadth first; with the evaluator's scores and
//             the settings of Wang et al. 2024 (SEED, arXiv:2406.18200), algorithm 2
//   lossless  what is written is plain decoding's with the same seeds, so the tree is the same
//             whatever scheduler and decoder serve it, greedy and coupled
//   differs   a chain that needs no thought more is set aside instead of being prolonged to
//             depth T; values are greedy unless asked for otherwise, the answer always; equal
//             values go to the thought made first
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/reason/tot_prompts.h"
#include "engine/reason/tot_task.h"
#include "engine/run/scheduler.h"

namespace engine {

struct TotSettings {
  std::string decoder = "ar";
  OptionValues options;
  Sampling thoughts = {.temperature =
                           1};  // its seed is the search's, of which each text has its own
  float value_temperature = 0;
  int depth = 4;            // T: levels, at most
  int n_thoughts = 3;       // n: of each node
  int beam = 1;             // b: thoughts kept of each level
  bool no_special = false;  // names of control symbols in a prompt are text
  std::vector<TotPrompt> prompts;
};

/// What the completions of one kind cost.
struct TotCost {
  int n_calls = 0;
  std::int64_t n_tokens = 0;
  std::int64_t n_steps = 0;
  std::int64_t n_rows = 0;
  std::int64_t n_proposed = 0, n_accepted = 0, n_rejected = 0;
  /// Of decoders that draft: steps x the depth asked for.
  std::int64_t n_depth_asked = 0;
  /// Likewise: the depth of every step's tree, and the drafted tokens kept of it.
  std::int64_t n_draft_depth = 0, n_kept_of_depth = 0;
  double seconds = 0;       // own compute, prompts included
  double wall_seconds = 0;  // until all were there

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

struct TotItem {
  std::string id;
  std::string question;
  std::vector<TotNode> nodes;
  int node = 0;        // whose chain is the answer's
  std::string answer;  // what was written behind it
  bool correct = false;
  std::string reason;  // why it is not
  /// All that was generated, in the order in which it was asked for: level by level the thoughts,
  /// part by part, their values, where kept ones lead; then the answer. A line feed ends each.
  std::string text;
  TotCost thoughts, values, answers;

  /// Nodes from the first below the question to this one.
  std::vector<int> path_to(int node) const;
};

struct TotReport {
  std::vector<TotItem> items;
  bool complete = true;  // false: stopped early, items are those that were done
  int n_correct() const;
  double accuracy() const { return items.empty() ? 0 : 1.0 * n_correct() / std::ssize(items); }
};

/// Where a search is, for a line of progress.
struct TotProgress {
  int question = 0, n_questions = 0;  // from 0
  int depth = 0;                      // of the thoughts under way
  const char* use = "";               // thoughts, values, answer
  int done = 0, n = 0;                // completions of it
};

/// What prompts of that use wrote of a thought, one part behind the other.
std::string text_of(const Thought& thought,
                    std::span<const TotPrompt> prompts,
                    TotPrompt::Use use = TotPrompt::Use::Thought);

/// Refuses options with which a decoder may end a text before it is over (FastCoT's `stop`): no
/// thought would say that it was cut.
/// @throws Error(Usage)
void check_whole_texts(const std::string& decoder, const OptionValues& options);

/// Searches all questions, one after the other. Tells the tree to watch.events between its runs.
/// @param watch  first_run numbers the first completion, the others follow; ended is not called
/// @param tell   called as completions are done. Or empty
/// @param first_search  numbers the first question's search, the others follow
/// @throws Error(Usage)     if the decoder or its options cannot be, as check_whole_texts()
/// @throws Error(BadInput)  if a question does not fit the model's context, or a prompt has a slot
///                          that its task does not fill
TotReport search(Scheduler& scheduler,
                 const Model& model,
                 std::span<const Record> questions,
                 const TotSettings& settings,
                 const SchedulerWatch& watch = {},
                 const std::function<void(const TotProgress&)>& tell = {},
                 SearchId first_search = 1);

}  // namespace engine
