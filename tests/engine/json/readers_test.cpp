// TR07: every reader of JSON on every odd text. What the grammar refuses is an Error that names the
// file, what it accepts is read, and nothing ends us: the texts stand as whole files and, where
// they are values, inside files that are otherwise good.
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "app/cli/prompt_file.h"
#include "engine/data/mixture.h"
#include "engine/data/readers.h"
#include "engine/data/record.h"
#include "engine/trace/check.h"
#include "engine/base/json.h"
#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/shards.h"
#include "engine/train/run/recipe.h"
#include "tests/engine/event/files.h"
#include "tests/engine/json/corpus.h"

namespace engine::test {
namespace {

/// The Error's message, or nothing if `action` went well. Anything else thrown fails the test.
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

/// A reader by what it does with a text that stands as one value in an otherwise good file.
struct Reader {
  const char* name;
  std::function<void(const std::string& value)> read_with;  // throws Error(BadInput)
};

/// Values alone fit inside another document; what closes or separates something would change it.
bool is_value(const OddJson& odd) {
  return odd.verdict == Verdict::Accept && odd.text.find('\n') == std::string::npos;
}

TEST(OddJson, TR07_the_corpus_is_wide) {
  int n_accept = 0, n_reject = 0;
  for (const OddJson& odd : odd_json()) {
    n_accept += odd.verdict == Verdict::Accept;
    n_reject += odd.verdict == Verdict::Reject;
  }
  EXPECT_GE(n_reject, 150);
  EXPECT_GE(n_accept, 40);
}

TEST(OddJson, TR07_our_own_reader_refuses_and_accepts_as_the_grammar_says) {
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

TEST(OddJson, TR07_odd_traces_end_in_errors_or_are_read) {
  const std::string head =
      R"({"traceEvents":[{"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"p"}},)"
      R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"t"}},)"
      R"({"ph":"X","name":"a","cat":"c","pid":1,"tid":1,"ts":1,"dur":1,"args":{"x":)";
  ASSERT_TRUE(check_trace_text(head + "1}}]}").ok());
  for (const OddJson& odd : odd_json()) {
    // No text of the corpus is a trace by itself, and those that are no JSON say so.
    const TraceCheck whole = check_trace_text(odd.text);
    EXPECT_FALSE(whole.ok()) << shown(odd);
    const TraceCheck inside = check_trace_text(head + odd.text + "}}]}");
    // Perfetto cannot read escaped surrogates, which is a problem of its own.
    const bool escaped = odd.text.find("\\ud8") + 1 || odd.text.find("\\uD8") + 1;
    if (is_value(odd)) {
      EXPECT_EQ(inside.ok(), !escaped) << shown(odd);
    }
  }
}

TEST(OddJson, TR07_odd_prompt_files_end_in_errors_or_are_read) {
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

TEST(PromptFile, lines_and_depth_have_limits_that_can_be_raised) {
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

TEST(OddJson, TR07_odd_model_directories_end_in_errors_or_are_read) {
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

TEST(OddJson, TR07_odd_safetensors_headers_end_in_errors_or_are_read) {
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
      refusal_of([&] { SafetensorsFile::open(path); });  // nothing but an Error
    }
  }
}

TEST(OddJson, TR07_odd_recipes_end_in_errors_or_are_read) {
  for (const OddJson& odd : odd_json()) {
    EXPECT_NE(refusal_of([&] { train_recipe_from(odd.text, "r.json"); }), "") << shown(odd);
    // Every field of a tokenizer's recipe has a default: an empty object is one.
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

TEST(OddJson, TR07_odd_records_end_in_errors_or_are_read) {
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
