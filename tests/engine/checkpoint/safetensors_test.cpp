// Cases ST01 to ST30 (safetensors files).
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/non_finite.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/support/child_process.h"
#include "tests/support/models/model_files.h"

namespace engine::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::shared_ptr<const SafetensorsFile> open_bytes(std::string_view bytes) {
  const Folder dir;
  write_file(dir / "x.safetensors", bytes);
  return SafetensorsFile::open(dir / "x.safetensors");
}

std::string refused(std::string_view bytes) {
  const std::string message = refusal([&] { open_bytes(bytes); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("x.safetensors: "), HasSubstr("found "), HasSubstr("expected ")));
  return message;
}

std::string refused_header(std::string_view header, std::string_view data = "") {
  return refused(safetensors(header, data));
}

std::string tensor(const std::string& name,
                   const std::string& shape,
                   const std::string& offsets,
                   const std::string& dtype = "U8") {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

std::string header_bytes(std::uint64_t length) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out;
}

// Resets the kernel's record of this process's peak resident memory.
void reset_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}
std::int64_t status_bytes(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::stoll(line.substr(std::strlen(field) + 1)) * 1024;
  }
  return 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST(Safetensors, a_valid_file_gives_its_tensors) {
  const auto file = open_bytes(small_safetensors());
  const Tensor a = file->read("a");
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(static_cast<const float*>(a.data)[5], 2.5f);
  EXPECT_EQ(file->read("b").dtype, kernels::DType::BF16);
  EXPECT_THAT(refusal([&] { file->read("c"); }), HasSubstr("\"c\""));
}

TEST(Safetensors, every_prefix_is_refused_safely) {
  const std::string whole = small_safetensors();
  const Folder dir;
  for (std::size_t n = 0; n < whole.size(); n++) {
    write_file(dir / "x", whole.substr(0, n));
    refusal([&] { SafetensorsFile::open(dir / "x"); });
  }
}

// ST01.
TEST(Safetensors, a_file_shorter_than_its_header_length_is_refused) {
  for (std::size_t n = 0; n < 8; n++) {
    EXPECT_THAT(refused(std::string(n, '\0')),
                HasSubstr(fmt::format("found {} bytes, too few for a header", n)));
  }
}

// ST02.
TEST(Safetensors, an_overflowing_length_is_refused_without_allocating) {
  // The first refusal loads code pages, which the measurements below should not include.
  refused(header_bytes(3) + "{}");
  for (const std::uint64_t length : {~0ull, 1ull << 63, ~0ull - 7}) {
    const std::string bytes = header_bytes(length) + "{}";
    reset_peak();
    const std::int64_t before = status_bytes("VmHWM:");
    EXPECT_THAT(refused(bytes), AllOf(HasSubstr("bytes 0..7"), HasSubstr(std::to_string(length))));
    if (kSanitized) continue;
    EXPECT_LT(status_bytes("VmHWM:") - before, 1 << 20);
  }
}

// ST03.
TEST(Safetensors, a_header_over_the_limit_is_refused) {
  const Folder dir;
  write_file(dir / "x", header_bytes(100'000'001));
  std::filesystem::resize_file(dir / "x", 200'000'000);
  EXPECT_THAT(refusal([&] { SafetensorsFile::open(dir / "x"); }),
              AllOf(HasSubstr("100000001"), HasSubstr("100000000")));
}

// ST04.
TEST(Safetensors, a_header_one_byte_longer_than_the_file_is_refused) {
  EXPECT_THAT(refused(header_bytes(3) + "{}"),
              AllOf(HasSubstr("header length of 3"), HasSubstr("the 2 bytes left")));
}

// ST05.
TEST(Safetensors, invalid_utf8_in_the_header_is_refused_with_its_offset) {
  EXPECT_THAT(refused_header("{\"a\xff\":1}"), HasSubstr("byte 11: found 0xff"));
  EXPECT_THAT(refused_header("{\"\xc0\xaf\":1}"), HasSubstr("byte 10: found 0xc0"));
  EXPECT_THAT(refused_header("{\"\xed\xa0\x80\":1}"), HasSubstr("byte 10: found 0xed"));
}

// ST06.
TEST(Safetensors, a_header_that_is_not_an_object_is_refused) {
  for (const char* header : {"{", "[]", "null", "\"x\"", "", "{}{}", "{} x", "{\"a\"}", "{,}"}) {
    EXPECT_THAT(refused_header(header), testing::ContainsRegex("byte [0-9]+: ")) << header;
  }
}

// ST07.
TEST(Safetensors, deep_nesting_is_refused_without_recursion) {
  const std::string deep(100'000, '[');
  EXPECT_THAT(refused_header("{\"__metadata__\":{\"a\":" + deep), HasSubstr("64 nested"));
  EXPECT_THAT(refused_header("{\"__metadata__\":" + deep), HasSubstr("__metadata__"));
  EXPECT_THAT(refused_header("{\"a\":" + deep), HasSubstr("\"a\""));
}

// ST08.
TEST(Safetensors, white_space_around_the_header_is_skipped) {
  const std::string plain = small_safetensors();
  const std::string header = plain.substr(8, plain.size() - 8 - 32);
  const std::string data = plain.substr(plain.size() - 32);
  for (const std::string& padded : {" \n\t\r" + header, header + "     \n", " " + header + "  "}) {
    const auto file = open_bytes(safetensors(padded, data));
    EXPECT_EQ(std::memcmp(file->read("a").data, data.data(), 24), 0);
    EXPECT_EQ(std::memcmp(file->read("b").data, data.data() + 24, 8), 0);
  }
}

// ST09.
TEST(Safetensors, a_tensor_named_twice_is_refused) {
  const std::string a = tensor("a", "[1]", "[0,1]");
  EXPECT_THAT(refused_header("{" + a + "," + a + "}", "x"),
              HasSubstr("tensor \"a\": found the key twice"));
  EXPECT_THAT(refused_header("{" + a + "," + tensor("a", "[1]", "[1,2]") + "}", "xy"),
              HasSubstr("tensor \"a\": found the key twice"));
}

// ST10.
TEST(Safetensors, a_field_given_twice_is_refused) {
  for (const char* extra : {R"("dtype":"U8")", R"("shape":[1])", R"("data_offsets":[0,1])"}) {
    const std::string twice =
        replaced(tensor("a", "[1]", "[0,1]"), "{", std::string("{") + extra + ",");
    const std::string field = std::string(extra).substr(1, std::string(extra).find('"', 1) - 1);
    EXPECT_THAT(refused_header("{" + twice + "}", "x"),
                HasSubstr("tensor \"a\": " + field + ": found the key twice"));
  }
}

// ST11.
TEST(Safetensors, non_string_metadata_is_refused) {
  for (const char* value : {"1", "[\"x\"]", "{\"y\":\"z\"}", "null", "true"}) {
    EXPECT_THAT(refused_header(fmt::format(R"({{"__metadata__":{{"k":{}}}}})", value)),
                HasSubstr("__metadata__.k: found "));
  }
  EXPECT_THAT(refused_header(R"({"__metadata__":{"k":"a","k":"b"}})"), HasSubstr("__metadata__.k"));
}

// ST12.
TEST(Safetensors, tensors_sharing_a_region_are_refused) {
  std::string header = "{";
  for (int i = 0; i < 10; i++)
    header += (i ? "," : "") + tensor(fmt::format("t{}", i), "[4]", "[0,4]");
  EXPECT_THAT(refused_header(header + "}", "abcd"),
              AllOf(HasSubstr("\"t1\""), HasSubstr("\"t0\"")));
}

// ST13.
TEST(Safetensors, overlaps_and_gaps_are_refused_in_any_order) {
  const std::string a = tensor("a", "[4]", "[0,4]");
  EXPECT_THAT(refused_header("{" + a + "," + tensor("b", "[4]", "[3,7]") + "}", "abcdefg"),
              AllOf(HasSubstr("\"b\""), HasSubstr("over [0, 4] of \"a\"")));
  EXPECT_THAT(refused_header("{" + a + "," + tensor("b", "[4]", "[5,9]") + "}", "abcdefghi"),
              AllOf(HasSubstr("\"b\""), HasSubstr("gap")));
  EXPECT_TRUE(open_bytes(safetensors("{" + tensor("b", "[4]", "[4,8]") + "," + a + "}", "abcdefgh"))
                  ->has("b"));
}

// ST14.
TEST(Safetensors, a_file_longer_or_shorter_than_its_tensors_is_refused) {
  const std::string whole = small_safetensors();
  const auto size = [](std::size_t n) { return std::to_string(n); };
  EXPECT_THAT(refused(whole + "x"), AllOf(HasSubstr("found " + size(whole.size() + 1)),
                                          HasSubstr("expected " + size(whole.size()))));
  EXPECT_THAT(refused(whole.substr(0, whole.size() - 2)),
              AllOf(HasSubstr("found " + size(whole.size() - 2)),
                    HasSubstr("expected " + size(whole.size()))));
}

// ST15.
TEST(Safetensors, invalid_offsets_are_refused) {
  struct Case {
    const char* offsets;
    const char* shown;
  };
  for (const Case& c : {Case{"[4,0]", "[4, 0]"},
                        {"[-1,3]", "-1"},
                        {"[0,1.5]", "1.5"},
                        {"[0,1e3]", "1e3"},
                        {"[0,9007199254740993]", "9007199254740993"},
                        {"[0,99999999999999999999]", "99999999999999999999"},
                        {"[\"0\",4]", "a string"},
                        {"[0]", "1 numbers"},
                        {"[0,1,2]", "more than two"},
                        {"null", "null"}}) {
    EXPECT_THAT(refused_header("{" + tensor("a", "[4]", c.offsets) + "}", "abcd"),
                AllOf(HasSubstr("tensor \"a\": data_offsets: found "), HasSubstr(c.shown)))
        << c.offsets;
  }
}

// ST16.
TEST(Safetensors, a_shape_unlike_the_byte_length_is_refused) {
  EXPECT_THAT(
      refused_header("{" + tensor("a", "[2,2]", "[0,15]", "F32") + "}", std::string(15, 'x')),
      AllOf(HasSubstr("\"a\""), HasSubstr("15 bytes"), HasSubstr("16 bytes"), HasSubstr("[2, 2]")));
}

// ST17.
TEST(Safetensors, a_shape_that_overflows_is_refused) {
  for (const char* shape :
       {"[2,18446744073709551614]", "[2,9223372036854775807]", "[4294967296,4294967296]"}) {
    EXPECT_THAT(refused_header("{" + tensor("a", shape, "[0,4]") + "}", "abcd"),
                AllOf(HasSubstr("\"a\""), HasSubstr("shape overflows")))
        << shape;
  }
}

// ST18.
TEST(Safetensors, empty_and_scalar_tensors_are_accepted) {
  const auto file = open_bytes(safetensors("{" + tensor("a", "[0]", "[0,0]") + "," +
                                               tensor("b", "[2,0]", "[0,0]") + "," +
                                               tensor("c", "[]", "[0,4]", "F32") + "}",
                                           "abcd"));
  EXPECT_EQ(file->read("c").n_elements(), 1);
  EXPECT_TRUE(file->has("b"));
}

// ST19.
TEST(Safetensors, a_zero_dimension_does_not_hide_an_overflow) {
  for (const char* shape : {"[0,9223372036854775808,9223372036854775808]",
                            "[0,9223372036854775807,9223372036854775807]"}) {
    EXPECT_THAT(refused_header("{" + tensor("a", shape, "[0,0]") + "}"),
                HasSubstr("shape overflows"));
  }
}

// ST20.
TEST(Safetensors, a_rank_of_a_million_is_refused) {
  std::string shape = "[1";
  for (int i = 1; i < 1'000'000; i++) shape += ",1";
  EXPECT_THAT(refused_header("{" + tensor("a", shape + "]", "[0,1]") + "}", "x"),
              AllOf(HasSubstr("\"a\""), HasSubstr("more than 8 dimensions")));
}

// ST21.
TEST(Safetensors, unknown_and_unsupported_types_have_their_own_errors) {
  EXPECT_THAT(refused_header("{" + tensor("a", "[1]", "[0,1]", "F13") + "}", "x"),
              AllOf(HasSubstr("\"a\""), HasSubstr("unknown type \"F13\"")));
  for (const char* dtype : {"F8_E8M0", "F4", "C64"}) {
    EXPECT_THAT(refused_header("{" + tensor("a", "[2]", "[0,1]", dtype) + "}", "x"),
                AllOf(HasSubstr("\"a\""), HasSubstr(dtype), HasSubstr("supports"),
                      testing::Not(HasSubstr("unknown"))));
  }
}

// ST22.
TEST(Safetensors, sub_byte_types_must_fill_whole_bytes) {
  EXPECT_THAT(refused_header("{" + tensor("a", "[3]", "[0,2]", "F4") + "}", "xy"),
              AllOf(HasSubstr("\"a\""), HasSubstr("12 bits"), HasSubstr("whole bytes")));
}

// ST23.
TEST(Safetensors, control_characters_in_names_are_escaped) {
  EXPECT_THAT(refused_header("{" + tensor("", "[1]", "[0,1]") + "}", "x"), HasSubstr("empty"));
  EXPECT_THAT(refused_header("{" + tensor(std::string(1 << 20, 'n'), "[1]", "[0,1]") + "}", "x"),
              AllOf(HasSubstr("1048576 bytes"), HasSubstr("nnn...")));
  for (const char* name : {"a\\u0000b", "a\\nb", "\\u001b[31mred", "a\\u202eb"}) {
    // A second fault makes the message show the name; refusal() fails on control bytes in it.
    const std::string message = refused_header("{" + tensor(name, "[2]", "[0,1]") + "}", "x");
    EXPECT_THAT(message, testing::ContainsRegex("x00|x0a|x1b|u.202e"));
    EXPECT_EQ(
        open_bytes(safetensors("{" + tensor(name, "[1]", "[0,1]") + "}", "x"))->names().size(), 1u);
  }
}

// ST24.
TEST(Safetensors, names_are_compared_bytewise) {
  const auto file = open_bytes(safetensors(
      "{" + tensor("\xC3\xA9", "[1]", "[0,1]") + "," + tensor("e\xCC\x81", "[1]", "[1,2]") + "," +
          tensor("a", "[1]", "[2,3]") + "," + tensor("a\\u0000b", "[1]", "[3,4]") + "}",
      "wxyz"));
  EXPECT_EQ(file->names().size(), 4u);
  EXPECT_EQ(file->find("\xC3\xA9")->begin, 0);
  EXPECT_EQ(file->find("e\xCC\x81")->begin, 1);
  EXPECT_EQ(file->find("a")->begin, 2);
  EXPECT_EQ(file->find(std::string("a\0b", 3))->begin, 3);
}

// ST25.
TEST(Safetensors, too_many_tensors_are_refused) {
  const Folder dir;
  std::int64_t header_size = 0;
  {
    std::string header = "{";
    for (int i = 0; header.size() < 90'000'000; i++) {
      header +=
          fmt::format(R"("{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}},)", i, i, i + 1);
    }
    header.back() = '}';
    header_size = static_cast<std::int64_t>(header.size());
    write_file(dir / "x", safetensors(header, ""));
  }
  reset_peak();
  const std::int64_t before = status_bytes("VmHWM:");
  const std::clock_t start = std::clock();  // CPU time, as the machine may be busy
  EXPECT_THAT(refusal([&] { SafetensorsFile::open(dir / "x"); }),
              HasSubstr("more than 1000000 tensors"));
  if (kSanitized) return;
  EXPECT_LT(status_bytes("VmHWM:") - before, 6 * header_size);
  EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC);
}

// ST26.
TEST(Safetensors, non_finite_weights_load_and_are_counted) {
  const Folder dir;
  const ModelConfig config = small_config();
  write_small_model(dir, config);
  std::string bytes = read_file(dir / "model.safetensors");
  // The last tensor is lm_head: two NaN, an infinity and a denormal.
  const std::uint16_t odd[4] = {0x7fc0, 0xffff, 0xff80, 0x0001};
  std::memcpy(bytes.data() + bytes.size() - 8, odd, 8);
  write_file(dir / "model.safetensors", bytes);
  const ModelFiles files = open_model(dir.path());
  EXPECT_THAT(files.notices, testing::IsEmpty());
  EXPECT_THAT(
      non_finite_faults(*files.tensors, tensors_of(files.config)),
      testing::ElementsAre(HasSubstr("tensor \"lm_head.weight\": found 3 NaN or infinite values")));
}

// ST27.
TEST(Safetensors, a_file_truncated_while_reading_is_an_error) {
  const Folder dir;
  const std::int64_t n = 1 << 20;
  write_file(
      dir / "x",
      safetensors(
          "{" + tensor("a", fmt::format("[{}]", n), fmt::format("[0,{}]", 4 * n), "F32") + "}",
          std::string(static_cast<std::size_t>(4 * n), '\x3f')));
  const auto file = SafetensorsFile::open(dir / "x");
  const Tensor a = file->read("a");
  std::filesystem::resize_file(dir / "x", 5000);
  double sum = 0;  // would crash an unguarded reader
  for (std::int64_t i = 0; i < n; i += 512) sum += static_cast<const float*>(a.data)[i];
  EXPECT_LT(sum, 2048);
  EXPECT_THAT(refusal([&] { file->check(); }), AllOf(HasSubstr("byte 5000"), HasSubstr(dir / "x")));
  EXPECT_THAT(refusal([&] { file->read("a"); }), HasSubstr("5000 bytes"));
}

// ST28.
TEST(Safetensors, a_file_replaced_by_rename_is_read_to_its_end) {
  const Folder dir;
  write_file(dir / "x", small_safetensors());
  const auto file = SafetensorsFile::open(dir / "x");
  write_file(dir / "y", "something else");
  std::filesystem::rename(dir / "y", dir / "x");
  EXPECT_EQ(static_cast<const float*>(file->read("a").data)[5], 2.5f);
  file->check();
}

// ST29.
TEST(Safetensors, a_non_regular_file_is_refused_at_once) {
  const Folder dir;
  mkfifo((dir / "pipe").c_str(), 0600);
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (dir / "socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& path :
       {dir.path(), dir / "pipe", dir / "socket", std::string("/dev/zero")}) {
    EXPECT_THAT(refusal([&] { SafetensorsFile::open(path); }), HasSubstr("not a regular file"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  close(socket_fd);
  EXPECT_THAT(refusal([&] { SafetensorsFile::open(dir / "none"); }), HasSubstr("No such file"));
}

// ST29.
TEST(Safetensors, an_unreadable_file_is_refused_with_the_reason) {
  const Folder dir;
  chmod(dir.path().c_str(), 0755);  // only the file's own mode denies access
  write_file(dir / "open", small_safetensors());
  write_file(dir / "secret", small_safetensors());
  chmod((dir / "open").c_str(), 0644);
  chmod((dir / "secret").c_str(), 0);
  const auto unprivileged_refusal = [&](const std::string& name) {
    return run_in_child([&]() -> std::string {
      if (!give_up_privileges()) return "skip: cannot become another user";
      if (access((dir / "open").c_str(), R_OK) != 0) return "skip: the folder cannot be reached";
      try {
        SafetensorsFile::open(dir / name);
        return "read";
      } catch (const Error& error) {
        return (error.code() == ErrorCode::BadInput ? "" : "another code: ") +
               std::string(error.what());
      }
    });
  };
  const std::optional<std::string> open = unprivileged_refusal("open");
  ASSERT_TRUE(open.has_value());
  if (open->starts_with("skip: ")) GTEST_SKIP() << *open;
  ASSERT_EQ(*open, "read");
  EXPECT_EQ(unprivileged_refusal("secret"), dir / "secret: cannot be opened: Permission denied");
}

// IO10.
TEST(Safetensors, no_free_descriptors_is_a_resource_error) {
  const Folder dir;
  write_file(dir / "x", small_safetensors());
  write_file(dir / "config.json", "{}");
  const auto result = run_in_child([&]() -> std::string {
    if (!use_up_descriptors()) return "no limit";
    std::string codes;
    const std::function<void()> actions[] = {[&] { SafetensorsFile::open(dir / "x"); },
                                             [&] { read_model_config(dir / "config.json"); }};
    for (const auto& action : actions) {
      try {
        action();
        codes += "read; ";
      } catch (const Error& error) {
        codes += std::to_string(static_cast<int>(error.code())) + " " + error.what() + "; ";
      }
    }
    return codes;
  });
  const std::string code = std::to_string(static_cast<int>(ErrorCode::Resources)) + " ";
  EXPECT_EQ(result, code + (dir / "x: cannot open: Too many open files; ") + code +
                        (dir / "config.json: cannot open: Too many open files; "));
}

// ST30.
TEST(Safetensors, other_formats_are_recognised) {
  std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:";
  pointer.resize(130, '0');
  EXPECT_THAT(refused(pointer), HasSubstr("found a Git LFS pointer, 130 bytes"));
  EXPECT_THAT(refused("GGUF\x03" + std::string(100, '\0')), HasSubstr("a GGUF file"));
  EXPECT_THAT(refused("PK\x03\x04" + std::string(100, 'x')), HasSubstr("a zip archive"));
  EXPECT_THAT(refused("\x80\x02}q" + std::string(100, 'x')), HasSubstr("a Python pickle"));
}

}  // namespace
}  // namespace engine::test
