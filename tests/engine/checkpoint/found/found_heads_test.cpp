#include "engine/checkpoint/found/found_heads.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "engine/checkpoint/shared/model_name.h"
#include "tests/support/files.h"

namespace engine::test {
namespace {

TEST(IsSameModel, ignores_number_type_case_and_folder) {
  for (const char* name : {"SmolLM2-135M-Instruct", "smollm2-135m-instruct.Q4_1",
                           "SmolLM2-135M-Instruct-Q4_K_M.gguf", "a/b/SmolLM2-135M-Instruct-bf16",
                           "SmolLM2-135M-Instruct.F16", "SmolLM2-135M-Instruct-IQ2_XS"})
    EXPECT_TRUE(is_same_model(name, "hf:HuggingFaceTB/SmolLM2-135M-Instruct")) << name;
  for (const char* name : {"SmolLM2-135M", "SmolLM2-135M-Instruct-8k", "", "Q4_1"})
    EXPECT_FALSE(is_same_model(name, "SmolLM2-135M-Instruct")) << name;
  EXPECT_FALSE(is_same_model("qwen-q", "qwen"));
}

class FoundHeads : public testing::Test {
 protected:
  /// Heads in a folder; find_heads() reads only config.json.
  void add(const std::string& name, HeadsKind kind, const std::string& base) {
    std::filesystem::create_directories(dir_ / name);
    write_file(dir_ / (name + "/config.json"), std::string(R"({"model_type": ")") + name_of(kind) +
                                                   R"(", "base_model_name_or_path": ")" + base +
                                                   "\"}");
  }
  std::string found(HeadsKind kind, const std::vector<std::string>& folders) const {
    std::vector<std::string> paths;
    for (const std::string& folder : folders) paths.push_back(dir_ / folder);
    return find_heads("Tiny-1B-Q8_0", kind, paths);
  }
  Folder dir_;
};

TEST_F(FoundHeads, are_the_first_of_their_kind_and_model) {
  add("a/z-other", HeadsKind::Medusa, "Tiny-2B");
  add("a/chimera", HeadsKind::Chimera, "tiny-1b.f16");
  add("b/two", HeadsKind::Medusa, "org/Tiny-1B");
  add("b/one", HeadsKind::Medusa, "Tiny-1B");
  add("c/zero", HeadsKind::Medusa, "Tiny-1B");
  std::filesystem::create_directories(dir_ / "a/broken");
  write_file(dir_ / "a/broken/config.json", "{\"model_type\": \"medusa\"");
  EXPECT_EQ(found(HeadsKind::Medusa, {"none", "a", "b", "c"}), dir_ / "b/one");
  EXPECT_EQ(found(HeadsKind::Chimera, {"a", "b"}), dir_ / "a/chimera");
  EXPECT_EQ(found(HeadsKind::Chimera, {"b", "c"}), "");
}

TEST_F(FoundHeads, drafts_are_the_first_that_share_the_embedding) {
  const auto add_draft = [&](const std::string& name, const std::string& members) {
    std::filesystem::create_directories(dir_ / name);
    write_file(dir_ / (name + "/config.json"), "{\"model_type\": \"llama\"" + members + "}");
  };
  add_draft("a/whole", "");
  add_draft("a/other", R"(, "shares_embedding_of": "Tiny-2B")");
  add_draft("b/z", R"(, "shares_embedding_of": "Tiny-1B")");
  add_draft("b/draft", R"(, "shares_embedding_of": "org/tiny-1b")");
  add_draft("b/broken", R"(, "shares_embedding_of": )");
  const std::vector<std::string> folders{dir_ / "none", dir_ / "a", dir_ / "b"};
  EXPECT_EQ(find_draft("Tiny-1B.Q4_1", folders), dir_ / "b/draft");
  EXPECT_EQ(find_draft("Tiny-3B", folders), "");
}

}  // namespace
}  // namespace engine::test
