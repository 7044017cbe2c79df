// Writes the members of config.json in which the architectures differ, as read_family.h reads them.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/text.h"
#include "engine/checkpoint/config.h"

namespace engine {

/// Builds a JSON object. Its members keep the order in which they were added.
class ObjectText {
 public:
  /// Adds a member whose value is JSON text.
  void raw(const char* name, const std::string& value) {
    members_.push_back(json_quoted(name) + ": " + value);
  }
  /// Adds a string.
  void text(const char* name, const std::string& value) { raw(name, json_quoted(value)); }
  /// Adds a whole number.
  void integer(const char* name, std::int64_t value) { raw(name, std::to_string(value)); }
  /// Adds a floating-point number: the shortest text that parses to the same value, with a decimal
  /// point or exponent.
  template <std::floating_point T>
  void real(const char* name, T value) {
    std::string digits = fmt::format("{}", value);
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    raw(name, digits);
  }
  /// Adds true or false.
  void boolean(const char* name, bool value) { raw(name, value ? "true" : "false"); }

  /// The object as one line.
  std::string one_line() const { return fmt::format("{{{}}}", fmt::join(members_, ", ")); }
  /// The object with one member per line.
  std::string lines() const { return fmt::format("{{\n  {}\n}}\n", fmt::join(members_, ",\n  ")); }

 private:
  std::vector<std::string> members_;
};

/// Adds the activation, biases, multipliers, softcaps, windows and kinds of layers.
void write_family(const ModelConfig& config, ObjectText& out);

/// Checks that a config.json can describe the model. It cannot describe a widened model (--scale)
/// that has norm offsets, norms of q and k, or an embedding multiplier that depends on the width.
/// @throws Error(Usage)  if it cannot
void check_describable(const ModelConfig& config);

}  // namespace engine
