#include "engine/model/sentencepiece.h"

#include <sys/mman.h>
#include <filesystem>
#include <new>
#include <unordered_map>

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include "engine/model/fields.h"
#include "engine/model/json.h"
#include "engine/model/mapped_file.h"
#include "engine/model/refuse.h"
#include "engine/model/sentencepiece_scan.h"
#include "engine/model/symbol_names.h"
#include "engine/model/utf8.h"

namespace engine {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581, how pieces write a space

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

/// The library's messages that find no memory while they are made end the process when they are
/// given back, so more has to be there than it takes: 17 bytes for each of the file's were seen.
/// @throws std::bad_alloc
void expect_room_to_load(std::size_t file_bytes) {
  const std::size_t bytes = (1 << 20) + 32 * file_bytes;
  // Past malloc, which would deal with later requests in another way behind one of such a size.
  void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  munmap(room, bytes);
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view file,
                         const std::string& path,
                         const SentencePieceOptions& options)
      : model_(scan_sentencepiece(file, path, options.limits)),
        names_(model_),
        add_bos_(options.add_bos),
        add_eos_(options.add_eos),
        max_bytes_(options.limits.prompt_bytes) {
    const std::string renamed = names_.renamed(file, model_);
    expect_room_to_load(renamed.size());
    const auto status = processor_.LoadFromSerializedProto(renamed);
    if (!status.ok()) {
      refuse(path, "model", escaped(status.ToString()), "a model the sentencepiece library loads");
    }
    for (const ScannedPiece& piece : model_.pieces) texts_.push_back(text_of(piece));
    bos_ = special_id(options.bos_token, model_.bos_id);
    eos_ = special_id(options.eos_token, model_.eos_id);
  }

  int vocab_size() const override { return static_cast<int>(texts_.size()); }
  std::optional<TokenId> bos_id() const override { return bos_; }
  std::optional<TokenId> eos_id() const override { return eos_; }

  std::vector<TokenId> encode(std::string_view text, bool add_special) const override {
    if (static_cast<std::int64_t>(text.size()) > max_bytes_) {
      throw Error(ErrorCode::BadInput, fmt::format("prompt: found {} bytes, expected at most {}",
                                                   text.size(), max_bytes_));
    }
    std::vector<int> pieces;
    const auto status = processor_.Encode(names_.in_text(text), &pieces);
    if (!status.ok()) throw Error(ErrorCode::BadInput, "prompt: " + escaped(status.ToString()));
    std::vector<TokenId> ids;
    ids.reserve(pieces.size() + 2);
    if (add_special && add_bos_ && bos_) ids.push_back(*bos_);
    ids.insert(ids.end(), pieces.begin(), pieces.end());
    if (add_special && add_eos_ && eos_) ids.push_back(*eos_);
    return ids;
  }

  // The space that encode() put before the first word is not part of the text.
  std::string extend(TextState& state, TokenId id) const override {
    if (!is_valid(id)) return "";
    if (is_special(id)) return take_whole_characters(state.open_bytes, true);
    std::string_view piece = texts_[static_cast<std::size_t>(id)];
    const bool is_word = !is_unknown(id) && !is_byte(id);
    const bool drops_space = model_.add_dummy_prefix || model_.remove_extra_whitespaces;
    if (state.at_start && drops_space && is_word && piece.starts_with(' ')) {
      piece.remove_prefix(1);
      state.at_start = model_.remove_extra_whitespaces;
    }
    if (!piece.empty()) state.at_start = false;
    state.open_bytes += piece;
    return take_whole_characters(state.open_bytes, false);
  }

  std::string piece(TokenId id) const override {
    return is_valid(id) ? texts_[static_cast<std::size_t>(id)] : "";
  }

  bool is_special(TokenId id) const override {
    return is_valid(id) && type_of(id) == ScannedPiece::Control;
  }

 private:
  bool is_valid(TokenId id) const { return id >= 0 && id < vocab_size(); }
  int type_of(TokenId id) const { return model_.pieces[static_cast<std::size_t>(id)].type; }
  bool is_unknown(TokenId id) const { return type_of(id) == ScannedPiece::Unknown; }
  bool is_byte(TokenId id) const { return type_of(id) == ScannedPiece::Byte; }

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

  std::optional<TokenId> special_id(const std::string& token, int fallback) const {
    for (std::size_t id = 0; id < model_.pieces.size() && !token.empty(); id++) {
      if (model_.pieces[id].text == token) return static_cast<TokenId>(id);
    }
    return fallback >= 0 ? std::optional<TokenId>(fallback) : std::nullopt;
  }

  ScannedModel model_;
  SymbolNames names_;
  sentencepiece::SentencePieceProcessor processor_;
  std::vector<std::string> texts_;  // what each token adds to a text, in bytes
  bool add_bos_, add_eos_;
  std::int64_t max_bytes_;  // of a text to encode
  std::optional<TokenId> bos_, eos_;
};

// "bos_token": "<s>", or {"content": "<s>", ...}.
std::string token_text(const Fields& fields, const char* name) {
  const Json* value = fields.find(name);
  if (!value) return "";
  if (value->is(JsonReader::Kind::Object)) {
    return Fields(*value, fields.file(), std::string(name) + ".").string("content").value_or("");
  }
  return *fields.string(name);
}

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path,
                                              const SentencePieceOptions& options) {
  const std::string file =
      read_text_file(path, static_cast<std::size_t>(options.limits.tokenizer_bytes));
  return std::make_unique<SentencePieceTokenizer>(file, path, options);
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& directory,
                                          const FileLimits& limits,
                                          std::vector<std::string>& notices) {
  SentencePieceOptions options;
  options.limits = limits;
  const std::string path = directory + "/tokenizer_config.json";
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    const Json json = read_json_file(path, limits);
    const Fields fields(json, path);
    options.add_bos = fields.boolean("add_bos_token", true);
    options.add_eos = fields.boolean("add_eos_token", false);
    options.bos_token = token_text(fields, "bos_token");
    options.eos_token = token_text(fields, "eos_token");
  }
  std::unique_ptr<Tokenizer> tokenizer =
      open_sentencepiece(directory + "/tokenizer.model", options);
  const auto note_missing = [&](const char* name, const std::string& token,
                                std::optional<TokenId> id) {
    if (token.empty() || (id && tokenizer->piece(*id) == token)) return;
    notices.push_back(fmt::format("{}: {} is {}, which tokenizer.model does not have: ignored",
                                  escaped(path), name, in_quotes(token)));
  };
  note_missing("bos_token", options.bos_token, tokenizer->bos_id());
  note_missing("eos_token", options.eos_token, tokenizer->eos_id());
  return tokenizer;
}

}  // namespace engine
