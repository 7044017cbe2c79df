// Tables of a timeline as CSV: one header row with units, RFC 4180 quoting and line ends, UTF-8,
// '.' for decimals, an empty cell for what is undefined. Every row says what it is of (decoder,
// options, parameters, seed, model, device) and by which program it was written.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"

namespace engine {

struct CsvOptions {
  /// Text cells beginning with = + - @ or a tab get a ' in front, so that no spreadsheet runs them.
  bool for_spreadsheets = false;
};

/// One row a complete step.
std::string steps_csv(const Timeline& timeline, const CsvOptions& options = {});
/// One row a generated token.
std::string tokens_csv(const Timeline& timeline, const CsvOptions& options = {});
/// One row a run and depth: how many proposals stood there (1 is right behind the prefix), how many
/// were judged, how many kept.
std::string acceptance_csv(const Timeline& timeline, const CsvOptions& options = {});
/// One row a run: what it was asked and what came of it.
std::string lanes_csv(const Timeline& timeline, const CsvOptions& options = {});

/// Writes STEM-steps.csv, STEM-tokens.csv, STEM-acceptance.csv and STEM-lanes.csv: all four or none.
/// No file is replaced: where one of the four is there, all take the first numbered stem.
/// @param go_on  called before each table; it throws Error to give up. May be empty
/// @return  the names taken
/// @throws Error(Resources)  as OutputFile, or what go_on() throws
std::vector<std::string> write_tables(const Timeline& timeline,
                                      const std::string& stem,
                                      const CsvOptions& options = {},
                                      const std::function<void()>& go_on = {});

}  // namespace engine
