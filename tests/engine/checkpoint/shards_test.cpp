// Cases CF02 to CF07, CF22, CF25, CF26 and ST18: models in several files, tensors under other
// names.
#include <sys/inotify.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/shards.h"
#include "engine/store/weights_hash.h"
#include "tests/support/models/model_files.h"
#include "tests/support/needs.h"

namespace engine::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

struct Part {
  std::string name;
  Tensor tensor;
};

std::string file_of(const std::vector<Part>& parts) {
  std::string header, data;
  for (const auto& [name, tensor] : parts) {
    const auto n = static_cast<std::size_t>(tensor.n_elements() * kernels::bytes_of(tensor.dtype));
    const bool is_f32 = tensor.dtype == kernels::DType::F32;
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                          header.empty() ? "{" : ",", name, is_f32 ? "F32" : "BF16",
                          shown_shape(tensor.shape), data.size(), data.size() + n);
    data.append(static_cast<const char*>(tensor.data), n);
  }
  return safetensors(header + "}", data);
}

/// Records every file that any process opens in a folder, not in its subfolders.
class OpenedFiles {
 public:
  explicit OpenedFiles(const std::string& folder) : fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    inotify_add_watch(fd_, folder.c_str(), IN_OPEN);
  }
  ~OpenedFiles() { close(fd_); }
  OpenedFiles(const OpenedFiles&) = delete;
  OpenedFiles& operator=(const OpenedFiles&) = delete;

  /// Names of the files opened since the last call.
  std::vector<std::string> take() {
    std::vector<std::string> names;
    alignas(inotify_event) char bytes[4096];
    for (ssize_t n = 0; (n = read(fd_, bytes, sizeof bytes)) > 0;) {
      for (ssize_t at = 0; at < n;) {
        inotify_event event{};
        std::memcpy(&event, bytes + at, sizeof event);
        if (!(event.mask & IN_ISDIR)) names.emplace_back(bytes + at + sizeof event);
        at += static_cast<ssize_t>(sizeof event + event.len);
      }
    }
    return names;
  }

 private:
  int fd_;
};

// The small model in two shards; `second_` starts at the second layer.
class Shards : public testing::Test {
 protected:
  Shards() {
    write_small_model(dir_);
    const ModelFiles files = open_model(dir_.path());
    for (const std::string& name : files.tensors->names()) {
      const bool is_second = name.find(".1.") != std::string::npos;
      (is_second ? second_ : first_).push_back({name, files.tensors->read(name)});
      map_[name] = is_second ? kSecond : kFirst;
      total_ += files.tensors->read(name).n_elements() * 2;
    }
    std::filesystem::remove(dir_ / "model.safetensors");
    write_file(dir_ / kFirst, file_of(first_));
    write_file(dir_ / kSecond, file_of(second_));
    write_index(std::to_string(total_));
  }

  std::string weight_map() const {
    std::string text;
    for (const auto& [name, file] : map_) {
      text += fmt::format("{}\"{}\": \"{}\"", text.empty() ? "" : ", ", name, file);
    }
    return "{" + text + "}";
  }
  void write_index(const std::string& total) {
    write_file(dir_ / kIndex,
               fmt::format(R"({{"metadata": {{"total_size": {}}}, "weight_map": {}}})", total,
                           weight_map()));
  }
  std::string refused() {
    return refusal([&] { open_model(dir_.path()); });
  }

  Folder dir_;
  std::vector<Part> first_, second_;
  std::map<std::string, std::string> map_;
  std::int64_t total_ = 0;
};

TEST_F(Shards, two_shards_are_one_model) {
  const ModelFiles files = open_model(dir_.path());
  EXPECT_THAT(files.notices, IsEmpty());
  for (const Part& part : second_) {
    const Tensor tensor = files.tensors->read(part.name);
    EXPECT_EQ(std::memcmp(tensor.data, part.tensor.data,
                          static_cast<std::size_t>(2 * tensor.n_elements())),
              0);
  }
}

// CF02.
TEST_F(Shards, shard_names_outside_the_directory_are_refused) {
  for (const char* name :
       {"../x.safetensors", "/etc/passwd", "a/../../b", "C:\\\\x", "a\\u0000b", "", "..", "."}) {
    map_["model.norm.weight"] = name;
    write_index("0");
    EXPECT_THAT(refused(),
                AllOf(HasSubstr(kIndex), HasSubstr("weight_map.model.norm.weight: found \""),
                      HasSubstr("same directory")))
        << name;
  }
}

// CF02.
TEST_F(Shards, no_file_outside_the_directory_is_opened) {
  // The named files exist and are valid, so only the check of the name keeps them from being
  // opened.
  const Folder outside;
  const std::string model = outside / "model", shard = read_file(dir_ / kFirst);
  std::filesystem::copy(dir_.path(), model, std::filesystem::copy_options::recursive);
  std::filesystem::create_directory(model + "/a");
  for (const char* name : {"x.safetensors", "b", "C:\\x"}) write_file(outside / name, shard);
  OpenedFiles opened(outside.path());
  std::ifstream(outside / "b").get();
  NEEDS(opened.take() == std::vector<std::string>{"b"}, "cannot watch opened files (inotify)");
  const std::string absolute = outside / "x.safetensors";
  for (const std::string& name :
       {std::string("../x.safetensors"), absolute, std::string("a/../../b"), std::string("..\\\\b"),
        std::string("../C:\\\\x"), std::string("../b\\u0000c")}) {
    map_["model.norm.weight"] = name;
    write_index("0");
    std::filesystem::copy(dir_ / kIndex, model, std::filesystem::copy_options::overwrite_existing);
    EXPECT_THAT(refusal([&] { open_model(model); }), HasSubstr("same directory")) << name;
    EXPECT_THAT(opened.take(), IsEmpty()) << name;
  }
}

// CF03.
TEST_F(Shards, links_out_of_the_directory_need_permission) {
  const Folder elsewhere;
  std::filesystem::rename(dir_ / kSecond, elsewhere / "blob");
  std::filesystem::create_symlink(elsewhere / "blob", dir_ / kSecond);
  EXPECT_THAT(refused(), AllOf(HasSubstr(kSecond), HasSubstr("--allow-external-shards")));
  EXPECT_THAT(open_model(dir_.path(), {.allow_external_shards = true}).notices, IsEmpty());
  // The layout of the Hugging Face hub's cache: snapshots/REV/file -> ../../blobs/HASH.
  const Folder cache;
  std::filesystem::create_directories(cache / "snapshots/abc");
  std::filesystem::create_directories(cache / "blobs");
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    std::filesystem::copy(entry.path(), cache / "blobs");  // follows the link
    const std::string name = entry.path().filename().string();
    std::filesystem::create_symlink("../../blobs/" + name, cache / ("snapshots/abc/" + name));
  }
  EXPECT_THAT(open_model(cache / "snapshots/abc").notices, IsEmpty());
}

// CF04.
TEST_F(Shards, a_missing_shard_or_tensor_is_named) {
  std::filesystem::rename(dir_ / kSecond, dir_ / "away");
  EXPECT_THAT(refused(), AllOf(HasSubstr(kSecond), HasSubstr(second_[0].name)));
  write_file(dir_ / kSecond, file_of({second_.begin() + 1, second_.end()}));
  EXPECT_THAT(refused(), AllOf(HasSubstr(kSecond), HasSubstr(second_[0].name)));
}

// CF05.
TEST_F(Shards, duplicate_and_unindexed_tensors_are_named) {
  std::vector<Part> more = second_;
  more.push_back(first_[0]);
  write_file(dir_ / kSecond, file_of(more));
  EXPECT_THAT(refused(), AllOf(HasSubstr(first_[0].name), HasSubstr(kFirst), HasSubstr(kSecond)));
  more.back().name = "unheard.of";
  write_file(dir_ / kSecond, file_of(more));
  const ModelFiles files = open_model(dir_.path());
  EXPECT_THAT(files.notices, Contains(HasSubstr("1 tensors of the shards are not in the index")));
  EXPECT_FALSE(files.tensors->has("unheard.of"));
}

// CF06.
TEST_F(Shards, an_invalid_weight_map_is_refused) {
  for (const char* map : {"[]", "null", "3", "{}"}) {
    write_file(dir_ / kIndex, fmt::format(R"({{"weight_map": {}}})", map));
    EXPECT_THAT(refused(), AllOf(HasSubstr(kIndex), HasSubstr("weight_map: found "))) << map;
  }
  write_file(dir_ / kIndex, R"({"weight_map": {"model.norm.weight": 1}})");
  EXPECT_THAT(refused(), HasSubstr("weight_map.model.norm.weight: found 1"));
  std::string many = R"({"weight_map": {)";
  for (int i = 0; i < 3'000'000; i++) many += fmt::format("\"{}\":\"a\",", i);
  many.back() = '}';
  write_file(dir_ / kIndex, many + "}");
  EXPECT_THAT(refused(), AllOf(HasSubstr(kIndex), HasSubstr("at most")));
}

// CF07.
TEST_F(Shards, a_wrong_total_size_is_noted) {
  for (const char* total : {"1", "-5", "1e400", "\"x\"", "null"}) {
    write_index(total);
    EXPECT_THAT(open_model(dir_.path()).notices,
                Contains(AllOf(HasSubstr("total_size"), HasSubstr(std::to_string(total_)))))
        << total;
  }
}

// ST18.
TEST_F(Shards, a_model_tensor_may_not_be_empty_or_scalar) {
  const std::vector<Part> good = first_;
  for (const auto& [name, expected] : {std::pair{"model.norm.weight", "[64]"},
                                       {"model.embed_tokens.weight", "[300, 64]"},
                                       {"model.layers.0.self_attn.q_proj.weight", "[64, 64]"}}) {
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{0}, std::vector<std::int64_t>{}}) {
      first_ = good;
      for (Part& part : first_) {
        if (part.name == name) part.tensor.shape = shape;
      }
      write_file(dir_ / kFirst, file_of(first_));
      EXPECT_THAT(refused(), HasSubstr(fmt::format("tensor \"{}\": found {}, expected {}", name,
                                                   shown_shape(shape), expected)));
    }
  }
  // Tensors that the model does not read may be empty or scalar.
  std::vector<Part> more = good;
  more.push_back({"unheard.of", more[0].tensor});
  more.back().tensor.shape = {2, 0};
  map_["unheard.of"] = kFirst;
  write_index(std::to_string(total_));
  write_file(dir_ / kFirst, file_of(more));
  EXPECT_THAT(open_model(dir_.path()).notices, testing::ElementsAre(HasSubstr("\"unheard.of\"")));
}

// CF22.
TEST_F(Shards, tensors_of_several_dtypes_load_with_a_notice) {
  const std::vector<float> ones(64, 1.0f);
  for (Part& part : first_) {
    if (part.name != "model.norm.weight") continue;
    part.tensor.dtype = kernels::DType::F32;
    part.tensor.data = ones.data();
  }
  write_file(dir_ / kFirst, file_of(first_));
  write_index(std::to_string(total_ + 2 * 64));
  const ModelFiles files = open_model(dir_.path());
  EXPECT_EQ(files.stored_dtype, kernels::DType::BF16);
  EXPECT_EQ(files.tensors->read("model.norm.weight").dtype, kernels::DType::F32);
  EXPECT_EQ(files.tensors->read("model.embed_tokens.weight").dtype, kernels::DType::BF16);
  EXPECT_THAT(files.notices, testing::ElementsAre(HasSubstr("weights of 2 dtypes, most bf16")));
}

// CF25.
TEST_F(Shards, extra_tensors_are_counted_in_one_notice) {
  std::filesystem::remove(dir_ / kIndex);
  const std::uint16_t value = 0;
  std::vector<Part> all = first_;
  all.insert(all.end(), second_.begin(), second_.end());
  const Tensor scalar{kernels::DType::BF16, {1}, &value, nullptr};
  all.push_back({"extra.0", scalar});
  write_file(dir_ / "model.safetensors", file_of(all));
  EXPECT_THAT(
      open_model(dir_.path()).notices,
      testing::ElementsAre(HasSubstr(
          "1 tensors are ignored because this kind of model does not use them, e.g. \"extra.0\"")));
  for (int i = 1; i < 100'000; i++) all.push_back({fmt::format("extra.{}", i), scalar});
  write_file(dir_ / "model.safetensors", file_of(all));
  EXPECT_THAT(open_model(dir_.path()).notices, testing::ElementsAre(HasSubstr("100000 tensors")));
}

/// The name without "model.", as in files of a base model without lm_head.
std::string bare(const std::string& name) {
  return name.starts_with("model.") ? name.substr(6) : name;
}

// CF26.
TEST_F(Shards, bare_names_are_read_as_full_ones) {
  const ModelFiles full = open_model(dir_.path());
  const std::string hash = weights_hash(full);
  // As shards with an index, then as one file.
  for (std::vector<Part>* part : {&first_, &second_}) {
    for (Part& one : *part) one.name = bare(one.name);
  }
  std::map<std::string, std::string> renamed;
  for (const auto& [name, file] : map_) renamed[bare(name)] = file;
  map_ = renamed;
  write_file(dir_ / kFirst, file_of(first_));
  write_file(dir_ / kSecond, file_of(second_));
  write_index(std::to_string(total_));
  for (const bool single : {false, true}) {
    if (single) {
      std::filesystem::remove(dir_ / kIndex);  // it would give a notice
      std::vector<Part> all = first_;
      all.insert(all.end(), second_.begin(), second_.end());
      write_file(dir_ / "model.safetensors", file_of(all));
    }
    const ModelFiles files = open_model(dir_.path());
    EXPECT_THAT(files.notices, testing::ElementsAre(HasSubstr("without the prefix \"model.\"")));
    EXPECT_EQ(weights_hash(files), hash);
    std::vector<std::string> names = files.tensors->names(), expected = full.tensors->names();
    std::ranges::sort(names);
    std::ranges::sort(expected);
    EXPECT_EQ(names, expected);
  }
}

// CF26.
TEST_F(Shards, a_full_tensor_name_wins_over_a_bare_one) {
  const std::string hash = weights_hash(open_model(dir_.path()));
  std::filesystem::remove(dir_ / kIndex);
  std::vector<Part> all = first_;
  all.insert(all.end(), second_.begin(), second_.end());
  // Adds zeros under the bare names of two tensors: one before its full name in the file, one
  // after.
  const auto zeros = std::make_shared<std::vector<std::uint16_t>>(300 * 64);
  const auto zero = [&](const std::string& name) {
    for (const Part& part : first_) {
      if (part.name != name) continue;
      Tensor tensor = part.tensor;
      tensor.data = zeros->data();
      return Part{bare(name), tensor};
    }
    throw std::runtime_error("no tensor " + name);
  };
  all.insert(all.begin(), zero("model.embed_tokens.weight"));
  all.push_back(zero("model.norm.weight"));
  write_file(dir_ / "model.safetensors", file_of(all));
  const ModelFiles files = open_model(dir_.path());
  EXPECT_EQ(weights_hash(files), hash);
  EXPECT_THAT(files.notices, Contains(AllOf(HasSubstr("\"embed_tokens.weight\""),
                                            HasSubstr("\"model.embed_tokens.weight\" exists too"),
                                            HasSubstr("likewise for 1 more"))));
  // A bare tensor with a wrong shape is refused under its full name.
  std::erase_if(all, [](const Part& part) { return part.name == "model.norm.weight"; });
  all.back().tensor.shape = {32};
  write_file(dir_ / "model.safetensors", file_of(all));
  EXPECT_THAT(refused(), HasSubstr("model.norm.weight"));
}

TEST_F(Shards, a_single_file_takes_precedence_over_an_index) {
  const std::string sharded = weights_hash(open_model(dir_.path()));
  std::vector<Part> all = second_;
  all.insert(all.end(), first_.begin(), first_.end());
  std::string bytes = file_of(all);
  bytes.back() ^= 1;
  write_file(dir_ / "model.safetensors", bytes);
  ModelFiles files = open_model(dir_.path());
  EXPECT_NE(weights_hash(files), sharded) << "the values of the shards were used";
  EXPECT_THAT(files.notices,
              testing::ElementsAre(AllOf(HasSubstr(kIndex), HasSubstr("ignored with its shards"))));
  // The shards are not needed any more.
  std::filesystem::remove(dir_ / kFirst);
  files = open_model(dir_.path());
  EXPECT_THAT(files.notices, testing::ElementsAre(HasSubstr("ignored with its shards")));
}

TEST_F(Shards, the_weights_hash_depends_only_on_tensors) {
  const std::string hash = weights_hash(open_model(dir_.path()));
  EXPECT_THAT(hash, testing::MatchesRegex("[0-9a-f]{16}"));
  std::filesystem::remove(dir_ / kIndex);
  std::vector<Part> all = second_;
  all.insert(all.end(), first_.begin(), first_.end());
  write_file(dir_ / "model.safetensors", file_of(all));
  EXPECT_EQ(weights_hash(open_model(dir_.path())), hash) << "one file, another order";
  // Any bit of any tensor counts, including the highest bit of a word.
  for (const std::size_t bit : {0U, 15U, 63U}) {
    std::string bytes = file_of(all);
    bytes[bytes.size() - 8 + bit / 8] ^= static_cast<char>(1U << bit % 8);
    write_file(dir_ / "model.safetensors", bytes);
    EXPECT_NE(weights_hash(open_model(dir_.path())), hash) << "bit " << bit;
  }
}

}  // namespace
}  // namespace engine::test
