// The open data sets as records: texts to train on, from the allowed training parts alone, and
// prompts to evaluate on. Formats and splits: data/README.md of the data folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/data/record.h"

namespace engine {

/// gsm8k commonsenseqa strategyqa aqua mbpp wikisql creak python_puzzles taskmaster4 self_instruct
/// tinyshakespeare advising (all with training texts) humaneval blocksworld mt_bench vicuna_bench
/// creative_writing defog_sql (without).
std::vector<std::string> real_set_names();

/// What a recipe that names no sets reads: all but advising, which came later. Such a recipe keeps
/// the texts it had when it was written.
std::vector<std::string> default_training_sets();

/// The sets whose training parts a generated task draws from where it may: those of write, chat and
/// plain; of other tasks none.
std::vector<std::string> open_sets_of_task(std::string_view task);

/// Under what a set may be passed on, as its authors say, and where it was published. The texts a
/// reader takes from a second set are named too: `cos_e` gives commonsenseqa its rationales.
struct RealSetTerms {
  std::string set;
  std::string licence;  ///< "MIT"; "public domain"
  std::string source;   ///< "github.com/openai/grade-school-math"
};

/// Those of the sets that have training texts, in the order of real_set_names().
std::vector<RealSetTerms> real_set_terms();

/// @param split     Train: training texts, at most 1,700 characters each; Test: evaluation prompts
/// @param data_dir  the folder with one folder a set
/// @return  empty if the set has nothing for that split
/// @throws Error(Usage)  for an unknown set
/// @throws Error(Resources)  for a missing file
/// @throws Error(BadInput)  "file:line: field: ..." for a malformed one
std::vector<Record> read_real_set(std::string_view name, Split split, const std::string& data_dir);

/// Scores a completion of any record, generated or real: number, letter, yes/no, tests, plan, query
/// as text or by its rows, end sentences. Sets without a measure (chat, plain text) give skipped.
/// @throws Error(BadInput)  if record.check is not what the record's form writes
/// Answers that are Python are run (run_python.h); those of which that cannot be had are skipped.
CheckResult check_record(const Record& record, std::string_view completion);

/// Whether check_record() runs the completion as a program.
bool is_checked_by_running(const Record& record);

/// Whether records of the mixture (TrainingStream) may be checked by running their completions.
bool mixes_code(std::string_view mixture);

}  // namespace engine
