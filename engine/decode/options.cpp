#include "engine/decode/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/base/closest_name.h"
#include "engine/base/types.h"

namespace engine {
namespace {

using Type = OptionInfo::Type;

constexpr const char* kAuto = "auto";

std::string short_number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string range_of(const OptionInfo& option) {
  return "between " + short_number(option.min) + " and " + short_number(option.max);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// The number that fills [begin, end); nullopt if the text is not a number or is outside the
/// option's range.
template <class N>
std::optional<N> number_in(const OptionInfo& option, const char* begin, const char* end) {
  N number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  const auto real = static_cast<double>(number);
  if (error != std::errc{} || stop != end || !std::isfinite(real) || real < option.min ||
      real > option.max)
    return std::nullopt;
  return number;
}

template <class N>
std::optional<N> number_in(const OptionInfo& option, const std::string& text) {
  return number_in<N>(option, text.data(), text.data() + text.size());
}

/// {2, 2, 1} as "2,2,1".
std::string text_of(const LevelCounts& counts) {
  std::string text;
  for (const int k : counts) text += (text.empty() ? "" : ",") + std::to_string(k);
  return text;
}

/// Adds the values of the chosen preset that were not given by name.
OptionValues with_preset(const DecoderInfo& info, OptionValues given) {
  const auto chosen = given.find("preset");
  const auto preset =
      chosen == given.end() ? info.presets.end() : info.presets.find(chosen->second);
  if (preset != info.presets.end()) given.insert(preset->second.begin(), preset->second.end());
  return given;
}

}  // namespace

TreeShape shape_of(const LevelCounts& counts) {
  // Adds with saturation, because an option may describe a tree with more tokens than an int can
  // hold.
  constexpr long long kMost = 1 << 30;
  long long n_tokens = 0, width = 1;
  for (const int k : counts) {
    width = std::min(width * k, kMost);
    n_tokens = std::min(n_tokens + width, kMost);
  }
  return {.n_tokens = static_cast<int>(n_tokens), .depth = static_cast<int>(counts.size())};
}

/// @return  the given text, or null
const std::string* OptionBinder::declare(OptionInfo info) {
  values_[info.name] = info.default_value;
  infos_.push_back(std::move(info));
  if (!given_) return nullptr;
  const auto found = given_->find(infos_.back().name);
  return found == given_->end() ? nullptr : &found->second;
}

void OptionBinder::refuse(const OptionInfo& info,
                          const std::string& text,
                          const std::string& expected) const {
  throw Error(ErrorCode::Usage, *decoder_ + ": " + info.name + ": found '" + text + "', expected " +
                                    expected + "; the default is " + info.default_value);
}

void OptionBinder::whole(
    const char* name, int& value, int min, int max, const char* help, const char* below_zero) {
  const std::string* text = declare({name,
                                     Type::Int,
                                     std::to_string(value),
                                     static_cast<double>(min),
                                     static_cast<double>(max),
                                     {},
                                     help,
                                     below_zero});
  if (!text) return;
  const OptionInfo& info = infos_.back();
  const auto number = number_in<long long>(info, *text);
  if (!number) refuse(info, *text, "a whole number " + range_of(info));
  value = static_cast<int>(*number);
  values_[name] = std::to_string(value);
}

void OptionBinder::whole_or_auto(
    const char* name, std::optional<int>& value, int min, int max, const char* help) {
  whole_or(kAuto, name, value, min, max, help);
}

void OptionBinder::whole_or(const char* word,
                            const char* name,
                            std::optional<int>& value,
                            int min,
                            int max,
                            const char* help) {
  const std::string* text = declare({name,
                                     Type::Int,
                                     value ? std::to_string(*value) : word,
                                     static_cast<double>(min),
                                     static_cast<double>(max),
                                     {word},
                                     help});
  if (!text) return;
  const OptionInfo& info = infos_.back();
  value.reset();
  values_[name] = word;
  if (*text == word) return;
  const auto number = number_in<long long>(info, *text);
  if (!number) refuse(info, *text, "a whole number " + range_of(info) + ", or " + word);
  value = static_cast<int>(*number);
  values_[name] = std::to_string(*value);
}

void OptionBinder::real(const char* name,
                        double& value,
                        double min,
                        double max,
                        const char* help,
                        const char* below_zero) {
  const std::string* text =
      declare({name, Type::Float, short_number(value), min, max, {}, help, below_zero});
  if (!text) return;
  const OptionInfo& info = infos_.back();
  const auto number = number_in<double>(info, *text);
  if (!number) refuse(info, *text, "a number " + range_of(info));
  value = *number;
  values_[name] = *text;
}

void OptionBinder::flag(const char* name, bool& value, const char* help) {
  const std::string* text =
      declare({name, Type::Bool, value ? "true" : "false", 0, 0, {"true", "false"}, help});
  if (!text) return;
  const auto is_one_of = [text](std::initializer_list<const char*> words) {
    return std::ranges::find(words, *text) != words.end();
  };
  const bool on = is_one_of({"true", "1", "on", "yes"});
  if (!on && !is_one_of({"false", "0", "off", "no"})) refuse(infos_.back(), *text, "true or false");
  value = on;
  values_[name] = on ? "true" : "false";
}

/// @param chosen  index of the default
/// @return        index of the given name, or of the default
std::size_t OptionBinder::choice_of(const char* name,
                                    std::vector<std::string> names,
                                    std::size_t chosen,
                                    const char* help) {
  const std::string fallback = names[chosen];
  const std::string* text = declare({name, Type::Choice, fallback, 0, 0, std::move(names), help});
  if (!text) return chosen;
  const std::vector<std::string>& choices = infos_.back().choices;
  const auto found = std::ranges::find(choices, *text);
  if (found == choices.end()) refuse(infos_.back(), *text, "one of " + joined(choices));
  values_[name] = *text;
  return static_cast<std::size_t>(found - choices.begin());
}

void OptionBinder::tree(const char* name,
                        std::string& value,
                        std::vector<std::string> choices,
                        const char* help) {
  const std::string* text = declare({name, Type::Tree, value, 0, 0, std::move(choices), help});
  if (!text) return;
  const std::vector<std::string>& known = infos_.back().choices;
  if (!text->ends_with(".json") && std::ranges::find(known, *text) == known.end())
    refuse(infos_.back(), *text, "one of " + joined(known) + ", or a .json file");
  value = values_[name] = *text;
}

/// "2, 2,1" as numbers; nullopt if they are not whole numbers in the option's range.
std::optional<LevelCounts> OptionBinder::parsed_counts(const OptionInfo& info,
                                                       const std::string& text) const {
  LevelCounts counts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    while (begin < end && text[begin] == ' ') begin++;
    const auto number = number_in<long long>(info, text.data() + begin, text.data() + end);
    if (!number) return std::nullopt;
    counts.push_back(static_cast<int>(*number));
    if (end == text.size()) return counts;
    begin = end + 1;
  }
}

void OptionBinder::counts(
    const char* name, LevelCounts& value, int min, int max, const char* help) {
  const std::string* text = declare({name,
                                     Type::Counts,
                                     text_of(value),
                                     static_cast<double>(min),
                                     static_cast<double>(max),
                                     {},
                                     help});
  if (!text) return;
  const OptionInfo& info = infos_.back();
  const auto counts = parsed_counts(info, *text);
  if (!counts) refuse(info, *text, "whole numbers " + range_of(info) + " with commas between");
  value = *counts;
  values_[name] = text_of(value);
}

void OptionBinder::counts_or_auto(
    const char* name, std::optional<LevelCounts>& value, int min, int max, const char* help) {
  const std::string* text = declare({name,
                                     Type::Counts,
                                     value ? text_of(*value) : kAuto,
                                     static_cast<double>(min),
                                     static_cast<double>(max),
                                     {kAuto},
                                     help});
  if (!text) return;
  const OptionInfo& info = infos_.back();
  if (*text == kAuto) {
    value = std::nullopt;
    values_[name] = kAuto;
    return;
  }
  value = parsed_counts(info, *text);
  if (!value)
    refuse(info, *text, "whole numbers " + range_of(info) + " with commas between, or auto");
  values_[name] = text_of(*value);
}

std::string name_hint(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest = closest_name(name, known);
  return nearest.empty() ? "known are " + joined(known) : "did you mean '" + nearest + "'?";
}

std::optional<std::string> DecoderOptions::why_no_rejection() const {
  if (info().supports_rejection) return std::nullopt;
  return info().name +
         " cannot run with sampling=rejection: it refines guesses towards a fixed point, which "
         "exists only for fixed random numbers; use sampling=coupled";
}

ParsedOptions parsed(const DecoderInfo& info,
                     std::unique_ptr<DecoderOptions> defaults,
                     const OptionValues& given) {
  std::vector<std::string> known;
  for (const OptionInfo& option : info.options) known.push_back(option.name);
  for (const auto& [name, value] : given) {
    if (std::ranges::find(known, name) != known.end()) continue;
    if (std::ranges::find(info.retired, name) != info.retired.end()) continue;
    throw Error(ErrorCode::Usage,
                info.name + ": there is no option '" + name + "'; " +
                    (known.empty() ? "this decoder has none" : name_hint(name, known)));
  }
  const OptionValues all = with_preset(info, given);
  OptionBinder binder(info.name, all);
  defaults->bind(binder);
  defaults->info_ = &info;
  defaults->values_ = binder.values();
  defaults->check();
  return defaults;
}

}  // namespace engine
