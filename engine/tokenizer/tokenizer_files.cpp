#include "engine/tokenizer/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"

namespace engine {
namespace {

using Kind = JsonReader::Kind;

// The named tokens, in the order in which transformers reads them.
constexpr std::array kNamedTokens = {"bos_token", "eos_token", "unk_token", "sep_token",
                                     "pad_token", "cls_token", "mask_token"};
constexpr std::array kExtraLists = {"additional_special_tokens", "extra_special_tokens"};
constexpr std::array kApplied = {"tokenizer_class",      "add_bos_token", "add_eos_token",
                                 "add_prefix_space",     "legacy",        "added_tokens_decoder",
                                 "split_special_tokens", "chat_template"};

bool is_one_of(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::optional<Json> json_at(const std::string& path, const FileLimits& limits) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return read_json_file(path, limits);
}

/// Reads a named token's text from "<s>" or {"content": "<s>", ...}; empty for null.
std::string content_of(const Json& value, const std::string& file, const std::string& field) {
  if (value.is(Kind::Null)) return "";
  if (value.is(Kind::String)) return value.text;
  if (value.is(Kind::Object))
    return Fields(value, file, field + ".").string("content").value_or("");
  refuse(file, field, value.shown(), "a token: a string, or an object with \"content\"");
}

/// Reads a token with its flags. An absent flag is false, except that an absent `normalized` is the
/// opposite of `special`.
AddedToken token_of(const Json& value,
                    bool special,
                    const std::string& file,
                    const std::string& field) {
  AddedToken token;
  token.content = content_of(value, file, field);
  token.special = special;
  if (value.is(Kind::Object)) {
    const Fields fields(value, file, field + ".");
    token.special = special || fields.boolean("special", false);
    token.lstrip = fields.boolean("lstrip", false);
    token.rstrip = fields.boolean("rstrip", false);
    token.single_word = fields.boolean("single_word", false);
    token.normalized = fields.boolean("normalized", !token.special);
  }
  return token;
}

std::int64_t id_of(const std::string& text, const std::string& file, const std::string& field) {
  const std::optional<std::int64_t> id = JsonNumber{text}.integer();
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || !id) refuse(file, field, in_quotes(text), "a token id");
  return *id;
}

class SettingsReader {
 public:
  SettingsReader(const std::string& directory,
                 const FileLimits& limits,
                 std::vector<std::string>& notices)
      : config_path_(directory + "/tokenizer_config.json"),
        added_path_(directory + "/added_tokens.json"),
        map_path_(directory + "/special_tokens_map.json"),
        config_(json_at(config_path_, limits)),
        added_(json_at(added_path_, limits)),
        map_(json_at(map_path_, limits)),
        notices_(notices) {
    settings_.file = config_path_;
    if (map_) Fields(*map_, map_path_);  // an object
  }

  TokenizerSettings read() {
    if (config_) read_config();
    const Json* const decoder = config_ ? config_->find("added_tokens_decoder") : nullptr;
    if (decoder) {
      read_decoder(*decoder);
    } else {
      if (map_) read_names(*map_, map_path_);
      if (added_) read_added();
    }
    for (const auto& [field, named] : named_) settings_.tokens.push_back(named);
    settings_.tokens.insert(settings_.tokens.end(), extra_.begin(), extra_.end());
    if (settings_.tokenizer_class == "CodeLlamaTokenizer") add_infilling();
    take_name("bos_token", settings_.bos);
    take_name("eos_token", settings_.eos);
    std::ranges::stable_sort(settings_.tokens, [](const ListedToken& a, const ListedToken& b) {
      return a.id && (!b.id || *a.id < *b.id);
    });
    if (config_) note_config();
    if (decoder && map_) note_map();
    if (decoder && added_) note_added();
    return std::move(settings_);
  }

 private:
  void read_config() {
    const Fields fields(*config_, config_path_);
    const std::optional<std::string> name = fields.string("tokenizer_class");
    settings_.tokenizer_class = name.value_or("");
    if (settings_.tokenizer_class.ends_with("Fast"))
      settings_.tokenizer_class.resize(settings_.tokenizer_class.size() - 4);
    // transformers treats null as false.
    settings_.add_bos = fields.boolean("add_bos_token", !fields.has("add_bos_token"));
    settings_.add_eos = fields.boolean("add_eos_token", false);
    settings_.gives_add_bos = fields.has("add_bos_token");
    settings_.gives_add_eos = fields.has("add_eos_token");
    settings_.split_special = fields.boolean("split_special_tokens", false);
    if (fields.find("add_prefix_space"))
      settings_.add_prefix_space = fields.boolean("add_prefix_space", true);
    if (fields.find("legacy")) settings_.legacy = fields.boolean("legacy", true);
    read_names(*config_, config_path_);
  }

  /// Reads named tokens and lists of additional ones. Those of a later file replace earlier ones.
  void read_names(const Json& json, const std::string& file) {
    for (const auto& [field, value] : json.members) {
      if (is_token_field(field, value)) {
        ListedToken listed{{}, token_of(value, true, file, field), file, field};
        const auto same = std::ranges::find(named_, field, &Named::first);
        if (same != named_.end()) {
          same->second = std::move(listed);
        } else {
          named_.emplace_back(field, std::move(listed));
        }
      } else if (is_one_of(kExtraLists, field)) {
        read_extra(value, file, field);
      }
    }
    // Moves the names that transformers knows to the front.
    std::ranges::stable_sort(named_, {}, [](const Named& named) {
      return std::ranges::find(kNamedTokens, named.first) - kNamedTokens.begin();
    });
  }

  /// True for "pad_token" and similar fields, and for "image_token" if it is a string.
  static bool is_token_field(const std::string& field, const Json& value) {
    if (is_one_of(kNamedTokens, field)) return true;
    return field.ends_with("_token") && value.is(Kind::String) && !is_one_of(kApplied, field);
  }

  void read_extra(const Json& value, const std::string& file, const std::string& field) {
    const auto add = [&](const Json& one, const std::string& name) {
      extra_.push_back({{}, token_of(one, true, file, name), file, name});
    };
    if (value.is(Kind::Object)) {
      for (const auto& [name, one] : value.members) add(one, field + "." + name);
      return;
    }
    if (!value.is(Kind::Array) && !value.is(Kind::Null))
      refuse(file, field, value.shown(), "a list of tokens");
    // This rule ignores the additional_special_tokens of special_tokens_map.json.
    if (file == config_path_ || field == "extra_special_tokens")
      settings_.matches_unnamed_controls = false;
    for (std::size_t i = 0; i < value.items.size(); i++)
      add(value.items[i], fmt::format("{}.{}", field, i));
  }

  bool is_named_special(const std::string& content) const {
    const auto same = [&](const ListedToken& listed) { return listed.token.content == content; };
    return std::ranges::any_of(extra_, same) || std::ranges::any_of(named_, same, &Named::second);
  }

  void read_decoder(const Json& decoder) {
    if (!decoder.is(Kind::Object))
      refuse(config_path_, "added_tokens_decoder", decoder.shown(), "an object");
    for (const auto& [id, value] : decoder.members) {
      const std::string field = "added_tokens_decoder." + id;
      if (!value.is(Kind::Object)) refuse(config_path_, field, value.shown(), "an object");
      ListedToken listed{id_of(id, config_path_, field),
                         token_of(value, false, config_path_, field), config_path_, field};
      listed.token.special |= is_named_special(listed.token.content);
      settings_.tokens.push_back(std::move(listed));
    }
  }

  void read_added() {
    const Fields fields(*added_, added_path_);
    for (const auto& [content, id] : added_->members) {
      const std::string field = in_quotes(content);
      if (!id.is(Kind::Number)) refuse(added_path_, field, id.shown(), "a token id");
      ListedToken listed{id_of(id.text, added_path_, field), {}, added_path_, field};
      listed.token.content = content;
      listed.token.special = is_named_special(content);
      listed.token.normalized = !listed.token.special;
      settings_.tokens.push_back(std::move(listed));
    }
  }

  /// Adds the tokens of CodeLlamaTokenizer that no file names.
  void add_infilling() {
    constexpr std::array kInfilling = {"\xE2\x96\x81<PRE>", "\xE2\x96\x81<MID>",
                                       "\xE2\x96\x81<SUF>", "\xE2\x96\x81<EOT>", "<FILL_ME>"};
    for (const char* content : kInfilling) {
      ListedToken listed{{}, {}, config_path_, "tokenizer_class"};
      listed.token.content = content;
      listed.token.special = true;
      settings_.tokens.push_back(std::move(listed));
    }
  }

  void take_name(const char* field, std::optional<std::string>& name) const {
    const auto at = std::ranges::find(named_, field, &Named::first);
    if (at != named_.end()) name = at->second.token.content;
  }

  /// True for a value that has the same meaning as an absent field.
  static bool is_default(const std::string& field, const Json& value) {
    constexpr std::array kFalseIsOurs = {"clean_up_tokenization_spaces",
                                         "spaces_between_special_tokens"};
    if (value.is(Kind::Null)) return true;
    if (value.is(Kind::Object) && value.members.empty()) return true;
    if (value.is(Kind::Array) && value.items.empty()) return true;
    // transformers writes a number with 31 digits for "no limit".
    if (field == "model_max_length" && value.is(Kind::Number)) return value.number().real() > 1e18;
    return is_one_of(kFalseIsOurs, field) && value.is(Kind::Bool) && !value.boolean;
  }

  void note_config() {
    std::vector<std::string> not_applied;
    for (const auto& [field, value] : config_->members) {
      if (is_one_of(kApplied, field) || is_one_of(kExtraLists, field) ||
          is_token_field(field, value) || is_default(field, value))
        continue;
      not_applied.push_back(escaped(field));
    }
    note(config_path_, not_applied, "");
  }

  /// If there is an added_tokens_decoder, special_tokens_map.json is ignored.
  void note_map() {
    std::vector<std::string> not_applied;
    for (const auto& [field, value] : map_->members) {
      const auto named = std::ranges::find(named_, field, &Named::first);
      const bool is_same = is_token_field(field, value)
                               ? named != named_.end() && named->second.token.content ==
                                                              content_of(value, map_path_, field)
                               : is_one_of(kExtraLists, field) && all_known(value);
      if (!is_same) not_applied.push_back(escaped(field));
    }
    note(map_path_, not_applied, kDecoderCounts);
  }

  bool all_known(const Json& list) const {
    return std::ranges::all_of(list.items, [&](const Json& one) {
      const std::string content = content_of(one, map_path_, "additional_special_tokens");
      return std::ranges::any_of(settings_.tokens, [&](const ListedToken& listed) {
        return listed.token.content == content && listed.token.special;
      });
    });
  }

  void note_added() {
    std::vector<std::string> not_applied;
    if (!added_->is(Kind::Object)) Fields(*added_, added_path_);  // refuses
    for (const auto& added : added_->members) {
      const bool is_same = std::ranges::any_of(settings_.tokens, [&](const ListedToken& listed) {
        return listed.id && listed.token.content == added.first &&
               added.second.text == std::to_string(*listed.id);
      });
      if (!is_same) not_applied.push_back(in_quotes(added.first));
    }
    note(added_path_, not_applied, kDecoderCounts);
  }

  void note(const std::string& file,
            const std::vector<std::string>& fields,
            const std::string& why) {
    if (fields.empty()) return;
    constexpr std::size_t kMost = 20;
    const std::size_t n_shown = std::min(fields.size(), kMost);
    notices_.push_back(fmt::format(
        "{}: not applied: {}{}{}", escaped(file),
        fmt::join(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(n_shown), ", "),
        fields.size() > n_shown ? fmt::format(" and {} more", fields.size() - n_shown) : "", why));
  }

  static constexpr const char* kDecoderCounts =
      " (the added_tokens_decoder of tokenizer_config.json takes precedence)";
  using Named = std::pair<std::string, ListedToken>;

  std::string config_path_, added_path_, map_path_;
  std::optional<Json> config_, added_, map_;
  std::vector<std::string>& notices_;
  TokenizerSettings settings_;
  std::vector<Named> named_;  // by field
  std::vector<ListedToken> extra_;
};

class TokenPlacement {
 public:
  TokenPlacement(const ScannedModel& model,
                 int vocab_size,
                 const FileLimits& limits,
                 std::vector<std::string>& notices)
      : model_(model), vocab_size_(vocab_size), limits_(limits), notices_(notices) {
    for (std::size_t id = 0; id < model.pieces.size(); id++)
      piece_ids_.emplace(model.pieces[id].text, static_cast<TokenId>(id));
  }

  std::vector<AddedToken> place(const TokenizerSettings& settings, bool with_user_defined) {
    for (const ListedToken& listed : settings.tokens) {
      if (!listed.id) continue;
      const auto [same, is_new] = renamed_.emplace(*listed.id, listed.token.content);
      if (is_new) continue;
      refuse(listed.file, listed.field, fmt::format("the id {}", *listed.id),
             "another one, as it is that of " + in_quotes(same->second));
    }
    for (const ListedToken& listed : settings.tokens) {
      if (static_cast<std::int64_t>(listed.token.content.size()) > limits_.piece_bytes) {
        refuse(listed.file, listed.field, fmt::format("{} bytes", listed.token.content.size()),
               fmt::format("at most {}", limits_.piece_bytes));
      }
      if (listed.token.content.empty()) {
        if (listed.id) refuse(listed.file, listed.field + ": content", "no text", "a token");
      } else if (listed.id) {
        place_at(listed, *listed.id);
      } else {
        place_anywhere(listed, settings, with_user_defined);
      }
    }
    add_pieces(settings, with_user_defined);
    return std::move(tokens_);
  }

 private:
  /// Finds the id of the piece with this text, unless a file renames the piece.
  std::optional<TokenId> piece_named(const std::string& text) const {
    const auto at = piece_ids_.find(text);
    if (at == piece_ids_.end()) return std::nullopt;
    const auto name = renamed_.find(at->second);
    if (name != renamed_.end() && name->second != text) return std::nullopt;
    return at->second;
  }

  void place_at(const ListedToken& listed, std::int64_t id) {
    const std::string& content = listed.token.content;
    const auto n_pieces = static_cast<std::int64_t>(model_.pieces.size());
    if (id >= limits_.n_pieces) {
      refuse(listed.file, listed.field, fmt::format("the id {} for {}", id, in_quotes(content)),
             fmt::format("an id below {}", limits_.n_pieces));
    }
    if (const auto piece = piece_named(content); piece && *piece != id) {
      refuse(listed.file, listed.field, fmt::format("the id {} for {}", id, in_quotes(content)),
             fmt::format(
                 "{}, its id in tokenizer.model; use that id, or remove the token from this file",
                 *piece));
    }
    if (id < n_pieces && model_.pieces[static_cast<std::size_t>(id)].text != content) {
      notices_.push_back(fmt::format("{}: {}: piece {} of tokenizer.model, {}, is renamed to {}",
                                     escaped(listed.file), listed.field, id,
                                     in_quotes(model_.pieces[static_cast<std::size_t>(id)].text),
                                     in_quotes(content)));
    }
    if (const auto [same, is_new] = ids_.emplace(content, static_cast<TokenId>(id)); !is_new) {
      refuse(listed.file, listed.field, fmt::format("the id {} for {}", id, in_quotes(content)),
             fmt::format("one id per token, and this token has {}", same->second));
    }
    add(listed.token, static_cast<TokenId>(id));
  }

  /// True if a piece of tokenizer.model is matched in texts even though no JSON file lists it.
  bool is_symbol_piece(TokenId id,
                       const TokenizerSettings& settings,
                       bool with_user_defined) const {
    const int type = model_.pieces[static_cast<std::size_t>(id)].type;
    return settings.matches_unnamed_controls &&
           (type == ScannedPiece::Control ||
            (with_user_defined && type == ScannedPiece::UserDefined));
  }

  void place_anywhere(const ListedToken& listed,
                      const TokenizerSettings& settings,
                      bool with_user_defined) {
    const std::string& content = listed.token.content;
    if (ids_.contains(content)) return;
    const std::optional<TokenId> piece = piece_named(content);
    const TokenId id = piece.value_or(first_free_);
    if (vocab_size_ > 0 && id >= vocab_size_) {
      if (listed.field == "tokenizer_class") return;  // no file names it
      notices_.push_back(fmt::format("{}: {} is {}, which tokenizer.model does not have: ignored",
                                     escaped(listed.file), escaped(listed.field),
                                     in_quotes(content)));
      return;
    }
    ids_.emplace(content, id);
    AddedToken token = listed.token;
    // transformers adds such a piece a second time, without flags. The second one counts.
    if (piece && is_symbol_piece(id, settings, with_user_defined))
      token.lstrip = token.rstrip = token.single_word = token.normalized = false;
    add(std::move(token), id);
  }

  /// Adds the symbols of tokenizer.model itself.
  void add_pieces(const TokenizerSettings& settings, bool with_user_defined) {
    for (std::size_t i = 0; i < model_.pieces.size(); i++) {
      const ScannedPiece& piece = model_.pieces[i];
      const auto id = static_cast<TokenId>(i);
      const bool is_default = piece.type == ScannedPiece::Unknown ||
                              (id == model_.bos_id && !settings.bos) ||
                              (id == model_.eos_id && !settings.eos);
      const bool is_matched = is_default || is_symbol_piece(id, settings, with_user_defined);
      if (!is_matched || ids_.contains(piece.text) || renamed_.contains(id)) continue;
      ids_.emplace(piece.text, id);
      AddedToken token;
      token.content = piece.text;
      token.special = piece.type != ScannedPiece::UserDefined;
      add(std::move(token), id);
    }
  }

  void add(AddedToken token, TokenId id) {
    token.id = id;
    first_free_ = std::max(first_free_, id + 1);
    tokens_.push_back(std::move(token));
  }

  const ScannedModel& model_;
  int vocab_size_;
  const FileLimits& limits_;
  std::vector<std::string>& notices_;
  std::unordered_map<std::string_view, TokenId> piece_ids_;
  // [id] the name that the JSON files give to this id
  std::map<std::int64_t, std::string> renamed_;
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<AddedToken> tokens_;
  TokenId first_free_ = static_cast<TokenId>(model_.pieces.size());
};

}  // namespace

TokenizerSettings read_tokenizer_settings(const std::string& directory,
                                          const FileLimits& limits,
                                          std::vector<std::string>& notices) {
  return SettingsReader(directory, limits, notices).read();
}

std::vector<AddedToken> placed_tokens(const TokenizerSettings& settings,
                                      const ScannedModel& model,
                                      bool with_user_defined,
                                      int vocab_size,
                                      const FileLimits& limits,
                                      std::vector<std::string>& notices) {
  return TokenPlacement(model, vocab_size, limits, notices).place(settings, with_user_defined);
}

}  // namespace engine
