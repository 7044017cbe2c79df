// Typed access to the members of a JSON object, with ranges. Every refusal names file and field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/json.h"

namespace engine {

/// The members of one JSON object.
class Fields {
 public:
  /// @param object  borrowed
  /// @param file    for messages
  /// @param prefix  before field names in messages, "rope_scaling."
  /// @throws Error(BadInput)  if it is not an object
  Fields(const Json& object, std::string file, std::string prefix = "");

  /// The member; null if it is absent or JSON null.
  const Json* find(const char* name) const;
  /// True if the member exists, also as null.
  bool has(const char* name) const { return object_.find(name) != nullptr; }
  /// An integer in low..high.
  /// @param fallback  value of an absent or null member; without it such a member is refused
  /// @throws Error(BadInput)  for another value
  std::int64_t integer(const char* name,
                       std::int64_t low,
                       std::int64_t high,
                       std::optional<std::int64_t> fallback = std::nullopt) const;
  /// A number with low < x <= high; otherwise as integer().
  double real(const char* name,
              double low,
              double high,
              std::optional<double> fallback = std::nullopt) const;
  /// true or false; `fallback` if absent or null.
  /// @throws Error(BadInput)  for another value
  bool boolean(const char* name, bool fallback) const;
  /// A string; nullopt if absent or null.
  /// @throws Error(BadInput)  for another value
  std::optional<std::string> string(const char* name) const;

  /// Refuses a member.
  /// @throws Error(BadInput)  always
  [[noreturn]] void fail(const char* name,
                         const std::string& found,
                         const std::string& expected) const;
  /// The file's name.
  const std::string& file() const { return file_; }

 private:
  const Json& object_;
  std::string file_;
  std::string prefix_;
};

}  // namespace engine
