// Models of this machine in Setup: the picker, the effects of a choice, recent models, dropped files.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/queue.h"
#include "tests/support/files.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/streams.h"
#include "ui/files/setup_form.h"

namespace {

using namespace ui;
using testing::ElementsAre;
using testing::HasSubstr;

/// The usual models, an assistant found on this machine, and a message for it.
Catalog with_assistant() {
  Catalog catalog = streams::catalog();
  catalog.models.push_back(
      {.name = "assistant",
       .path = "assistant.gguf",
       .summary = "135.0 M parameters, Q4_1, llama",
       .n_params = 135'000'000,
       .source = "Ollama",
       .chat = [](const std::string&, const std::string&, bool) { return ChatPreview{}; }});
  catalog.prompts.push_back(
      {.id = "chat/list", .title = "list", .text = "Give me ten ideas.", .is_message = true});
  return catalog;
}

std::vector<std::string> decoders_of(const SetupForm& form) {
  std::vector<std::string> names;
  for (const LaneForm& lane : form.lanes)
    names.push_back(lane.model.empty() ? lane.decoder : lane.decoder + "@" + lane.model);
  return names;
}

TEST(Models, assistant_races_untrained_decoders_on_a_message) {
  const SetupForm form = first_form(with_assistant(), "assistant");
  EXPECT_EQ(form.model, "assistant");
  EXPECT_EQ(form.scale, "1x1");
  EXPECT_THAT(decoders_of(form), ElementsAre("ar", "lookahead", "prompt-lookup"));
  EXPECT_EQ(form.prompt_id, "chat/list");
  EXPECT_EQ(form.prompt, "Give me ten ideas.");
}

TEST(Models, choice_replaces_lanes_that_cannot_run) {
  Catalog catalog = with_assistant();
  catalog.models.push_back({.name = "demo-cllm", .n_params = 2'700'000, .before = "demo-target"});
  SetupForm form = first_form(catalog, "demo-target");
  form.lanes = {lane_with(catalog, "ar"), lane_with(catalog, "jacobi")};
  form.lanes[1].model = "demo-cllm";
  choose_model(form, catalog, "assistant");
  fit_to_model(form, catalog);
  EXPECT_THAT(decoders_of(form), ElementsAre("ar", "lookahead", "prompt-lookup"));
  EXPECT_EQ(form.prompt_id, "chat/list");
  form.lanes = {lane_with(catalog, "ar"), lane_with(catalog, "jacobi")};
  choose_model(form, catalog, "other");
  fit_to_model(form, catalog);
  EXPECT_THAT(decoders_of(form), ElementsAre("ar", "jacobi")) << "these can run";
  EXPECT_EQ(form.prompt_id, "G4-001") << "this model continues texts";
}

TEST(Models, choice_keeps_a_prompt_of_ones_own) {
  const Catalog catalog = with_assistant();
  SetupForm form = first_form(catalog, "demo-target");
  form.prompt = "my own";
  form.prompt_id.clear();
  choose_model(form, catalog, "assistant");
  fit_to_model(form, catalog);
  EXPECT_EQ(form.prompt, "my own");
}

TEST(Models, form_fits_as_soon_as_the_model_is_read) {
  headless::Headless gui;
  engine::CommandQueue commands;
  Catalog catalog = with_assistant();
  CatalogModel& assistant = catalog.models.back();
  const CatalogModel described = assistant;
  assistant = {.name = "assistant", .path = "assistant.gguf", .source = "Ollama", .is_read = false};
  Shell shell(catalog, commands, "");
  choose_model(shell.form(), catalog, "assistant");
  gui.frame(shell);
  EXPECT_EQ(shell.form().prompt_id, "G4-001");
  assistant = described;
  gui.frame(shell);
  EXPECT_EQ(shell.form().prompt_id, "chat/list");
}

TEST(Models, dropped_gguf_file_is_loaded_and_remembered) {
  const engine::test::Folder folder;
  const std::string path = folder / "dropped.gguf";
  std::ofstream(path) << "GGUF";
  headless::Headless gui;
  engine::CommandQueue commands;
  Catalog catalog = streams::catalog();
  catalog.add_model = [&](const std::string& added) {
    catalog.models.push_back({.name = added, .path = added, .source = "opened here"});
    return added;
  };
  {
    Shell shell(catalog, commands, folder.path());
    shell.open(path);
    const auto command = commands.try_take();
    ASSERT_TRUE(command);
    EXPECT_EQ(std::get<engine::LoadModel>(*command).model, path);
    shell.take({streams::story().model});
    EXPECT_THAT(shell.settings().recent_models, ElementsAre(path));
  }
  // The next session lists it, and Setup shows it.
  catalog.models.pop_back();
  Shell next(catalog, commands, folder.path());
  EXPECT_EQ(next.form().model, path);
  EXPECT_EQ(catalog.models.back().path, path);
}

TEST(Models, failed_load_is_not_remembered) {
  const engine::test::Folder folder;
  std::ofstream(folder / "bad.gguf") << "GGUF";
  headless::Headless gui;
  engine::CommandQueue commands;
  const Catalog catalog = streams::catalog();
  Shell shell(catalog, commands, "");
  shell.open(folder / "bad.gguf");
  shell.take({engine::RunFailed{.code = 3, .message = "bad.gguf: cut off"}});
  EXPECT_TRUE(shell.settings().recent_models.empty());
  EXPECT_THAT(shell.form().model_error, HasSubstr("cut off"));
}

TEST(Models, picker_has_places_and_reasons) {
  Catalog catalog = with_assistant();
  catalog.models.push_back({.name = "broken",
                            .path = "broken.gguf",
                            .unavailable = "broken.gguf: cut off",
                            .source = "Ollama"});
  const auto script = [](ImGuiTestContext* ctx, scripted::Stage& stage) {
    stage.shell->settings().recent_models = {"assets/models/other"};
    ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
    ctx->ItemClick("##model");
    ctx->Yield(2);
    IM_CHECK(
        (ctx->ItemInfo("//$FOCUSED/broken##broken.gguf").ItemFlags & ImGuiItemFlags_Disabled) != 0);
    const float recent = ctx->ItemInfo("//$FOCUSED/other##assets\\/models\\/other").RectFull.Min.y;
    IM_CHECK_LT(
        recent,
        ctx->ItemInfo("//$FOCUSED/demo-target##assets\\/models\\/demo-target").RectFull.Min.y);
    ctx->ItemClick("//$FOCUSED/assistant##assistant.gguf");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(stage.shell->form().model.c_str(), "assistant");
    IM_CHECK_STR_EQ(stage.shell->form().prompt.c_str(), "Give me ten ideas.");
  };
  scripted::play("choose_found_model", script, {}, catalog);
}

}  // namespace
