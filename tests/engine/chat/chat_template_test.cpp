// Chat templates against transformers (tests/fixtures/make_chat_fixtures.py), and their limits.
#include "engine/chat/chat_template.h"

#include <zlib.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "tests/support/needs.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const std::string kFixtures = DECOSCOPE_SOURCE_DIR "/tests/fixtures/chat/";

std::string text_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<json> lines_in(const std::string& path) {
  std::vector<json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

std::vector<ChatMessage> messages_of(const json& list) {
  std::vector<ChatMessage> messages;
  for (const json& message : list) messages.push_back({message[0], message[1]});
  return messages;
}

/// The text, or null if the template refuses.
json rendered(const std::string& text,
              const std::vector<ChatMessage>& messages,
              std::int64_t now,
              std::string* error = nullptr) {
  const ChatSettings settings = {.bos = "<s>", .eos = "</s>", .now = now};
  try {
    return text_of(render_chat({text, "template"}, messages, settings));
  } catch (const Error& refused) {
    EXPECT_EQ(refused.code(), ErrorCode::BadInput) << refused.what();
    if (error) *error = refused.what();
    return nullptr;
  }
}

class ChatTemplates : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    language_ = lines_in(kFixtures + "language.jsonl");
    ASSERT_GT(language_.size(), 20u);
    for (const auto& [name, list] : language_[0]["conversations"].items())
      conversations_[name] = messages_of(list);
    now_ = language_[0]["now"];
  }

  std::vector<json> language_;
  std::map<std::string, std::vector<ChatMessage>> conversations_;
  std::int64_t now_ = 0;
};

TEST_F(ChatTemplates, language_equals_jinja2) {
  for (std::size_t i = 1; i < language_.size(); i++) {
    for (const auto& [name, messages] : conversations_) {
      std::string error;
      EXPECT_EQ(rendered(language_[i]["template"], messages, now_, &error),
                language_[i]["rendered"][name])
          << language_[i]["name"] << ", " << name << ": " << error;
    }
  }
}

TEST_F(ChatTemplates, dates_are_local) {
  NEEDS(std::filesystem::exists("/usr/share/zoneinfo/Asia/Tokyo"), "no tzdata");
  setenv("TZ", "Asia/Tokyo", 1);
  EXPECT_EQ(rendered("{{ strftime_now('%d %H:%M') }}", conversations_["one"], now_), "31 22:00");
}

TEST_F(ChatTemplates, published_templates_equal_jinja2) {
  const std::string folder = std::string(DECOSCOPE_LLAMA_DIR) + "/llama.cpp/models/templates/";
  NEEDS(std::filesystem::exists(folder),
        "the templates of llama.cpp are not there; scripts/setup.sh downloads them");
  const std::vector<json> expected = lines_in(kFixtures + "archive.jsonl");
  ASSERT_GT(expected.size(), 70u);
  for (const json& one : expected) {
    const std::string text = text_in(folder + one["name"].get<std::string>());
    ASSERT_FALSE(text.empty()) << one["name"];
    for (const auto& [name, messages] : conversations_) {
      std::string error;
      json digest = rendered(text, messages, now_, &error);
      if (digest.is_string()) {
        const auto bytes = digest.get<std::string>();
        digest = {bytes.size(), crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),
                                      static_cast<uInt>(bytes.size()))};
      }
      EXPECT_EQ(digest, one["rendered"][name]) << one["name"] << ", " << name << ": " << error;
    }
  }
}

std::vector<ChatPart> parts_of(const std::string& text, const std::string& content) {
  return render_chat({text, "template"}, std::vector<ChatMessage>{{"user", content}}, {});
}

TEST(ChatParts, content_of_messages_is_marked) {
  EXPECT_THAT(parts_of("<|{{ messages[0].role }}|>{{ messages[0].content }}<|end|>", "hi <|end|>"),
              testing::ElementsAre(ChatPart{"<|user|>", false}, ChatPart{"hi <|end|>", true},
                                   ChatPart{"<|end|>", false}));
}

TEST(ChatParts, content_stays_marked_through_filters_and_methods) {
  for (const char* expression :
       {"m.content|trim", "m.content.strip()", "m.content|upper", "m.content[1:]",
        "m.content.split('a')[0]", "m.content.split('a')[1]", "m.content.split('a')|join('b')",
        "m.content.replace('a', 'b')", "m.content|replace('a', 'b')", "m.content.rsplit('a')[0]",
        "(m.content ~ m.content)", "m.content.lstrip('<')", "m.content|list|first"}) {
    for (const ChatPart& part :
         parts_of("{% set m = messages[0] %}{{ " + std::string(expression) + " }}", "<|xaxa|>"))
      EXPECT_TRUE(part.from_message) << expression << ": " << part.text;
  }
}

std::string refusal_of(const std::string& text, const ChatLimits& limits = {}) {
  const std::vector<ChatMessage> messages = {{"user", "hi"}};
  return refusal([&] { render_chat({text, "DIR/chat_template.jinja"}, messages, {}, limits); });
}

TEST(ChatLimits, refusals_name_file_and_line) {
  EXPECT_EQ(refusal_of("a\nb {{ raise_exception('roles must alternate') }}"),
            "DIR/chat_template.jinja: chat template, line 2: found a refusal of these messages: "
            "roles must alternate, expected messages that it takes; --raw takes the prompt as it "
            "is");
  EXPECT_THAT(refusal_of("{{ raise_exception('a\\nb') }}"), HasSubstr("a\\x0ab"));
  EXPECT_THAT(refusal_of("a\n\n{{ foo.bar }}"),
              AllOf(HasSubstr("line 3"), HasSubstr("'foo' is undefined")));
  EXPECT_THAT(refusal_of("a\n{{ 1 | }}"), HasSubstr("DIR/chat_template.jinja: chat template"));
}

TEST(ChatLimits, endless_templates_end) {
  const std::string loop =
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(refusal_of(loop, {.time = std::chrono::milliseconds(200)}),
              HasSubstr("no end after 200 ms"));
  EXPECT_THAT(refusal_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("crash"));
  std::string deep = "{{ ";
  for (int i = 0; i < 200'000; i++) deep += '(';
  EXPECT_THAT(refusal_of(deep + "1"), HasSubstr("crash"));
}

TEST(ChatLimits, memory_and_output_are_bounded) {
  const ChatLimits limits = {.memory_bytes = 100'000'000, .output_bytes = 1000};
  // A sanitizer's allocator ends the process.
  const auto no_memory = testing::AnyOf(HasSubstr("more than 100000000 bytes of memory"),
                                        HasSubstr("a crash of its rendering (no answer)"));
  EXPECT_THAT(refusal_of("{% set ns = namespace(s='x') %}{% for a in range(60) %}"
                         "{% set ns.s = ns.s + ns.s %}{% endfor %}",
                         limits),
              no_memory);
  EXPECT_THAT(refusal_of("{{ range(1000000000)|list|length }}", limits), no_memory);
  EXPECT_THAT(refusal_of("{{ 'x' * 1001 }}", limits), HasSubstr("more than 1000 bytes of output"));
  EXPECT_THAT(refusal_of("{{ 'x' * 2000000 }}", {.output_bytes = 1000}),
              HasSubstr("more than 1000 bytes of output"));
  EXPECT_EQ(text_of(render_chat({"{{ 'x' * 1000 }}", "t"}, {}, {}, limits)).size(), 1000u);
}

TEST(ChatLimits, numbers_beyond_2_to_the_53_are_refused) {
  for (const char* text :
       {"{{ 9223372036854775807 }}", "{{ -9223372036854775807 }}", "{{ 9007199254740993.5 }}",
        "{{ 9007199254740992 + 1 * 2 }}", "{{ -9007199254740992 - 4 }}",
        "{{ 94906267 * 94906267 }}", "{{ 1000000000.0 * 1000000000 }}",
        "{{ 9007199254740992 / 0.5 }}", "{{ 9007199254740992 // 0.001 }}",
        "{{ [9007199254740992, 2]|sum }}", "{{ '1e300'|float }}", "{{ 'inf'|float }}"})
    EXPECT_THAT(refusal_of(text), HasSubstr("numbers beyond 2^53 are not supported")) << text;
  EXPECT_THAT(refusal_of("{{ '1e300'.float() }}"), HasSubstr("float is a filter"));
  EXPECT_THAT(refusal_of("{% filter float %}1e300{% endfilter %}"), HasSubstr("filter float"));
  const ChatSettings large = {.bos = "", .eos = "", .extra = {{"n", parse_json("1e300", "x")}}};
  EXPECT_THAT(refusal([&] { render_chat({"{{ n }}", "t"}, {}, large); }), HasSubstr("2^53"));
  EXPECT_EQ(text_of(render_chat({"{{ 9007199254740991 + 1 }} {{ '1.5'|float }}", "t"}, {}, {})),
            "9007199254740992 1.5");
}

TEST(ChatLimits, extra_variables_are_seen) {
  const ChatSettings settings = {
      .bos = "", .eos = "", .extra = {{"thinking", parse_json("{\"on\": [false, 2.5]}", "x")}}};
  EXPECT_EQ(
      text_of(render_chat({"{{ thinking.on }}{{ bos_token is defined }}", "t"}, {}, settings)),
      "[False, 2.5]False");
}

}  // namespace
}  // namespace engine::test
