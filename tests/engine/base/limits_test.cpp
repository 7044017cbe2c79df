// Every limit on files can be raised: an input above it is refused, and accepted with a higher
// limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/json.h"
#include "engine/base/limits.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/tokenizer/sentencepiece.h"
#include "tests/support/models/model_files.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

std::string usage_error(const std::string& name_and_value) {
  FileLimits limits;
  try {
    raise_limit(limits, name_and_value);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
    EXPECT_EQ(limits, FileLimits{});
    return error.what();
  }
  return "expected an error, got none";
}

TEST(Limits, each_limit_is_raised_by_name) {
  EXPECT_EQ(file_limits().size() * sizeof(std::int64_t), sizeof(FileLimits));
  for (const FileLimit& limit : file_limits()) {
    FileLimits limits;
    const std::int64_t before = limits.*limit.value;
    EXPECT_GT(limit.highest, before) << limit.name;
    raise_limit(limits, std::string(limit.name) + "=" + std::to_string(limit.highest));
    EXPECT_EQ(limits.*limit.value, limit.highest) << limit.name;
    limits.*limit.value = before;
    EXPECT_EQ(limits, FileLimits{}) << limit.name;
  }
}

TEST(Limits, an_unknown_or_out_of_range_limit_is_refused) {
  for (const char* unknown : {"layers=5", "", "=5", "json_depth5", "json_depth "}) {
    const std::string message = usage_error(unknown);
    for (const FileLimit& limit : file_limits()) EXPECT_THAT(message, HasSubstr(limit.name));
  }
  for (const char* value : {"63", "4097", "-1", "70x", "", "1e2", "99999999999999999999"}) {
    EXPECT_THAT(usage_error(std::string("json_depth=") + value),
                HasSubstr("expected a whole number from 64 (the default) to 1024"));
  }
  EXPECT_THAT(usage_error("json_depth"), HasSubstr("from 64"));
}

TEST(Limits, json_depth_can_be_raised) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_THAT(refusal([&] { parse_json(nested(65), "a.json"); }), HasSubstr("more than 64 nested"));
  EXPECT_NO_THROW(parse_json(nested(64), "a.json"));
  EXPECT_NO_THROW(parse_json(nested(1024), "a.json", 1024));
  EXPECT_THAT(refusal([&] { parse_json(nested(71), "a.json", 70); }),
              HasSubstr("more than 70 nested"));
  const Folder dir;
  write_file(dir / "a.json", nested(70));
  EXPECT_THAT(refusal([&] { read_json_file(dir / "a.json", {}); }), HasSubstr("nested"));
  EXPECT_NO_THROW(read_json_file(dir / "a.json", {.json_depth = 70}));
}

TEST(Limits, tensor_rank_and_name_length_can_be_raised) {
  const Folder dir;
  const std::string path = dir / "model.safetensors";
  write_file(path, safetensors(R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,2],)"
                               R"("data_offsets":[0,2]}})",
                               "xy"));
  EXPECT_THAT(refusal([&] { SafetensorsFile::open(path); }), HasSubstr("more than 8 dimensions"));
  const auto file = SafetensorsFile::open(path, {.tensor_rank = 9});
  ASSERT_NE(file->find("a"), nullptr);
  EXPECT_EQ(file->find("a")->shape, (std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 2}));
  const std::string name(600, 'n');
  write_file(path, safetensors("{\"" + name + R"(":{"dtype":"U8","shape":[2],)" +
                                   R"("data_offsets":[0,2]}})",
                               "xy"));
  refusal([&] { SafetensorsFile::open(path); });
  EXPECT_TRUE(SafetensorsFile::open(path, {.tensor_name_bytes = 600})->has(name));
}

TEST(Limits, a_prompt_is_checked_against_its_own_limit) {
  const Folder dir;
  write_small_model(dir);
  const std::string path = dir / "tokenizer.model";
  const auto tokenizer = open_sentencepiece(path, {.limits = {.prompt_bytes = 4}});
  EXPECT_NO_THROW(tokenizer->encode("abcd"));
  EXPECT_THAT(refusal([&] { tokenizer->encode("abcde"); }),
              HasSubstr("prompt: found 5 bytes, expected at most 4"));
  EXPECT_NO_THROW(open_sentencepiece(path, {.limits = {.prompt_bytes = 5}})->encode("abcde"));
}

TEST(Limits, a_model_directory_uses_the_given_limits) {
  const Folder dir;
  write_small_model(dir);
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  const std::string config = read_file(dir / "config.json");
  write_file(dir / "config.json", replaced(config, "{", "{\"extra\":" + deep + ","));
  EXPECT_THAT(refusal([&] { open_model(dir.path()); }), HasSubstr("nested"));
  EXPECT_NO_THROW(open_model(dir.path(), {.limits = {.json_depth = 80}}));
}

}  // namespace
}  // namespace engine::test
