#include "engine/tokenizer/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/text.h"
#include "engine/tokenizer/bpe/bpe_tokenizer.h"
#include "engine/tokenizer/bpe/word_patterns.h"
#include "engine/tokenizer/end_of_turn.h"
#include "engine/tokenizer/sentencepiece_scan.h"

namespace engine {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581: a space in tokens
constexpr const char* kModel = "tokenizer.ggml.model";
constexpr const char* kPre = "tokenizer.ggml.pre";
constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kTypes = "tokenizer.ggml.token_type";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr const char* kMerges = "tokenizer.ggml.merges";
constexpr const char* kAddBos = "tokenizer.ggml.add_bos_token";
constexpr const char* kAddEos = "tokenizer.ggml.add_eos_token";
constexpr const char* kAddSpace = "tokenizer.ggml.add_space_prefix";

/// Values of kTypes.
enum TokenType { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

class GgufReader {
 public:
  GgufReader(const GgufFile& file, const FileLimits& limits, std::vector<std::string>& notices)
      : file_(file), limits_(limits), notices_(notices) {
    definition_.limits = limits;
  }

  std::unique_ptr<Tokenizer> read() {
    const std::string model = file_.string(kModel).value_or("");
    if (model != "gpt2" && model != "llama" && model != "gemma4")
      file_.refuse_value(kModel, model.empty() ? "none" : in_quotes(model),
                         "\"gpt2\", \"llama\" or \"gemma4\"");
    read_tokens();
    read_ids(model == "llama");
    if (model == "gpt2") {
      read_byte_level();
    } else if (model == "llama") {
      read_scores();
    } else {
      read_gemma4();
    }
    place_added();
    add_ends();
    return make_bpe_tokenizer(std::move(definition_));
  }

 private:
  bool is(TokenId id, int type) const { return types_[static_cast<std::size_t>(id)] == type; }
  TokenId n_tokens() const { return static_cast<TokenId>(definition_.texts.size()); }

  void note(const std::string& text) { notices_.push_back(escaped(file_.path()) + ": " + text); }

  void check_count(const char* key, std::size_t found) const {
    if (found != n_listed_)
      file_.refuse_value(key, fmt::format("{} elements", found),
                         fmt::format("{}, as {} has", n_listed_, kTokens));
  }

  void read_tokens() {
    const std::vector<std::string_view> tokens = file_.strings(kTokens);
    if (tokens.empty()) file_.refuse_value(kTokens, "no tokens", "a vocabulary");
    if (static_cast<std::int64_t>(tokens.size()) > limits_.vocab_size)
      file_.refuse_value(kTokens, fmt::format("{} tokens", tokens.size()),
                         fmt::format("at most {}", limits_.vocab_size));
    n_listed_ = tokens.size();
    definition_.texts.reserve(tokens.size());
    ids_.reserve(tokens.size());
    std::size_t n_repeated = 0;
    for (std::size_t id = 0; id < tokens.size(); id++) {
      if (static_cast<std::int64_t>(tokens[id].size()) > limits_.piece_bytes)
        file_.refuse_value(kTokens, fmt::format("{} bytes in token {}", tokens[id].size(), id),
                           fmt::format("at most {}", limits_.piece_bytes));
      definition_.texts.emplace_back(tokens[id]);
      n_repeated += !ids_.emplace(tokens[id], static_cast<TokenId>(id)).second;
    }
    if (n_repeated > 0)
      note(fmt::format("{}: {} texts occur more than once; the first id is used", kTokens,
                       n_repeated));
    read_types();
    drop_padding();
  }

  /// Drops the tokens "[PAD<id>]" at the end, which llama.cpp's converter adds until there is one for
  /// each row of the embedding. Models of a family have different numbers of rows.
  void drop_padding() {
    std::vector<std::string>& texts = definition_.texts;
    while (texts.size() > 1 && types_.back() == Unused &&
           texts.back() == fmt::format("[PAD{}]", texts.size() - 1)) {
      if (const auto at = ids_.find(texts.back());
          at->second == static_cast<TokenId>(texts.size() - 1))
        ids_.erase(at);
      texts.pop_back();
      types_.pop_back();
    }
  }

  void read_types() {
    types_.assign(definition_.texts.size(), Normal);
    const GgufEntry* const entry = file_.find(kTypes);
    if (!entry) return;
    if (entry->type != GgufType::Array ||
        (entry->element != GgufType::I32 && entry->element != GgufType::U32))
      file_.refuse_value(kTypes,
                         entry->type == GgufType::Array
                             ? fmt::format("an array of {}", name_of(entry->element))
                             : name_of(entry->type),
                         "an array of i32");
    const std::vector<std::int64_t> types = file_.integers(kTypes);
    check_count(kTypes, types.size());
    for (std::size_t id = 0; id < types.size(); id++) {
      types_[id] = static_cast<int>(types[id]);
      if (types_[id] == Byte && byte_of_piece(definition_.texts[id]) < 0)
        file_.refuse_value(
            kTokens, fmt::format("the byte token {} = {}", id, in_quotes(definition_.texts[id])),
            "\"<0x00>\" to \"<0xFF>\"");
    }
  }

  /// A token id below n; nullopt if the key is absent.
  std::optional<TokenId> id_at(const std::string& key, std::int64_t n) const {
    const std::optional<std::int64_t> id = file_.integer(key);
    if (!id) return std::nullopt;
    if (*id < 0 || *id >= n)
      file_.refuse_value(key, fmt::format("{}", *id), fmt::format("0 to {}", n - 1));
    return static_cast<TokenId>(*id);
  }

  void read_ids(bool is_sentencepiece) {
    const auto id_or = [&](const char* name, TokenId otherwise) -> std::optional<TokenId> {
      const std::optional<TokenId> id = id_at(std::string("tokenizer.ggml.") + name, n_tokens());
      if (id || !is_sentencepiece || otherwise >= n_tokens()) return id;
      return otherwise;
    };
    definition_.bos = id_or("bos_token_id", 1);
    definition_.eos = id_or("eos_token_id", 2);
    unknown_ = id_or("unknown_token_id", 0);
    id_at("tokenizer.ggml.padding_token_id", static_cast<std::int64_t>(n_listed_));
    for (const char* const key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
      if (const std::optional<TokenId> id = id_at(key, n_tokens()))
        definition_.end_of_turn.push_back(*id);
  }

  void read_byte_level() {
    std::string pre = file_.string(kPre).value_or("");
    if (pre.empty()) {
      note(
          fmt::format("no {}: the default patterns split texts into words, which may not be those "
                      "of the model; convert it again with a recent converter",
                      kPre));
      pre = "default";
    }
    const WordPatterns* const kind = word_patterns_named(pre);
    if (!kind) {
      std::vector<std::string_view> known;
      for (const WordPatterns& one : all_word_patterns())
        known.insert(known.end(), one.names.begin(), one.names.end());
      file_.refuse_value(kPre, in_quotes(pre), fmt::format("one of {}", fmt::join(known, ", ")));
    }
    add_patterns(*kind, {file_.path(), kPre}, definition_.pre_tokenizer);
    definition_.pre_tokenizer.add(ByteLevelStep{});
    definition_.rules.ignore_merges = kind->ignore_merges;
    definition_.decoding.byte_symbols = true;
    read_merges();
    add_special(kind->add_bos);
  }

  void read_gemma4() {
    definition_.normalizer.add(ReplaceMatches{SplitPattern::literal(" ", {file_.path(), kModel}),
                                              std::string(kSpaceSymbol)});
    definition_.pre_tokenizer.add(
        SplitStep{.pattern = SplitPattern::regex(R"([\n]+)", {file_.path(), kModel})});
    set_byte_fallback();
    read_merges();
    add_special(true);
  }

  void read_scores() {
    const std::vector<double> scores = file_.numbers(kScores);
    if (!scores.empty()) check_count(kScores, scores.size());
    definition_.rules.text_ranks = ranks_by(scores);
    const bool add_space = file_.boolean(kAddSpace).value_or(true);
    definition_.normalizer.add(ReplaceMatches{SplitPattern::literal(" ", {file_.path(), kModel}),
                                              std::string(kSpaceSymbol)});
    if (add_space) {
      definition_.normalizer.add(PrependText{std::string(kSpaceSymbol)});
      definition_.decoding.first = BpeDecoding::First::OneSpace;
    }
    matches_normalized_ = !add_space;
    set_byte_fallback();
    add_special(true);
  }

  /// Ranks by descending score; tokens of equal scores share a rank.
  std::vector<std::uint32_t> ranks_by(const std::vector<double>& scores) const {
    std::vector<std::pair<double, TokenId>> merged;  // with the negative score
    for (TokenId id = 0; id < n_tokens(); id++) {
      if (is(id, Unknown) || is(id, Control) || is(id, Byte)) continue;
      const double score = scores.empty() ? 0 : scores[static_cast<std::size_t>(id)];
      if (!std::isfinite(score))
        file_.refuse_value(kScores, fmt::format("{} as score of token {}", score, id),
                           "a finite number");
      merged.emplace_back(-score, id);
    }
    std::ranges::sort(merged);
    std::vector<std::uint32_t> ranks(definition_.texts.size(), BpeRules::kNoRank);
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < merged.size(); i++) {
      rank += i > 0 && merged[i].first != merged[i - 1].first;
      ranks[static_cast<std::size_t>(merged[i].second)] = rank;
    }
    return ranks;
  }

  /// Enables byte tokens for characters outside the vocabulary. Either all 256 byte tokens must
  /// exist, or none.
  void set_byte_fallback() {
    std::vector<bool> has(256);
    for (TokenId id = 0; id < n_tokens(); id++) {
      const int byte = byte_of_piece(definition_.texts[static_cast<std::size_t>(id)]);
      if (byte >= 0) has[static_cast<std::size_t>(byte)] = true;
    }
    const auto missing = std::ranges::find(has, false);
    const bool any = std::ranges::find(has, true) != has.end();
    if (any && missing != has.end())
      file_.refuse_value(kTokens, fmt::format("no token \"<0x{:02X}>\"", missing - has.begin()),
                         "a token for each byte, or for none");
    definition_.rules.byte_fallback = definition_.decoding.byte_tokens = any;
    definition_.rules.unknown = unknown_;
    definition_.decoding.replacements = {{std::string(kSpaceSymbol), " "}};
  }

  TokenId id_of(std::string_view text, std::size_t merge, std::string_view both) const {
    const auto at = ids_.find(text);
    if (at == ids_.end())
      file_.refuse_value(kMerges, fmt::format("merge {}, {}", merge, in_quotes(both)),
                         fmt::format("two tokens whose texts together are a token, and {} is none",
                                     in_quotes(text)));
    return at->second;
  }

  void read_merges() {
    const std::vector<std::string_view> merges = file_.strings(kMerges);
    if (merges.empty()) file_.refuse_value(kMerges, "none", "the merges of the vocabulary");
    if (static_cast<std::int64_t>(merges.size()) > limits_.n_pieces)
      file_.refuse_value(kMerges, fmt::format("{} merges", merges.size()),
                         fmt::format("at most {}", limits_.n_pieces));
    definition_.rules.merges = MergeTable(merges.size());
    is_merged_.assign(definition_.texts.size(), false);
    for (std::size_t i = 0; i < merges.size(); i++) {
      const std::string_view both = merges[i];
      const std::size_t space = both.find(' ', 1);
      if (space == std::string_view::npos)
        file_.refuse_value(kMerges, fmt::format("merge {}, {}", i, in_quotes(both)),
                           "two texts with a space between them");
      const std::string_view left = both.substr(0, space), right = both.substr(space + 1);
      const std::string merged = std::string(left) + std::string(right);
      const TokenId left_id = id_of(left, i, both), right_id = id_of(right, i, both);
      const TokenId id = id_of(merged, i, both);
      is_merged_[static_cast<std::size_t>(id)] = true;
      definition_.rules.merges.add(left_id, right_id, {static_cast<std::uint32_t>(i), id});
    }
  }

  void add_special(bool add_bos) {
    if (file_.boolean(kAddBos).value_or(add_bos)) {
      if (definition_.bos)
        definition_.before.push_back(*definition_.bos);
      else if (file_.has(kAddBos))
        refuse_no_id(kAddBos, "bos");
    }
    if (file_.boolean(kAddEos).value_or(false)) {
      if (!definition_.eos) refuse_no_id(kAddEos, "eos");
      definition_.after.push_back(*definition_.eos);
    }
  }

  [[noreturn]] void refuse_no_id(const char* key, const char* name) const {
    file_.refuse_value(key, "true",
                       fmt::format("false, as there is no tokenizer.ggml.{}_token_id", name));
  }

  /// True for Phi-3, whose special tokens absorb the white space after them. The file does not say
  /// this.
  bool is_phi3() const {
    std::string name = file_.string("general.name").value_or("");
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
  }

  /// True if a token ends a turn by its name. Some converters give such tokens the type normal or
  /// user-defined. False for a token that a merge produces, and for "</s>", which may be a tag of
  /// HTML (Gemma, Qwen).
  bool is_end_by_name(TokenId id) const {
    const auto at = static_cast<std::size_t>(id);
    const std::string& text = definition_.texts[at];
    return !is(id, Byte) && text != "</s>" && names_end_of_turn(text) &&
           (is_merged_.empty() || !is_merged_[at]);
  }

  void place_added() {
    constexpr std::array<std::string_view, 3> kKeepSpace = {"<unk>", "<s>", "<|endoftext|>"};
    const bool rstrip = is_phi3();
    for (TokenId id = 0; id < n_tokens(); id++) {
      const std::string& text = definition_.texts[static_cast<std::size_t>(id)];
      const bool is_special = is(id, Control) || is(id, Unknown) || is_end_by_name(id);
      if (text.empty() || !(is_special || is(id, UserDefined))) continue;
      if (ids_.find(text)->second != id) continue;  // an earlier token has this text
      AddedToken token;
      token.id = id;
      token.content = text;
      token.special = is_special;
      token.normalized = matches_normalized_ && !is_special;
      token.rstrip = rstrip && std::ranges::find(kKeepSpace, text) == kKeepSpace.end();
      definition_.added.push_back(std::move(token));
    }
  }

  void add_ends() {
    if (definition_.eos || !definition_.end_of_turn.empty()) return;
    note(
        "no tokenizer.ggml.eos_token_id: a text ends only at its length or at a token whose name "
        "says so");
  }

  const GgufFile& file_;
  const FileLimits& limits_;
  std::vector<std::string>& notices_;
  BpeDefinition definition_;
  std::size_t n_listed_ = 0;     // tokens in the file, with padding
  std::vector<bool> is_merged_;  // [n_tokens] a merge makes this token; empty: there are no merges
  std::vector<int> types_;       // [n_tokens]
  std::unordered_map<std::string_view, TokenId> ids_;  // views of the file
  std::optional<TokenId> unknown_;
  // User-defined tokens match after spaces became kSpaceSymbol, as in SentencePiece (Gemma's runs of
  // spaces). Not if a space is put before texts: it would be put before these tokens too.
  bool matches_normalized_ = false;
};

}  // namespace

std::shared_ptr<const Tokenizer> open_gguf_tokenizer(const GgufFile& file,
                                                     const FileLimits& limits,
                                                     std::vector<std::string>& notices) {
  return GgufReader(file, limits, notices).read();
}

}  // namespace engine
