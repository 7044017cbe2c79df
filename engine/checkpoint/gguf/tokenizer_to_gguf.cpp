#include "engine/checkpoint/gguf/tokenizer_to_gguf.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/refuse.h"
#include "engine/tokenizer/bpe/word_patterns.h"
#include "engine/tokenizer/sentencepiece_scan.h"

namespace engine {
namespace {

using Type = ScannedPiece::Type;

// The vocabulary to write: one token for each row of the embedding.
struct Tokens {
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
  std::vector<float> scores;

  // All unused.
  explicit Tokens(int n) : types(static_cast<std::size_t>(n), Type::Unused) {
    for (int id = 0; id < n; id++) texts.push_back(fmt::format("[PAD{}]", id));
    scores.resize(texts.size());
  }
  void set(std::int64_t id, std::string text, int type, float score = 0) {
    if (id < 0 || id >= static_cast<std::int64_t>(texts.size())) return;
    const auto at = static_cast<std::size_t>(id);
    texts[at] = std::move(text);
    types[at] = type;
    scores[at] = score;
  }
  void write(GgufHeader& header, bool with_scores) const {
    header.texts("tokenizer.ggml.tokens", texts);
    if (with_scores) header.f32s("tokenizer.ggml.scores", scores);
    header.i32s("tokenizer.ggml.token_type", types);
  }
};

bool adds(const Tokenizer& tokenizer, std::optional<TokenId> id, bool at_front) {
  const std::vector<TokenId> ids = tokenizer.encode("a", true);
  return id && !ids.empty() && (at_front ? ids.front() : ids.back()) == *id;
}

void write_special_ids(const ModelFiles& files, GgufHeader& header) {
  const Tokenizer& tokenizer = *files.tokenizer;
  const auto put = [&](const char* name, std::optional<TokenId> id) {
    if (id) header.u32(fmt::format("tokenizer.ggml.{}_token_id", name), *id);
  };
  put("bos", tokenizer.bos_id() ? tokenizer.bos_id() : files.config.bos_id);
  std::vector<TokenId> ends = files.config.eos_ids;
  if (const auto eos = tokenizer.eos_id()) {
    std::erase(ends, *eos);
    ends.insert(ends.begin(), *eos);
  }
  constexpr const char* kEnds[] = {"eos", "eot", "eom"};
  for (std::size_t i = 0; i < std::min(ends.size(), std::size(kEnds)); i++) put(kEnds[i], ends[i]);
  put("padding", files.config.pad_id);
  header.boolean("tokenizer.ggml.add_bos_token", adds(tokenizer, tokenizer.bos_id(), true));
  header.boolean("tokenizer.ggml.add_eos_token", adds(tokenizer, tokenizer.eos_id(), false));
}

// ---- SentencePiece

// Adds a notice if the tokenizer normalises texts, because llama.cpp does not.
void note_normalisation(const ModelFiles& files, std::vector<std::string>& notices) {
  const Tokenizer& tokenizer = *files.tokenizer;
  const bool changes = tokenizer.encode("a  b", false) == tokenizer.encode("a b", false) ||
                       tokenizer.encode("\xEF\xAC\x81", false) == tokenizer.encode("fi", false);
  if (changes)
    notices.push_back(escaped(files.path) +
                      "/tokenizer.model: normalises texts (spaces, compatibility characters), "
                      "which GGUF files cannot say: such texts get other tokens");
}

void write_sentencepiece(const ModelFiles& files,
                         const ScannedModel& model,
                         GgufHeader& header,
                         std::vector<std::string>& notices) {
  const Tokenizer& tokenizer = *files.tokenizer;
  const std::string path = files.path + "/tokenizer.model";
  if (model.type != ScannedModel::Bpe)
    refuse(path, "trainer_spec.model_type", "UNIGRAM", "BPE, for a GGUF file");
  Tokens tokens(files.config.vocab_size);
  for (TokenId id = 0; id < tokenizer.vocab_size(); id++) {
    const bool is_piece = static_cast<std::size_t>(id) < model.pieces.size();
    const bool special = tokenizer.is_special(id);
    if (is_piece &&
        (!special || model.pieces[static_cast<std::size_t>(id)].type == Type::Control)) {
      const ScannedPiece& piece = model.pieces[static_cast<std::size_t>(id)];
      tokens.set(id, piece.text, piece.type, piece.score);
    } else if (const std::string text = tokenizer.piece(id); !text.empty()) {
      tokens.set(id, text, special ? Type::Control : Type::UserDefined);
    }
  }
  header.text("tokenizer.ggml.model", "llama");
  header.text("tokenizer.ggml.pre", "default");
  tokens.write(header, true);
  header.u32("tokenizer.ggml.unknown_token_id", model.unk_id);
  const std::vector<TokenId> word = tokenizer.encode("a", false);
  header.boolean("tokenizer.ggml.add_space_prefix",
                 !word.empty() && tokenizer.piece(word.front()).starts_with(' '));
  note_normalisation(files, notices);
}

// ---- tokenizer.json

const Json& member(const Json& object, const char* name, const std::string& path) {
  const Json* found = object.find(name);
  if (!found) refuse(path, name, "none", "a value");
  return *found;
}

std::string text_of(const Json* value) {
  return value ? value->text : std::string();
}

constexpr std::string_view kGpt2Kind = "gpt-2";
constexpr std::string_view kDigit = R"(\p{N})";

// Adds the splitting patterns of one step of the pre-tokeniser.
void add_patterns_of(const Json& step,
                     const std::string& path,
                     std::vector<std::string>& patterns) {
  const std::string type = text_of(step.find("type"));
  const auto flag = [&](const char* name, bool fallback) {
    const Json* value = step.find(name);
    return value ? value->boolean : fallback;
  };
  if (type == "Sequence") {
    for (const Json& one : member(step, "pretokenizers", path).items)
      add_patterns_of(one, path, patterns);
  } else if (type == "Split" && step.find("pattern") && step.find("pattern")->find("Regex")) {
    patterns.push_back(text_of(step.find("pattern")->find("Regex")));
  } else if (type == "Digits" && flag("individual_digits", false)) {
    patterns.emplace_back(kDigit);
  } else if (type == "ByteLevel") {
    if (flag("use_regex", true))
      patterns.emplace_back(word_patterns_named(kGpt2Kind)->patterns.front());
  } else {
    refuse(path, "pre_tokenizer", in_quotes(type), "a step that GGUF files can name");
  }
}

// Finds the name (tokenizer.ggml.pre) for these patterns. Throws if there is none.
std::string kind_of(const std::vector<std::string>& patterns,
                    bool ignore_merges,
                    const std::string& path) {
  const WordPatterns* found = nullptr;
  for (const WordPatterns& kind : all_word_patterns()) {
    if (!std::ranges::equal(kind.patterns, patterns)) continue;
    if (!found || kind.ignore_merges == ignore_merges) found = &kind;
  }
  if (!found)
    refuse(path, "pre_tokenizer", patterns.empty() ? "no pattern" : in_quotes(patterns.back()),
           "patterns that have a name in GGUF files");
  return std::string(found->names.front());
}

std::string merge_text(const Json& merge) {
  if (!merge.is(JsonReader::Kind::Array)) return merge.text;
  return merge.items.size() == 2 ? merge.items[0].text + " " + merge.items[1].text : std::string();
}

void write_byte_level(const ModelFiles& files, const std::string& path, GgufHeader& header) {
  const FileLimits limits;
  const Json json =
      parse_json(read_text_file(path, static_cast<std::size_t>(limits.tokenizer_bytes)), path);
  const Json& model = member(json, "model", path);
  const auto id_of = [](const Json& value) { return value.number().integer().value_or(-1); };
  if (text_of(model.find("type")) != "BPE")
    refuse(path, "model.type", in_quotes(text_of(model.find("type"))), "BPE, for a GGUF file");
  if (const Json* fallback = model.find("byte_fallback"); fallback && fallback->boolean)
    refuse(path, "model.byte_fallback", "true",
           "false, or a tokenizer.model of SentencePiece beside it");
  std::vector<std::string> patterns;
  add_patterns_of(member(json, "pre_tokenizer", path), path, patterns);
  const Json* ignores = model.find("ignore_merges");
  Tokens tokens(files.config.vocab_size);
  for (const auto& [text, id] : member(model, "vocab", path).members)
    tokens.set(id_of(id), text, Type::Normal);
  if (const Json* added = json.find("added_tokens"))
    for (const Json& one : added->items)
      tokens.set(
          id_of(member(one, "id", path)), text_of(one.find("content")),
          one.find("special") && one.find("special")->boolean ? Type::Control : Type::UserDefined);
  std::vector<std::string> merges;
  for (const Json& merge : member(model, "merges", path).items) merges.push_back(merge_text(merge));
  header.text("tokenizer.ggml.model", "gpt2");
  header.text("tokenizer.ggml.pre", kind_of(patterns, ignores && ignores->boolean, path));
  tokens.write(header, false);
  header.texts("tokenizer.ggml.merges", merges);
}

}  // namespace

void tokenizer_to_gguf(const ModelFiles& files,
                       GgufHeader& header,
                       std::vector<std::string>& notices) {
  namespace fs = std::filesystem;
  const std::string model = files.path + "/tokenizer.model", json = files.path + "/tokenizer.json";
  if (!files.tokenizer) {
    notices.push_back(escaped(files.path) + ": no tokenizer: the GGUF file has none either");
    return;
  }
  const FileLimits limits;
  if (fs::exists(model)) {
    const std::string bytes =
        read_text_file(model, static_cast<std::size_t>(limits.tokenizer_bytes));
    write_sentencepiece(files, scan_sentencepiece(bytes, model, limits), header, notices);
  } else if (fs::exists(json)) {
    write_byte_level(files, json, header);
  } else {
    refuse(files.path, "tokenizer", "neither tokenizer.model nor tokenizer.json",
           "one of them, for a GGUF file");
  }
  write_special_ids(files, header);
  if (!files.chat_template.empty()) header.text("tokenizer.chat_template", files.chat_template);
}

}  // namespace engine
