// Stop strings and ids that users enter, and the names of what proposed a token.
#include "engine/event/stop_rules.h"

#include <gtest/gtest.h>

#include "engine/event/drafted_by.h"

namespace engine {
namespace {

TEST(StopRules, refuse_empty_long_and_invalid_strings) {
  EXPECT_EQ(why_no_stop_text("\n"), "");
  EXPECT_EQ(why_no_stop_text("caf\xC3\xA9"), "");
  EXPECT_EQ(why_no_stop_text(std::string(kMaxStopTextBytes, 'x')), "");
  EXPECT_NE(why_no_stop_text(""), "");
  EXPECT_NE(why_no_stop_text(std::string(kMaxStopTextBytes + 1, 'x')), "");
  EXPECT_NE(why_no_stop_text("caf\xC3"), "");
}

TEST(StopRules, stop_strings_are_saved_as_lines) {
  const std::vector<std::string> texts{"\n\n", "END", "a\\nb", "\tx\r", "\\"};
  EXPECT_EQ(stop_texts_from(lines_of_stop_texts(texts)), texts);
  EXPECT_EQ(stop_texts_from("one\n\ntwo\\n\nC:\\x\\"),
            (std::vector<std::string>{"one", "two\n", "C:\\x\\"}));
  EXPECT_TRUE(stop_texts_from("").empty());
}

TEST(StopRules, stop_ids_are_saved_with_commas) {
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(stop_ids_from(""), Ids());
  EXPECT_EQ(stop_ids_from(" 5, 17\t9 "), (Ids{5, 17, 9}));
  EXPECT_EQ(stop_ids_from(text_of_stop_ids({3, 0, 12})), (Ids{3, 0, 12}));
  for (const char* wrong : {"x", "5x", "-1", "1.5", "99999999999", "5;6"})
    EXPECT_EQ(stop_ids_from(wrong), std::nullopt) << wrong;
}

TEST(DraftedBy, names_the_proposer_of_a_token) {
  using Kind = RowTag::Kind;
  const auto accepted = [](const char* decoder, Kind kind) {
    return drafted_by(decoder, TokenStatus::Accepted, {kind, 3, 1});
  };
  EXPECT_EQ(drafted_by("ar", TokenStatus::Plain, {}), "none");
  EXPECT_EQ(drafted_by("mcsd", TokenStatus::Bonus, {}), "bonus");
  EXPECT_EQ(accepted("mcsd", Kind::Draft), "draft");
  EXPECT_EQ(accepted("medusa", Kind::Draft), "head 3");
  EXPECT_EQ(accepted("chimera", Kind::Draft), "head 3");
  EXPECT_EQ(accepted("lookahead", Kind::Guess), "pool");
  EXPECT_EQ(accepted("prompt-lookup", Kind::Guess), "prompt");
  EXPECT_EQ(accepted("recycling", Kind::Guess), "successors");
  EXPECT_EQ(accepted("jacobi", Kind::Block), "guess");
  const std::pair<GuessSource::Kind, const char*> kCopied[] = {
      {GuessSource::Kind::Prompt, "prompt"},
      {GuessSource::Kind::Text, "text"},
      {GuessSource::Kind::Earlier, "earlier"},
      {GuessSource::Kind::File, "file"}};
  for (const auto& [kind, word] : kCopied) {
    EXPECT_EQ(copied_kind(copied_tag(kind, 2)), kind);
    EXPECT_EQ(drafted_by("suffix", TokenStatus::Accepted, copied_tag(kind, 2)), word);
  }
  EXPECT_EQ(copied_kind({Kind::Guess, 0, 0}), GuessSource::Kind::None);
  EXPECT_EQ(copied_kind({Kind::Guess, -5, 0}), GuessSource::Kind::None);
  EXPECT_EQ(copied_kind({Kind::Draft, -1, 0}), GuessSource::Kind::None);
}

}  // namespace
}  // namespace engine
