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

/// Writes `count` records from `start` on as JSON lines, one call of `write` a line (no newline).
/// @param stop  asked before each record; true ends early
/// @return  records written
/// @throws Error  (Usage) for an unknown task or a level that is not 1..3
std::int64_t generate_records(std::string_view task,
                              Split split,
                              int level,
                              std::int64_t start,
                              std::int64_t count,
                              const std::function<void(const std::string&)>& write,
                              const std::function<bool()>& stop = {});

struct DataCheck {
  std::int64_t n_records = 0;
  std::int64_t n_correct = 0;
  std::int64_t n_skipped = 0;      ///< the checker could not run here, or the set has no measure
  std::vector<std::string> wrong;  ///< "id: reason" of the first 20
};

/// Runs every record's checker on its own completion.
/// @throws Error  as read_records()
DataCheck check_records(const std::vector<Record>& records);

struct DataStats {
  std::int64_t n_records = 0;
  double mean_chars = 0;  ///< prompt + completion
  double mean_prompt_chars = 0;
  double mean_completion_chars = 0;
  std::size_t max_chars = 0;
  std::map<std::string, std::int64_t> per_form;  ///< "task: form"
  /// Mean of copy_share() over the records: what a pool of 2-grams could have proposed.
  double copy_share = 0;
  std::int64_t n_duplicates = 0;  ///< records whose prompt and completion occurred before
  std::int64_t n_prompts_in_two_splits = 0;
};

DataStats stats_of_records(const std::vector<Record>& records);

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
