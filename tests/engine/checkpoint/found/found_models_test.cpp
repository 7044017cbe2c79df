// Models of other programs on this machine.
#include "engine/checkpoint/found/found_models.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/error.h"
#include "tests/support/files.h"
#include "tests/support/in_environment.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FoundModels : public testing::Test {
 protected:
  void file(const std::string& path, const std::string& text = "") {
    const fs::path full = fs::path(folder_.path()) / path;
    fs::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  std::string at(const std::string& path) const { return folder_ / path; }
  std::vector<FoundModel> find(PlaceKind kind) const {
    return found_models({{kind, folder_.path(), "here"}});
  }
  static std::vector<std::string> names(const std::vector<FoundModel>& models) {
    std::vector<std::string> names;
    for (const FoundModel& model : models) names.push_back(model.name);
    return names;
  }
  Folder folder_;
};

TEST_F(FoundModels, folders_have_files_and_directories) {
  file("publisher/repo/model-Q4_0.gguf");
  file("publisher/repo/mmproj-model.gguf");
  file("big-00001-of-00002.gguf");
  file("big-00002-of-00002.gguf");
  file("dir/config.json");
  file("dir/model.safetensors");
  file("only-a-config/config.json");
  file(".hidden/x.gguf");
  EXPECT_THAT(names(find(PlaceKind::Folders)), ElementsAre("big", "dir", "model-Q4_0"));
}

TEST_F(FoundModels, search_ends_four_levels_down) {
  file("1/2/3/found.gguf");
  file("1/2/3/4/not.gguf");
  EXPECT_THAT(names(find(PlaceKind::Folders)), ElementsAre("found"));
}

TEST_F(FoundModels, two_equal_names_get_their_folders) {
  file("a/m.gguf");
  file("b/m.gguf");
  EXPECT_THAT(names(find(PlaceKind::Folders)), ElementsAre("a/m", "b/m"));
}

TEST_F(FoundModels, hub_cache_has_the_revision_of_main) {
  const std::string one = "models--org--one/";
  file(one + "refs/main", "bbb");
  for (const char* revision : {"aaa", "bbb", "ccc"}) {
    file(one + "snapshots/" + revision + "/config.json");
    file(one + "snapshots/" + revision + "/model.safetensors");
  }
  file("models--org--two/snapshots/r/two-q8.gguf");
  file("models--org--three/snapshots/r/q4.gguf");
  file("models--org--three/snapshots/r/q8.gguf");
  file("datasets--org--data/snapshots/r/x.gguf");
  const std::vector<FoundModel> models = find(PlaceKind::HubCache);
  EXPECT_THAT(names(models),
              ElementsAre("hf:org/one", "hf:org/three:q4", "hf:org/three:q8", "hf:org/two"));
  EXPECT_EQ(models[0].path, at(one + "snapshots/bbb"));
}

TEST_F(FoundModels, ollama_manifests_name_blobs) {
  const auto manifest = [](const std::string& digest) {
    return R"({"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:00"},)"
           R"({"mediaType":"application/vnd.ollama.image.model","digest":")" +
           digest + "\"}]}";
  };
  file("blobs/sha256-11");
  file("blobs/sha256-22");
  file("manifests/registry.ollama.ai/library/llama3/latest", manifest("sha256:11"));
  file("manifests/registry.ollama.ai/user/own/q4", manifest("sha256:22"));
  file("manifests/registry.ollama.ai/library/gone/latest", manifest("sha256:33"));
  file("manifests/registry.ollama.ai/library/out/latest", manifest("../../x"));
  file("manifests/registry.ollama.ai/library/bad/latest", "{");
  const std::vector<FoundModel> models = find(PlaceKind::Ollama);
  EXPECT_THAT(names(models), ElementsAre("ollama:llama3:latest", "ollama:user/own:q4"));
  EXPECT_EQ(models[0].path, at("blobs/sha256-11"));
}

TEST_F(FoundModels, path_in_a_store_has_a_name) {
  file("hub/models--org--one/snapshots/bbb/config.json");
  file("hub/models--org--one/snapshots/bbb/model.safetensors");
  file("ollama/blobs/sha256-11");
  file("ollama/manifests/registry.ollama.ai/library/llama3/latest",
       R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:11"}]})");
  const InEnvironment all("DECOSCOPE_MODELS_ONLY", ""), hub("HF_HUB_CACHE", at("hub")),
      ollama("OLLAMA_MODELS", at("ollama"));
  EXPECT_EQ(name_in_store(at("hub/models--org--one/snapshots/bbb")), "hf:org/one");
  EXPECT_EQ(name_in_store(at("ollama/blobs/sha256-11")), "ollama:llama3:latest");
  EXPECT_EQ(name_in_store(at("ollama/blobs/sha256-12")), "");
  EXPECT_EQ(name_in_store("/models/x"), "");
}

TEST_F(FoundModels, folder_with_two_names_is_searched_once) {
  file("hub/models--org--one/snapshots/a/one.gguf");
  fs::create_directory_symlink(at("hub"), at("link"));
  const InEnvironment all("DECOSCOPE_MODELS_ONLY", ""), home("HOME", at("home")),
      one("DECOSCOPE_MODELS", at("hub") + ":" + at("link/") + ":" + at("hub")),
      ollama("OLLAMA_MODELS", "/usr/share/ollama/.ollama/models"), hub("HF_HUB_CACHE", at("hub"));
  std::vector<std::string> folders;
  for (const ModelPlace& place : model_places())
    folders.push_back(fmt::format("{} {}", place.source, place.folder));
  EXPECT_EQ(std::ranges::count(folders, "DECOSCOPE_MODELS " + at("hub")), 1);
  EXPECT_EQ(std::ranges::count(folders, "DECOSCOPE_MODELS " + at("link/")), 0);
  EXPECT_EQ(std::ranges::count(folders, "Hugging Face cache " + at("hub")), 1) << "another layout";
  EXPECT_EQ(std::ranges::count(folders, "Ollama /usr/share/ollama/.ollama/models"), 1);
}

TEST_F(FoundModels, folder_that_does_not_exist_has_none) {
  for (const PlaceKind kind : {PlaceKind::HubCache, PlaceKind::Ollama, PlaceKind::Folders})
    EXPECT_THAT(found_models({{kind, at("none"), "here"}}), IsEmpty());
}

TEST_F(FoundModels, folder_with_one_gguf_file_means_the_file) {
  file("one/model.gguf"), file("one/mmproj-model.gguf"), file("one/config.json");
  file("split/m-00001-of-00002.gguf"), file("split/m-00002-of-00002.gguf");
  file("none/readme.txt");
  file("hf/config.json"), file("hf/model.safetensors"), file("hf/model.gguf");
  EXPECT_EQ(model_in_folder(at("one")), at("one/model.gguf"));
  EXPECT_EQ(model_in_folder(at("split")), at("split/m-00001-of-00002.gguf"));
  for (const std::string& other : {at("none"), at("hf"), at("one/model.gguf"), at("absent")})
    EXPECT_EQ(model_in_folder(other), other);
}

TEST_F(FoundModels, several_gguf_files_in_a_folder_are_listed) {
  file("several/b-Q8_0.gguf"), file("several/a-Q4_0.gguf");
  EXPECT_THAT(refusal([&] { model_in_folder(at("several")); }),
              HasSubstr("several: model: found a folder with 2 .gguf files: a-Q4_0.gguf, "
                        "b-Q8_0.gguf, expected the path of one of them"));
}

TEST(FindModelByName, whole_name_or_unique_part) {
  const std::vector<FoundModel> models = {{"SmolLM2-135M.Q4_1", "/a", ""},
                                          {"SmolLM2-135M", "/b", ""},
                                          {"hf:org/gemma", "/c", ""},
                                          {"ollama:llama3:latest", "/d", ""}};
  EXPECT_EQ(find_model_by_name("smollm2-135m", models), "/b");
  EXPECT_EQ(find_model_by_name("q4_1", models), "/a");
  EXPECT_EQ(find_model_by_name("hf:org/gemma", models), "/c");
  EXPECT_EQ(find_model_by_name("ollama:llama3", models), "/d");
  EXPECT_EQ(find_model_by_name("mistral", models), std::nullopt);
  // Heads and drafts of a model have its name in theirs.
  std::vector<FoundModel> with_parts{{"tiny-1b.gguf", "/tiny"}};
  const Folder parts;
  for (const auto& [name, member] : {std::pair("tiny-medusa", R"("model_type": "medusa")"),
                                     std::pair("tiny-draft", R"("shares_embedding_of": "tiny")")}) {
    fs::create_directories(parts / name);
    write_file(parts / (std::string(name) + "/config.json"), std::string("{") + member + "}");
    with_parts.push_back({name, parts / name});
  }
  EXPECT_EQ(find_model_by_name("tiny", with_parts), "/tiny");
  EXPECT_EQ(find_model_by_name("tiny-draft", with_parts), parts / "tiny-draft");
  EXPECT_EQ(find_model_by_name("", models), std::nullopt);
  try {
    find_model_by_name("smollm2", models);
    FAIL() << "two models have this in their names";
  } catch (const kernels::Error& error) {
    EXPECT_EQ(error.code(), kernels::ErrorCode::Usage);
    EXPECT_THAT(error.what(), HasSubstr("SmolLM2-135M.Q4_1, SmolLM2-135M"));
  }
}

}  // namespace
}  // namespace engine::test
