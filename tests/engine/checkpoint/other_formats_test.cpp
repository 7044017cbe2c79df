// Paths that are not model directories, and published heads.
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/file_kind.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/other_formats.h"
#include "tests/support/models/model_files.h"

namespace engine::test {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// Replaces each `from` in the file's header.
void rename_tensors(const std::string& path, const std::string& from, const std::string& to) {
  const std::string bytes = read_file(path);
  std::uint64_t n = 0;
  std::memcpy(&n, bytes.data(), sizeof n);
  std::string header = bytes.substr(sizeof n, n);
  for (std::size_t at = header.find(from); at != std::string::npos;
       at = header.find(from, at + to.size()))
    header.replace(at, from.size(), to);
  write_file(path, safetensors(header, std::string_view(bytes).substr(sizeof n + n)));
}

TEST(OtherFormats, a_wrappers_tensor_prefix_is_named) {
  const Folder dir;
  write_small_model(dir);
  rename_tensors(dir / "model.safetensors", "\"model.", "\"module.model.");
  EXPECT_THAT(
      refusal([&] { open_model(dir.path()); }),
      AllOf(HasSubstr("found \"module.model.embed_tokens.weight\""),
            HasSubstr("without the prefix \"module.\""), HasSubstr("save_pretrained(DIR)")));
}

TEST(OtherFormats, an_eagle_draft_is_named) {
  const Folder dir;
  write_small_model(dir);
  rename_tensors(dir / "model.safetensors", "\"model.norm.weight\"", "\"fc.weight\"");
  EXPECT_THAT(refusal([&] { open_model(dir.path()); }), HasSubstr("a draft of EAGLE"));
}

TEST(OtherFormats, heads_of_other_methods_are_named) {
  const auto found = [](const std::string& config) {
    return recognise_heads_config(parse_json(config, "config.json")).found;
  };
  EXPECT_THAT(found(R"({"hydra_num_heads": 4})"), HasSubstr("Hydra"));
  EXPECT_THAT(found(R"({"architectures": ["LlamaForCausalLMEagle3"]})"), HasSubstr("EAGLE"));
  EXPECT_THAT(found(R"({"draft_vocab_size": 32000})"), HasSubstr("EAGLE"));
  EXPECT_THAT(found(R"({"architectures": ["MLPSpeculatorPreTrainedModel"]})"),
              HasSubstr("MLP speculator"));
  EXPECT_THAT(found(R"({"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4})"),
              HasSubstr("a model instead of heads"));
  EXPECT_THAT(found("{}"), IsEmpty());
  EXPECT_THAT(found("[]"), IsEmpty());
}

TEST(OtherFormats, hub_ids_are_distinguished_from_paths) {
  for (const char* id : {"lmsys/vicuna-7b-v1.3", "https://huggingface.co/lmsys/vicuna-7b-v1.3",
                         "https://huggingface.co/lmsys/vicuna-7b-v1.3/",
                         "https://huggingface.co/lmsys/vicuna-7b-v1.3/tree/main",
                         "https://huggingface.co/lmsys/vicuna-7b-v1.3/blob/main/config.json"})
    EXPECT_THAT(recognise_path(id).advice, HasSubstr("download lmsys/vicuna-7b-v1.3 "));
  for (const char* path : {"/nothing/here", "nothing", "a/b/c", "./a", "../a", "a/", "/a", ""})
    EXPECT_FALSE(recognise_path(path).is_known()) << path;
}

TEST(OtherFormats, a_model_in_a_subfolder_is_named) {
  const Folder dir;
  std::filesystem::create_directories(dir / "snapshots/abc");
  write_file(dir / "snapshots/abc/config.json", "{}");
  EXPECT_THAT(recognise_directory(dir.path()).advice, HasSubstr("snapshots/abc"));
  std::filesystem::create_directory(dir / "inner");
  write_file(dir / "inner/config.json", "{}");
  EXPECT_THAT(recognise_directory(dir.path()).found, HasSubstr("in its folder inner"));
}

TEST(OtherFormats, other_file_formats_are_recognised) {
  std::string tar(257, 'a');  // a tar archive has its mark at byte 257
  tar += "ustar";
  const std::vector<std::pair<std::string, const char*>> kinds = {
      {"GGUF\3\0\0\0"s, "GGUF"},
      {"PK\x03\x04", "zip"},
      {"\x1f\x8b\x08", "gzip"},
      {"BZh91AY", "bzip2"},
      {"\xfd"
       "7zXZ\0"s,
       "xz"},
      {"\x89HDF\r\n\x1a\n", "HDF5"},
      {tar, "tar archive"},
      {"\xEF\xBB\xBF <!DOCTYPE html>", "a web page"},
      {"<HTML>", "a web page"},
      {"Entry not found", "hub's refusal"},
      {"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"}};
  for (const auto& [bytes, kind] : kinds) EXPECT_THAT(recognised_as(bytes), HasSubstr(kind));
  for (const char* none : {"", "{}", "plain", "<"}) EXPECT_EQ(recognised_as(none), "") << none;
}

// Published Medusa heads, with one and two layers per head: the config lacks model_type, sizes come
// from the tensors, and the weights are in medusa_lm_head.safetensors.
TEST(OtherFormats, published_medusa_heads_are_opened) {
  for (const int n_layers : {1, 2}) {
    const Folder dir;
    HeadsConfig config;
    config.n_heads = 3;
    config.dim = 16;
    config.vocab_size = 40;
    config.n_layers = n_layers;
    write_heads(dir.path(), config, *random_heads(config, 3), kernels::DType::F16);
    std::filesystem::rename(dir / "model.safetensors", dir / "medusa_lm_head.safetensors");
    write_file(dir / "config.json",
               R"({"base_model_name_or_path": "lmsys/vicuna-7b-v1.3", "medusa_num_heads": 3, )"
               R"("medusa_num_layers": )" +
                   std::to_string(n_layers) + R"(, "transformers_version": "4.31.0"})");
    EXPECT_EQ(heads_kind(dir.path()), HeadsKind::Medusa);
    const HeadsFiles heads = open_heads(dir.path(), nullptr);
    EXPECT_EQ(heads.config.dim, 16);
    EXPECT_EQ(heads.config.vocab_size, 40);
    EXPECT_EQ(heads.config.n_layers, n_layers);
    EXPECT_EQ(heads.stored_dtype, kernels::DType::F16);
    ModelFiles target;
    target.path = target.name = "target";
    target.config.dim = 32;
    target.config.vocab_size = 40;
    EXPECT_THAT(refusal([&] { open_heads(dir.path(), &target); }),
                HasSubstr("found [16, 16], expected [32, 32]"));
    std::filesystem::rename(dir / "medusa_lm_head.safetensors", dir / "medusa_lm_head.pt");
    EXPECT_THAT(refusal([&] { open_heads(dir.path(), nullptr); }),
                HasSubstr("torch.load('medusa_lm_head.pt'"));
  }
}

// A symbolic link that leads out of the directory is refused, as for models.
TEST(OtherFormats, published_heads_must_lie_inside_their_directory) {
  const Folder dir, elsewhere;
  HeadsConfig config;
  config.n_heads = 1;
  config.dim = 16;
  config.vocab_size = 40;
  write_heads(elsewhere.path(), config, *random_heads(config, 3), kernels::DType::F32);
  std::filesystem::create_symlink(elsewhere / "model.safetensors",
                                  dir / "medusa_lm_head.safetensors");
  write_file(dir / "config.json", R"({"medusa_num_heads": 1, "medusa_num_layers": 1})");
  EXPECT_THAT(refusal([&] { open_heads(dir.path(), nullptr); }),
              HasSubstr("outside the directory"));
}

}  // namespace
}  // namespace engine::test
