#include "ui/prepare/tokens/right_to_left.h"

#include <string>

#include "engine/event/timeline/timeline.h"

namespace ui {

bool has_right_to_left(std::string_view text) {
  // The blocks of these scripts in the order of UTF-8, whose bytes compare like the code points: U+0590 to U+08FF, U+FB1D to U+FDFF, U+FE70 to
  // U+FEFE, U+10800 to U+10FFF, U+1E800 to U+1EFFF. source Unicode 16, Bidi_Class R and AL.
  struct Block {
    std::string_view first, last;
  };
  static constexpr Block kBlocks[] = {{"\xD6\x90", "\xE0\xA3\xBF"},
                                      {"\xEF\xAC\x9D", "\xEF\xB7\xBF"},
                                      {"\xEF\xB9\xB0", "\xEF\xBB\xBE"},
                                      {"\xF0\x90\xA0\x80", "\xF0\x90\xBF\xBF"},
                                      {"\xF0\x9E\xA0\x80", "\xF0\x9E\xBF\xBF"}};
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t n = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    const std::string_view character = text.substr(at, n);
    if (n > 1 && character.size() == n)
      for (const Block& block : kBlocks)
        if (character >= block.first && character <= block.last) return true;
    at += n;
  }
  return false;
}

bool RightToLeft::update(const engine::Timeline& timeline, const engine::RunRecord& of) {
  if (run != of.id() || n_read > of.tokens.size()) {
    run = of.id(), n_read = 0;
    found = has_right_to_left(of.started.prompt);
  }
  if (!found && n_read < of.tokens.size())
    found = has_right_to_left(timeline.generated_text(of, n_read, of.tokens.size() - n_read));
  n_read = of.tokens.size();
  return found;
}

}  // namespace ui
