#include "engine/tokenizer/tokenizer_path.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "engine/base/mapped_file.h"
#include "engine/base/refuse.h"
#include "engine/tokenizer/gguf_tokenizer.h"
#include "engine/tokenizer/sentencepiece.h"
#include "engine/tokenizer/tiktoken.h"
#include "engine/tokenizer/tokenizer_files.h"
#include "engine/tokenizer/tokenizer_json.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Reads the first bytes of a file.
std::string beginning_of(const std::string& path) {
  return std::string(MappedFile::open(path)->bytes().substr(0, 4096));
}

/// Returns the only .tiktoken file of a directory; "" if there is none or more than one.
std::string only_tiktoken(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error))
    if (entry.path().extension() == ".tiktoken") found.push_back(entry.path().string());
  return found.size() == 1 ? found[0] : "";
}

bool is_tekken(const std::string& path) {
  return fs::path(path).filename().string().starts_with("tekken");
}

/// Reads the tokenizer from a file that is not a SentencePiece model. `begin`: its first bytes.
BpeDefinition definition_of(const std::string& path,
                            const std::string& begin,
                            const FileLimits& limits,
                            std::vector<std::string>& notices) {
  if (looks_like_tiktoken(begin)) return read_tiktoken(path, limits);
  if (is_tekken(path)) return read_tekken(path, limits);
  return read_tokenizer_json(path, limits, notices);
}

bool is_text_form(const std::string& tokenizer_model) {
  return exists(tokenizer_model) && looks_like_tiktoken(beginning_of(tokenizer_model));
}

/// Finds the file that defines the tokenizer of a directory without a SentencePiece model. Prefers
/// tokenizer.json, as transformers does.
std::string bpe_file_of(const std::string& directory) {
  const std::string model = directory + "/tokenizer.model";
  for (const std::string& file : {directory + "/tokenizer.json", directory + "/tekken.json"})
    if (exists(file)) return file;
  return is_text_form(model) ? model : only_tiktoken(directory);
}

/// Adds a notice if the directory also has a tokenizer.json with another number of tokens.
void note_other_size(const std::string& directory,
                     const Tokenizer& tokenizer,
                     const FileLimits& limits,
                     std::vector<std::string>& notices) {
  const std::string path = directory + "/tokenizer.json";
  if (!exists(path)) return;
  std::int64_t n = 0;
  try {
    n = count_tokens_of_json(path, limits);
  } catch (const Error& error) {
    notices.push_back(std::string(error.what()) + "; tokenizer.model is used");
    return;
  }
  if (n == 0 || n == tokenizer.vocab_size()) return;
  notices.push_back(
      fmt::format("{}: {} tokens, but tokenizer.model and the files beside it have {}: "
                  "tokenizer.model is used",
                  escaped(path), n, tokenizer.vocab_size()));
}

}  // namespace

bool has_tokenizer(const std::string& directory) {
  return exists(directory + "/tokenizer.model") || !bpe_file_of(directory).empty();
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& directory,
                                          const FileLimits& limits,
                                          std::vector<std::string>& notices,
                                          const std::string& model_type,
                                          int vocab_size) {
  const std::string model = directory + "/tokenizer.model";
  const std::string file = bpe_file_of(directory);
  if (file.empty() || (exists(model) && !is_text_form(model))) {
    auto tokenizer =
        open_sentencepiece_directory(directory, limits, notices, model_type, vocab_size);
    note_other_size(directory, *tokenizer, limits, notices);
    return tokenizer;
  }
  BpeDefinition definition = definition_of(file, beginning_of(file), limits, notices);
  apply_settings(read_tokenizer_settings(directory, limits, notices), file, definition);
  return make_bpe_tokenizer(std::move(definition));
}

std::shared_ptr<const Tokenizer> open_tokenizer_at(const std::string& path,
                                                   const FileLimits& limits,
                                                   std::vector<std::string>& notices) {
  std::error_code error;
  if (fs::is_directory(path, error)) return open_tokenizer(path, limits, notices);
  const std::string begin = beginning_of(path);
  if (begin.starts_with("GGUF"))
    return open_gguf_tokenizer(*GgufFile::open(path, limits), limits, notices);
  const std::size_t first = begin.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  const bool is_json = first != std::string::npos && begin[first] == '{';
  if (is_json || looks_like_tiktoken(begin))
    return make_bpe_tokenizer(definition_of(path, begin, limits, notices));
  SentencePieceOptions options;
  options.limits = limits;
  return open_sentencepiece(path, options);
}

}  // namespace engine
