#include "engine/checkpoint/generation_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/config_keys.h"

namespace engine {
namespace {

struct Range {
  double low, high;
  bool is_whole = false;
  bool above_low = false;  // excludes low

  bool contains(double number) const {
    const bool is_high_enough = above_low ? number > low : number >= low;
    return is_high_enough && number <= high && (!is_whole || number == std::floor(number));
  }
  std::string words() const {
    if (above_low) return fmt::format("a number above {}, at most {}", low, high);
    return fmt::format("a {}number from {} to {}", is_whole ? "whole " : "", low, high);
  }
};

/// Reads a number. A value out of range is an error if it is to be applied; otherwise it is ignored
/// and the notice names it.
std::optional<double> default_number(const Fields& fields,
                                     const char* name,
                                     const Range& range,
                                     bool applies) {
  const Json* value = fields.find(name);
  if (!value) return std::nullopt;
  if (value->is(JsonReader::Kind::Number) && range.contains(value->number().real()))
    return value->number().real();
  if (applies) fields.fail(name, value->shown(), range.words());
  return std::nullopt;
}

GenerationDefaults defaults_in(const Fields& fields, bool applies) {
  constexpr double kMost = 1e6, kMostTokens = std::numeric_limits<int>::max();
  const auto real = [&](const char* name, const Range& range) -> std::optional<float> {
    const auto number = default_number(fields, name, range, applies);
    return number ? std::optional(static_cast<float>(*number)) : std::nullopt;
  };
  const auto whole = [&](const char* name, int low) -> std::optional<int> {
    const Range range{.low = double{1} * low, .high = kMostTokens, .is_whole = true};
    const auto number = default_number(fields, name, range, applies);
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
  };
  GenerationDefaults out;
  const Json* sample = fields.find("do_sample");
  if (applies) fields.boolean("do_sample", false);  // fails unless true or false
  out.do_sample = sample && sample->boolean;
  out.temperature = real("temperature", {.low = 0, .high = kMost});
  out.top_p = real("top_p", {.low = 0, .high = 1});
  out.min_p = real("min_p", {.low = 0, .high = 1});
  out.top_k = whole("top_k", 0);
  out.repetition_penalty = real("repetition_penalty", {.low = 0, .high = kMost, .above_low = true});
  out.max_new_tokens = whole("max_new_tokens", 1);
  return out;
}

/// The members that --defaults model applies, with their values: "temperature 0.6".
std::vector<std::string> applicable_members(const Json& json, bool do_sample) {
  std::vector<std::string> members;
  const auto add = [&](const char* name, double neutral) {
    const Json* value = json.find(name);
    if (!value || value->is(JsonReader::Kind::Null)) return;
    const bool is_number = value->is(JsonReader::Kind::Number);
    if (is_number && value->number().real() == neutral) return;
    members.push_back(fmt::format("{} {}", name, value->shown()));
  };
  const Json* sample = json.find("do_sample");
  const bool is_no_bool = sample && !sample->is(JsonReader::Kind::Bool);
  if (do_sample || (is_no_bool && !sample->is(JsonReader::Kind::Null)))
    members.push_back("do_sample " + sample->shown());
  add("temperature", 1);
  add("top_p", 1);
  add("top_k", 50);
  add("min_p", 0);
  add("repetition_penalty", 1);
  add("max_new_tokens", -1);
  return members;
}

std::string joined_members(const std::vector<std::string>& members) {
  return fmt::format("{}", fmt::join(members, ", "));
}

void note_members(const std::string& path,
                  const Json& json,
                  GenerationUse use,
                  bool do_sample,
                  std::vector<std::string>& notices) {
  if (use == GenerationUse::Silent) return;
  const std::vector<std::string> able = applicable_members(json, do_sample);
  if (!able.empty() && use == GenerationUse::NotApplied)
    notices.push_back(fmt::format("{}: {}: not applied; --defaults model applies them",
                                  escaped(path), joined_members(able)));
  if (!able.empty() && use == GenerationUse::Applied)
    notices.push_back(fmt::format(
        "{}: {}: applied unless an option overrides them{}", escaped(path), joined_members(able),
        do_sample ? "" : "; without do_sample decoding is greedy, as in transformers"));
  std::vector<std::string> unable = generation_members_not_applied(json);
  const auto is_stop = [](const std::string& member) {
    return member.starts_with("stop_strings ");
  };
  if (const auto stop = std::ranges::find_if(unable, is_stop); stop != unable.end()) {
    notices.push_back(
        fmt::format("{}: {}: not applied, as transformers requires a tokenizer argument too; "
                    "--stop TEXT applies one",
                    escaped(path), *stop));
    unable.erase(stop);
  }
  if (!unable.empty())
    notices.push_back(
        fmt::format("{}: {}: not applied; not supported", escaped(path), joined_members(unable)));
}

}  // namespace

void read_generation_config(const std::string& path,
                            const FileLimits& limits,
                            GenerationUse use,
                            ConfigFile& file,
                            GenerationDefaults& defaults) {
  const Json json = read_json_file(path, limits);
  const Fields fields(json, path);
  if (const auto ids = end_ids(fields, file.config.vocab_size, file.notices))
    file.config.eos_ids = *ids;
  defaults = defaults_in(fields, use == GenerationUse::Applied);
  note_members(path, json, use, defaults.do_sample, file.notices);
}

}  // namespace engine
