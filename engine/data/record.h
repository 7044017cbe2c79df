// Training and evaluation records, and the interface of their generators.
//   Record I of a split is a function of (task, level, split, I). The generator draws from
//   streams seeded by "task/level/split/I/attempt" for attempt 0, 1, .. and keeps the first problem
//   whose content key hashes into the split. A content key belongs to one split only, so no test
//   problem can occur in training, whatever the counts.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "engine/data/random.h"

namespace engine {

/// The part of the data that a record belongs to.
enum class Split { Train, Dev, Test };

/// "train", "dev" or "test".
std::string_view split_name(Split split);

/// The split of that name. @throws Error(Usage)  for a name other than train, dev, test
Split split_from_name(std::string_view name);

/// The split of a content key: FNV-1a(key) mod 100 is 0-89 for train, 90-94 for dev, 95-99 for test.
Split split_of_key(std::string_view key);

/// One training text, or one evaluation problem.
struct Record {
  std::string id;  ///< "arith/2/test/17"
  std::string task;
  int level = 1;  ///< 1..3; 0 for real sets
  std::string split;
  std::string prompt;
  std::string completion;  ///< follows the prompt without a separator; no end token
  std::string answer;      ///< the short answer, for tables
  std::string check;       ///< JSON object, the checker's input; "form" names the record's form
};

/// The result of checking one completion.
struct CheckResult {
  bool correct = false;
  std::string reason;    ///< empty if correct
  bool skipped = false;  ///< the checker cannot run on this machine, or there is no right answer:
                         ///< reason says why, correct is false
};

/// A task: makes records and checks completions of them.
class TaskGenerator {
 public:
  virtual ~TaskGenerator() = default;
  /// "arith", "kb", ..
  virtual std::string_view name() const = 0;

  /// Record `index` (>= 0) of a split. Every record passed check_generated(): arithmetic was
  /// recomputed, the plan simulated, the SQL run.
  /// @param level  1..3
  /// @return  nothing if no attempt gave a problem of that split (does not happen in practice)
  /// @throws ContractError  if a record fails its own check: a bug of the generator
  std::optional<Record> make(Split split, int level, std::int64_t index) const;

  /// Checks a completion, from a model or from the record itself. Reads only its text, and accepts
  /// any text; a leading space and a final "</s>" are ignored.
  /// @throws Error(BadInput)  if record.check does not have the form that this task writes
  virtual CheckResult check(const Record& record, std::string_view completion) const = 0;

  /// The check that make() applies to a new record: check(), but Python code is not run, so that
  /// making records needs no Python. Tests compare the expected results with CPython.
  virtual CheckResult check_generated(const Record& record) const {
    return check(record, record.completion);
  }

  /// For a task that mixes in texts of open data sets: the number of training texts after which each
  /// open text has occurred as often as allowed. 0 for other tasks.
  virtual std::int64_t full_size() const { return 0; }

 protected:
  /// One attempt: draws prompt, completion, answer and check.
  /// @return  nothing if the draw fails, or its content key belongs to another split
  virtual std::optional<Record> draw(Random& rng, int level, Split split) const = 0;
};

/// The names of all generated tasks: arith kb sql py blocks write chat plain.
std::vector<std::string> task_names();

/// The generator of a task. It lives as long as the program.
/// @throws Error(Usage)  for an unknown name, with the list of tasks
const TaskGenerator& task_generator(std::string_view name);

/// The generator of a task that also draws texts of the open data sets in a folder, for write, chat
/// and plain; other tasks have none. Its records differ from those of task_generator() under the same
/// ids; their `check` names the source of open texts.
/// @throws Error(Usage)  for an unknown name, with the list of tasks
/// @throws Error(BadInput)  if the folder lacks a data set
std::shared_ptr<const TaskGenerator> task_generator_with_open_texts(std::string_view name,
                                                                    const std::string& data_dir);

/// The record as one line of JSON, without the newline.
std::string to_json_line(const Record& record);

/// Reads a record from one line of JSON. @param where  "file:line" for messages
/// @throws Error(BadInput)  naming the field
Record record_from_json(std::string_view line, const std::string& where);

/// Reads records, one JSON object a line, from a file, a pipe or standard input ("-"). Skips empty
/// lines.
/// @throws Error(BadInput)  "file:line: field: ..", if there is no record, or as read_text_input()
std::vector<Record> read_records(const std::string& path);

}  // namespace engine
