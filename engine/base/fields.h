// Typed, ranged access to the members of a JSON object; every refusal names file and field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/json.h"

namespace engine {

class Fields {
 public:
  /// @param object  borrowed; `prefix` ("rope_scaling.") goes before field names in messages
  /// @throws Error(BadInput)  if it is not an object
  Fields(const Json& object, std::string file, std::string prefix = "");

  /// The member, or null if it is absent or JSON null.
  const Json* find(const char* name) const;
  /// True if the member is there, be it null.
  bool has(const char* name) const { return object_.find(name) != nullptr; }
  /// An integer of [low, high]. Absent or null gives `fallback`; without one it is refused.
  std::int64_t integer(const char* name,
                       std::int64_t low,
                       std::int64_t high,
                       std::optional<std::int64_t> fallback = std::nullopt) const;
  /// A number with low < x <= high; the same rules.
  double real(const char* name,
              double low,
              double high,
              std::optional<double> fallback = std::nullopt) const;
  bool boolean(const char* name, bool fallback) const;
  /// nullopt if absent.
  std::optional<std::string> string(const char* name) const;

  [[noreturn]] void fail(const char* name,
                         const std::string& found,
                         const std::string& expected) const;
  const std::string& file() const { return file_; }

 private:
  const Json& object_;
  std::string file_;
  std::string prefix_;
};

}  // namespace engine
