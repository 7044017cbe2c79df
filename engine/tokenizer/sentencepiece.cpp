#include "engine/tokenizer/sentencepiece.h"

#include <sys/mman.h>
#include <algorithm>
#include <array>
#include <mutex>
#include <new>

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include "engine/base/mapped_file.h"
#include "engine/base/refuse.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/charsmap.h"
#include "engine/tokenizer/sentencepiece_scan.h"
#include "engine/tokenizer/symbol_names.h"
#include "engine/tokenizer/tokenizer_files.h"

namespace engine {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581: a space in pieces

std::string with_spaces(std::string_view piece) {
  std::string out;
  for (std::size_t i = 0; i < piece.size();) {
    if (piece.substr(i).starts_with(kSpaceSymbol)) {
      out.push_back(' ');
      i += kSpaceSymbol.size();
    } else {
      out.push_back(piece[i++]);
    }
  }
  return out;
}

/// Checks that enough memory is free to load a model. The library would crash after a failed
/// allocation. It needs up to 17 bytes for each byte of the file (measured).
/// @throws std::bad_alloc
void expect_room_to_load(std::size_t file_bytes) {
  const std::size_t bytes = (1 << 20) + 32 * file_bytes;
  // Uses mmap, because a large malloc changes how malloc serves later requests.
  void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  munmap(room, bytes);
}

/// Loads a model.
/// @param override  fields of its normalizer_spec that replace those of the file
void load(sentencepiece::SentencePieceProcessor& processor,
          std::string bytes,
          std::string_view override,
          const std::string& path) {
  constexpr char kNormalizerSpec = '\x1a';  // field 3 of ModelProto; a second one is merged
  if (!override.empty()) {
    bytes += kNormalizerSpec;
    bytes += static_cast<char>(override.size());
    bytes += override;
  }
  expect_room_to_load(bytes.size());
  const auto status = processor.LoadFromSerializedProto(bytes);
  if (status.ok()) return;
  refuse(path, "model", escaped(status.ToString()), "a model the sentencepiece library loads");
}

// Fields of NormalizerSpec that replace the file's. kNoPrefix sets add_dummy_prefix to false. The
// others disable normalisation: no precompiled_charsmap; add_dummy_prefix and
// remove_extra_whitespaces are false. escape_whitespaces is true for unchanged texts, false for
// texts that are already normalised.
constexpr std::string_view kNoPrefix{"\x18\x00", 2};
constexpr std::string_view kAsItIs{"\x12\x00\x18\x00\x20\x00\x28\x01", 8};
constexpr std::string_view kNormalized{"\x12\x00\x18\x00\x20\x00\x28\x00", 8};

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view file,
                         const std::string& path,
                         ScannedModel model,
                         SentencePieceOptions options)
      : path_(path),
        model_(std::move(model)),
        names_(model_),
        options_(std::move(options)),
        bytes_(names_.renamed(file, model_)) {
    load(processor_, bytes_, options_.own_normalizer ? "" : kAsItIs, path_);
    for (const ScannedPiece& piece : model_.pieces) {
      texts_.push_back(text_of(piece));
      special_.push_back(piece.type == ScannedPiece::Control);
    }
    for (const AddedToken& token : options_.added) take(token);
    added_ = AddedTokens(options_.added, [&](const std::string& text) { return normalized(text); });
    if (!needs_second_processor()) bytes_ = {};
    bos_ = named_id(options_.bos_token, model_.bos_id);
    eos_ = named_id(options_.eos_token, model_.eos_id);
  }

  int vocab_size() const override { return static_cast<int>(texts_.size()); }
  std::optional<TokenId> bos_id() const override { return bos_; }
  std::optional<TokenId> eos_id() const override { return eos_; }

  std::vector<TokenId> encode(std::string_view text, const TextReading& reading) const override {
    check_length(text, options_.limits);
    std::vector<TokenId> ids;
    if (reading.add_special && options_.add_bos && bos_) ids.push_back(*bos_);
    const bool as_text = !reading.symbols || options_.symbols_are_text;
    for (const TextPart& part : added_.split(text, AddedTokens::Of::GivenText, as_text)) {
      const bool is_first = part.text.data() == text.data();
      const Place place = !is_first           ? Place::AfterToken
                          : reading.continues ? Place::AfterText
                                              : Place::Start;
      if (part.id) {
        ids.push_back(*part.id);
      } else if (added_.any(AddedTokens::Of::NormalizedText)) {
        encode_normalized(normalized(part.text), place, as_text, ids);
      } else {
        encode_stretch(part.text, place, ids);
      }
    }
    if (reading.add_special && options_.add_eos && eos_) ids.push_back(*eos_);
    return ids;
  }

  // The prefix space that encode() put before the first word is not part of the text.
  std::string extend(TextState& state, TokenId id) const override {
    if (!is_valid(id)) return "";
    if (is_special(id)) return take_whole_characters(state.open_bytes, true);
    std::string_view piece = texts_[static_cast<std::size_t>(id)];
    const bool is_word = !is_unknown(id) && !is_byte(id);
    if (state.at_start && drops_first_space() && is_word && piece.starts_with(' ')) {
      piece.remove_prefix(1);
      state.at_start = options_.own_normalizer && model_.remove_extra_whitespaces;
    }
    if (!piece.empty()) state.at_start = false;
    state.open_bytes += piece;
    return take_whole_characters(state.open_bytes, false);
  }

  std::string piece(TokenId id) const override {
    return is_valid(id) ? texts_[static_cast<std::size_t>(id)] : "";
  }

  bool is_special(TokenId id) const override {
    return is_valid(id) && special_[static_cast<std::size_t>(id)];
  }

 private:
  using Prefix = SentencePieceOptions::Prefix;

  bool is_valid(TokenId id) const { return id >= 0 && id < vocab_size(); }
  int type_of(TokenId id) const {
    const auto at = static_cast<std::size_t>(id);
    return at < model_.pieces.size() ? model_.pieces[at].type : ScannedPiece::UserDefined;
  }
  bool is_unknown(TokenId id) const { return type_of(id) == ScannedPiece::Unknown; }
  bool is_byte(TokenId id) const { return type_of(id) == ScannedPiece::Byte; }

  bool drops_first_space() const {
    if (!options_.own_normalizer) return options_.prefix != Prefix::Never;
    return model_.add_dummy_prefix || model_.remove_extra_whitespaces;
  }

  std::string text_of(const ScannedPiece& piece) const {
    switch (piece.type) {
      case ScannedPiece::Byte:
        return std::string(1, static_cast<char>(byte_of_piece(piece.text)));
      case ScannedPiece::Unknown:
        return model_.unk_surface;
      case ScannedPiece::Control:
        return piece.text;
      default:
        return with_spaces(piece.text);
    }
  }

  /// The id of an added token may leave a gap after the pieces. Ids in the gap have no token and no
  /// text.
  void take(const AddedToken& token) {
    const auto at = static_cast<std::size_t>(token.id);
    if (at >= texts_.size()) texts_.resize(at + 1), special_.resize(at + 1);
    if (at < model_.pieces.size() && model_.pieces[at].type == ScannedPiece::Unknown) return;
    const bool is_byte_piece = is_byte(token.id) && model_.pieces[at].text == token.content;
    if (!is_byte_piece) texts_[at] = token.special ? token.content : with_spaces(token.content);
    special_[at] = token.special;
  }

  std::optional<TokenId> named_id(const std::optional<std::string>& name, int fallback) const {
    if (!name) return fallback >= 0 ? std::optional<TokenId>(fallback) : std::nullopt;
    if (name->empty()) return std::nullopt;
    for (const AddedToken& token : options_.added)
      if (token.content == *name) return token.id;
    for (std::size_t id = 0; id < model_.pieces.size(); id++)
      if (model_.pieces[id].text == *name) return static_cast<TokenId>(id);
    return fallback >= 0 ? std::optional<TokenId>(fallback) : std::nullopt;
  }

  /// Applies the model's normaliser to `given`: first the table of characters, then the rules for
  /// spaces.
  std::string normalized(std::string_view given) const {
    if (!options_.own_normalizer) return std::string(given);
    const std::string mapped = normalized_by(model_.charsmap, given);
    std::string_view text = mapped;
    const bool once = model_.remove_extra_whitespaces;
    if (once) {
      const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
      text = text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
    }
    std::string out;
    for (std::size_t i = 0; i < text.size(); i++) {
      if (text[i] != ' ') {
        out += text[i];
      } else if (!once || text[i - 1] != ' ') {
        out += model_.escape_whitespaces ? kSpaceSymbol : " ";
      }
    }
    return out;
  }

  /// The item that precedes a part of the text: nothing, an added token, or other text.
  enum class Place { Start, AfterToken, AfterText };

  bool has_prefix(Place place) const {
    if (place == Place::AfterText || options_.prefix == Prefix::Never) return false;
    return place == Place::Start || options_.prefix == Prefix::EveryStretch;
  }

  /// Encodes normalised text: its added tokens and the stretches between them.
  void encode_normalized(const std::string& text,
                         Place place,
                         bool as_text,
                         std::vector<TokenId>& ids) const {
    for (const TextPart& part : added_.split(text, AddedTokens::Of::NormalizedText, as_text)) {
      if (part.id) {
        ids.push_back(*part.id);
      } else {
        const Place its_place = part.text.data() == text.data() ? place : Place::AfterToken;
        options_.own_normalizer ? encode_with(second_processor(), names_.in_text(part.text), ids)
                                : encode_stretch(part.text, its_place, ids);
      }
    }
  }

  void encode_stretch(std::string_view text, Place place, std::vector<TokenId>& ids) const {
    std::string read = names_.in_text(text);
    const bool begins_with_space = read.starts_with(' ') || read.starts_with(kSpaceSymbol);
    // If every stretch gets a prefix space, it gets one even if it begins with a space, as in the
    // library and in transformers.
    const bool before_space = options_.own_normalizer && options_.prefix == Prefix::EveryStretch;
    const bool with_prefix = has_prefix(place) && (before_space || !begins_with_space);
    if (!options_.own_normalizer && with_prefix) read.insert(0, kSpaceSymbol);
    const bool drop_prefix = library_puts_prefix() && !with_prefix;
    encode_with(drop_prefix ? second_processor() : processor_, read, ids);
  }

  static void encode_with(const sentencepiece::SentencePieceProcessor& processor,
                          const std::string& text,
                          std::vector<TokenId>& ids) {
    std::vector<int> pieces;
    const auto status = processor.Encode(text, &pieces);
    if (!status.ok()) throw Error(ErrorCode::BadInput, "prompt: " + escaped(status.ToString()));
    ids.insert(ids.end(), pieces.begin(), pieces.end());
  }

  bool library_puts_prefix() const { return options_.own_normalizer && model_.add_dummy_prefix; }

  bool needs_second_processor() const {
    return library_puts_prefix() ||
           (options_.own_normalizer && added_.any(AddedTokens::Of::NormalizedText));
  }

  /// A second copy of the model, loaded when it is first needed. If the model adds a dummy prefix,
  /// the copy adds none; otherwise the copy does not normalise.
  const sentencepiece::SentencePieceProcessor& second_processor() const {
    std::call_once(loads_second_, [&] {
      auto loaded = std::make_unique<sentencepiece::SentencePieceProcessor>();
      load(*loaded, bytes_, library_puts_prefix() ? kNoPrefix : kNormalized, path_);
      second_ = std::move(loaded);
    });
    return *second_;
  }

  std::string path_;
  ScannedModel model_;
  SymbolNames names_;
  SentencePieceOptions options_;
  std::string bytes_;  // the model file, kept if a second processor may be loaded
  sentencepiece::SentencePieceProcessor processor_;
  AddedTokens added_;
  std::vector<std::string> texts_;  // [vocab_size] the bytes that each token adds to a text
  std::vector<bool> special_;
  std::optional<TokenId> bos_, eos_;
  mutable std::once_flag loads_second_;
  mutable std::unique_ptr<sentencepiece::SentencePieceProcessor> second_;
};

/// Sets the rules of transformers 5.24 for a tokenizer.model of this class.
void set_rules(const TokenizerSettings& settings,
               const std::string& model_type,
               SentencePieceOptions& options,
               std::vector<std::string>& notices) {
  using Prefix = SentencePieceOptions::Prefix;
  const std::string& name = settings.tokenizer_class;
  const bool is_llama =
      (name == "LlamaTokenizer" && model_type != "mistral") || name == "CodeLlamaTokenizer";
  // Other classes, and Mistral's models, follow the SentencePiece model itself.
  const bool every = is_llama ? name == "LlamaTokenizer" && settings.legacy.value_or(false)
                              : settings.legacy.value_or(true);
  constexpr std::array kGeneric = {"", "LlamaTokenizer", "PreTrainedTokenizer",
                                   "TokenizersBackend"};
  if (!is_llama && std::ranges::find(kGeneric, name) == kGeneric.end()) {
    notices.push_back(
        fmt::format("{}: tokenizer_class {}: the rules of this class are not applied; those "
                    "of tokenizer.model are",
                    escaped(settings.file), in_quotes(name)));
  }
  options.own_normalizer = !is_llama;
  options.prefix = every ? Prefix::EveryStretch : Prefix::FirstStretch;
  if (is_llama && !settings.add_prefix_space.value_or(true)) options.prefix = Prefix::Never;
}

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path,
                                              const SentencePieceOptions& options) {
  const std::string file =
      read_text_file(path, static_cast<std::size_t>(options.limits.tokenizer_bytes));
  return std::make_unique<SentencePieceTokenizer>(
      file, path, scan_sentencepiece(file, path, options.limits), options);
}

std::unique_ptr<Tokenizer> open_sentencepiece_directory(const std::string& directory,
                                                        const FileLimits& limits,
                                                        std::vector<std::string>& notices,
                                                        const std::string& model_type,
                                                        int vocab_size) {
  const std::string path = directory + "/tokenizer.model";
  const std::string file = read_text_file(path, static_cast<std::size_t>(limits.tokenizer_bytes));
  ScannedModel model = scan_sentencepiece(file, path, limits);
  const TokenizerSettings settings = read_tokenizer_settings(directory, limits, notices);
  SentencePieceOptions options;
  options.limits = limits;
  options.add_bos = settings.add_bos;
  options.add_eos = settings.add_eos;
  options.bos_token = settings.bos;
  options.eos_token = settings.eos;
  options.symbols_are_text = settings.split_special;
  set_rules(settings, model_type, options, notices);
  options.added =
      placed_tokens(settings, model, !options.own_normalizer, vocab_size, limits, notices);
  // With a dummy prefix transformers matches all added tokens in the text as given.
  if (options.own_normalizer && model.add_dummy_prefix)
    for (AddedToken& token : options.added) token.normalized = false;
  return std::make_unique<SentencePieceTokenizer>(file, path, std::move(model), std::move(options));
}

}  // namespace engine
