#include "engine/tokenizer/symbol_names.h"

#include <algorithm>
#include <unordered_set>

#include "engine/base/utf8.h"

namespace engine {
namespace {

constexpr int kLibraryMatches = 64;
constexpr char32_t kFirstPrivate = 0x100000, kLastPrivate = 0x10fffd;

// Counts for each symbol the symbols that are prefixes of it, including itself. Returns the largest
// count.
int deepest_nesting(const std::unordered_set<std::string_view>& symbols) {
  int deepest = 0;
  for (const std::string_view symbol : symbols) {
    int n = 0;
    for (std::size_t length = 1; length <= symbol.size(); length++) {
      n += symbols.contains(symbol.substr(0, length));
    }
    deepest = std::max(deepest, n);
  }
  return deepest;
}

}  // namespace

SymbolNames::SymbolNames(const ScannedModel& model) {
  std::unordered_set<std::string_view> symbols, pieces;
  for (const ScannedPiece& piece : model.pieces) {
    pieces.insert(piece.text);
    if (piece.type == ScannedPiece::UserDefined) symbols.insert(piece.text);
  }
  const bool too_deep = deepest_nesting(symbols) > kLibraryMatches;
  char32_t next = kFirstPrivate;
  for (const ScannedPiece& piece : model.pieces) {
    const bool is_symbol = piece.type == ScannedPiece::UserDefined;
    const bool has_nul = piece.text.find('\0') != std::string::npos;
    if (!(is_symbol && too_deep) && !has_nul) continue;
    std::string name;
    do {
      name.clear();
      append_utf8(name, next++);
    } while (pieces.contains(name) && next < kLastPrivate);
    if (next >= kLastPrivate) break;  // more than 65,000 symbols, which no real model has
    stand_in_.emplace(piece.text, name);
    longest_ = std::max(longest_, piece.text.size());
  }
}

std::string SymbolNames::renamed(std::string_view file, const ScannedModel& model) const {
  if (stand_in_.empty()) return std::string(file);
  std::string out;
  std::size_t copied = 0;
  for (const ScannedPiece& piece : model.pieces) {
    const auto at = stand_in_.find(piece.text);
    if (at == stand_in_.end()) continue;
    // Appends a second `piece` field, which replaces the first one. It has six bytes (tag, length,
    // a character of four bytes), so the length of the message is updated.
    const std::string_view message =
        file.substr(piece.message_begin, piece.message_end - piece.message_begin);
    std::size_t body = 1;
    while (static_cast<unsigned char>(message[body]) >= 0x80) body++;
    body++;
    std::string content(message.substr(body));
    content += '\x0a';
    content += static_cast<char>(at->second.size());
    content += at->second;
    out += file.substr(copied, piece.message_begin - copied);
    out += message[0];
    for (std::size_t length = content.size();; length >>= 7) {
      const bool more = length >= 0x80;
      out += static_cast<char>((length & 0x7f) | (more ? 0x80 : 0));
      if (!more) break;
    }
    out += content;
    copied = piece.message_end;
  }
  out += file.substr(copied);
  return out;
}

std::string SymbolNames::in_text(std::string_view text) const {
  if (stand_in_.empty()) return std::string(text);
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = std::min(longest_, text.size() - i);
    auto at = stand_in_.end();
    for (; length > 0; length--) {
      at = stand_in_.find(std::string(text.substr(i, length)));
      if (at != stand_in_.end()) break;
    }
    if (length > 0) {
      out += at->second;
      i += length;
    } else {
      out += text[i++];
    }
  }
  return out;
}

}  // namespace engine
