// Parses numbers of the command line, with error messages that state the value found and the range.
// Decimal only, independent of the locale; no white space, no plus sign.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

namespace app {

/// Parses a whole number from low to high.
/// @return  nullopt if `text` is anything else
std::optional<std::int64_t> whole_from(const std::string& text,
                                       std::int64_t low,
                                       std::int64_t high);
/// The error message for any other text: "found 'x', expected a whole number from 1 to 3".
std::string not_whole(const std::string& text, std::int64_t low, std::int64_t high);

/// For Option::transform: accepts whole numbers from low to high, both included.
CLI::Validator whole_number(std::int64_t low, std::int64_t high = std::numeric_limits<int>::max());
/// For Option::transform: accepts whole numbers from 0 to 2^64 - 1.
CLI::Validator seed_number();

/// Includes or excludes the lower bound of a range.
enum class Low : std::uint8_t { Included, Excluded };
/// For Option::check: accepts finite numbers from low to high, by default the largest float.
CLI::Validator real_number(float low,
                           float high = std::numeric_limits<float>::max(),
                           Low bound = Low::Included);

}  // namespace app
