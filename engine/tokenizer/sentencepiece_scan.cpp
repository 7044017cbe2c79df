#include "engine/tokenizer/sentencepiece_scan.h"

#include <bit>
#include <cmath>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "engine/base/file_kind.h"
#include "engine/base/refuse.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/charsmap.h"

namespace engine {
namespace {

enum WireType { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

// One field of a message in the file.
struct Field {
  std::uint32_t number = 0;
  int type = 0;
  std::size_t begin = 0;        // offset of its tag
  std::uint64_t value = 0;      // Varint, Fixed32, Fixed64
  std::string_view bytes;       // Bytes
  std::size_t bytes_begin = 0;  // offset of `bytes` in the file
};

class Scanner {
 public:
  Scanner(std::string_view file, const std::string& path) : file_(file), path_(path) {}

  [[noreturn]] void fail(std::size_t at, const std::string& found) const {
    refuse(path_, fmt::format("byte {}", at), "not a SentencePiece model: " + found,
           "a ModelProto (tokenizer.model)");
  }

  /// Calls on_field for each field of the message at [begin, end).
  template <class OnField>
  void message(std::size_t begin, std::size_t end, OnField on_field) const {
    std::size_t at = begin;
    while (at < end) {
      Field field;
      field.begin = at;
      const std::uint64_t tag = varint(at, end);
      field.type = static_cast<int>(tag & 7);
      if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) {
        fail(field.begin, fmt::format("field number {}", tag >> 3));
      }
      field.number = static_cast<std::uint32_t>(tag >> 3);
      switch (field.type) {
        case Varint:
          field.value = varint(at, end);
          break;
        case Fixed32:
          field.value = fixed(at, end, 4);
          break;
        case Fixed64:
          field.value = fixed(at, end, 8);
          break;
        case Bytes: {
          const std::size_t length_at = at;
          const std::uint64_t length = varint(at, end);
          if (length > end - at) {
            fail(length_at, fmt::format("a length of {} with {} bytes left", length, end - at));
          }
          field.bytes_begin = at;
          field.bytes = file_.substr(at, static_cast<std::size_t>(length));
          at += static_cast<std::size_t>(length);
          break;
        }
        default:
          fail(field.begin, fmt::format("wire type {} (groups are not used)", field.type));
      }
      on_field(field, at);
    }
  }

  void require(const Field& field, WireType type, const char* name) const {
    if (field.type == type) return;
    fail(field.begin, fmt::format("wire type {} for {}, which is of type {}", field.type, name,
                                  static_cast<int>(type)));
  }

 private:
  std::uint64_t varint(std::size_t& at, std::size_t end) const {
    const std::size_t begin = at;
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at >= end) fail(begin, "an incomplete number");
      const auto byte = static_cast<unsigned char>(file_[at++]);
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    fail(begin, "a number of more than 10 bytes");
  }

  std::uint64_t fixed(std::size_t& at, std::size_t end, std::size_t n_bytes) const {
    if (end - at < n_bytes) fail(at, "an incomplete number");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < n_bytes; i++) {
      value |= std::uint64_t{static_cast<unsigned char>(file_[at + i])} << (8 * i);
    }
    at += n_bytes;
    return value;
  }

  std::string_view file_;
  const std::string& path_;
};

// Reads an id, an int32. The file stores a negative one sign-extended to 64 bits.
std::int64_t signed_value(const Field& field) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(field.value));
}

// Reads the fields of the model, then checks the rules between them.
class ModelScan {
 public:
  ModelScan(std::string_view bytes, const std::string& path, const FileLimits& limits)
      : scanner_(bytes, path), bytes_(bytes), path_(path), limits_(limits) {}

  ScannedModel scan() {
    scanner_.message(0, bytes_.size(), [&](const Field& field, std::size_t end) {
      switch (field.number) {
        case 1:
          read_piece(field, end);
          break;
        case 2:
          read_trainer_spec(field);
          break;
        case 3:
          read_normalizer(field, "normalizer_spec", false);
          break;
        case 5:
          read_normalizer(field, "denormalizer_spec", true);
          break;
        default:
          break;  // self-test data, and fields of later versions
      }
    });
    check_pieces();
    check_bytes();
    check_ids();
    return std::move(model_);
  }

 private:
  std::string piece_name(std::size_t id) const {
    return fmt::format("piece {} {}", id, in_quotes(model_.pieces[id].text));
  }

  void read_piece(const Field& field, std::size_t end) {
    scanner_.require(field, Bytes, "pieces");
    const std::size_t id = model_.pieces.size();
    if (static_cast<std::int64_t>(id) == limits_.n_pieces) {
      refuse(path_, "pieces", fmt::format("more than {}", limits_.n_pieces), "fewer");
    }
    ScannedPiece piece;
    piece.message_begin = field.begin;
    piece.message_end = end;
    float score = 0;
    const std::size_t begin = field.bytes_begin;
    scanner_.message(begin, begin + field.bytes.size(), [&](const Field& part, std::size_t) {
      if (part.number == 1) {
        scanner_.require(part, Bytes, "piece");
        piece.text = part.bytes;
      } else if (part.number == 2) {
        scanner_.require(part, Fixed32, "score");
        score = std::bit_cast<float>(static_cast<std::uint32_t>(part.value));
      } else if (part.number == 3) {
        scanner_.require(part, Varint, "type");
        if (part.value < 1 || part.value > 6) {
          refuse(path_, fmt::format("piece {}: type", id), std::to_string(part.value), "1 to 6");
        }
        piece.type = static_cast<int>(part.value);
      }
    });
    if (!std::isfinite(score)) {
      refuse(path_, fmt::format("piece {}: score", id), fmt::format("{}", score),
             "a finite number");
    }
    piece.score = score;
    model_.pieces.push_back(std::move(piece));
  }

  void read_trainer_spec(const Field& field) {
    scanner_.require(field, Bytes, "trainer_spec");
    const std::size_t begin = field.bytes_begin;
    scanner_.message(begin, begin + field.bytes.size(), [&](const Field& part, std::size_t) {
      const auto id = [&](const char* name, std::int64_t& out) {
        scanner_.require(part, Varint, name);
        out = signed_value(part);
      };
      switch (part.number) {
        case 3:
          id("model_type", model_type_);
          break;
        case 24:
          refuse_if(part, "treat_whitespace_as_suffix");
          break;
        case 35:
          scanner_.require(part, Varint, "byte_fallback");
          model_.byte_fallback = part.value != 0;
          break;
        case 40:
          id("unk_id", unk_id_);
          break;
        case 41:
          id("bos_id", bos_id_);
          break;
        case 42:
          id("eos_id", eos_id_);
          break;
        case 43:
          id("pad_id", pad_id_);
          break;
        case 44:
          scanner_.require(part, Bytes, "unk_surface");
          model_.unk_surface = part.bytes;
          break;
        default:
          break;
      }
    });
  }

  void refuse_if(const Field& part, const char* name) {
    scanner_.require(part, Varint, name);
    if (part.value == 0) return;
    refuse(path_, fmt::format("trainer_spec.{}", name), "true", "false (not supported)");
  }

  void read_normalizer(const Field& field, const char* name, bool is_denormalizer) {
    scanner_.require(field, Bytes, name);
    const std::size_t begin = field.bytes_begin;
    scanner_.message(begin, begin + field.bytes.size(), [&](const Field& part, std::size_t) {
      if (part.number == 2) {
        scanner_.require(part, Bytes, "precompiled_charsmap");
        const std::string place = std::string(name) + ".precompiled_charsmap";
        if (const std::string fault = charsmap_fault(part.bytes); !fault.empty()) {
          refuse(path_, place, fault, "a sound double-array trie");
        }
        if (is_denormalizer && !part.bytes.empty()) {
          refuse(path_, place, "a table", "none (not supported)");
        }
        if (!is_denormalizer) model_.charsmap = part.bytes;
      } else if (part.number >= 3 && part.number <= 5) {
        scanner_.require(part, Varint, name);
        if (part.number == 3 && !is_denormalizer) model_.add_dummy_prefix = part.value != 0;
        if (part.number == 4 && !is_denormalizer) model_.remove_extra_whitespaces = part.value != 0;
        if (part.number == 5 && !is_denormalizer) model_.escape_whitespaces = part.value != 0;
      }
    });
  }

  void check_pieces() {
    if (model_.pieces.empty()) scanner_.fail(bytes_.size(), "no pieces");
    std::unordered_map<std::string_view, std::size_t> seen;
    std::size_t n_unknown = 0;
    for (std::size_t id = 0; id < model_.pieces.size(); id++) {
      const ScannedPiece& piece = model_.pieces[id];
      const std::string field = fmt::format("piece {}", id);
      if (piece.text.empty()) refuse(path_, field, "an empty piece", "text");
      if (static_cast<std::int64_t>(piece.text.size()) > limits_.piece_bytes) {
        refuse(path_, field, fmt::format("{} bytes", piece.text.size()),
               fmt::format("at most {}", limits_.piece_bytes));
      }
      if (first_bad_utf8(piece.text) != piece.text.size()) {
        refuse(path_, field, in_quotes(piece.text), "UTF-8");
      }
      const auto [first, is_new] = seen.emplace(piece.text, id);
      if (!is_new) {
        refuse(path_, field, in_quotes(piece.text) + fmt::format(" as in piece {}", first->second),
               "distinct pieces");
      }
      if (piece.type == ScannedPiece::Unknown && n_unknown++ == 1) {
        refuse(path_, field, "a second unknown piece", "one");
      }
      if (piece.type == ScannedPiece::Unknown && n_unknown == 1) unknown_piece_ = id;
    }
    if (n_unknown == 0) {
      refuse(path_, fmt::format("pieces 0..{}", model_.pieces.size() - 1), "no unknown piece",
             "one of type UNKNOWN");
    }
  }

  void check_bytes() {
    bool has_byte[256] = {};
    for (std::size_t id = 0; id < model_.pieces.size(); id++) {
      if (model_.pieces[id].type != ScannedPiece::Byte) continue;
      const int byte = byte_of_piece(model_.pieces[id].text);
      if (byte < 0) refuse(path_, piece_name(id), "type BYTE", "a text <0x00> to <0xFF>");
      if (!model_.byte_fallback) {
        refuse(path_, piece_name(id), "type BYTE without byte_fallback",
               "trainer_spec.byte_fallback");
      }
      has_byte[byte] = true;
    }
    if (!model_.byte_fallback) return;
    for (int byte = 0; byte < 256; byte++) {
      if (has_byte[byte]) continue;
      refuse(path_, "pieces", fmt::format("no byte piece <0x{:02X}>", byte),
             "all 256, because trainer_spec.byte_fallback is set");
    }
  }

  void check_ids() {
    if (model_type_ != ScannedModel::Unigram && model_type_ != ScannedModel::Bpe) {
      const char* name = model_type_ == 3 ? "WORD" : model_type_ == 4 ? "CHAR" : "unknown";
      refuse(path_, "trainer_spec.model_type", fmt::format("{} ({})", model_type_, name),
             "UNIGRAM (1) or BPE (2)");
    }
    model_.type = static_cast<int>(model_type_);
    const auto n = static_cast<std::int64_t>(model_.pieces.size());
    const auto check = [&](const char* name, std::int64_t id, std::int64_t low) {
      if (id >= low && id < n) return;
      refuse(path_, std::string("trainer_spec.") + name, std::to_string(id),
             fmt::format("{} to {}", low, n - 1));
    };
    // Checks only the ids that the file sets: a small model may have no pieces with the default
    // ids.
    if (unk_id_ != kNotSet) check("unk_id", unk_id_, 0);
    if (bos_id_ != kNotSet) check("bos_id", bos_id_, -1);
    if (eos_id_ != kNotSet) check("eos_id", eos_id_, -1);
    if (pad_id_ != kNotSet) check("pad_id", pad_id_, -1);
    model_.unk_id = static_cast<int>(unknown_piece_);
    model_.bos_id = control_id(bos_id_, 1);
    model_.eos_id = control_id(eos_id_, 2);
  }

  int control_id(std::int64_t id, std::int64_t fallback) const {
    if (id == kNotSet) id = fallback;
    if (id < 0 || id >= static_cast<std::int64_t>(model_.pieces.size())) return -1;
    const ScannedPiece& piece = model_.pieces[static_cast<std::size_t>(id)];
    return piece.type == ScannedPiece::Control ? static_cast<int>(id) : -1;
  }

  static constexpr std::int64_t kNotSet = std::int64_t{1} << 40;

  Scanner scanner_;
  std::string_view bytes_;
  const std::string& path_;
  const FileLimits& limits_;
  ScannedModel model_;
  std::size_t unknown_piece_ = 0;
  std::int64_t model_type_ = ScannedModel::Unigram;
  std::int64_t unk_id_ = kNotSet, bos_id_ = kNotSet, eos_id_ = kNotSet, pad_id_ = kNotSet;
};

}  // namespace

int byte_of_piece(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  const int high = digit(text[3]), low = digit(text[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

ScannedModel scan_sentencepiece(std::string_view bytes,
                                const std::string& path,
                                const FileLimits& limits) {
  if (const std::string other = recognised_as(bytes); !other.empty()) {
    refuse(path, "byte 0", "not a SentencePiece model: this is " + other,
           "a ModelProto (tokenizer.model)");
  }
  return ModelScan(bytes, path, limits).scan();
}

}  // namespace engine
