#include "engine/tokenizer/tiktoken.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/input_file.h"
#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/refuse.h"
#include "engine/tokenizer/bpe/byte_symbols.h"
#include "engine/tokenizer/bpe/word_patterns.h"
#include "engine/tokenizer/tiktoken_models.h"

namespace engine {
namespace {

using Kind = JsonReader::Kind;

/// Decodes base64 (RFC 4648) with padding; nullopt if the text is not base64.
std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  if (text.size() % 4 != 0 || text.empty()) return std::nullopt;
  std::string bytes;
  unsigned bits = 0;
  int n_bits = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<unsigned>(digit)) & 0xFFFF;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes += static_cast<char>(bits >> n_bits & 0xFF);
  }
  return bytes;
}

/// Collects tokens with their ranks, which are their ids minus `first_id`.
class TokenRanks {
 public:
  TokenRanks(const std::string& path, const FileLimits& limits, TokenId first_id)
      : path_(path), limits_(limits), first_id_(first_id) {
    texts_.resize(static_cast<std::size_t>(first_id));
  }

  void add(std::string_view base64, std::int64_t rank, const std::string& field) {
    const std::optional<std::string> bytes = from_base64(base64);
    if (!bytes || bytes->empty()) refuse(path_, field, in_quotes(base64), "bytes in base64");
    if (static_cast<std::int64_t>(bytes->size()) > limits_.piece_bytes)
      refuse(path_, field, fmt::format("a token of {} bytes", bytes->size()),
             fmt::format("at most {}", limits_.piece_bytes));
    if (static_cast<std::int64_t>(texts_.size()) >= limits_.vocab_size)
      refuse(path_, field, fmt::format("more than {} tokens", limits_.vocab_size), "fewer");
    const auto expected = static_cast<std::int64_t>(texts_.size()) - first_id_;
    if (rank != expected)
      refuse(path_, field, fmt::format("rank {}", rank), fmt::format("{}", expected));
    std::string text;
    append_byte_symbols(text, *bytes);
    if (!seen_.insert(text).second) refuse(path_, field, "a token again", "each token once");
    texts_.push_back(std::move(text));
  }

  std::int64_t n_tokens() const { return static_cast<std::int64_t>(texts_.size()) - first_id_; }

  /// Builds a byte-level vocabulary from the texts, in which a merge may produce any token.
  void move_to(BpeDefinition& definition) {
    std::vector<std::uint32_t>& ranks = definition.rules.text_ranks;
    for (std::size_t id = 0; id < texts_.size(); id++)
      ranks.push_back(texts_[id].empty() ? BpeRules::kNoRank : static_cast<std::uint32_t>(id));
    definition.texts = std::move(texts_);
    definition.rules.ignore_merges = true;
    definition.decoding.byte_symbols = true;
    definition.limits = limits_;
  }

 private:
  const std::string& path_;
  const FileLimits& limits_;
  TokenId first_id_;
  std::vector<std::string> texts_;  // by id
  std::unordered_set<std::string> seen_;
};

/// A line "IQ== 0".
struct Line {
  std::string_view base64;
  std::int64_t rank = 0;
};

/// Splits a line; nullopt if it has another form. Does not check the base64.
std::optional<Line> line_of(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  Line line{text.substr(0, space)};
  const std::string_view digits = text.substr(space + 1);
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), line.rank);
  const bool is_whole = error == std::errc{} && end == digits.end() && line.rank >= 0;
  return is_whole ? std::optional<Line>(line) : std::nullopt;
}

/// Adds tokens with consecutive ids from `first`.
/// @param all_special  false: only names that begin with "<|" are special, because those such as
///                     "<think>" belong to the text of an answer
void add_special(const std::vector<std::string>& names,
                 TokenId first,
                 bool all_special,
                 BpeDefinition& definition) {
  for (std::size_t i = 0; i < names.size(); i++) {
    AddedToken token;
    token.id = first + static_cast<TokenId>(i);
    token.content = names[i];
    token.special = all_special || names[i].starts_with("<|");
    definition.added.push_back(std::move(token));
  }
}

std::optional<TokenId> id_of(const BpeDefinition& definition, std::string_view name) {
  const auto at = std::ranges::find(definition.added, name, &AddedToken::content);
  return at == definition.added.end() ? std::nullopt : std::optional<TokenId>(at->id);
}

}  // namespace

bool looks_like_tiktoken(std::string_view bytes) {
  const std::optional<Line> line = line_of(bytes.substr(0, bytes.find_first_of("\r\n")));
  return line && from_base64(line->base64);
}

BpeDefinition read_tiktoken(const std::string& path, const FileLimits& limits) {
  const std::string file = read_text_file(path, static_cast<std::size_t>(limits.tokenizer_bytes));
  TokenRanks tokens(path, limits, 0);
  InputLines lines(file);
  for (std::string_view text; lines.next(text);) {
    if (text.empty()) continue;
    const std::string field = fmt::format("line {}", lines.number());
    const std::optional<Line> line = line_of(text);
    if (!line) refuse(path, field, in_quotes(text), "a token in base64 and its rank: \"IQ== 0\"");
    tokens.add(line->base64, line->rank, field);
  }
  const std::optional<TiktokenModel> model = tiktoken_model_of(tokens.n_tokens());
  if (!model)
    refuse(path, "file", fmt::format("{} tokens", tokens.n_tokens()),
           fmt::format("{}: other files of this form do not say how texts are split; use the "
                       "model's tokenizer.json",
                       known_tiktoken_models()));
  BpeDefinition definition;
  const auto first = static_cast<TokenId>(tokens.n_tokens());
  tokens.move_to(definition);
  if (model->nfc) definition.normalizer.add(UnicodeForm{});
  add_patterns(*word_patterns_named(model->patterns), {path, "file"}, definition.pre_tokenizer);
  definition.pre_tokenizer.add(ByteLevelStep{});
  add_special(model->special, first, false, definition);
  definition.bos = id_of(definition, model->bos);
  definition.eos = id_of(definition, model->eos);
  if (definition.bos) definition.before = {*definition.bos};
  return definition;
}

namespace {

/// Reads the members of a tekken.json.
class TekkenReader {
 public:
  TekkenReader(const std::string& path, const FileLimits& limits)
      : path_(path),
        limits_(limits),
        text_(read_text_file(path, static_cast<std::size_t>(limits.tokenizer_bytes))),
        reader_(text_, path, JsonReader::Places::LineAndColumn, 0, limits.json_depth) {}

  BpeDefinition read() {
    // The member `config` says how many tokens are used. It may come after the tokens in the file.
    top_.kind = Kind::Object;
    JsonReader first_pass = reader_;
    read_members(first_pass, false);
    read_config();
    TokenRanks tokens(path_, limits_, n_special_);
    tokens_ = &tokens;
    read_members(reader_, true);
    if (tokens.n_tokens() != n_used_)
      refuse(path_, "vocab", fmt::format("{} tokens", tokens.n_tokens()),
             fmt::format("{}, as config says", n_used_));
    BpeDefinition definition;
    tokens.move_to(definition);
    definition.pre_tokenizer.add(
        SplitStep{.pattern = SplitPattern::regex(pattern_, {path_, "config.pattern"})});
    definition.pre_tokenizer.add(ByteLevelStep{});
    add_special(special_names(), 0, true, definition);
    definition.bos = id_of(definition, "<s>");
    definition.eos = id_of(definition, "</s>");
    if (definition.bos) definition.before = {*definition.bos};
    return definition;
  }

 private:
  void read_members(JsonReader& reader, bool reads_vocabulary) {
    reader.enter_object();
    for (std::string key; reader.next_key(key);) {
      if (key == "vocab" && reads_vocabulary) {
        read_vocabulary(reader);
      } else if (key == "vocab" || reads_vocabulary) {
        reader.skip();
      } else {
        if (top_.find(key)) refuse(path_, escaped(key), "the key twice", "every key once");
        top_.members.emplace_back(key, read_json_value(reader));
      }
    }
    reader.end();
  }

  void read_config() {
    const Json* const config = top_.find("config");
    if (!config) refuse(path_, "config", "none", "an object");
    const Fields fields(*config, path_, "config.");
    pattern_ = fields.string("pattern").value_or("");
    if (pattern_.empty()) fields.fail("pattern", "none", "a pattern");
    const std::int64_t size = fields.integer("default_vocab_size", 1,
                                             std::min<std::int64_t>(limits_.vocab_size, 1 << 24));
    n_special_ = static_cast<TokenId>(fields.integer("default_num_special_tokens", 0, size));
    n_used_ = size - n_special_;
  }

  void read_vocabulary(JsonReader& reader) {
    if (tokens_->n_tokens() > 0) refuse(path_, "vocab", "the key twice", "every key once");
    reader.enter_array();
    for (std::int64_t i = 0; reader.next_item(); i++) {
      if (i >= n_used_) {  // further tokens are unused
        reader.skip();
        continue;
      }
      const std::string field = fmt::format("vocab.{}", i);
      const Json entry = read_json_value(reader);
      const Fields fields(entry, path_, field + ".");
      const std::string base64 = fields.string("token_bytes").value_or("");
      tokens_->add(base64, fields.integer("rank", 0, limits_.vocab_size), field);
    }
  }

  /// The names of special tokens by rank: from special_tokens, else those of mistral-common.
  /// Missing ones are "<SPECIAL_17>".
  std::vector<std::string> special_names() const {
    std::vector<std::string> names;
    for (TokenId id = 0; id < n_special_; id++) names.push_back(fmt::format("<SPECIAL_{}>", id));
    const Json* const list = top_.find("special_tokens");
    if (!list || list->is(Kind::Null)) {
      const std::vector<std::string> known = tekken_special_names();
      std::copy_n(known.begin(), std::min(known.size(), names.size()), names.begin());
      return names;
    }
    if (!list->is(Kind::Array)) refuse(path_, "special_tokens", list->shown(), "an array");
    for (std::size_t i = 0; i < list->items.size(); i++) {
      const Fields fields(list->items[i], path_, fmt::format("special_tokens.{}.", i));
      const std::int64_t rank = fields.integer("rank", 0, n_special_ - 1);
      const std::string name = fields.string("token_str").value_or("");
      if (name.empty()) fields.fail("token_str", "none", "a name");
      names[static_cast<std::size_t>(rank)] = name;
    }
    return names;
  }

  const std::string& path_;
  const FileLimits& limits_;
  std::string text_;
  JsonReader reader_;
  Json top_;  // all members but vocab
  std::string pattern_;
  TokenId n_special_ = 0;
  std::int64_t n_used_ = 0;
  TokenRanks* tokens_ = nullptr;
};

}  // namespace

BpeDefinition read_tekken(const std::string& path, const FileLimits& limits) {
  return TekkenReader(path, limits).read();
}

}  // namespace engine
