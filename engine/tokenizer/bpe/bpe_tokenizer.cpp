#include "engine/tokenizer/bpe/bpe_tokenizer.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/bpe/byte_symbols.h"
#include "engine/tokenizer/sentencepiece_scan.h"

namespace engine {
namespace {

using Place = PreTokenizer::Place;

std::string with_replacements(std::string text,
                              const std::vector<std::pair<std::string, std::string>>& all) {
  for (const auto& [from, to] : all) {
    for (std::size_t i = 0; (i = text.find(from, i)) != std::string::npos; i += to.size())
      text.replace(i, from.size(), to);
  }
  return text;
}

class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeDefinition definition)
      : added_(definition.added,
               [&](const std::string& text) { return definition.normalizer.apply(text, false); }),
        pieces_(pieces_of(definition)),
        special_(pieces_.size()),
        model_(BpeVocabulary(std::move(definition.texts)), std::move(definition.rules)),
        normalizer_(std::move(definition.normalizer)),
        pre_tokenizer_(std::move(definition.pre_tokenizer)),
        decoding_(std::move(definition.decoding)),
        before_(std::move(definition.before)),
        after_(std::move(definition.after)),
        bos_(definition.bos),
        eos_(definition.eos),
        end_of_turn_(std::move(definition.end_of_turn)),
        limits_(definition.limits) {
    for (const AddedToken& token : added_.all())
      special_[static_cast<std::size_t>(token.id)] = token.special;
  }

  int vocab_size() const override { return static_cast<int>(pieces_.size()); }
  std::optional<TokenId> bos_id() const override { return bos_; }
  std::optional<TokenId> eos_id() const override { return eos_; }

  std::vector<TokenId> end_of_turn_ids() const override {
    std::vector<TokenId> ids = Tokenizer::end_of_turn_ids();
    for (const TokenId id : end_of_turn_)
      if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
    std::ranges::sort(ids);
    return ids;
  }

  std::vector<TokenId> encode(std::string_view text, const TextReading& reading) const override {
    check_length(text, limits_);
    std::vector<TokenId> ids;
    BpeModel::Workspace workspace;
    if (reading.add_special) ids = before_;
    for (const TextPart& part : added_.split(text, AddedTokens::Of::GivenText, !reading.symbols)) {
      if (part.id) {
        ids.push_back(*part.id);
        continue;
      }
      const bool is_first = part.text.data() == text.data();
      const Place place = !is_first           ? Place::AfterToken
                          : reading.continues ? Place::AfterText
                                              : Place::Start;
      encode_stretch(part.text, place, !reading.symbols, workspace, ids);
    }
    if (reading.add_special) ids.insert(ids.end(), after_.begin(), after_.end());
    return ids;
  }

  std::string extend(TextState& state, TokenId id) const override {
    if (!is_valid(id)) return "";
    if (is_special(id)) return take_whole_characters(state.open_bytes, true);
    const std::string piece =
        state.at_start ? first_piece(id) : pieces_[static_cast<std::size_t>(id)];
    // From now on a token is not the first one, even if this piece lost its only character.
    state.at_start = false;
    state.open_bytes += piece;
    return take_whole_characters(state.open_bytes, false);
  }

  std::string piece(TokenId id) const override {
    return is_valid(id) ? pieces_[static_cast<std::size_t>(id)] : "";
  }

  bool is_special(TokenId id) const override {
    return is_valid(id) && special_[static_cast<std::size_t>(id)];
  }

 private:
  static std::vector<std::string> pieces_of(const BpeDefinition& definition) {
    const BpeDecoding& decoding = definition.decoding;
    std::vector<std::string> pieces;
    for (const std::string& text : definition.texts) {
      const int byte = decoding.byte_tokens ? byte_of_piece(text) : -1;
      if (byte >= 0) {
        pieces.emplace_back(1, static_cast<char>(byte));
      } else if (decoding.byte_symbols) {
        pieces.push_back(bytes_of_symbols(text).value_or(text));
      } else {
        pieces.push_back(with_replacements(text, decoding.replacements));
      }
    }
    for (const AddedToken& token : definition.added) {
      const auto at = static_cast<std::size_t>(token.id);
      if (at >= pieces.size()) pieces.resize(at + 1);
      pieces[at] =
          token.special ? token.content : with_replacements(token.content, decoding.replacements);
    }
    return pieces;
  }

  bool is_valid(TokenId id) const { return id >= 0 && id < vocab_size(); }

  std::string first_piece(TokenId id) const {
    std::string piece = pieces_[static_cast<std::size_t>(id)];
    if (decoding_.first == BpeDecoding::First::OneSpace && piece.starts_with(' '))
      piece.erase(0, 1);
    if (decoding_.first == BpeDecoding::First::AllSpaces) {
      piece = text_of(id);
      for (const auto& [from, to] : decoding_.replacements)
        piece = with_replacements(piece, {{from, ""}});
    }
    return piece;
  }

  /// Returns a token's text in the vocabulary, or the content of an added token.
  std::string text_of(TokenId id) const {
    const BpeVocabulary& vocabulary = model_.vocabulary();
    const bool has_text = static_cast<std::size_t>(id) < vocabulary.size();
    return has_text ? vocabulary.text(id) : pieces_[static_cast<std::size_t>(id)];
  }

  // Encodes bytes that are not UTF-8 separately, because patterns and normalisers do not accept
  // them.
  void encode_stretch(std::string_view text,
                      Place place,
                      bool as_text,
                      BpeModel::Workspace& workspace,
                      std::vector<TokenId>& ids) const {
    while (!text.empty()) {
      const std::size_t n_valid = first_bad_utf8(text);
      if (n_valid > 0) encode_utf8(text.substr(0, n_valid), place, as_text, workspace, ids);
      text.remove_prefix(n_valid);
      std::size_t n_bad = 0;
      while (n_bad < text.size() && !begins_with_character(text.substr(n_bad))) n_bad++;
      if (n_bad > 0) encode_bytes(text.substr(0, n_bad), workspace, ids);
      text.remove_prefix(n_bad);
      place = Place::AfterText;
    }
  }

  void encode_bytes(std::string_view bytes,
                    BpeModel::Workspace& workspace,
                    std::vector<TokenId>& ids) const {
    std::string word;
    if (pre_tokenizer_.is_byte_level())
      append_byte_symbols(word, bytes);
    else
      word = bytes;
    model_.encode(word, workspace, ids);
  }

  void encode_utf8(std::string_view given,
                   Place place,
                   bool as_text,
                   BpeModel::Workspace& workspace,
                   std::vector<TokenId>& ids) const {
    std::string normalized;
    if (!normalizer_.empty())
      normalized = normalizer_.apply(std::string(given), place == Place::AfterText);
    const std::string_view text = normalizer_.empty() ? given : normalized;
    for (const TextPart& part : added_.split(text, AddedTokens::Of::NormalizedText, as_text)) {
      if (part.id) {
        ids.push_back(*part.id);
        continue;
      }
      const bool is_first = part.text.data() == text.data();
      const Words words = pre_tokenizer_.apply(part.text, is_first ? place : Place::AfterToken);
      for (const std::string_view word : words.words) model_.encode(word, workspace, ids);
    }
  }

  AddedTokens added_;
  std::vector<std::string> pieces_;  // [vocab_size] the bytes that each token adds to a text
  std::vector<bool> special_;
  BpeModel model_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  BpeDecoding decoding_;
  std::vector<TokenId> before_, after_;
  std::optional<TokenId> bos_, eos_;
  std::vector<TokenId> end_of_turn_;
  FileLimits limits_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeDefinition definition) {
  return std::make_unique<BpeTokenizer>(std::move(definition));
}

}  // namespace engine
