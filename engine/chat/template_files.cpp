#include "engine/chat/template_files.h"

#include <filesystem>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/refuse.h"
#include "engine/base/utf8.h"
#include "engine/checkpoint/gguf/gguf_file.h"

namespace engine {
namespace {

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::string default_of(const Json& list, const std::string& path) {
  for (std::size_t i = 0; i < list.items.size(); i++) {
    const Fields entry(list.items[i], path, fmt::format("chat_template.{}.", i));
    if (entry.string("name") == "default") return entry.string("template").value_or("");
  }
  return {};
}

std::string in_tokenizer_config(const std::string& path, const FileLimits& limits) {
  const Json config = read_json_file(path, limits);
  const Json* found = Fields(config, path).find("chat_template");
  if (!found) return {};
  if (found->is(JsonReader::Kind::String)) return found->text;
  if (found->is(JsonReader::Kind::Array)) return default_of(*found, path);
  refuse(path, "chat_template", found->shown(), "a text or a list of templates");
}

/// The text of a token that is given as "<s>" or as {"content": "<s>"}; empty if there is none.
std::string token_text(const Json& config, const std::string& path, const char* name) {
  const Json* token = Fields(config, path).find(name);
  if (!token) return {};
  if (token->is(JsonReader::Kind::String)) return token->text;
  return Fields(*token, path, std::string(name) + ".").string("content").value_or("");
}

/// The text of the token whose id a metadata key gives; empty if the key is absent.
std::string token_text(const GgufFile& file, const char* key) {
  const auto id = file.integer(key);
  const auto tokens = file.strings("tokenizer.ggml.tokens");
  if (!id || *id < 0 || *id >= static_cast<std::int64_t>(tokens.size())) return {};
  return std::string(tokens[static_cast<std::size_t>(*id)]);
}

ChatFiles in_gguf(const std::string& path, const FileLimits& limits) {
  const auto file = GgufFile::open(path, limits);
  return {{file->string("tokenizer.chat_template").value_or(""), path},
          token_text(*file, "tokenizer.ggml.bos_token_id"),
          token_text(*file, "tokenizer.ggml.eos_token_id")};
}

}  // namespace

ChatFiles read_chat_files(const std::string& path, const FileLimits& limits) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return in_gguf(path, limits);
  ChatFiles files = {{read_chat_template(path, limits), path}, {}, {}};
  for (const char* name : {"/tokenizer_config.json", "/special_tokens_map.json"}) {
    if (!exists(path + name)) continue;
    const Json json = read_json_file(path + name, limits);
    if (files.bos.empty()) files.bos = token_text(json, path + name, "bos_token");
    if (files.eos.empty()) files.eos = token_text(json, path + name, "eos_token");
  }
  return files;
}

std::string read_chat_template(const std::string& directory, const FileLimits& limits) {
  const std::string own = directory + "/chat_template.jinja";
  if (exists(own)) {
    std::string text = read_text_file(own, static_cast<std::size_t>(limits.json_bytes));
    if (first_bad_utf8(text) < text.size())
      refuse(own, "text", "bytes that are not UTF-8", "UTF-8");
    return text;
  }
  const std::string config = directory + "/tokenizer_config.json";
  return exists(config) ? in_tokenizer_config(config, limits) : std::string();
}

}  // namespace engine
