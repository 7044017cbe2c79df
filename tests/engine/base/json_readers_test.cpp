// TR07: every JSON reader on every odd text. Texts that the grammar refuses must give an Error that
// names the file; texts that it accepts must be read. Texts are used as whole files and, if they
// are values, inside otherwise valid files.
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "app/cli/prompt_file.h"
#include "engine/base/json.h"
#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/shards.h"
#include "engine/data/mixture.h"
#include "engine/data/readers.h"
#include "engine/data/record.h"
#include "engine/trace/check.h"
#include "engine/train/run/recipe.h"
#include "tests/engine/base/json_corpus.h"
#include "tests/support/files.h"

namespace engine::test {
namespace {

/// Returns the Error's message, or "" if `action` succeeded. Other exceptions fail the test.
std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
    return "";
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::BadInput) << error.what();
    EXPECT_FALSE(std::string(error.what()).empty());
    return error.what();
  }
}

/// A reader of a file that is valid except for one value.
struct Reader {
  const char* name;
  std::function<void(const std::string& value)> read_with;  // throws Error(BadInput)
};

/// True for one valid value on one line. Other texts would change the enclosing document.
bool is_value(const OddJson& odd) {
  return odd.verdict == Verdict::Accept && odd.text.find('\n') == std::string::npos;
}

// TR07.
TEST(OddJson, the_corpus_covers_many_kinds) {
  int n_accept = 0, n_reject = 0;
  for (const OddJson& odd : odd_json()) {
    n_accept += odd.verdict == Verdict::Accept;
    n_reject += odd.verdict == Verdict::Reject;
  }
  EXPECT_GE(n_reject, 150);
  EXPECT_GE(n_accept, 40);
}

// TR07.
TEST(OddJson, our_reader_follows_the_json_grammar) {
  for (const OddJson& odd : odd_json()) {
    const std::string tree = refusal_of([&] { parse_json(odd.text, "a.json"); });
    const std::string stream = refusal_of([&] {
      JsonReader reader(odd.text, "a.json");
      reader.skip();
      reader.end();
    });
    for (const std::string& message : {tree, stream}) {
      if (odd.verdict == Verdict::Accept) {
        EXPECT_EQ(message, "") << shown(odd);
      }
      if (odd.verdict == Verdict::Reject) {
        EXPECT_NE(message, "") << shown(odd);
      }
      if (!message.empty()) {
        EXPECT_NE(message.find("a.json"), std::string::npos) << message;
      }
    }
  }
}

// TR07.
TEST(OddJson, odd_traces_are_read_or_refused) {
  const std::string head =
      R"({"traceEvents":[{"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"p"}},)"
      R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"t"}},)"
      R"({"ph":"X","name":"a","cat":"c","pid":1,"tid":1,"ts":1,"dur":1,"args":{"x":)";
  ASSERT_TRUE(check_trace_text(head + "1}}]}").ok());
  for (const OddJson& odd : odd_json()) {
    // No text of the corpus is a trace, and invalid JSON is reported as such.
    const TraceCheck whole = check_trace_text(odd.text);
    EXPECT_FALSE(whole.ok()) << shown(odd);
    const TraceCheck inside = check_trace_text(head + odd.text + "}}]}");
    // Perfetto cannot read escaped surrogates, so check_trace_text() reports them.
    const bool escaped = odd.text.find("\\ud8") + 1 || odd.text.find("\\uD8") + 1;
    if (is_value(odd)) {
      EXPECT_EQ(inside.ok(), !escaped) << shown(odd);
    }
  }
}

// TR07.
TEST(OddJson, odd_prompt_files_are_read_or_refused) {
  const Folder folder;
  const std::string path = folder / "p.jsonl";
  for (const OddJson& odd : odd_json()) {
    write_file(path, odd.text);
    const std::string whole = refusal_of([&] { app::read_prompts(path); });
    EXPECT_NE(whole.find("p.jsonl"), std::string::npos) << shown(odd);
    for (const char* field : {"other", "id", "seed", "prompt"}) {
      write_file(path, std::string(R"({"prompt":"x",")") + field + "\":" + odd.text + "}\n");
      const std::string inside = refusal_of([&] { app::read_prompts(path); });
      if (is_value(odd) && std::string(field) == "other") {
        EXPECT_EQ(inside, "") << shown(odd);
      }
    }
  }
}

TEST(PromptFile, a_line_of_plain_text_is_refused_with_the_form) {
  const Folder folder;
  const std::string path = folder / "p.jsonl";
  for (const char* line : {"Why is the sky blue?", "[\"a\"]"}) {
    write_file(path, std::string("{\"prompt\": \"a\"}\n") + line + "\n");
    EXPECT_EQ(refusal_of([&] { app::read_prompts(path); }),
              path + ":2: found no JSON object, expected {\"id\": .., \"prompt\": ..}");
  }
}

TEST(PromptFile, line_length_and_depth_limits_can_be_raised) {
  const Folder folder;
  const std::string path = folder / "p.jsonl";
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  write_file(path, R"({"prompt":"x","other":)" + deep + "}\n");
  EXPECT_NE(refusal_of([&] { app::read_prompts(path); }).find("nested"), std::string::npos);
  EXPECT_EQ(refusal_of([&] { app::read_prompts(path, {.json_depth = 71}); }), "");
  const std::string long_line =
      refusal_of([&] { app::read_prompts(path, {.json_depth = 71, .prompt_bytes = 100}); });
  EXPECT_NE(long_line.find("p.jsonl:1: "), std::string::npos) << long_line;
  EXPECT_NE(long_line.find("expected at most 100"), std::string::npos) << long_line;
}

// TR07.
TEST(OddJson, odd_model_directories_are_read_or_refused) {
  const Folder folder;
  const std::string index = folder / "model.safetensors.index.json";
  for (const OddJson& odd : odd_json()) {
    write_file(folder / "config.json", odd.text);
    EXPECT_NE(refusal_of([&] { read_model_config(folder / "config.json"); }), "") << shown(odd);
    for (const std::string& text :
         {odd.text, R"({"weight_map":)" + odd.text + "}",
          R"({"weight_map":{"a":)" + odd.text + "}}",
          R"({"metadata":)" + odd.text + R"(,"weight_map":{"a":"none.safetensors"}})"}) {
      write_file(index, text);
      std::vector<std::string> notices;
      EXPECT_NE(refusal_of([&] { open_weights(folder / ".", false, {}, notices); }), "")
          << shown(odd);
    }
  }
}

// TR07.
TEST(OddJson, odd_safetensors_headers_are_read_or_refused) {
  const Folder folder;
  const auto file_of = [](const std::string& header) {
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; i++) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
    return bytes + header;
  };
  const std::string path = folder / "m.safetensors";
  for (const OddJson& odd : odd_json()) {
    write_file(path, file_of(odd.text));
    const std::string message = refusal_of([&] { SafetensorsFile::open(path); });
    if (odd.verdict == Verdict::Reject) {
      EXPECT_NE(message, "") << shown(odd);
    }
    for (const std::string& header :
         {R"({"__metadata__":{"a":)" + odd.text + "}}", R"({"t":)" + odd.text + "}",
          R"({"t":{"dtype":)" + odd.text + R"(,"shape":[1],"data_offsets":[0,4]}})",
          R"({"t":{"dtype":"F32","shape":)" + odd.text + R"(,"data_offsets":[0,4]}})"}) {
      write_file(path, file_of(header));
      refusal_of([&] { SafetensorsFile::open(path); });  // throws nothing but Error
    }
  }
}

// TR07.
TEST(OddJson, odd_recipes_are_read_or_refused) {
  for (const OddJson& odd : odd_json()) {
    EXPECT_NE(refusal_of([&] { train_recipe_from(odd.text, "r.json"); }), "") << shown(odd);
    // Every field of a tokenizer recipe has a default, so an empty object is valid.
    const std::string message = refusal_of([&] { tokenizer_recipe_from(odd.text, "r.json"); });
    if (odd.verdict == Verdict::Reject) {
      EXPECT_NE(message, "") << shown(odd);
    }
    EXPECT_NE(refusal_of([&] { TrainingStream(odd.text, 1); }), "") << shown(odd);
    for (const char* field : {"name", "model", "mixture", "tokens", "seed"}) {
      const std::string text = std::string("{\"") + field + "\":" + odd.text + "}";
      refusal_of([&] { train_recipe_from(text, "r.json"); });
      refusal_of([&] { tokenizer_recipe_from(text, "r.json"); });
    }
    refusal_of([&] { TrainingStream(R"({"arith":)" + odd.text + "}", 1); });
  }
}

// TR07.
TEST(OddJson, odd_records_are_read_or_refused) {
  const auto with = [](const std::string& check) {
    return R"({"id":"i","task":"arith","level":1,"split":"dev","prompt":"p","completion":"c",)"
           R"("answer":"a","check":)" +
           check + "}";
  };
  ASSERT_EQ(refusal_of([&] { record_from_json(with("{}"), "r"); }), "");
  for (const OddJson& odd : odd_json()) {
    EXPECT_NE(refusal_of([&] { record_from_json(odd.text, "r"); }), "") << shown(odd);
    std::string found;
    const std::string message = refusal_of([&] { record_from_json(with(odd.text), "r"); });
    refusal_of([&] { record_from_json(with(R"({"a":)" + odd.text + "}"), "r"); });
    if (odd.verdict == Verdict::Reject) {
      EXPECT_NE(message, "") << shown(odd);
    }
  }
}

}  // namespace
}  // namespace engine::test
