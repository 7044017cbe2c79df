#include "engine/tokenizer/bpe/byte_symbols.h"

#include <array>

#include "engine/base/utf8.h"

namespace engine {
namespace {

constexpr int kFirstOther = 0x100;  // the symbol of the first byte that is not printable

constexpr bool is_printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Symbols {
  std::array<char16_t, 256> of_byte{};
  std::array<int, 512> byte_of{};  // [code point]; -1: none

  constexpr Symbols() {
    byte_of.fill(-1);
    int next = kFirstOther;
    for (int byte = 0; byte < 256; byte++) {
      const int symbol = is_printable(byte) ? byte : next++;
      of_byte[static_cast<std::size_t>(byte)] = static_cast<char16_t>(symbol);
      byte_of[static_cast<std::size_t>(symbol)] = byte;
    }
  }
};

constexpr Symbols kSymbols;

}  // namespace

void append_byte_symbols(std::string& out, std::string_view bytes) {
  for (const char c : bytes) append_utf8(out, kSymbols.of_byte[static_cast<unsigned char>(c)]);
}

std::optional<std::string> bytes_of_symbols(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = utf8_at(text, i);
    const bool in_table = c.state == Utf8Char::Valid && c.code_point < kSymbols.byte_of.size();
    const int byte = in_table ? kSymbols.byte_of[c.code_point] : -1;
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    i += static_cast<std::size_t>(c.length);
  }
  return bytes;
}

}  // namespace engine
