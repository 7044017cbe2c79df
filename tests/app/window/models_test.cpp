// The window's list of models, which a thread describes.
#include "app/window/models.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/cli/commands.h"
#include "app/window/heads.h"
#include "tests/support/files.h"
#include "tests/support/in_environment.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class WindowModels : public testing::Test {
 protected:
  static ui::Catalog catalog() {
    ui::Catalog catalog;
    catalog.health.push_back({.name = "models", .value = ""});
    return catalog;
  }
  /// A copy of a bundled model in the folder of the found ones.
  std::string model(const std::string& name) const {
    fs::copy(DECOSCOPE_SOURCE_DIR "/assets/models/demo-draft", folder_ / name,
             fs::copy_options::recursive);
    return folder_ / name;
  }
  engine::test::Folder folder_;
  InEnvironment places_{"DECOSCOPE_MODELS", folder_.path()};
};

TEST_F(WindowModels, names_come_before_descriptions) {
  const std::string path = model("copy");
  engine::test::write_file(folder_ / "broken.gguf", "GGUF");
  ui::Catalog found = catalog();
  app::WindowModels models(found, {});
  ASSERT_EQ(found.models.size(), 2u);
  EXPECT_EQ(found.models[1].name, "copy");
  EXPECT_EQ(found.models[1].source, "DECOSCOPE_MODELS");
  EXPECT_FALSE(found.models[1].is_read) << "the window's thread reads nothing";
  models.wait_and_take();
  const ui::CatalogModel& copy = found.models[1];
  EXPECT_TRUE(copy.is_read);
  EXPECT_EQ(copy.path, path);
  EXPECT_EQ(copy.unavailable, "");
  EXPECT_GT(copy.n_params, 0);
  EXPECT_TRUE(copy.has_tokenizer);
  EXPECT_THAT(copy.summary, HasSubstr("M parameters"));
  EXPECT_THAT(found.models[0].unavailable, HasSubstr("broken.gguf"));
  EXPECT_EQ(found.health[0].value, "1 ready to run");
  EXPECT_FALSE(models.take()) << "already taken";
}

TEST_F(WindowModels, opened_model_joins_the_list_once) {
  engine::test::Folder elsewhere;
  fs::copy(DECOSCOPE_SOURCE_DIR "/assets/models/demo-draft", elsewhere / "mine",
           fs::copy_options::recursive);
  ui::Catalog found = catalog();
  app::WindowModels models(found, {});
  const std::string name = found.add_model(elsewhere / "mine");
  EXPECT_EQ(found.add_model(elsewhere / "mine"), name);
  models.wait_and_take();
  ASSERT_EQ(found.models.size(), 1u);
  EXPECT_EQ(found.models[0].unavailable, "");
  EXPECT_GT(found.models[0].n_params, 0);
}

TEST_F(WindowModels, opened_folder_with_one_gguf_file_is_that_file) {
  engine::test::Folder one, several;
  for (const std::string& path : {one / "m.gguf", several / "a.gguf", several / "b.gguf"})
    engine::test::write_file(path, "GGUF");
  ui::Catalog found = catalog();
  app::WindowModels models(found, {});
  EXPECT_EQ(found.add_model(one.path()), one / "m.gguf");
  EXPECT_EQ(found.add_model(one / "m.gguf"), one / "m.gguf");
  found.add_model(several.path());
  models.wait_and_take();
  ASSERT_EQ(found.models.size(), 2u);
  EXPECT_THAT(found.models[1].unavailable, HasSubstr("found a folder with 2 .gguf files"));
}

TEST_F(WindowModels, opened_adapter_joins_the_list_with_its_base_model) {
  const std::string base = DECOSCOPE_SOURCE_DIR "/assets/models/demo-draft";
  engine::test::Folder adapter;
  engine::test::write_file(
      adapter / "adapter_config.json",
      R"({"peft_type": "LORA", "lora_alpha": 8, "base_model_name_or_path": ")" + base + "\"}");
  ui::Catalog found = catalog();
  app::WindowModels models(found, {});
  EXPECT_EQ(found.add_model(adapter.path()), base + "+" + adapter.path());
  models.wait_and_take();
  ASSERT_EQ(found.models.size(), 1u);
  EXPECT_THAT(found.models[0].unavailable, HasSubstr("no adapter_model.safetensors"));
}

TEST_F(WindowModels, draft_without_an_embedding_names_its_target) {
  const std::string path = model("small-draft");
  engine::test::write_file(path + "/config.json", R"({"shares_embedding_of": "big"})");
  ui::Catalog found = catalog();
  app::WindowModels models(found, {});
  models.wait_and_take();
  ASSERT_EQ(found.models.size(), 1u);
  EXPECT_EQ(found.models[0].shares_with, "big");
  EXPECT_EQ(found.models[0].unavailable,
            "a draft of big: choose big as the model and this as its draft");
}

TEST(WindowHeads, heads_and_drafts_of_the_data_folder_are_offered) {
  const fs::path bundled = fs::path(DECOSCOPE_SOURCE_DIR) / "assets/models";
  engine::test::Folder data;
  const InEnvironment home("XDG_DATA_HOME", data.path());
  const fs::path folder = data / "decoscope/models";
  fs::create_directories(folder / "draft");
  fs::copy(bundled / "demo-medusa", folder / "my-medusa", fs::copy_options::recursive);
  engine::test::write_file((folder / "draft/config.json").string(),
                           R"({"model_type": "llama", "shares_embedding_of": "demo-draft"})");
  ui::Catalog found;
  found.models = app::catalog_models(bundled, {});
  app::add_heads(found, bundled, {});
  const auto named = [](const std::string& name) {
    return [name](const ui::CatalogHeads& heads) { return heads.name == name; };
  };
  EXPECT_TRUE(std::ranges::any_of(found.heads, named("demo-medusa")));
  const auto own = std::ranges::find_if(found.heads, named((folder / "my-medusa").string()));
  ASSERT_NE(own, found.heads.end());
  EXPECT_EQ(own->unavailable, "");
  ASSERT_NE(found.model("demo-target"), nullptr);
  EXPECT_EQ(found.model("demo-target")->heads.at("medusa"), "demo-medusa") << "by its card";
  EXPECT_EQ(found.model("demo-target")->draft, "demo-draft") << "by its card";
  EXPECT_EQ(found.model("demo-draft")->draft, (folder / "draft").string());
}

TEST_F(WindowModels, model_of_the_command_line_keeps_its_found_name) {
  const std::string path = model("copy");
  for (const std::string& given : {path, fs::relative(path).string(), path + "/"}) {
    app::ModelOptions options;
    options.model = given;
    ui::Catalog found = catalog();
    found.models = app::catalog_models(folder_ / "nothing", options);
    app::WindowModels models(found, options);
    models.wait_and_take();
    ASSERT_EQ(found.models.size(), 1u) << given;
    EXPECT_EQ(found.models[0].name, "copy");
    EXPECT_EQ(app::name_in_catalog(found, given), "copy");
    EXPECT_EQ(found.add_model(fs::relative(path)), "copy");
  }
}

}  // namespace
