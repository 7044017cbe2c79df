#include "engine/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/refuse.h"
#include "engine/tokenizer/json_steps.h"

namespace engine {
namespace {

using Kind = JsonReader::Kind;

/// The content of the file before it is interpreted.
struct Parts {
  Json top;    // all fields except those below
  Json model;  // the fields of `model` except those below
  std::vector<std::pair<std::string, std::int64_t>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;
  bool has_vocabulary = false;  // model.vocab is an object
};

/// Reads the file in one pass. Vocabulary and merges are not kept as JSON values, which would need
/// ten times the memory.
class PartsReader {
 public:
  PartsReader(std::string_view text, const std::string& path, const FileLimits& limits)
      : path_(path),
        limits_(limits),
        reader_(text, path, JsonReader::Places::LineAndColumn, 0, limits.json_depth) {}

  Parts read() {
    parts_.top.kind = parts_.model.kind = Kind::Object;
    reader_.enter_object();
    for (std::string key; reader_.next_key(key);) {
      if (key == "model") {
        read_model();
      } else {
        add_member(parts_.top, key, "");
      }
    }
    reader_.end();
    return std::move(parts_);
  }

 private:
  void add_member(Json& object, const std::string& key, const std::string& prefix) {
    if (object.find(key)) refuse(path_, prefix + escaped(key), "the key twice", "every key once");
    object.members.emplace_back(key, read_json_value(reader_));
  }

  void read_model() {
    if (!parts_.model.members.empty()) refuse(path_, "model", "the key twice", "every key once");
    if (reader_.kind() != Kind::Object)
      refuse(path_, "model", name_of(reader_.kind()), "an object");
    reader_.enter_object();
    for (std::string key; reader_.next_key(key);) {
      if (key == "vocab" && reader_.kind() == Kind::Object) {
        read_vocabulary();
      } else if (key == "vocab") {
        reader_.skip();
      } else if (key == "merges" && reader_.kind() == Kind::Array) {
        read_merges();
      } else {
        add_member(parts_.model, key, "model.");
      }
    }
  }

  void read_vocabulary() {
    if (parts_.has_vocabulary) refuse(path_, "model.vocab", "the key twice", "every key once");
    parts_.has_vocabulary = true;
    reader_.enter_object();
    for (std::string text; reader_.next_key(text);) {
      if (static_cast<std::int64_t>(text.size()) > limits_.piece_bytes)
        refuse(path_, "model.vocab." + escaped(text), fmt::format("{} bytes", text.size()),
               fmt::format("at most {}", limits_.piece_bytes));
      const JsonNumber number = reader_.number();
      const std::optional<std::int64_t> id = number.integer();
      if (!id || *id < 0 || *id >= limits_.vocab_size)
        refuse(path_, "model.vocab." + escaped(text), escaped(number.text),
               fmt::format("an id from 0 to {}", limits_.vocab_size - 1));
      if (static_cast<std::int64_t>(parts_.vocabulary.size()) >= limits_.vocab_size)
        refuse(path_, "model.vocab", fmt::format("more than {} tokens", limits_.vocab_size),
               "fewer");
      parts_.vocabulary.emplace_back(text, *id);
    }
  }

  /// A merge is "left right" in older files, ["left", "right"] in newer ones.
  void read_merges() {
    reader_.enter_array();
    while (reader_.next_item()) {
      if (static_cast<std::int64_t>(parts_.merges.size()) >= limits_.n_pieces)
        refuse(path_, "model.merges", fmt::format("more than {} merges", limits_.n_pieces),
               "fewer");
      parts_.merges.push_back(reader_.kind() == Kind::String ? split_merge(reader_.string())
                                                             : read_pair());
    }
  }

  [[noreturn]] void refuse_merge(const std::string& found) const {
    refuse(path_, fmt::format("model.merges.{}", parts_.merges.size()), found,
           "two texts: \"left right\" or [\"left\", \"right\"]");
  }

  std::pair<std::string, std::string> split_merge(const std::string& both) const {
    const std::size_t space = both.find(' ');
    if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
      refuse_merge(in_quotes(both));
    return {both.substr(0, space), both.substr(space + 1)};
  }

  std::pair<std::string, std::string> read_pair() {
    if (reader_.kind() != Kind::Array) refuse_merge(name_of(reader_.kind()));
    std::vector<std::string> texts;
    reader_.enter_array();
    while (reader_.next_item()) {
      if (texts.size() == 2) refuse_merge("more than two texts");
      if (reader_.kind() != Kind::String) refuse_merge(name_of(reader_.kind()));
      texts.push_back(reader_.string());
    }
    if (texts.size() != 2) refuse_merge(fmt::format("{} texts", texts.size()));
    return {std::move(texts[0]), std::move(texts[1])};
  }

  const std::string& path_;
  const FileLimits& limits_;
  JsonReader reader_;
  Parts parts_;
};

Parts read_parts(const std::string& path, const FileLimits& limits) {
  const std::string text = read_text_file(path, static_cast<std::size_t>(limits.tokenizer_bytes));
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view json = text;
  if (json.starts_with(kByteOrderMark)) json.remove_prefix(kByteOrderMark.size());
  return PartsReader(json, path, limits).read();
}

class DefinitionReader {
 public:
  DefinitionReader(Parts parts,
                   const std::string& path,
                   const FileLimits& limits,
                   std::vector<std::string>& notices)
      : parts_(std::move(parts)), path_(path), notices_(notices) {
    definition_.limits = limits;
  }

  BpeDefinition read() {
    check_model();
    place_vocabulary();
    place_merges();
    read_rules();
    const JsonSteps steps(path_);
    steps.read_normalizer(member("normalizer"), definition_.normalizer);
    steps.read_pre_tokenizer(member("pre_tokenizer"), definition_.pre_tokenizer);
    definition_.decoding = steps.read_decoder(member("decoder"));
    read_added();
    const auto id_of = [&](const std::string& name) { return id_named(name); };
    steps.read_post_processor(member("post_processor"), id_of, definition_.before,
                              definition_.after);
    return std::move(definition_);
  }

 private:
  const Json* member(const char* name) const {
    const Json* const value = parts_.top.find(name);
    return value && !value->is(Kind::Null) ? value : nullptr;
  }

  void check_model() const {
    const Fields model(parts_.model, path_, "model.");
    const std::optional<std::string> type = model.string("type");
    // Older files state no type, but only a BPE model has merges.
    const bool is_bpe = type ? *type == "BPE" : parts_.has_vocabulary && !parts_.merges.empty();
    if (!is_bpe)
      refuse(path_, "model.type", type ? in_quotes(*type) : "none",
             "\"BPE\"; other models are not read");
    if (!parts_.has_vocabulary) refuse(path_, "model.vocab", "none", "an object of texts and ids");
    for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!model.string(name).value_or("").empty())
        model.fail(name, in_quotes(*model.string(name)), "null or \"\"");
    if (const Json* const dropout = model.find("dropout");
        dropout && !(dropout->is(Kind::Number) && dropout->number().real() == 0))
      model.fail("dropout", dropout->shown(), "null");
  }

  /// Stores the texts by id. An id may have no token, but an id far above the number of tokens is
  /// refused, because the array would become too large.
  void place_vocabulary() {
    const std::size_t n = parts_.vocabulary.size();
    const std::int64_t bound = 4 * static_cast<std::int64_t>(n) + 1024;
    std::size_t n_empty = 0;
    for (auto& [text, id] : parts_.vocabulary) {
      const std::string field = "model.vocab." + escaped(text);
      if (id >= bound)
        refuse(path_, field, fmt::format("the id {}", id),
               fmt::format("an id below {} in a vocabulary of {} tokens", bound, n));
      const auto at = static_cast<std::size_t>(id);
      if (at >= definition_.texts.size()) definition_.texts.resize(at + 1);
      if (text.empty()) {
        n_empty++;
        continue;
      }
      if (!ids_.emplace(text, static_cast<TokenId>(id)).second)
        refuse(path_, field, "the key twice", "every key once");
      if (!definition_.texts[at].empty())
        refuse(path_, field,
               fmt::format("the id {}, which {} has", id, in_quotes(definition_.texts[at])),
               "an id of its own");
      definition_.texts[at] = text;
    }
    n_gaps_ = definition_.texts.size() - (n - n_empty);
  }

  TokenId part_of_merge(const std::string& text, std::size_t merge) const {
    const auto at = ids_.find(text);
    if (at == ids_.end())
      refuse(path_, fmt::format("model.merges.{}", merge), in_quotes(text),
             "texts of model.vocab, whose concatenation is one, too");
    return at->second;
  }

  void place_merges() {
    definition_.rules.merges = MergeTable(parts_.merges.size());
    for (std::size_t i = 0; i < parts_.merges.size(); i++) {
      const auto& [left, right] = parts_.merges[i];
      const TokenId left_id = part_of_merge(left, i), right_id = part_of_merge(right, i);
      definition_.rules.merges.add(left_id, right_id,
                                   {static_cast<std::uint32_t>(i), part_of_merge(left + right, i)});
    }
    parts_.merges = {};
  }

  void read_rules() {
    const Fields model(parts_.model, path_, "model.");
    BpeRules& rules = definition_.rules;
    rules.fuse_unknown = model.boolean("fuse_unk", false);
    rules.byte_fallback = model.boolean("byte_fallback", false);
    rules.ignore_merges = model.boolean("ignore_merges", false);
    const std::optional<std::string> unknown = model.string("unk_token");
    if (!unknown) return;
    const auto at = ids_.find(*unknown);
    if (at == ids_.end())
      model.fail("unk_token", in_quotes(*unknown), "a text of model.vocab, or null");
    rules.unknown = at->second;
  }

  void read_added() {
    const Json* const list = member("added_tokens");
    if (!list) return;
    if (!list->is(Kind::Array)) refuse(path_, "added_tokens", list->shown(), "an array");
    std::unordered_map<std::int64_t, std::string> by_id;
    for (std::size_t i = 0; i < list->items.size(); i++) {
      const std::string field = fmt::format("added_tokens.{}", i);
      if (!list->items[i].is(Kind::Object))
        refuse(path_, field, list->items[i].shown(), "an object");
      const Fields fields(list->items[i], path_, field + ".");
      AddedToken token;
      token.content = fields.string("content").value_or("");
      if (token.content.empty()) fields.fail("content", "no text", "a token");
      token.id = static_cast<TokenId>(fields.integer(
          "id", 0,
          static_cast<std::int64_t>(definition_.texts.size() + list->items.size() + 1024)));
      token.special = fields.boolean("special", false);
      token.lstrip = fields.boolean("lstrip", false);
      token.rstrip = fields.boolean("rstrip", false);
      token.single_word = fields.boolean("single_word", false);
      token.normalized = fields.boolean("normalized", !token.special);
      check_id(token, fields);
      if (const auto [same, is_new] = by_id.emplace(token.id, token.content); !is_new)
        fields.fail("id", fmt::format("{}, which {} has", token.id, in_quotes(same->second)),
                    "an id of its own");
      if (!names_.emplace(token.content, token.id).second)
        fields.fail("content", in_quotes(token.content) + " again", "each token once");
      definition_.added.push_back(std::move(token));
    }
    note_gaps();
  }

  void check_id(const AddedToken& token, const Fields& fields) const {
    const auto same = ids_.find(token.content);
    if (same != ids_.end() && same->second != token.id)
      fields.fail(
          "id", fmt::format("{}", token.id),
          fmt::format("{}, the id of {} in model.vocab", same->second, in_quotes(token.content)));
    const auto at = static_cast<std::size_t>(token.id);
    if (at < definition_.texts.size() && same == ids_.end() && !definition_.texts[at].empty())
      fields.fail("id", fmt::format("{}, which {} has", token.id, in_quotes(definition_.texts[at])),
                  "an id that no other token has");
  }

  void note_gaps() {
    for (const AddedToken& token : definition_.added) {
      const auto at = static_cast<std::size_t>(token.id);
      n_gaps_ -= at < definition_.texts.size() && definition_.texts[at].empty();
    }
    if (n_gaps_ > 0)
      notices_.push_back(
          fmt::format("{}: model.vocab: {} ids belong to no token", escaped(path_), n_gaps_));
  }

  std::optional<TokenId> id_named(const std::string& name) const {
    if (const auto at = names_.find(name); at != names_.end()) return at->second;
    if (const auto at = ids_.find(name); at != ids_.end()) return at->second;
    return std::nullopt;
  }

  Parts parts_;
  const std::string& path_;
  std::vector<std::string>& notices_;
  BpeDefinition definition_;
  std::unordered_map<std::string, TokenId> ids_;    // of model.vocab
  std::unordered_map<std::string, TokenId> names_;  // of added_tokens
  std::size_t n_gaps_ = 0;
};

}  // namespace

BpeDefinition read_tokenizer_json(const std::string& path,
                                  const FileLimits& limits,
                                  std::vector<std::string>& notices) {
  return DefinitionReader(read_parts(path, limits), path, limits, notices).read();
}

std::int64_t count_tokens_of_json(const std::string& path, const FileLimits& limits) {
  const Parts parts = read_parts(path, limits);
  if (!parts.has_vocabulary) return 0;
  std::int64_t highest = -1;
  for (const auto& [text, id] : parts.vocabulary) highest = std::max(highest, id);
  if (const Json* const added = parts.top.find("added_tokens"))
    for (const Json& token : added->items)
      if (const Json* const id = token.find("id"); id && id->is(Kind::Number))
        highest = std::max(highest, id->number().integer().value_or(-1));
  return highest + 1;
}

namespace {

/// Finds the token with this text among the added tokens and in the vocabulary.
std::optional<TokenId> find_token(const BpeDefinition& definition, const std::string& text) {
  for (const AddedToken& token : definition.added)
    if (token.content == text) return token.id;
  const auto at = std::ranges::find(definition.texts, text);
  if (at == definition.texts.end()) return std::nullopt;
  return static_cast<TokenId>(at - definition.texts.begin());
}

/// Makes added tokens, with the listed flags, of the vocabulary's tokens that these files list.
void add_listed(const TokenizerSettings& settings,
                const std::string& file,
                BpeDefinition& definition) {
  for (const ListedToken& listed : settings.tokens) {
    const std::string& text = listed.token.content;
    const auto same = std::ranges::find(definition.added, text, &AddedToken::content);
    if (text.empty() || same != definition.added.end()) continue;
    const std::optional<TokenId> id = find_token(definition, text);
    if (!id && listed.id)
      refuse(listed.file, listed.field, in_quotes(text), "a token of " + escaped(file));
    if (!id) continue;
    AddedToken token = listed.token;
    token.id = *id;
    definition.added.push_back(std::move(token));
  }
}

std::optional<TokenId> named_token(const std::optional<std::string>& name,
                                   const char* field,
                                   const TokenizerSettings& settings,
                                   const std::string& file,
                                   const BpeDefinition& definition) {
  if (!name || name->empty()) return std::nullopt;
  const std::optional<TokenId> id = find_token(definition, *name);
  if (!id) refuse(settings.file, field, in_quotes(*name), "a token of " + escaped(file));
  return id;
}

}  // namespace

void apply_settings(const TokenizerSettings& settings,
                    const std::string& file,
                    BpeDefinition& definition) {
  add_listed(settings, file, definition);
  if (settings.bos)
    definition.bos = named_token(settings.bos, "bos_token", settings, file, definition);
  if (settings.eos)
    definition.eos = named_token(settings.eos, "eos_token", settings, file, definition);
  if (!settings.gives_add_bos && !settings.gives_add_eos) return;
  definition.before.clear();
  definition.after.clear();
  if (settings.gives_add_bos && settings.add_bos && definition.bos)
    definition.before.push_back(*definition.bos);
  if (settings.add_eos && definition.eos) definition.after.push_back(*definition.eos);
}

}  // namespace engine
