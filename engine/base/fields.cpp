#include "engine/base/fields.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/refuse.h"

namespace engine {

Fields::Fields(const Json& object, std::string file, std::string prefix)
    : object_(object), file_(std::move(file)), prefix_(std::move(prefix)) {
  if (object.is(JsonReader::Kind::Object)) return;
  const std::string field = prefix_.empty() ? "file" : prefix_.substr(0, prefix_.size() - 1);
  refuse(file_, field, object.shown(), "an object");
}

const Json* Fields::find(const char* name) const {
  const Json* value = object_.find(name);
  return value && !value->is(JsonReader::Kind::Null) ? value : nullptr;
}

void Fields::fail(const char* name, const std::string& found, const std::string& expected) const {
  refuse(file_, prefix_ + name, found, expected);
}

std::int64_t Fields::integer(const char* name,
                             std::int64_t low,
                             std::int64_t high,
                             std::optional<std::int64_t> fallback) const {
  const std::string expected = fmt::format("an integer of {}..{}", low, high);
  const Json* value = find(name);
  if (!value) {
    if (fallback) return *fallback;
    fail(name, object_.find(name) ? "null" : "none", expected);
  }
  if (!value->is(JsonReader::Kind::Number)) fail(name, value->shown(), expected);
  const std::optional<std::int64_t> number = value->number().integer();
  if (!number || *number < low || *number > high) fail(name, value->shown(), expected);
  return *number;
}

double Fields::real(const char* name,
                    double low,
                    double high,
                    std::optional<double> fallback) const {
  const std::string expected = fmt::format("a number above {} and at most {}", low, high);
  const Json* value = find(name);
  if (!value) {
    if (fallback) return *fallback;
    fail(name, object_.find(name) ? "null" : "none", expected);
  }
  if (!value->is(JsonReader::Kind::Number)) fail(name, value->shown(), expected);
  const double number = value->number().real();
  if (!(number > low && number <= high)) fail(name, value->shown(), expected);
  return number;
}

bool Fields::boolean(const char* name, bool fallback) const {
  const Json* value = find(name);
  if (!value) return fallback;
  if (!value->is(JsonReader::Kind::Bool)) fail(name, value->shown(), "true or false");
  return value->boolean;
}

std::optional<std::string> Fields::string(const char* name) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is(JsonReader::Kind::String)) fail(name, value->shown(), "a string");
  return value->text;
}

}  // namespace engine
