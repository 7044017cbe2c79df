// The work of `decoscope data generate|check|stats` as functions on records and text; app/ connects them
// to files and streams.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/record.h"

namespace engine {

/// The largest start and the largest count of records. Their sum fits 64 bits.
inline constexpr std::int64_t kMaxRecords = std::int64_t{1} << 50;

/// Writes `count` records from number `start` on, each with one call of `write` as a JSON line without
/// newline. An open data set (real_set_names()) gives its training texts or its questions, in the
/// prompt forms of the generated tasks, and at most as many as it has.
/// @param task      a generated task, or an open data set, which has no levels
/// @param stop      called before each record; true ends the writing
/// @param data_dir  the folder of the open data sets, which some generated tasks use too; empty: none
/// @return  number of records written
/// @throws Error  (Usage) for an unknown task, a level outside 1..3, a start or count outside
///                0..kMaxRecords, a start beyond the end of a data set, a data set without its folder
///                or without that split; as read_real_set() for data sets
std::int64_t generate_records(std::string_view task,
                              Split split,
                              int level,
                              std::int64_t start,
                              std::int64_t count,
                              const std::function<void(const std::string&)>& write,
                              const std::function<bool()>& stop = {},
                              const std::string& data_dir = {});

/// The "form" of a record's check; "unnamed" if it has none.
std::string form_name(const Record& record);

/// The result of check_records().
struct DataCheck {
  std::int64_t n_records = 0;  ///< checked or skipped
  std::int64_t n_correct = 0;
  std::int64_t n_skipped = 0;      ///< CheckResult::skipped
  std::vector<std::string> wrong;  ///< "id: reason" of the first 20
  bool stopped = false;            ///< `stop` returned true; the remaining records were not checked
};

/// Checks every record's own completion.
/// @param stop  called after each record; true ends the check, and that record is not counted
/// @throws Error  as read_records()
DataCheck check_records(const std::vector<Record>& records, const std::function<bool()>& stop = {});

/// The most tokens a record of the task may have, begin and end tokens included: 1,024 for write and
/// chat, else 512.
int max_record_tokens(std::string_view task);

/// The context of the bundled training recipes, in tokens; training cuts longer texts.
inline constexpr int kRecipeContext = 256;

/// The copy share that records of a task must reach; 0 if there is no such requirement.
double copy_share_floor(std::string_view task);

/// The number of tokens of a record in training: begin token, prompt, completion, end token.
using CountTokens = std::function<int(const Record&)>;

/// The figures of stats_of_records().
struct DataStats {
  std::int64_t n_records = 0;
  bool has_tokens = false;  ///< the next five figures are known
  double mean_tokens = 0;
  int max_tokens = 0;
  std::int64_t n_over_256 = 0;  ///< records of more than kRecipeContext
  std::int64_t n_over_512 = 0;
  std::int64_t n_too_long = 0;  ///< records of more than max_record_tokens() of their task
  double mean_chars = 0;        ///< prompt + completion
  double mean_prompt_chars = 0;
  double mean_completion_chars = 0;
  std::size_t max_chars = 0;
  std::map<std::string, std::int64_t> per_form;  ///< "task: form"
  /// The mean copy_share() of the records: the share that a pool of 2-grams could propose.
  double copy_share = 0;
  double copy_share_floor = 0;    ///< of the records' task; 0 if it has none, or for several tasks
  std::int64_t n_duplicates = 0;  ///< records whose prompt and completion occurred before
  std::int64_t n_prompts_in_two_splits = 0;
  bool stopped = false;  ///< `stop` returned true; the remaining records were not read
};

/// Computes lengths, forms, copy share and duplicates.
/// @param n_tokens  empty: lengths only in characters
/// @param stop      called before each record; true returns the figures of the records before it
DataStats stats_of_records(const std::vector<Record>& records,
                           const CountTokens& n_tokens = {},
                           const std::function<bool()>& stop = {});

/// The figures as text, one a line.
std::string describe(const DataStats& stats);
/// The result as text: counts, then the wrong records.
std::string describe(const DataCheck& check);

/// The figures as a JSON object, for --json.
std::string to_json(const DataStats& stats);
/// The result as a JSON object, for --json.
std::string to_json(const DataCheck& check);

/// The share of the completion's pieces (words, single digits, single signs) whose pair with the piece
/// before them occurs earlier in prompt or completion.
double copy_share(std::string_view prompt, std::string_view completion);

}  // namespace engine
