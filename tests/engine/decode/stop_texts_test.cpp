// Stop strings in text that arrives in pieces, compared with a search of the whole text.
#include "engine/decode/step/stop_texts.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/decode/run_decoder.h"

namespace engine::test {
namespace {

using Stops = std::vector<std::string>;

/// The stop string that completes first (the longest if several do), found by testing every prefix.
std::optional<StopFound> found_by_search(const std::string& text, const Stops& stops) {
  for (std::size_t end = 1; end <= text.size(); end++) {
    std::optional<StopFound> found;
    for (std::size_t i = 0; i < stops.size(); i++) {
      const std::string read = text.substr(0, end);
      if (!read.ends_with(stops[i])) continue;
      if (!found || stops[i].size() > stops[found->which].size())
        found = StopFound{i, end - stops[i].size()};
    }
    if (found) return found;
  }
  return std::nullopt;
}

/// Number of bytes at the end of `text` that are a proper prefix of a stop string.
std::size_t held_by_search(const std::string& text, const Stops& stops) {
  std::size_t held = 0;
  for (const std::string& stop : stops)
    for (std::size_t n = 1; n < stop.size(); n++)
      if (text.ends_with(stop.substr(0, n))) held = std::max(held, n);
  return held;
}

std::string random_text(Dice& dice, int length) {
  std::string text;
  for (int i = 0; i < length; i++) text += static_cast<char>('a' + dice(0, 1));
  return text;
}

Stops random_stops(Dice& dice) {
  Stops stops;
  for (int i = dice(0, 3); i >= 0; i--) stops.push_back(random_text(dice, dice(1, 6)));
  return stops;
}

TEST(StopScanner, finds_the_string_completed_first) {
  const auto found = [](const char* text, Stops stops) {
    return StopScanner(std::move(stops)).push(text);
  };
  EXPECT_EQ(found("one two three", {"three", "two"}), (StopFound{1, 4}));
  EXPECT_EQ(found("xabcy", {"abc", "b"}), (StopFound{1, 2})) << "b is complete before abc";
  EXPECT_EQ(found("xabcy", {"bc", "abc"}), (StopFound{1, 1})) << "the longer of two";
  EXPECT_EQ(found("aaab", {"aab"}), (StopFound{0, 1})) << "a false start";
  EXPECT_EQ(found("ababac", {"abac"}), (StopFound{0, 2}));
  EXPECT_EQ(found("nothing", {"thin.", "x"}), std::nullopt);
  EXPECT_EQ(found("", {"x"}), std::nullopt);
  EXPECT_EQ(found("any", {}), std::nullopt);
}

TEST(StopScanner, chunk_sizes_do_not_change_the_result) {
  Dice dice(7);
  int n_found = 0;
  for (int i = 0; i < 3000; i++) {
    const Stops stops = random_stops(dice);
    const std::string text = random_text(dice, dice(0, 30));
    const auto expected = found_by_search(text, stops);
    n_found += expected.has_value();
    StopScanner scanner(stops);
    std::optional<StopFound> found;
    for (std::size_t at = 0; at < text.size() && !found;) {
      const auto n = static_cast<std::size_t>(dice(0, 5));
      found = scanner.push(std::string_view(text).substr(at, n));
      at = std::min(text.size(), at + n);
      if (!found) {
        ASSERT_EQ(scanner.held(), held_by_search(text.substr(0, at), stops)) << text;
      }
    }
    ASSERT_EQ(found, expected) << text;
  }
  EXPECT_GT(n_found, 1000);
}

TEST(TextBeforeStop, emits_nothing_that_is_retracted) {
  Dice dice(8);
  for (int i = 0; i < 3000; i++) {
    const Stops stops = random_stops(dice);
    const std::string text = random_text(dice, dice(0, 30));
    const auto stop = found_by_search(text, stops);
    const std::string expected = text.substr(0, stop ? stop->begin : text.size());
    TextBeforeStop before(stops);
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const auto n = static_cast<std::size_t>(dice(0, 7));
      shown += before.push(std::string_view(text).substr(at, n));
      at += n;
      ASSERT_TRUE(expected.starts_with(shown)) << text << " at " << at;
    }
    // Only a possible beginning of a stop string is held back.
    const std::size_t held = stop ? 0 : held_by_search(text, stops);
    ASSERT_EQ(shown.size(), expected.size() - held) << text;
    shown += before.finish();
    ASSERT_EQ(shown, expected) << text;
  }
}

TEST(TextBeforeStop, passes_all_text_without_stop_strings) {
  TextBeforeStop before({});
  EXPECT_EQ(before.push("some text"), "some text");
  EXPECT_EQ(before.finish(), "");
}

TEST(StopScanner, finds_multi_byte_characters) {
  // U+00E9 and U+00E8 share their first byte.
  StopScanner scanner({"\xC3\xA9"});
  EXPECT_EQ(scanner.push("caf\xC3\xA8 "), std::nullopt);
  EXPECT_EQ(scanner.push("caf\xC3"), std::nullopt);
  EXPECT_EQ(scanner.held(), 1u);
  EXPECT_EQ(scanner.push("\xA9"), (StopFound{0, 9}));
}

}  // namespace
}  // namespace engine::test
