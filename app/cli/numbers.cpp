#include "app/cli/numbers.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include <fmt/format.h>

#include "engine/base/text.h"

namespace app {
namespace {

template <class Number>
std::optional<Number> number_from(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end ? std::optional(number) : std::nullopt;
}

std::string refused(const std::string& text, const std::string& expected) {
  return fmt::format("found '{}', expected {}", engine::escaped(text), expected);
}

}  // namespace

std::optional<std::int64_t> whole_from(const std::string& text,
                                       std::int64_t low,
                                       std::int64_t high) {
  const auto number = number_from<std::int64_t>(text);
  return number && *number >= low && *number <= high ? number : std::nullopt;
}

std::string not_whole(const std::string& text, std::int64_t low, std::int64_t high) {
  return refused(text, fmt::format("a whole number from {} to {}", low, high));
}

// CLI11 parses the number again and reads 010 as octal, so it gets the digits without leading
// zeros.
CLI::Validator whole_number(std::int64_t low, std::int64_t high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        const auto number = whole_from(text, low, high);
        if (!number) return not_whole(text, low, high);
        text = std::to_string(*number);
        return std::string();
      },
      high < std::numeric_limits<int>::max() ? fmt::format("{} to {}", low, high) : "");
}

CLI::Validator seed_number() {
  return CLI::Validator(
      [](std::string& text) {
        const auto number = number_from<std::uint64_t>(text);
        if (!number) return refused(text, "a whole number from 0 to 2^64 - 1");
        text = std::to_string(*number);
        return std::string();
      },
      "");
}

CLI::Validator real_number(float low, float high, Low bound) {
  const std::string range = bound == Low::Excluded ? fmt::format("above {}, at most {}", low, high)
                                                   : fmt::format("from {} to {}", low, high);
  return CLI::Validator(
      [=](const std::string& text) {
        // Parses a double, so that a value too small for a float becomes 0, which is valid.
        const auto number = number_from<double>(text);
        bool fits =
            number && std::isfinite(*number) && *number >= double{low} && *number <= double{high};
        if (bound == Low::Excluded) fits = fits && static_cast<float>(*number) > low;
        return fits ? std::string() : refused(text, "a number " + range);
      },
      high < std::numeric_limits<float>::max() ? range : "");
}

}  // namespace app
