// Cases GG01 to GG24 of the catalogue: the container. GG23 (a file inside another) has the wrong
// first bytes and is one of the wrong starts.
#include <fcntl.h>
#include <unistd.h>
#include <chrono>
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/checkpoint/gguf/gguf_file.h"
#include "tests/support/files.h"
#include "tests/support/models/gguf_bytes.h"
#include "tests/support/needs.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();

std::shared_ptr<const GgufFile> open_bytes(std::string_view bytes) {
  const Folder dir;
  write_file(dir / "x.gguf", bytes);
  return GgufFile::open(dir / "x.gguf");
}

std::string refused(std::string_view bytes) {
  const std::string message = refusal([&] { open_bytes(bytes); });
  EXPECT_THAT(message, AllOf(HasSubstr("x.gguf: "), HasSubstr("found "), HasSubstr("expected ")));
  return message;
}

std::string f32s(std::size_t n) {
  return std::string(4 * n, '\0');
}

GgufBytes small() {
  GgufBytes file;
  file.text("general.architecture", "llama").u32("llama.block_count", 2);
  file.tensor("a", {3, 2}, 0, f32s(6)).tensor("b", {32}, 8, std::string(34, '\1'));
  return file;
}

TEST(Gguf, a_valid_file_gives_values_and_tensors) {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufBytes bytes = small();
    bytes.f32("x.eps", 0.5F).boolean("x.on", true).texts("x.words", {"one", "", "three"});
    bytes.i32s("x.types", {1, -3}).f32s("x.scores", {0.25F, -1}).pair("x.big", 10, raw(kMax64));
    const auto file = open_bytes(bytes.bytes(version));
    EXPECT_EQ(file->architecture(), "llama");
    EXPECT_EQ(file->integer("llama.block_count"), 2);
    EXPECT_EQ(file->number("x.eps"), 0.5);
    EXPECT_EQ(file->boolean("x.on"), true);
    EXPECT_THAT(file->strings("x.words"), ElementsAre("one", "", "three"));
    EXPECT_THAT(file->integers("x.types"), ElementsAre(1, -3));
    EXPECT_THAT(file->integers("llama.block_count"), ElementsAre(2));
    EXPECT_THAT(file->numbers("x.scores"), ElementsAre(0.25, -1));
    EXPECT_EQ(file->integer("absent"), std::nullopt);
    EXPECT_TRUE(file->strings("absent").empty());
    ASSERT_EQ(file->tensors().size(), 2U);
    EXPECT_EQ(file->tensors()[0].name, "a");
    EXPECT_THAT(file->tensors()[0].shape, ElementsAre(2, 3));
    EXPECT_EQ(file->tensors()[0].bytes.size(), 24U);
    EXPECT_STREQ(file->tensors()[1].type->name, "Q8_0");
    EXPECT_EQ(file->tensors()[1].bytes, std::string(34, '\1'));
  }
}

TEST(Gguf, a_value_of_another_type_is_refused_with_both_types) {
  GgufBytes bytes = small();
  bytes.f32("x.eps", 1).texts("x.words", {"a"}).pair("x.big", 10, raw(kMax64));
  const auto file = open_bytes(bytes.bytes());
  const auto message = [&](auto read) { return refusal([&] { read(); }); };
  EXPECT_THAT(message([&] { file->integer("x.eps"); }),
              MatchesRegex(".*key \"x.eps\" \\(byte [0-9]+\\): found f32, expected integers.*"));
  EXPECT_THAT(message([&] { file->integer("x.words"); }),
              HasSubstr("found an array of 1 string, expected an integer"));
  EXPECT_THAT(message([&] { file->string("x.eps"); }), HasSubstr("expected a string"));
  EXPECT_THAT(message([&] { file->number("llama.block_count"); }),
              HasSubstr("found u32, expected f32 or f64"));
  EXPECT_THAT(message([&] { file->boolean("x.eps"); }), HasSubstr("expected a bool"));
  EXPECT_THAT(message([&] { file->strings("x.eps"); }), HasSubstr("expected an array of strings"));
  EXPECT_THAT(message([&] { file->numbers("x.words"); }), HasSubstr("expected an array of f32"));
  EXPECT_THAT(message([&] { file->integer("x.big"); }), HasSubstr("above 2^63 - 1"));
}

TEST(Gguf, wrong_starts_are_refused) {  // GG01, GG23
  const std::string good = small().bytes();
  EXPECT_THAT(refused(""), HasSubstr("empty"));
  for (std::size_t n = 1; n < 24; n++) refused(good.substr(0, n));
  EXPECT_THAT(refused("GUFF" + good.substr(4)), HasSubstr("\"GUFF\""));
  EXPECT_THAT(refused("FUGG" + good.substr(4)), HasSubstr("big-endian"));
  EXPECT_THAT(refused(std::string(7, 'x') + good), HasSubstr("expected \"GGUF\""));
  EXPECT_THAT(refused("PK\x03\x04 and more"), HasSubstr("a zip archive"));
}

TEST(Gguf, other_versions_are_refused) {  // GG02
  for (const std::uint32_t version : {0U, 1U, 4U})
    EXPECT_THAT(refused(small().bytes(version)),
                HasSubstr(fmt::format("version: found {}, expected 2 or 3", version)));
  EXPECT_THAT(refused(small().bytes(0x03000000)), HasSubstr("big-endian"));
}

TEST(Gguf, counts_beyond_the_file_are_refused) {  // GG03, GG04
  for (const std::uint64_t n : {kMax64, std::uint64_t{1} << 63, std::uint64_t{1'000'000'000}}) {
    EXPECT_THAT(refused(small().counts(n, 2).bytes()), HasSubstr("number of tensors: found"));
    EXPECT_THAT(refused(small().counts(2, n).bytes()), HasSubstr("number of metadata pairs"));
  }
}

// A file whose only pair begins with `bytes`.
std::string pair_of(std::string_view bytes) {
  return "GGUF" + raw<std::uint32_t>(3) + raw<std::uint64_t>(0) + raw<std::uint64_t>(1) +
         std::string(bytes) + std::string(64, '\0');
}

TEST(Gguf, keys_that_are_no_names_are_refused) {  // GG05, GG06
  EXPECT_THAT(refused(pair_of(raw(kMax64))), HasSubstr("metadata pair 0 (byte 32)"));
  EXPECT_THAT(refused(pair_of(raw<std::uint64_t>(65))), HasSubstr("a key of 65 bytes"));
  EXPECT_THAT(refused(pair_of(gguf_string(std::string(16 << 20, 'k')))),
              HasSubstr("expected at most 65535"));
  EXPECT_THAT(refused(pair_of(gguf_string(""))), HasSubstr("an empty key"));
  using namespace std::string_view_literals;
  EXPECT_THAT(refused(pair_of(gguf_string("a\0b"sv))), HasSubstr("\"a\\x00b\""));
  EXPECT_THAT(refused(pair_of(gguf_string("a\xFF"))), HasSubstr("\"a\\xff\""));
}

TEST(Gguf, unknown_value_types_are_refused) {  // GG07
  for (const std::uint32_t type : {13U, ~0U, 0x7fffffffU})
    EXPECT_THAT(refused(small().pair("x", type, "12345678").bytes()),
                HasSubstr(fmt::format("found the value type {}", type)));
}

TEST(Gguf, arrays_beyond_the_file_are_refused) {  // GG08
  const auto array = [](std::uint32_t element, std::uint64_t n) {
    return refused(small().pair("x", 9, gguf_array(element, n, "12345678")).bytes());
  };
  EXPECT_THAT(array(9, 1), HasSubstr("an array of arrays"));
  EXPECT_THAT(array(13, 1), HasSubstr("value type 13"));
  EXPECT_THAT(array(0, std::uint64_t{1} << 62), HasSubstr("an array of 4611686018427387904 u8"));
  EXPECT_THAT(array(8, std::uint64_t{1} << 62), HasSubstr("string"));
  EXPECT_THAT(array(12, (std::uint64_t{1} << 61) + 1), HasSubstr("f64"));
}

TEST(Gguf, a_bool_is_0_or_1) {  // GG09
  for (const char* byte : {"\x02", "\x7F", "\xFF"}) {
    EXPECT_THAT(refused(small().pair("x", 7, byte).bytes()), HasSubstr("expected 0 or 1"));
    EXPECT_THAT(refused(small().pair("x", 9, gguf_array(7, 1, byte)).bytes()),
                HasSubstr("expected 0 or 1"));
  }
}

TEST(Gguf, strings_past_the_end_are_refused) {  // GG10
  EXPECT_THAT(refused(small().pair("x", 8, raw(kMax64) + "text").bytes()), HasSubstr("key \"x\""));
  EXPECT_THAT(
      refused(small().pair("x", 9, gguf_array(8, 2, gguf_string("a") + raw(kMax64))).bytes()),
      HasSubstr("key \"x\""));
}

TEST(Gguf, metadata_over_the_limit_is_refused) {  // GG10
  const Folder dir;
  write_file(dir / "x.gguf", small().text("x", std::string(1000, 'x')).bytes());
  FileLimits limits;
  limits.tokenizer_bytes = 500;
  EXPECT_THAT(refusal([&] { GgufFile::open(dir / "x.gguf", limits); }),
              HasSubstr("metadata of more than 500 bytes"));
}

TEST(Gguf, a_key_twice_is_refused) {  // GG11
  EXPECT_THAT(refused(small().u32("general.architecture", 1).bytes()),
              HasSubstr("key \"general.architecture\""));
  EXPECT_THAT(refused(small().text("general.architecture", "llama").bytes()),
              HasSubstr("key \"general.architecture\""));
}

TEST(Gguf, a_million_keys_take_linear_time) {  // GG11
  GgufBytes bytes;
  for (int i = 0; i < 1'000'000; i++) bytes.pair(fmt::format("key.{}", i), 0, "x");
  const std::string file = bytes.bytes();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(open_bytes(file)->entries().size(), 1'000'000U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Gguf, alignments_that_are_no_powers_of_two_are_refused) {  // GG12
  for (const std::uint32_t alignment : {0U, 3U, 13U, 1U << 31, 131'072U})
    EXPECT_THAT(refused(small().u32("general.alignment", alignment).bytes()),
                HasSubstr(fmt::format("found {}, expected a u32, a power of two", alignment)));
  EXPECT_THAT(refused(small().pair("general.alignment", 5, raw(32)).bytes()),
              HasSubstr("key \"general.alignment\": found i32"));
  EXPECT_THAT(refused(small().text("general.alignment", "32").bytes()), HasSubstr("found string"));
}

TEST(Gguf, other_alignments_are_read) {  // GG13
  for (const std::uint32_t alignment : {1U, 64U, 4096U, 65'536U}) {
    GgufBytes bytes;
    bytes.align(alignment).u32("general.alignment", alignment);
    bytes.tensor("a", {1}, 0, "1234").tensor("b", {1}, 1, "56").tensor("c", {1}, 0, "789x");
    EXPECT_EQ(open_bytes(bytes.bytes())->tensors().at(2).bytes, "789x");
  }
}

// A file with the tensor "odd" [1], of which one number is replaced.
// @param before  8: the length of its name; 0: its number of dimensions
template <typename Number>
std::string with_word(std::size_t before, Number number) {
  std::string bytes = small().tensor("odd", {1}, 0, "1234").bytes();
  const std::size_t name = bytes.find("odd");
  const std::string word = raw(number);
  return bytes.replace(before ? name - before : name + 3, word.size(), word);
}

TEST(Gguf, tensors_without_a_proper_name_are_refused) {  // GG14
  const auto named = [](std::string_view name) {
    return refused(small().tensor(name, {1}, 0, "1234").bytes());
  };
  EXPECT_THAT(named(std::string(64, 'n')), HasSubstr("expected at most 63"));
  EXPECT_THAT(named(""), HasSubstr("an empty name"));
  EXPECT_THAT(named("a"), HasSubstr("tensor \"a\": found the name twice"));
  using namespace std::string_view_literals;
  EXPECT_THAT(named("a\0b"sv), HasSubstr("NUL"));
  EXPECT_THAT(refused(with_word(8, std::uint64_t{4} << 30)),
              HasSubstr("found a name of 4294967296 bytes"));
  std::string huge = small().counts(3, 2).bytes();
  EXPECT_THAT(refused(huge), HasSubstr("tensor 2"));
  open_bytes(small().tensor(std::string(63, 'n'), {1}, 0, "1234").bytes());
}

TEST(Gguf, tensors_have_up_to_four_dimensions) {  // GG15
  EXPECT_EQ(open_bytes(small().tensor("s", {}, 0, "1234").bytes())->tensors()[2].n_elements(), 1);
  open_bytes(small().tensor("s", {1, 1, 1, 1}, 0, "1234").bytes());
  EXPECT_THAT(refused(small().tensor("s", {1, 1, 1, 1, 1}, 0, "1234").bytes()),
              HasSubstr("found 5 dimensions, expected at most 4"));
  EXPECT_THAT(refused(with_word(0, std::uint32_t{0xFFFFFFFF})),
              HasSubstr("found 4294967295 dimensions, expected at most 4"));
}

TEST(Gguf, sizes_that_overflow_are_refused) {  // GG16, GG17, GG18
  const auto shaped = [](const std::vector<std::uint64_t>& dims, std::uint32_t type = 0) {
    return refused(small().tensor_at("s", dims, type, 96).bytes());
  };
  EXPECT_THAT(shaped({kMax64}), HasSubstr("expected a dimension below 2^63"));
  EXPECT_THAT(shaped({kMax64 >> 1}), HasSubstr("overflows"));
  EXPECT_THAT(shaped({std::uint64_t{1} << 32, std::uint64_t{1} << 32}), HasSubstr("overflows"));
  EXPECT_THAT(shaped({0, std::uint64_t{1} << 32, std::uint64_t{1} << 32}), HasSubstr("overflows"));
  EXPECT_THAT(shaped({(std::uint64_t{1} << 62) - 1}), HasSubstr("overflows"));
  EXPECT_THAT(shaped({std::uint64_t{1} << 60}), HasSubstr("found 4611686018427387904 bytes"));
  GgufBytes two;
  two.tensor_at("s", {0x7FFFFFFFFFFFFFC0}, 24, 0).tensor_at("t", {0x7FFFFFFFFFFFFFC0}, 24, 0);
  EXPECT_THAT(refused(two.bytes()), HasSubstr("tensor \"s\""));
  EXPECT_EQ(open_bytes(small().tensor("s", {0, 3}, 0, "").bytes())->tensors()[2].bytes.size(), 0U);
}

TEST(Gguf, unknown_tensor_types_are_refused) {  // GG19
  for (const std::uint32_t type : {4U, 5U, 31U, 38U, 43U, ~0U})
    EXPECT_THAT(refused(small().tensor_at("s", {32}, type, 96).bytes()),
                HasSubstr(fmt::format("tensor \"s\": found the unknown tensor type {}", type)));
}

TEST(Gguf, rows_are_whole_blocks) {  // GG20
  EXPECT_THAT(
      refused(small().tensor_at("s", {255}, 12, 96).bytes()),
      HasSubstr("rows of 255 elements, expected a multiple of 256, the block size of Q4_K"));
  EXPECT_THAT(refused(small().tensor_at("s", {8, 64}, 14, 96).bytes()), HasSubstr("256"));
}

TEST(Gguf, tensors_follow_each_other) {  // GG21
  for (const std::uint64_t offset : {std::uint64_t{95}, std::uint64_t{64}, std::uint64_t{0},
                                     std::uint64_t{128}, kMax64 - 31, kMax64})
    EXPECT_THAT(refused(small().tensor_at("s", {1}, 0, offset).bytes()),
                HasSubstr(fmt::format("tensor \"s\": found offset {}, expected 96", offset)));
}

TEST(Gguf, data_that_is_cut_off_is_refused) {  // GG22
  GgufBytes bytes;
  bytes.tensor("a", {8}, 0, f32s(8));
  const std::string file = bytes.bytes();
  EXPECT_THAT(refused(file.substr(0, file.size() - 1)), HasSubstr("tensor \"a\": found 32 bytes"));
  EXPECT_THAT(refused(file.substr(0, file.size() - 32)), HasSubstr("of which the file has 0"));
  for (std::size_t n = 0; n < file.size(); n++) refused(file.substr(0, n));
}

TEST(Gguf, offsets_beyond_4_gib_are_read) {  // GG22
  const Folder dir;
  const std::uint64_t n = 1'300'000'000;
  GgufBytes bytes;
  bytes.tensor_at("a", {n}, 0, 0).tensor_at("b", {1}, 0, 4 * n);
  std::string start = bytes.bytes();
  start.resize((start.size() + 31) / 32 * 32);
  write_file(dir / "x.gguf", start);
  const int fd = ::open((dir / "x.gguf").c_str(), O_WRONLY);
  const auto at = static_cast<off_t>(start.size() + 4 * n);
  const bool written = ::pwrite(fd, "wxyz", 4, at) == 4;
  ::close(fd);
  NEEDS(written, "no sparse files here");
  EXPECT_EQ(GgufFile::open(dir / "x.gguf")->tensors()[1].bytes, "wxyz");
}

TEST(Gguf, the_architecture_is_a_name) {  // GG24
  GgufBytes none, number, huge;
  number.u32("general.architecture", 1);
  huge.text("general.architecture", std::string(1 << 20, 'a'));
  for (const GgufBytes& bytes : {none, number, huge}) {
    const auto file = open_bytes(bytes.bytes());
    EXPECT_THAT(refusal([&] { file->architecture(); }), HasSubstr("general.architecture"));
  }
}

// Sets every byte of a valid file to other values; each file is read or refused.
TEST(Gguf, altered_files_are_read_or_refused) {
  GgufBytes bytes = small();
  bytes.texts("x.words", {"one", "two"}).f32s("x.scores", {1, 2}).u32("general.alignment", 32);
  const std::string good = bytes.bytes();
  for (std::size_t i = 0; i < good.size(); i++) {
    for (const int value : {0, 1, 9, 0x7F, 0x80, 0xFF}) {
      std::string file = good;
      file[i] = static_cast<char>(value);
      try {
        open_bytes(file);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::BadInput) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace engine::test
