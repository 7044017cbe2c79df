// What `decoscope data generate|check|stats` do, as functions on text; the command line only wires
// them to files and streams.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/record.h"

namespace engine {

/// The largest start and the largest count of records, so that their sum fits.
inline constexpr std::int64_t kMaxRecords = std::int64_t{1} << 50;

/// Writes `count` records from `start` on as JSON lines, one call of `write` a line (no newline).
/// Of an open set (real_set_names()) these are its texts to learn from or its questions, in the
/// prompt forms of the generated tasks, as many as there are.
/// @param task      a generated task, or an open set, which has no levels
/// @param stop      asked before each record; true ends early
/// @param data_dir  the folder of the open texts, for sets and tasks that draw from them; empty:
///                  without
/// @return  records written
/// @throws Error  (Usage) for an unknown task, a level that is not 1..3, a start or count outside
///                0..kMaxRecords, a start beyond the end of a set, a set without its folder or
///                without such a split; of sets also as read_real_set()
std::int64_t generate_records(std::string_view task,
                              Split split,
                              int level,
                              std::int64_t start,
                              std::int64_t count,
                              const std::function<void(const std::string&)>& write,
                              const std::function<bool()>& stop = {},
                              const std::string& data_dir = {});

/// "form" of a record's check; "unnamed" where it has none.
std::string form_name(const Record& record);

struct DataCheck {
  std::int64_t n_records = 0;  ///< looked at
  std::int64_t n_correct = 0;
  std::int64_t n_skipped = 0;      ///< the checker could not run here, or the set has no measure
  std::vector<std::string> wrong;  ///< "id: reason" of the first 20
  bool stopped = false;            ///< asked to stop; the records behind were not looked at
};

/// Runs every record's checker on its own completion.
/// @param stop  asked around each record; true ends early, and the record under way is not counted
/// @throws Error  as read_records()
DataCheck check_records(const std::vector<Record>& records, const std::function<bool()>& stop = {});

/// Texts are at most this long, in tokens, begin and end tokens included: 512, and 1,024 of write
/// and chat.
int max_record_tokens(std::string_view task);

/// What the recipes of the tree train at; a longer text is cut there.
inline constexpr int kRecipeContext = 256;

/// The least copy share a task is specified with; 0 where none is.
double copy_share_floor(std::string_view task);

/// Tokens of a record as training reads it: begin token, prompt, completion, end token.
using CountTokens = std::function<int(const Record&)>;

struct DataStats {
  std::int64_t n_records = 0;
  bool has_tokens = false;  ///< the next five were counted
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
  /// Mean of copy_share() over the records: what a pool of 2-grams could have proposed.
  double copy_share = 0;
  double copy_share_floor = 0;    ///< of the task that all records are of; 0 if it has none
  std::int64_t n_duplicates = 0;  ///< records whose prompt and completion occurred before
  std::int64_t n_prompts_in_two_splits = 0;
  bool stopped = false;  ///< asked to stop; the records behind were not looked at
};

/// @param n_tokens  or empty: lengths are then in characters alone
/// @param stop      asked before each record; true gives the figures of those before
DataStats stats_of_records(const std::vector<Record>& records,
                           const CountTokens& n_tokens = {},
                           const std::function<bool()>& stop = {});

/// The same as text for people, a line each.
std::string describe(const DataStats& stats);
std::string describe(const DataCheck& check);

/// JSON objects for --json.
std::string to_json(const DataStats& stats);
std::string to_json(const DataCheck& check);

/// Share of the pieces of `completion` (words, single digits, single signs) that follow the piece
/// before them as somewhere earlier in prompt or completion.
double copy_share(std::string_view prompt, std::string_view completion);

}  // namespace engine
