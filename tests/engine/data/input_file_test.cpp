// Text files given by the user: byte order marks, encodings, line ends, and paths that are no files.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/input_file.h"
#include "engine/base/types.h"

namespace engine {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> all;
  InputLines lines(text);
  for (std::string_view line; lines.next(line);) all.emplace_back(line);
  return all;
}

std::string refusal_of(std::string_view bytes) {
  try {
    text_of_input(bytes, "a.txt");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    return error.what();
  }
  return "";
}

TEST(InputFile, lines_end_at_lf_or_cr_lf) {
  EXPECT_EQ(lines_of("a\r\n\nb\n"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\n\xEF\xBB\xBF"
                     "b"),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(lines_of("").empty());
}

TEST(InputFile, other_encodings_are_refused_by_name) {
  EXPECT_THAT(refusal_of("\xff\xfe{\0}\0"s), HasSubstr("UTF-16 (little-endian), expected UTF-8"));
  EXPECT_THAT(refusal_of("\xfe\xff\0{\0}"s), HasSubstr("UTF-16 (big-endian)"));
  EXPECT_THAT(refusal_of("{\0\"\0"s), HasSubstr("UTF-16 (little-endian)"));
  EXPECT_THAT(refusal_of("\0{\0\""s), HasSubstr("UTF-16 (big-endian)"));
  EXPECT_THAT(refusal_of("\xff\xfe\0\0{\0\0\0"s), HasSubstr("UTF-32"));
  EXPECT_EQ(refusal_of("\xEF\xBB\xBF{}"), "");
  EXPECT_EQ(text_of_input("\xEF\xBB\xBF{}", "a"), "{}");
  EXPECT_EQ(text_of_input("\xEF\xBB\xBF", "a"), "");
}

TEST(InputFile, a_file_over_its_limit_is_refused) {
  const std::string path = testing::TempDir() + "/input_file_test.txt";
  std::ofstream(path) << "12345";
  EXPECT_EQ(read_text_input(path, Pipes::Read, 5), "12345");
  EXPECT_THROW(read_text_input(path, Pipes::Read, 4), Error);
  EXPECT_THROW(read_text_input("/dev/zero", Pipes::Read, 1000), Error);
  EXPECT_THROW(read_text_input("/dev/zero", Pipes::Refuse), Error);
  EXPECT_THROW(read_text_input(testing::TempDir(), Pipes::Read), Error);
  EXPECT_THROW(read_text_input(path + ".absent", Pipes::Read), Error);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace engine
