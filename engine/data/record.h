// Training and evaluation records, and what a generator of them is.
//   record I of a split is a function of (task, level, split, I) alone: the generator draws from
//   streams seeded by "task/level/split/I/attempt" for attempt 0, 1, .. and keeps the first problem
//   whose content key falls into the split. Content keys part the splits, so no test problem can
//   occur in training, whatever the counts.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/random.h"
#include "engine/base/types.h"

namespace engine {

enum class Split { Train, Dev, Test };

std::string_view split_name(Split split);

/// @throws Error(Usage)  for a name other than train, dev, test
Split split_from_name(std::string_view name);

/// Where a content key belongs: FNV-1a(key) mod 100 is 0-89 train, 90-94 dev, 95-99 test.
Split split_of_key(std::string_view key);

/// One text to learn from or to be measured on.
struct Record {
  std::string id;  ///< "arith/2/test/17"
  std::string task;
  int level = 1;  ///< 1..3; 0 for real sets
  std::string split;
  std::string prompt;
  std::string completion;  ///< follows the prompt without a separator; no end token
  std::string answer;      ///< the short form of what is asked, for tables
  std::string check;       ///< JSON object: what the checker needs; "form" names the record's form
};

struct CheckResult {
  bool correct = false;
  std::string reason;    ///< empty if correct
  bool skipped = false;  ///< the checker could not run here (reason says why); correct is false
};

/// One task: makes records and scores completions of them.
class TaskGenerator {
 public:
  virtual ~TaskGenerator() = default;
  virtual std::string_view name() const = 0;

  /// Record `index` (>= 0) of a split. Every record passed check_generated(): arithmetic was
  /// recomputed, the plan simulated, the SQL run.
  /// @param level  1..3
  /// @return  nothing if no attempt gave a problem of that split (does not happen in practice)
  /// @throws ContractError  if a record fails its own check: a bug of the generator
  std::optional<Record> make(Split split, int level, std::int64_t index) const;

  /// Reads the text of a completion alone, a model's or our own. Never throws for what a completion
  /// says; a leading space and a closing "</s>" are ignored.
  /// @throws Error(BadInput)  if record.check is not what this task writes
  virtual CheckResult check(const Record& record, std::string_view completion) const = 0;

  /// The check that make() applies to a new record: check(), but Python code is not run, so that
  /// making records needs no Python. Tests compare the expected results with CPython.
  virtual CheckResult check_generated(const Record& record) const {
    return check(record, record.completion);
  }

  /// Of a task with open texts in it: how many texts it has when each of those stands in it as
  /// often as it may; 0 of the others.
  virtual std::int64_t full_size() const { return 0; }

 protected:
  /// One attempt. Returns nothing if the draw leads nowhere or its content key lies outside split.
  /// Fills prompt, completion, answer, check.
  virtual std::optional<Record> draw(Random& rng, int level, Split split) const = 0;
};

/// The names of all generators: arith kb sql py blocks write chat plain.
std::vector<std::string> task_names();

/// @return  the generator, alive for the whole program
/// @throws Error(Usage)  naming the tasks there are
const TaskGenerator& task_generator(std::string_view name);

/// The generator that draws from the open texts of a folder too, where its task has such: write,
/// chat, plain. Its records are others than those of task_generator(), under the same ids; their
/// check says where texts come from.
/// @throws Error(Usage)  naming the tasks there are
/// @throws Error(BadInput)  for a folder that lacks a set
std::shared_ptr<const TaskGenerator> task_generator_with_open_texts(std::string_view name,
                                                                    const std::string& data_dir);

/// One JSON line, without the newline.
std::string to_json_line(const Record& record);

/// @param where  "file:line" for messages
/// @throws Error(BadInput)  naming the field
Record record_from_json(std::string_view line, const std::string& where);

/// Reads JSON lines of records from a file, a pipe or, for "-", standard input; empty lines are
/// skipped.
/// @throws Error(BadInput)  "file:line: field: ..", if there is no record, or as read_text_input()
std::vector<Record> read_records(const std::string& path);

}  // namespace engine
