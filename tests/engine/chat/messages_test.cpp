// Conversations read from JSON.
#include "engine/chat/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refusal.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

std::vector<ChatMessage> read(const std::string& json) {
  return messages_from(parse_json(json, "f:3"), "f:3");
}

TEST(Messages, roles_and_contents_are_read) {
  const std::vector<ChatMessage> expected = {{"system", ""}, {"tool_1", "a\nb"}};
  EXPECT_EQ(read(R"([{"role": "system", "content": ""},)"
                 R"( {"content": "a\nb", "role": "tool_1", "name": "x"}])"),
            expected);
}

TEST(Messages, a_system_message_is_put_first) {
  std::vector<ChatMessage> messages = {{"user", "Hi"}};
  EXPECT_EQ(system_message_of(messages), "");
  add_system_message(messages, "");
  EXPECT_EQ(messages.size(), 1u);
  add_system_message(messages, "Short.");
  EXPECT_EQ(messages, (std::vector<ChatMessage>{{"system", "Short."}, {"user", "Hi"}}));
  add_system_message(messages, "Long.");
  EXPECT_EQ(system_message_of(messages), "Short.") << "the messages have their own";
}

TEST(Messages, others_are_refused_with_their_place) {
  const auto refused = [](const std::string& json) { return refusal([&] { read(json); }); };
  EXPECT_THAT(refused("[]"), HasSubstr("f:3: messages: found none, expected a list"));
  EXPECT_THAT(refused("{}"), HasSubstr("messages: found an object, expected a list"));
  EXPECT_THAT(refused("null"), HasSubstr("messages: found none, expected a list"));
  EXPECT_THAT(refused(R"([{"role": "user"}])"),
              HasSubstr("f:3: messages.0.content: found none, expected a string"));
  EXPECT_THAT(refused(R"([{"role": "user", "content": [1]}])"),
              HasSubstr("messages.0.content: found an array"));
  EXPECT_THAT(refused(R"([{"role": "user|>", "content": ""}])"),
              HasSubstr("messages.0.role: found \"user|>\""));
  EXPECT_THAT(refused(R"([{"content": ""}])"),
              HasSubstr("messages.0.role: found none, expected a name"));
  EXPECT_THAT(refused(R"(["user"])"), HasSubstr("expected an object"));
}

}  // namespace
}  // namespace engine::test
