// Exports a timeline as CSV tables: one header row with units, RFC 4180 quoting and line ends,
// UTF-8, '.' as decimal separator, an empty cell for an undefined value. Every row identifies its
// run (decoder, options, parameters, seed, model, device) and the program version.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace engine {

class Timeline;

/// Options of the CSV export.
struct CsvOptions {
  /// Prefix text cells that begin with = + - @ or a tab with ', so that no spreadsheet evaluates
  /// them.
  bool for_spreadsheets = false;
};

/// One row per complete step.
std::string steps_csv(const Timeline& timeline, const CsvOptions& options = {});
/// One row per generated token.
std::string tokens_csv(const Timeline& timeline, const CsvOptions& options = {});
/// One row per run and depth (1: the first token after the prefix): counts of proposed, verified
/// and accepted tokens.
std::string acceptance_csv(const Timeline& timeline, const CsvOptions& options = {});
/// One row per run: its settings and results.
std::string lanes_csv(const Timeline& timeline, const CsvOptions& options = {});

/// Writes STEM-steps.csv, STEM-tokens.csv, STEM-acceptance.csv and STEM-lanes.csv: writes all four
/// files or none. No file is replaced: if one of them exists, a number is added to the stem.
/// @param before_each  called before each table; may throw Error to cancel. May be empty
/// @return  the names of the files
/// @throws Error(Resources)  as OutputFile; also what before_each() throws
std::vector<std::string> write_tables(const Timeline& timeline,
                                      const std::string& stem,
                                      const CsvOptions& options = {},
                                      const std::function<void()>& before_each = {});

}  // namespace engine
