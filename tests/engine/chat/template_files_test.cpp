// The files in which a directory's chat template is searched.
#include "engine/chat/template_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

class TemplateFiles : public testing::Test {
 protected:
  void config(const std::string& json) { write_file(folder_ / "tokenizer_config.json", json); }
  std::string found() { return read_chat_template(folder_.path(), {}); }
  Folder folder_;
};

TEST_F(TemplateFiles, a_directory_without_a_template_has_none) {
  EXPECT_EQ(found(), "");
  config(R"({"bos_token": "<s>", "chat_template": null})");
  EXPECT_EQ(found(), "");
}

TEST_F(TemplateFiles, tokenizer_config_has_a_text_or_a_list) {
  config(R"({"chat_template": "{{ 'é' }}"})");
  EXPECT_EQ(found(), "{{ 'é' }}");
  config(R"({"chat_template": [{"name": "tool_use", "template": "t"},)"
         R"( {"name": "default", "template": "d"}]})");
  EXPECT_EQ(found(), "d");
  config(R"({"chat_template": [{"name": "tool_use", "template": "t"}]})");
  EXPECT_EQ(found(), "");
}

TEST_F(TemplateFiles, chat_template_jinja_is_preferred) {
  config(R"({"chat_template": "config"})");
  write_file(folder_ / "chat_template.jinja", "file\n");
  EXPECT_EQ(found(), "file\n");
}

TEST_F(TemplateFiles, other_values_are_refused) {
  config(R"({"chat_template": 3})");
  EXPECT_THAT(refusal([&] { found(); }),
              HasSubstr("tokenizer_config.json: chat_template: found 3, expected a text"));
  config(R"({"chat_template": [{"name": "default", "template": 3}]})");
  EXPECT_THAT(refusal([&] { found(); }), HasSubstr("chat_template.0.template: found 3"));
  config(R"({"chat_template": ["x"]})");
  EXPECT_THAT(refusal([&] { found(); }), HasSubstr("expected an object"));
  write_file(folder_ / "chat_template.jinja", "\xff");
  EXPECT_THAT(refusal([&] { found(); }), HasSubstr("chat_template.jinja: text: found bytes"));
}

}  // namespace
}  // namespace engine::test
