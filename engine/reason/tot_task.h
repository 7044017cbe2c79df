// The tasks of a tree of thoughts: their questions, the slots of their prompts, the end of a chain of
// thoughts, and the check of its answer.
//   arith, gsm8k             a thought is a sub-question and its answer; a chain is complete when its last
//                            thought repeats a sub-question or asks for the final answer. The prompt of the
//                            answer leaves that thought out
//   blocks, blocksworld      a thought is the next action; the model writes the state after it, and a
//                            chain is complete when the goal holds in that state
//   write, creative_writing  the first thought is a plan, the second the passage
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/record.h"
#include "engine/reason/questions.h"
#include "engine/reason/tot_prompts.h"

namespace engine {

/// The parts of a thought, by name.
using Thought = Slots;
/// The thoughts on a path from the question, the first one first.
using ThoughtChain = std::vector<Thought>;

/// A task.
class TotTask {
 public:
  virtual ~TotTask() = default;
  /// The question as text for the user.
  virtual std::string question(const Record& record) const = 0;
  /// The slots of the prompts that follow a chain. The search adds the parts of the current
  /// thought.
  virtual Slots slots(const Record& record, const ThoughtChain& chain) const = 0;
  /// Parses a completion of a part into the form that later prompts contain.
  /// @return  nothing if the text cannot be used
  virtual std::optional<std::string> parse(const std::string& part,
                                           std::string_view text) const = 0;
  /// True if the chain needs no further thought. May be called before all parts of the last thought
  /// exist.
  virtual bool is_complete(const Record& record, const ThoughtChain& chain) const = 0;
  /// The short answer: from the text written after the chain, or from the chain itself.
  virtual std::string answer(const ThoughtChain& chain, std::string_view written) const = 0;
  /// Checks the answer.
  /// @param answer  the text written after the chain; empty for tasks whose chain is the answer
  virtual CheckResult check(const Record& record,
                            const ThoughtChain& chain,
                            std::string_view answer) const = 0;
};

/// The defaults of a task.
struct TotTaskInfo {
  std::string name;
  std::string prompts;  // file in assets/prompts/tot/
  int depth;            // levels of the tree, as in the papers
  int level;            // difficulty of generated questions
};

/// All tasks: arith blocks write gsm8k blocksworld creative_writing.
const std::vector<TotTaskInfo>& tot_tasks();
/// The task of that name. @throws Error(Usage)  for an unknown task, with the list of tasks
const TotTaskInfo& tot_task_info(const std::string& name);
/// The path of the bundled prompts of a task.
std::string tot_prompts_file(const std::string& assets_dir, const TotTaskInfo& info);
/// The implementation of a task. @throws Error(Usage)  as tot_task_info()
const TotTask& tot_task(const std::string& name);

/// The questions of a task in a range.
/// @param n_actions  for blocks: only problems whose shortest plan has this number of actions; 0: all
/// @throws Error(Usage)  for an unknown task
/// @throws Error(Resources, BadInput)  for a data set that cannot be read
std::vector<Record> tot_questions(const std::string& task,
                                  const QuestionRange& range,
                                  int n_actions,
                                  const std::string& data_dir);
/// The records that are questions for a tree of thoughts.
/// @throws Error(BadInput)  if there is none, or they belong to several tasks
std::vector<Record> tot_questions_of(std::vector<Record> records, int n_actions);

}  // namespace engine
