#include "app/cli/prompt_file.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/json.h"
#include "engine/chat/messages.h"
#include "kernels/error.h"

namespace app {
namespace {

using kernels::Error;
using kernels::ErrorCode;

Prompt prompt_of(const nlohmann::json& line, const std::string& place, std::size_t number) {
  Prompt prompt;
  prompt.place = place;
  if (const auto messages = line.find("messages"); messages != line.end()) {
    prompt.messages = engine::messages_from(engine::parse_json(messages->dump(), place), place);
    prompt.text = prompt.messages.back().content;
  } else {
    const auto text = line.find("prompt");
    if (text == line.end() || !text->is_string())
      throw Error(ErrorCode::BadInput,
                  place + ": prompt: found none, expected a string (or messages)");
    prompt.text = text->get<std::string>();
  }
  const auto id = line.find("id");
  if (id == line.end()) {
    prompt.id = fmt::format("p{}", number);
  } else if (id->is_string()) {
    prompt.id = id->get<std::string>();
  } else if (id->is_number()) {
    prompt.id = id->dump();
  } else {
    throw Error(ErrorCode::BadInput, fmt::format("{}: id: found {}, expected a string or a number",
                                                 place, id->type_name()));
  }
  if (const auto seed = line.find("seed"); seed != line.end() && !seed->is_null()) {
    if (!seed->is_number_unsigned())
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: seed: found {}, expected a whole number from 0 to 2^64 - 1",
                              place, seed->is_number() ? seed->dump() : seed->type_name()));
    prompt.seed = seed->get<std::uint64_t>();
  }
  if (const auto task = line.find("task"); task != line.end() && task->is_string())
    prompt.task = task->get<std::string>();
  else if (const std::size_t end = prompt.id.find('/'); end != std::string::npos)
    prompt.task = prompt.id.substr(0, end);  // "arith/1/test/4"
  return prompt;
}

}  // namespace

std::vector<Prompt> read_prompts(const std::string& path,
                                 const engine::FileLimits& limits,
                                 engine::Pipes pipes) {
  const std::string text = engine::read_text_input(path, pipes);
  const std::string name = engine::input_name(path);
  std::vector<Prompt> prompts;
  engine::InputLines lines(text);
  for (std::string_view line; lines.next(line);) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) continue;
    const std::string place = fmt::format("{}:{}", name, lines.number());
    if (line[first] != '{')
      throw Error(ErrorCode::BadInput,
                  place + ": found no JSON object, expected {\"id\": .., \"prompt\": ..}");
    if (static_cast<std::int64_t>(line.size()) > limits.prompt_bytes) {
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: found a line of {} bytes, expected at most {}; --limit "
                              "prompt_bytes raises that",
                              place, line.size(), limits.prompt_bytes));
    }
    // Checks syntax, encoding and depth before building the tree.
    engine::JsonReader reader(line, place, engine::JsonReader::Places::Byte, 0, limits.json_depth);
    reader.skip();
    reader.end();
    try {
      const auto number = static_cast<std::size_t>(lines.number());
      prompts.push_back(prompt_of(nlohmann::json::parse(line), place, number));
    } catch (const nlohmann::json::exception& error) {
      throw Error(ErrorCode::BadInput, fmt::format("{}: {}", place, error.what()));
    }
  }
  if (prompts.empty())
    throw Error(ErrorCode::BadInput,
                name + ": found no prompts, expected one JSON object per line");
  return prompts;
}

}  // namespace app
