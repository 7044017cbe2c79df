#include "app/commands/models/chat.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/commands/named_model.h"
#include "app/commands/report.h"
#include "engine/base/input_file.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/chat/messages.h"
#include "engine/chat/template_files.h"

namespace app {
namespace {

std::vector<engine::ChatMessage> messages_of(const ModelCommandOptions& options) {
  const ReadingInput reading(options.messages, "messages, a JSON array,");
  const engine::Json input = engine::read_json_input(options.messages, options.limits);
  const engine::Json* list =
      input.is(engine::JsonReader::Kind::Object) ? input.find("messages") : &input;
  const std::string place = engine::input_name(options.messages);
  auto messages = engine::messages_from(list ? *list : engine::Json(), place);
  engine::add_system_message(messages, options.system);
  return messages;
}

/// Resolves --model to the path of a GGUF file or a directory.
std::string found_path(const std::string& given) {
  std::error_code error;
  return std::filesystem::is_regular_file(given, error) ? given : model_folder(given);
}

nlohmann::json chat_json(const std::vector<engine::ChatPart>& parts) {
  nlohmann::json list = nlohmann::json::array();
  for (const engine::ChatPart& part : parts)
    list.push_back({{"text", part.text}, {"from_message", part.from_message}});
  return {{"rendered_prompt", engine::text_of(parts)}, {"parts", list}};
}

}  // namespace

int model_chat(const ModelCommandOptions& options) {
  const engine::ChatFiles files = engine::read_chat_files(found_path(options.path), options.limits);
  if (files.chat_template.text.empty())
    engine::refuse(
        files.chat_template.place, "chat template", "none",
        "chat_template.jinja, chat_template in tokenizer_config.json or, in a GGUF file, "
        "tokenizer.chat_template");
  const engine::ChatSettings settings = {.bos = options.bos.value_or(files.bos),
                                         .eos = options.eos.value_or(files.eos),
                                         .add_generation_prompt = !options.no_generation_prompt,
                                         .now = options.now};
  const auto parts = engine::render_chat(files.chat_template, messages_of(options), settings);
  print(options.json ? dumped(chat_json(parts)) : engine::text_of(parts));
  return 0;
}

}  // namespace app
