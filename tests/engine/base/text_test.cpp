#include <gtest/gtest.h>

#include "engine/base/text.h"

namespace engine {
namespace {

TEST(Text, invalid_utf8_bytes_are_named) {
  EXPECT_EQ(as_utf8("a\xF0z"), "a<0xF0>z");
  EXPECT_EQ(as_utf8("\xC0\xAF"), "<0xC0><0xAF>");                      // overlong
  EXPECT_EQ(as_utf8("\xED\xA0\x80"), "<0xED><0xA0><0x80>");            // surrogate
  EXPECT_EQ(as_utf8("\xF4\x90\x80\x80"), "<0xF4><0x90><0x80><0x80>");  // above U+10FFFF
  EXPECT_EQ(as_utf8("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(as_utf8("\xF0\x9F\x98"), "<0xF0><0x9F><0x98>");
}

// TR08.
TEST(Text, control_and_direction_characters_become_visible) {
  EXPECT_EQ(printable(std::string_view("a\0b\x1B[31m\x7F", 9)),
            "a\xE2\x90\x80"
            "b\xE2\x90\x9B[31m\xE2\x90\xA1");
  EXPECT_EQ(printable("\xE2\x80\xAE"), "<U+202E>");
  EXPECT_EQ(printable("\xC2\x85"), "<U+0085>");
  EXPECT_EQ(printable("a\n\tb", LineBreaks::Kept), "a\n\tb");
  EXPECT_EQ(printable("a\nb"),
            "a\xE2\x90\x8A"
            "b");
}

TEST(Text, names_in_messages_are_cut_at_120_characters) {
  const std::string long_name(10'000, 'x');
  EXPECT_EQ(escaped(long_name), long_name.substr(0, 120) + "...");
  EXPECT_EQ(escaped(long_name, 5), "xxxxx...");
  EXPECT_EQ(escaped("a\nb\x1B\x7F\xF0"), "a\\x0ab\\x1b\\x7f\\xf0");
  EXPECT_EQ(escaped("\xC2\x85\xE2\x80\xAE\xEF\xBB\xBF"), "\\u{85}\\u{202e}\\u{feff}");
  EXPECT_EQ(in_quotes("a"), "\"a\"");
}

}  // namespace
}  // namespace engine
