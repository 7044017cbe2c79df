#include "engine/checkpoint/gguf/tokenizer_from_gguf.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/checkpoint/families/write_family.h"
#include "engine/checkpoint/gguf/gguf_file.h"
#include "engine/tokenizer/bpe/word_patterns.h"
#include "engine/tokenizer/sentencepiece_scan.h"

namespace engine {
namespace {

// tokenizer.ggml.token_type uses SentencePiece's numbers for types.
using Type = ScannedPiece::Type;

// The vocabulary of a GGUF file.
struct Vocabulary {
  std::vector<std::string_view> texts;
  std::vector<std::int64_t> types;  // one for each text
  std::vector<double> scores;       // one for each text, or none

  explicit Vocabulary(const GgufFile& file)
      : texts(file.strings("tokenizer.ggml.tokens")),
        types(file.integers("tokenizer.ggml.token_type")),
        scores(file.numbers("tokenizer.ggml.scores")) {
    if (types.empty()) types.assign(texts.size(), Type::Normal);
    check(file, "tokenizer.ggml.token_type", types.size());
    if (!scores.empty()) check(file, "tokenizer.ggml.scores", scores.size());
  }
  void check(const GgufFile& file, const char* key, std::size_t n) const {
    if (n != texts.size())
      file.refuse_value(key, fmt::format("{} elements", n),
                        fmt::format("{}, one for each token", texts.size()));
  }
  // The text of the token whose id a metadata key gives; empty if the key is absent.
  std::string_view named(const GgufFile& file, const char* key) const {
    const auto id = file.integer(key);
    const bool is_token = id && *id >= 0 && static_cast<std::size_t>(*id) < texts.size();
    return is_token ? texts[static_cast<std::size_t>(*id)] : std::string_view();
  }
};

constexpr std::pair<const char*, const char*> kSymbols[] = {
    {"bos_token", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "tokenizer.ggml.eos_token_id"},
    {"unk_token", "tokenizer.ggml.unknown_token_id"},
    {"pad_token", "tokenizer.ggml.padding_token_id"}};

ObjectText added_token(std::size_t id, std::string_view text, bool special, bool with_id) {
  ObjectText out;
  if (with_id) out.integer("id", static_cast<std::int64_t>(id));
  out.text("content", std::string(text));
  for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"})
    out.boolean(flag, false);
  out.boolean("special", special);
  return out;
}

void write_config(const GgufFile& file,
                  const Vocabulary& vocabulary,
                  const char* tokenizer_class,
                  bool add_bos,
                  ObjectText out,
                  const std::string& directory) {
  out.text("tokenizer_class", tokenizer_class);
  out.boolean("add_bos_token", add_bos);
  out.boolean("add_eos_token", file.boolean("tokenizer.ggml.add_eos_token").value_or(false));
  out.boolean("clean_up_tokenization_spaces", false);
  for (const auto& [name, key] : kSymbols)
    if (const std::string_view text = vocabulary.named(file, key); !text.empty())
      out.text(name, std::string(text));
  if (const auto chat = file.string("tokenizer.chat_template")) out.text("chat_template", *chat);
  write_whole_file(directory + "/tokenizer_config.json", out.lines());
}

// ---- byte-level BPE

constexpr const char* kByteLevel =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})";

std::string list_text(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string pre_tokenizer_text(const WordPatterns& kind) {
  std::vector<std::string> steps;
  for (const std::string_view pattern : kind.patterns) {
    ObjectText regex, split;
    regex.text("Regex", std::string(pattern));
    split.text("type", "Split");
    split.raw("pattern", regex.one_line());
    split.text("behavior", "Isolated");
    split.boolean("invert", false);
    steps.push_back(split.one_line());
  }
  steps.emplace_back(kByteLevel);
  return fmt::format(R"({{"type": "Sequence", "pretokenizers": {}}})", list_text(steps));
}

// Returns a post_processor that puts the begin token before a text.
std::string post_processor_text(std::string_view bos, std::int64_t id) {
  const std::string quoted = json_quoted(bos);
  const std::string begin =
      fmt::format(R"({{"SpecialToken": {{"id": {}, "type_id": 0}}}})", quoted);
  const auto sequence = [](char name, int type) {
    return fmt::format(R"({{"Sequence": {{"id": "{}", "type_id": {}}}}})", name, type);
  };
  return fmt::format(
      R"({{"type": "TemplateProcessing", "single": [{0}, {1}], "pair": [{0}, {1}, {2}], )"
      R"("special_tokens": {{{3}: {{"id": {3}, "ids": [{4}], "tokens": [{3}]}}}}}})",
      begin, sequence('A', 0), sequence('B', 1), quoted, id);
}

std::string vocabulary_text(const Vocabulary& vocabulary) {
  std::vector<std::string> entries;
  for (std::size_t id = 0; id < vocabulary.texts.size(); id++)
    if (vocabulary.types[id] != Type::Unused)
      entries.push_back(fmt::format("{}: {}", json_quoted(vocabulary.texts[id]), id));
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

std::string merges_text(const GgufFile& file) {
  std::vector<std::string> merges;
  for (const std::string_view merge : file.strings("tokenizer.ggml.merges"))
    merges.push_back(json_quoted(merge));
  return list_text(merges);
}

std::string bpe_text(const GgufFile& file, const Vocabulary& vocabulary, const WordPatterns& kind) {
  ObjectText model;
  model.text("type", "BPE");
  for (const char* name :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
    model.raw(name, "null");
  model.boolean("fuse_unk", false);
  model.boolean("byte_fallback", false);
  model.boolean("ignore_merges", kind.ignore_merges);
  model.raw("vocab", vocabulary_text(vocabulary));
  model.raw("merges", merges_text(file));
  return model.one_line();
}

void write_byte_level(const GgufFile& file,
                      const WordPatterns& kind,
                      const std::string& directory) {
  const Vocabulary vocabulary(file);
  const bool add_bos = file.boolean("tokenizer.ggml.add_bos_token").value_or(kind.add_bos);
  const std::string_view bos = vocabulary.named(file, "tokenizer.ggml.bos_token_id");
  std::vector<std::string> added;
  for (std::size_t id = 0; id < vocabulary.texts.size(); id++) {
    const std::int64_t type = vocabulary.types[id];
    if (type == Type::Control || type == Type::UserDefined)
      added.push_back(
          added_token(id, vocabulary.texts[id], type == Type::Control, true).one_line());
  }
  ObjectText out;
  out.text("version", "1.0");
  for (const char* name : {"truncation", "padding", "normalizer"}) out.raw(name, "null");
  out.raw("added_tokens", list_text(added));
  out.raw("pre_tokenizer", pre_tokenizer_text(kind));
  out.raw("post_processor",
          add_bos && !bos.empty()
              ? post_processor_text(bos, *file.integer("tokenizer.ggml.bos_token_id"))
              : kByteLevel);
  out.raw("decoder", kByteLevel);
  out.raw("model", bpe_text(file, vocabulary, kind));
  write_whole_file(directory + "/tokenizer.json", out.lines());
  write_config(file, vocabulary, "PreTrainedTokenizerFast", add_bos, {}, directory);
}

// ---- SentencePiece

// Writes fields of SentencePiece's ModelProto, a protocol buffer.
void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_number(std::string& out, int field, std::uint64_t value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3);
  put_varint(out, value);
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}
void put_float(std::string& out, int field, float value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 5);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_piece(std::string& out, std::string_view text, double score, std::int64_t type) {
  std::string piece;
  put_bytes(piece, 1, text);
  put_float(piece, 2, static_cast<float>(score));
  if (type != Type::Normal) put_number(piece, 3, static_cast<std::uint64_t>(type));
  put_bytes(out, 1, piece);
}

std::string trainer_text(const GgufFile& file, const Vocabulary& vocabulary) {
  std::string out;
  put_number(out, 3, ScannedModel::Bpe);  // model_type
  put_number(out, 4, vocabulary.texts.size());
  const bool has_bytes = std::ranges::find(vocabulary.types, Type::Byte) != vocabulary.types.end();
  put_number(out, 35, has_bytes ? 1 : 0);  // byte_fallback
  int field = 40;                          // unk_id, bos_id, eos_id, pad_id
  for (const char* name : {"unknown", "bos", "eos", "padding"}) {
    const auto id = file.integer(fmt::format("tokenizer.ggml.{}_token_id", name));
    put_number(out, field++, static_cast<std::uint64_t>(id.value_or(-1)));
  }
  return out;
}

std::string normalizer_text(bool space_prefix) {
  std::string out;
  put_bytes(out, 1, "identity");
  put_number(out, 3, space_prefix ? 1 : 0);  // add_dummy_prefix
  put_number(out, 4, 0);                     // remove_extra_whitespaces
  put_number(out, 5, 1);                     // escape_whitespaces
  return out;
}

// The JSON object added_tokens_decoder with all control symbols, so that a text can contain their
// names.
std::string added_tokens_decoder(const Vocabulary& vocabulary) {
  std::vector<std::string> members;
  for (std::size_t id = 0; id < vocabulary.texts.size(); id++)
    if (vocabulary.types[id] == Type::Control)
      members.push_back(fmt::format("\"{}\": {}", id,
                                    added_token(id, vocabulary.texts[id], true, false).one_line()));
  return fmt::format("{{{}}}", fmt::join(members, ", "));
}

// Gives the unknown token its type: SentencePiece requires it, but some converters write the type
// of a control symbol.
void mark_unknown(const GgufFile& file, Vocabulary& vocabulary) {
  if (std::ranges::find(vocabulary.types, Type::Unknown) != vocabulary.types.end()) return;
  const std::int64_t id = file.integer("tokenizer.ggml.unknown_token_id").value_or(0);
  if (id >= 0 && static_cast<std::size_t>(id) < vocabulary.types.size())
    vocabulary.types[static_cast<std::size_t>(id)] = Type::Unknown;
}

void write_sentencepiece(const GgufFile& file, const std::string& directory) {
  Vocabulary vocabulary(file);
  mark_unknown(file, vocabulary);
  const bool space_prefix = file.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  std::string model;
  for (std::size_t id = 0; id < vocabulary.texts.size(); id++)
    put_piece(model, vocabulary.texts[id], vocabulary.scores.empty() ? 0 : vocabulary.scores[id],
              vocabulary.types[id]);
  put_bytes(model, 2, trainer_text(file, vocabulary));
  put_bytes(model, 3, normalizer_text(space_prefix));
  write_whole_file(directory + "/tokenizer.model", model);
  ObjectText out;
  // llama.cpp puts the prefix space before every stretch of text between added tokens, as legacy
  // tokenizers do.
  out.boolean("legacy", space_prefix);
  out.boolean("add_prefix_space", space_prefix);
  out.raw("added_tokens_decoder", added_tokens_decoder(vocabulary));
  write_config(file, vocabulary, "LlamaTokenizer",
               file.boolean("tokenizer.ggml.add_bos_token").value_or(true), std::move(out),
               directory);
}

}  // namespace

void tokenizer_from_gguf(const GgufFile& file,
                         const std::string& directory,
                         std::vector<std::string>& notices) {
  const std::string model = file.string("tokenizer.ggml.model").value_or("none");
  const std::string pre = file.string("tokenizer.ggml.pre").value_or("default");
  if (model == "llama") return write_sentencepiece(file, directory);
  const WordPatterns* kind = model == "gpt2" ? word_patterns_named(pre) : nullptr;
  if (kind) return write_byte_level(file, *kind, directory);
  notices.push_back(fmt::format(
      "{}: tokenizer.ggml.model {}, tokenizer.ggml.pre {}: not written; the directory has no "
      "tokenizer",
      escaped(file.path()), in_quotes(model), in_quotes(pre)));
}

}  // namespace engine
