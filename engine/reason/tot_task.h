// What a task makes of a tree of thoughts: which questions it asks, what stands in its prompts,
// when a chain of thoughts is complete and what it is worth in the end.
//   arith, gsm8k             a thought is a sub-question and its answer; a chain is complete when
//                            it asks what was asked before, or for the final answer
//   blocks, blocksworld      a thought is the next action; the model tells the state behind it, and
//                            a chain is complete when the goal holds in that state
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

/// The parts that were written of a thought, by name.
using Thought = Slots;
/// Thoughts from the first below the question on.
using ThoughtChain = std::vector<Thought>;

class TotTask {
 public:
  virtual ~TotTask() = default;
  /// What is asked, for people.
  virtual std::string question(const Record& record) const = 0;
  /// What prompts can say of a chain; the parts of the thought under way come on top.
  virtual Slots slots(const Record& record, const ThoughtChain& chain) const = 0;
  /// A completion of a part as further prompts hold it.
  /// @return  nothing if it cannot be used
  virtual std::optional<std::string> read(const std::string& part, std::string_view text) const = 0;
  /// Whether no thought is needed behind the chain's last, which may still lack parts.
  virtual bool complete(const Record& record, const ThoughtChain& chain) const = 0;
  /// The answer in short: what was written behind the chain, or of the chain itself.
  virtual std::string answer(const ThoughtChain& chain, std::string_view written) const = 0;
  /// @param answer  what was written behind the chain; empty for tasks whose chain is the answer
  virtual CheckResult score(const Record& record,
                            const ThoughtChain& chain,
                            std::string_view answer) const = 0;
};

struct TotTaskInfo {
  std::string name;
  std::string prompts;  // file of assets/prompts/tot/
  int depth;            // the papers' levels
  int level;            // of a generated task, where none is asked for
};

/// arith blocks write gsm8k blocksworld creative_writing
const std::vector<TotTaskInfo>& tot_tasks();
/// @throws Error(Usage)  for an unknown task, naming those there are
const TotTaskInfo& tot_task_info(const std::string& name);
/// The file of prompts that the program brings for a task.
std::string tot_prompts_file(const std::string& assets_dir, const TotTaskInfo& info);
const TotTask& tot_task(const std::string& name);

/// Questions start, start + 1, .. of a task.
/// @param n_actions  of block problems: those whose shortest plan has so many; 0: any
/// @throws Error(Usage)  for an unknown task
/// @throws Error(Resources, BadInput)  for a set that cannot be read
std::vector<Record> tot_questions(const std::string& task,
                                  const QuestionRange& range,
                                  int n_actions,
                                  const std::string& data_dir);
/// Those of `records` that a tree of thoughts can ask.
/// @throws Error(BadInput)  if none can, or they are of several tasks
std::vector<Record> tot_questions_of(std::vector<Record> records, int n_actions);

}  // namespace engine
