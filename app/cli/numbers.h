// Numbers a person gives: every one is read here, so that each refusal says what was found and what
// is expected. Decimal, in no locale; no blanks, no plus sign, no other base.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

namespace app {

/// @return  nullopt  if `text` is anything but a whole number from low to high
std::optional<std::int64_t> whole_from(const std::string& text,
                                       std::int64_t low,
                                       std::int64_t high);
/// "found 'x', expected a whole number from 1 to 3"
std::string not_whole(const std::string& text, std::int64_t low, std::int64_t high);

/// For Option::transform: takes whole numbers from low to high, both included.
CLI::Validator whole_number(std::int64_t low, std::int64_t high = std::numeric_limits<int>::max());
/// For Option::transform: from 0 to 2^64 - 1.
CLI::Validator seed_number();

enum class Low : std::uint8_t { Included, Excluded };
/// For Option::check: finite numbers from low to high, which is the largest float if left out.
CLI::Validator real_number(float low,
                           float high = std::numeric_limits<float>::max(),
                           Low bound = Low::Included);

}  // namespace app
