// The open data sets as records: training texts, from the training parts only, and evaluation
// prompts. README.md of the data folder describes formats and splits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/data/record.h"

namespace engine {

/// The names of the open data sets: gsm8k commonsenseqa strategyqa aqua mbpp wikisql creak python_puzzles taskmaster4 self_instruct
/// tinyshakespeare advising (all with training texts) humaneval blocksworld mt_bench vicuna_bench
/// creative_writing defog_sql (without).
std::vector<std::string> real_set_names();

/// The data sets of a recipe that names none: all but advising, which was added later. Without it, such
/// recipes still give the same texts as before.
std::vector<std::string> default_training_sets();

/// The data sets whose training parts a generated task can draw texts from. Empty for tasks other
/// than write, chat and plain.
std::vector<std::string> open_sets_of_task(std::string_view task);

/// The licence of a data set, as its authors state it, and where it was published. Lists a second data
/// set that a reader uses too: the rationales of commonsenseqa come from `cos_e`.
struct RealSetTerms {
  std::string set;
  std::string licence;  ///< "MIT"; "public domain"
  std::string source;   ///< "github.com/openai/grade-school-math"
};

/// The terms of all data sets with training texts, in the order of real_set_names().
std::vector<RealSetTerms> real_set_terms();

/// Reads one part of a data set.
/// @param split     Train: training texts of at most 1,700 characters; Test: evaluation prompts
/// @param data_dir  the folder that holds one folder a data set
/// @return  empty if the data set has no such part
/// @throws Error(Usage)  for an unknown data set
/// @throws Error(Resources)  for a missing file
/// @throws Error(BadInput)  "file:line: field: ..." for a malformed one
std::vector<Record> read_real_set(std::string_view name, Split split, const std::string& data_dir);

/// Checks a completion of any record, generated or of an open data set: a number, letter, yes/no,
/// tests, a plan, a query (as text or by its rows) or end sentences. Runs Python answers in the sandbox
/// (run_python.h). Sets `skipped` if that is impossible, and for data without right and wrong (chat,
/// plain text).
/// @throws Error(BadInput)  if record.check does not have the form that the record's task writes
CheckResult check_record(const Record& record, std::string_view completion);

/// True if check_record() runs completions of the record as Python.
bool is_checked_by_running(const Record& record);

/// True if the mixture of a recipe (TrainingStream) contains records that are checked by running
/// their completions. @param mixture  JSON
bool mixes_code(std::string_view mixture);

}  // namespace engine
