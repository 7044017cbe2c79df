// Chat templates on the command line, with a copy of a bundled model that has one.
#include <gmock/gmock.h>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kTemplate =
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'judge' %}"
    "{{ raise_exception('no judges') }}{% endif %}[{{ m.role }}] {{ m.content|trim }}</s>"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";

class Chat : public CliModel {
 protected:
  void SetUp() override {
    CliModel::SetUp();
    std::filesystem::copy(DECOSCOPE_SOURCE_DIR "/assets/models/demo-draft", model());
    engine::test::write_file(model() + "/chat_template.jinja", kTemplate);
  }
  std::string model() const { return folder + "/chatty"; }
  Outcome generate(const std::string& more) const {
    return run("generate --max-tokens 2 --json --model " + model() + " " + more);
  }
  json result(const std::string& more) const {
    const Outcome outcome = generate(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  std::string file_with(const std::string& text) const {
    engine::test::write_file(folder + "/file.jsonl", text);
    return folder + "/file.jsonl";
  }
};

TEST_F(Chat, a_prompt_is_a_message_if_the_model_has_a_template) {
  const json found = result("--prompt \" Hi \"");
  EXPECT_EQ(found["rendered_prompt"], "<s>[user] Hi</s>[assistant]");
  const json raw = result("--raw --prompt \"[user] Hi</s>[assistant]\"");
  EXPECT_FALSE(raw.contains("rendered_prompt"));
  EXPECT_EQ(found["prompt_tokens"], raw["prompt_tokens"]);  // one begin token in both
  EXPECT_EQ(found["tokens"], raw["tokens"]);
}

TEST_F(Chat, raw_prompts_do_not_double_the_begin_token) {
  EXPECT_EQ(result("--raw --prompt \"<s>Hi\"")["prompt_tokens"],
            result("--raw --prompt Hi")["prompt_tokens"]);
}

TEST_F(Chat, a_prompt_with_special_tokens_is_taken_as_it_is) {
  EXPECT_FALSE(result("--prompt \"Hi</s>\"").contains("rendered_prompt"));
  const json asked = result("--chat --prompt \"Hi</s>\"");
  EXPECT_EQ(asked["rendered_prompt"], "<s>[user] Hi</s></s>[assistant]");
  // The end token of the message is text: one of two is the template's.
  const auto ids = asked["prompt_tokens"].get<std::vector<int>>();
  EXPECT_EQ(std::ranges::count(ids, 2), 1);
}

TEST_F(Chat, system_messages_are_added) {
  EXPECT_EQ(result("--system Short. --prompt Hi")["rendered_prompt"],
            "<s>[system] Short.</s>[user] Hi</s>[assistant]");
  EXPECT_EQ(generate("--raw --system Short. --prompt Hi").code, 2);
  const Outcome without = run("generate --system Short. --prompt Hi");
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("--system: not possible: demo-target has no chat template"));
}

TEST_F(Chat, prompt_files_may_have_messages) {
  const std::string file = file_with(
      R"({"id": "a", "messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": "3"}]})"
      "\n"
      R"({"id": "b", "prompt": "Hi"})");
  const json found = result("--prompt-file " + file);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["rendered_prompt"], "<s>[user] 1</s>[assistant] 2</s>[user] 3</s>[assistant]");
  EXPECT_EQ(found[1]["rendered_prompt"], "<s>[user] Hi</s>[assistant]");
  EXPECT_EQ(generate("--raw --prompt-file " + file).code, 2);
  EXPECT_EQ(run("generate --prompt-file " + file).code, 2);  // demo-target has no template
}

TEST_F(Chat, bad_messages_are_named_with_file_and_line) {
  const Outcome refused = generate(
      "--prompt-file " + file_with(R"({"messages": [{"role": "judge", "content": "1"}]})"));
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("file.jsonl:1: p1: "));
  EXPECT_THAT(refused.err, HasSubstr("line 1: found a refusal of these messages: no judges"));
  const Outcome bad = generate("--prompt-file " + file_with(R"({"messages": [{"role": "user"}]})"));
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.err, HasSubstr("file.jsonl:1: messages.0.content: found none"));
}

TEST_F(Chat, verbose_prints_the_rendered_prompt) {
  const Outcome shown = run("generate -v --max-tokens 2 --prompt Hi --model " + model());
  EXPECT_THAT(shown.err, HasSubstr("prompt, as the chat template of chatty renders it:\n"
                                   "<s>[user] Hi</s>[assistant]\n"));
}

TEST_F(Chat, recordings_and_traces_keep_how_a_prompt_was_read) {
  const auto read_as = [&](const std::string& options) {
    const std::string record = folder + "/run.pdrun", trace = folder + "/run.json";
    std::filesystem::remove(record);
    std::filesystem::remove(trace);
    result(options + " --prompt Hi --record " + record);
    EXPECT_EQ(run("trace convert --with-prompt " + record + " " + trace).code, 0);
    return json::parse(engine::test::read_file(trace))["metadata"]["runs"][0];
  };
  const json chat = read_as("--system Short.");
  EXPECT_EQ(chat["read_as"], "chat");
  EXPECT_EQ(chat["system"], "Short.");
  EXPECT_EQ(chat["prompt"], "Hi");
  const json raw = read_as("--raw");
  EXPECT_EQ(raw["read_as"], "raw");
  EXPECT_FALSE(raw.contains("system"));
}

TEST_F(Chat, refusals_are_one_line) {
  const std::string file = file_with(R"({"messages": [{"role": 7, "content": "1"}]})");
  const std::string none = " --model demo-target --prompt Hi ";
  for (const Outcome& refused :
       {generate("--prompt-file " + file), generate("--prompt \"Hi</s>\" --system Short."),
        run("generate --chat" + none), run("compare --chat" + none),
        run("generate --system Short." + none), run("generate --system=" + none)}) {
    EXPECT_TRUE(refused.code == 2 || refused.code == 3) << refused.code << refused.err;
    EXPECT_EQ(lines(refused.err), 1) << refused.err;
  }
}

TEST_F(Chat, compare_renders_for_each_lane) {
  const Outcome outcome =
      run("compare --max-tokens 2 --json --prompt Hi --decoders ar,jacobi,ar@demo-target --model " +
          model());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json results = json::parse(outcome.out)["results"];
  EXPECT_EQ(results.size(), 3u);
  for (const json& one : results)
    EXPECT_EQ(one.contains("rendered_prompt"), one["model"] == "chatty") << one["lane"];
}

TEST_F(Chat, reason_cot_can_ask_as_a_message) {
  const std::string cot = "reason cot --task kb --count 1 --shots 0 --max-tokens 4 --model ";
  EXPECT_EQ(run(cot + model() + " --chat --system Short.").code, 0);
  EXPECT_EQ(run(cot + "demo-target --chat").code, 2);
}

TEST_F(Chat, examples_leave_room_for_the_system_message) {
  std::string words = "be";
  for (int i = 0; i < 300; i++) words += " brief";
  const Outcome outcome = run("reason cot --task kb --count 1 --max-tokens 4 --chat --model " +
                              model() + " --system \"" + words + "\"");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(Chat, bundled_models_have_no_template) {
  const Outcome plain = run("generate --max-tokens 2 --json --prompt Hi");
  EXPECT_FALSE(json::parse(plain.out).contains("rendered_prompt"));
  const Outcome asked = run("generate --chat --prompt Hi");
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.err, HasSubstr("--chat: not possible: demo-target has no chat template"));
}

TEST_F(Chat, model_chat_prints_a_conversation) {
  const std::string file = file_with(R"([{"role": "user", "content": "Hi"}])");
  const std::string chat = "model chat " + model() + " --messages " + file;
  EXPECT_EQ(run(chat + " --bos \"<b>\"").out, "<b>[user] Hi</s>[assistant]");
  EXPECT_EQ(run(chat + " --bos \"<b>\" --no-generation-prompt --system S").out,
            "<b>[system] S</s>[user] Hi</s>");
  const json parts = json::parse(run(chat + " --json").out)["parts"];
  EXPECT_EQ(parts[1], json({{"text", "Hi"}, {"from_message", true}}));
  const Outcome without = run("model chat demo-target --messages " + file);
  EXPECT_EQ(without.code, 3);
  EXPECT_THAT(without.err, HasSubstr("chat template: found none, expected"));
}

}  // namespace
