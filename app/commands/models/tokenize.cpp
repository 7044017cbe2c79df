#include "app/commands/models/tokenize.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/prompt_file.h"
#include "app/cli/terminal.h"
#include "app/commands/named_model.h"
#include "engine/base/text.h"
#include "engine/tokenizer/tokenizer_path.h"

namespace app {
namespace {

using engine::Error;
using engine::ErrorCode;

/// Resolves an argument to the path of a file, or of the directory of a model.
std::string tokenizer_path(const std::string& name_or_path) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(name_or_path, error);
  return is_file ? name_or_path : model_folder(name_or_path);
}

/// "    464  The".
std::string as_lines(const engine::Tokenizer& tokenizer, const std::vector<engine::TokenId>& ids) {
  std::string out;
  for (const engine::TokenId id : ids)
    out += fmt::format("{:>7}  {}\n", id, engine::printable(tokenizer.piece(id)));
  return out + fmt::format("{}\n", engine::counted(static_cast<std::int64_t>(ids.size()), "token"));
}

std::string as_json(const engine::Tokenizer& tokenizer, const std::vector<engine::TokenId>& ids) {
  std::vector<std::string> pieces;
  for (const engine::TokenId id : ids) pieces.push_back(engine::as_utf8(tokenizer.piece(id)));
  return nlohmann::ordered_json{{"tokens", ids}, {"pieces", pieces}}.dump() + "\n";
}

}  // namespace

int tokenize(const ModelCommandOptions& options) {
  if (!options.text && options.file.empty())
    throw Error(ErrorCode::Usage,
                "model tokenize: found neither --text nor --file; give one of them (--text \"The "
                "cat\")");
  std::vector<std::string> notices;
  const auto tokenizer =
      engine::open_tokenizer_at(tokenizer_path(options.path), options.limits, notices);
  for (const std::string& notice : notices) print_error("note: " + for_terminal(notice));
  const engine::TextReading reading{.add_special = options.special, .symbols = options.special};
  const auto print_tokens = [&](std::string_view text) {
    const std::vector<engine::TokenId> ids = tokenizer->encode(text, reading);
    print(options.json ? as_json(*tokenizer, ids) : as_lines(*tokenizer, ids));
  };
  if (options.text) {
    print_tokens(*options.text);
  } else {
    for (const Prompt& prompt : read_prompts(options.file, options.limits))
      print_tokens(prompt.text);
  }
  return 0;
}

}  // namespace app
