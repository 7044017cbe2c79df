#include "engine/reason/tot_prompts.h"

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "engine/data/arith/answers.h"
#include "engine/data/real_set.h"
#include "engine/data/text.h"

namespace engine {
namespace {

// largest value of a field: a number of tokens, or of levels of a tree
constexpr int kMaxField = 1'000'000;

TotPrompt::Use use_named(const std::string& where, const std::string& name) {
  if (name == "thought") return TotPrompt::Use::Thought;
  if (name == "value") return TotPrompt::Use::Value;
  if (name == "kept") return TotPrompt::Use::Kept;
  if (name == "answer") return TotPrompt::Use::Answer;
  throw Error(ErrorCode::BadInput,
              where + ": use: found '" + name + "', expected thought, value, kept or answer");
}

ScorePlace score_place(const std::string& where, const std::string& name) {
  if (name == "first") return ScorePlace::First;
  if (name == "last") return ScorePlace::Last;
  throw Error(ErrorCode::BadInput, where + ": score: found '" + name + "', expected first or last");
}

bool is_word(std::string_view text) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  return !text.empty() && std::ranges::all_of(text, is_letter);
}

std::string value_of(const std::string& name, const Slots& slots) {
  if (const auto found = slots.find(name); found != slots.end()) return found->second;
  std::string small = name;
  small[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(small[0])));
  if (const auto found = slots.find(small); found != slots.end()) return capitalised(found->second);
  std::vector<std::string> known;
  for (const auto& [one, value] : slots) known.push_back("{" + one + "}");
  throw Error(ErrorCode::BadInput, "prompt: found {" + name + "}, expected one of " +
                                       joined(known, ", ") + "; is it a part of a later thought?");
}

/// A number of a line; `fallback` if the field is missing and fallback >= low.
/// @throws Error(BadInput)  if the field is no whole number from `low` to kMaxField
int whole_field(
    const nlohmann::json& line, const char* name, int low, int fallback, const std::string& path) {
  const auto field = line.find(name);
  if (field == line.end() && fallback >= low) return fallback;
  const bool fits =
      field != line.end() && field->is_number_integer() && *field >= low && *field <= kMaxField;
  if (!fits)
    throw Error(ErrorCode::BadInput, path + ": " + name + ": found " +
                                         (field == line.end() ? "none" : field->dump()) +
                                         ", expected a whole number from " + std::to_string(low) +
                                         " to " + std::to_string(kMaxField));
  return field->get<int>();
}

}  // namespace

std::vector<TotPrompt> read_tot_prompts(const std::string& path) {
  std::vector<TotPrompt> prompts;
  for_each_json_line(path, [&](const nlohmann::json& line) {
    TotPrompt prompt;
    prompt.use = use_named(path, line.at("use").get<std::string>());
    const bool writes = prompt.use == TotPrompt::Use::Thought || prompt.use == TotPrompt::Use::Kept;
    if (writes) prompt.part = line.at("part").get<std::string>();
    prompt.depth = whole_field(line, "depth", 0, 0, path);
    prompt.text = line.at("prompt").get<std::string>();
    prompt.stop_texts = line.value("stop", std::vector<std::string>());
    prompt.max_tokens = whole_field(line, "max_tokens", 1, 0, path);
    prompt.score = score_place(path, line.value("score", "first"));
    prompts.push_back(std::move(prompt));
  });
  if (std::ranges::none_of(prompts, [](const auto& p) { return p.use == TotPrompt::Use::Thought; }))
    throw Error(ErrorCode::BadInput, path + ": found no line with use \"thought\", expected one");
  return prompts;
}

std::vector<const TotPrompt*> prompts_for(std::span<const TotPrompt> prompts,
                                          TotPrompt::Use use,
                                          int depth) {
  std::vector<const TotPrompt*> fitting;
  for (const TotPrompt& prompt : prompts)
    if (prompt.use == use && (prompt.depth == 0 || prompt.depth == depth))
      fitting.push_back(&prompt);
  return fitting;
}

std::string fill_template(std::string_view text, const Slots& slots) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = std::min(text.find('{', at), text.size());
    out += text.substr(at, open - at);
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) return out += text.substr(open);
    const std::string_view name = text.substr(open + 1, close - open - 1);
    if (is_word(name)) {
      out += value_of(std::string(name), slots);
      at = close + 1;
    } else {
      out += '{';
      at = open + 1;
    }
  }
  return out;
}

}  // namespace engine
