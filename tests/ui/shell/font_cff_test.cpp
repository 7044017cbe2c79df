// The check of outlines in the table CFF of a font: tables made by hand, and altered copies of a font.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ui/widgets/font_cff.h"

namespace {

std::string big_endian(std::uint32_t value, int n_bytes) {
  std::string bytes;
  for (int i = n_bytes - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// A list of byte strings.
std::string index_of(const std::vector<std::string>& items) {
  std::string bytes = big_endian(static_cast<std::uint32_t>(items.size()), 2);
  if (items.empty()) return bytes;
  std::string offsets = big_endian(1, 4), data;
  for (const std::string& item : items) {
    data += item;
    offsets += big_endian(static_cast<std::uint32_t>(data.size() + 1), 4);
  }
  return bytes + '\4' + offsets + data;
}

// An entry of a dictionary.
std::string entry(const std::vector<std::size_t>& numbers, const std::string& op) {
  std::string bytes;
  for (const std::size_t number : numbers)
    bytes += '\x1d' + big_endian(static_cast<std::uint32_t>(number), 4);
  return bytes + op;
}

// A number of a glyph's program.
std::string number(int value) {
  return '\x1c' + big_endian(static_cast<std::uint16_t>(value), 2);
}

const std::string kEnd = "\x0e", kReturn = "\x0b", kCall = "\x0a", kCallCommon = "\x1d",
                  kMove = "\x15", kAcross = "\x06";
// A glyph of one line, 100 units wide.
const std::string kLine = number(10) + number(20) + kMove + number(100) + kAcross + kEnd;

// The parts of a table CFF.
struct CffParts {
  std::vector<std::string> glyphs{kLine}, common = {}, own = {};
  std::string selection = "";  // the dictionary of each glyph; empty: there is one dictionary
  std::size_t type = 2;

  std::string bytes() const {
    const std::string before = std::string("\1\0\4\1", 4) + index_of({"A"});
    const std::string after = index_of({}) + index_of(common), outlines = index_of(glyphs);
    const std::string private_part = entry({6}, "\x13"), subroutines = index_of(own);
    std::size_t end = 0;  // of the list of fonts
    const auto fonts = [&] {
      const std::size_t at_glyphs = end + after.size(), at_private = at_glyphs + outlines.size(),
                        at_dictionaries = at_private + private_part.size() + subroutines.size();
      const std::string names_private = entry({private_part.size(), at_private}, "\x12");
      const std::string dictionaries = index_of({names_private});
      std::string top = entry({type}, "\x0c\x06") + entry({at_glyphs}, "\x11");
      top += selection.empty() ? names_private
                               : entry({at_dictionaries}, "\x0c\x24") +
                                     entry({at_dictionaries + dictionaries.size()}, "\x0c\x25");
      return std::pair(index_of({top}), selection.empty() ? "" : dictionaries + selection);
    };
    end = before.size() + fonts().first.size();  // does not depend on the places
    const auto [list, dictionaries] = fonts();
    return before + list + after + outlines + private_part + subroutines + dictionaries;
  }
};

bool is_safe(const CffParts& parts, int most = 1000) {
  return ui::are_cff_outlines_safe(parts.bytes(), static_cast<std::uint32_t>(parts.glyphs.size()),
                                   most);
}

bool is_safe(const std::string& program) {
  return is_safe(CffParts{.glyphs = {program}});
}

TEST(FontCff, accepts_lines_curves_and_subroutines) {
  EXPECT_TRUE(is_safe(kLine));
  EXPECT_TRUE(is_safe(kEnd));
  const std::string curve = number(1) + number(2) + number(3) + number(4) + number(5) + number(6);
  EXPECT_TRUE(
      is_safe(number(9) + "\x16" + curve + "\x08" + curve + number(7) + number(8) + "\x18" + kEnd));
  // Subroutines are numbered from -107.
  EXPECT_TRUE(is_safe({.glyphs = {number(-107) + kCall}, .own = {kLine}}));
  EXPECT_TRUE(is_safe({.glyphs = {number(-106) + kCallCommon}, .common = {kReturn, kLine}}));
  EXPECT_TRUE(is_safe({.glyphs = {kLine, kLine}, .selection = std::string("\0\0\0", 3)}));
  EXPECT_TRUE(is_safe({.glyphs = {kLine, kLine}, .selection = std::string("\3\0\1\0\0\0\0\2", 8)}));
}

TEST(FontCff, accepts_glyphs_that_the_reader_leaves_blank) {
  for (const std::string& program :
       {std::string(), kReturn, std::string("\x02"), std::string("\x0c\x01"), kMove,
        number(5) + kCall, number(1) + number(2) + "\x08" + kEnd, number(1)})
    EXPECT_TRUE(is_safe(program));
  // A subroutine that calls itself ends at the tenth call.
  EXPECT_TRUE(is_safe({.glyphs = {number(-107) + kCall}, .own = {number(-107) + kCall}}));
}

TEST(FontCff, refuses_programs_without_an_end) {
  CffParts parts{.glyphs = {number(-107) + kCall}};
  for (int level = 0; level < 10; ++level) {
    std::string program;
    for (int i = 0; i < 50 && level < 9; ++i) program += number(level - 106) + kCall;
    parts.own.push_back(program + kReturn);
  }
  EXPECT_FALSE(is_safe(parts)) << "50 to the power of 9 calls";
}

TEST(FontCff, refuses_glyphs_that_are_too_large) {
  const std::string wide = number(0) + "\x16" + number(1001) + kAcross + kEnd;
  EXPECT_FALSE(is_safe({.glyphs = {kLine, wide}}));
  EXPECT_TRUE(is_safe({.glyphs = {kLine, wide}}, 1001));
  const std::string far = number(32767) + "\x16" + number(10) + kAcross + kEnd;
  EXPECT_FALSE(is_safe(far));
}

TEST(FontCff, refuses_places_outside_the_table) {
  const CffParts whole{
      .glyphs = {kLine, number(-107) + kCall}, .common = {kReturn}, .own = {kLine}};
  ASSERT_TRUE(is_safe(whole));
  const std::string bytes = whole.bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(ui::are_cff_outlines_safe(bytes.substr(0, n), 2, 1000)) << n;
  EXPECT_FALSE(ui::are_cff_outlines_safe(bytes, 3, 1000)) << "a glyph without an outline";
  EXPECT_FALSE(is_safe({.type = 1}));
  EXPECT_FALSE(is_safe(number(1) + number(2) + "\x01\x13")) << "a mask after the end";
  const auto selects = [](const char* bytes_begin, std::size_t n) {
    return is_safe({.glyphs = {kLine, kLine}, .selection = std::string(bytes_begin, n)});
  };
  EXPECT_FALSE(selects("\0\0\1", 3)) << "there is no second dictionary";
  EXPECT_FALSE(selects("\0\0", 2)) << "the last glyph has none";
  EXPECT_FALSE(selects("\3\0\1\0\0\1\0\2", 8)) << "there is no second dictionary";
  EXPECT_FALSE(selects("\3\0\1\0\0\0\0\1", 8)) << "the last glyph has none";
  EXPECT_FALSE(selects("\3\0\2\0\0\0\0\2", 8)) << "a range is missing";
  EXPECT_FALSE(selects("\4\0\1\0\0\0\0\2", 8)) << "an unknown form";
}

// Each byte of a table made by hand is altered; the check must read inside the table only, which sanitizers watch.
TEST(FontCff, altered_tables_are_read_inside_only) {
  const std::string bytes = CffParts{
      .glyphs = {kLine, number(-107) + kCall},
      .common = {kReturn},
      .own = {kLine}}.bytes();
  int n_safe = 0, n_unsafe = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const int change : {0x01, 0x10, 0x80, 0xFF}) {
      std::string altered = bytes;
      altered[at] = static_cast<char>(altered[at] ^ change);
      ++(ui::are_cff_outlines_safe(altered, 2, 1000) ? n_safe : n_unsafe);
    }
  EXPECT_GT(n_safe, 20);
  EXPECT_GT(n_unsafe, 100);
}

}  // namespace
