// Draft heads in Setup, and the fields of options that are trees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/replay.h"
#include "ui/files/setup_form.h"
#include "ui/prepare/use_again.h"

namespace {

using namespace ui;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns a catalog in which demo-medusa (named by the card of demo-target) and my-medusa fit demo-target and demo-draft; torn cannot be
// loaded, and far-chimera fits neither model.
Catalog catalog_with_heads() {
  Catalog catalog = streams::catalog();
  std::erase_if(catalog.decoders, [](const CatalogDecoder& d) { return d.name == "medusa"; });
  for (const char* name : {"medusa", "chimera"}) {
    CatalogDecoder decoder{.name = name,
                           .title = name == std::string("medusa") ? "Medusa" : "Chimera"};
    decoder.needs_heads = true;
    decoder.options = {{"tree",
                        CatalogOption::Type::Tree,
                        "own",
                        0,
                        0,
                        {"own", "rows16", "none"},
                        "The tree of guesses, by rank and head."}};
    catalog.decoders.push_back(decoder);
  }
  catalog.models[0].heads = {{"medusa", "demo-medusa"}};
  const std::string unfit = "hidden_size: found 64, expected 192";
  catalog.heads = {
      {"demo-medusa", "models/demo-medusa", "medusa", "4 heads", "", {{"other", unfit}}},
      {"my-medusa", "models/my-medusa", "medusa", "2 heads", "", {{"other", unfit}}},
      {"torn", "models/torn", "medusa", "", "model.safetensors: cut off", {}},
      {"far-chimera",
       "models/far",
       "chimera",
       "4 heads",
       "",
       {{"demo-target", unfit}, {"demo-draft", unfit}}}};
  catalog.tree = [](const std::string& decoder, const CatalogOption& option,
                    const std::string& value) -> TreeNote {
    if (value.find("bad") != std::string::npos)
      return {"", decoder + ": " + option.name + ": " + value + ": is not there"};
    return {"15 tokens, 4 deep: 16 rows a step", ""};
  };
  return catalog;
}

SetupForm form_of(const Catalog& catalog, const std::string& model) {
  SetupForm form;
  choose_model(form, catalog, model);
  form.prompt = "a prompt";
  return form;
}

TEST(SetupHeads, default_to_the_heads_of_the_card) {
  const Catalog catalog = catalog_with_heads();
  SetupForm form = form_of(catalog, "demo-target");
  EXPECT_EQ(heads_of(form, catalog, "medusa"), "demo-medusa");
  EXPECT_EQ(heads_of(form, catalog, "chimera"), "");
  EXPECT_EQ(why_no_heads(form, catalog, "medusa"), "");
  EXPECT_THAT(command_of(form, false).heads, IsEmpty()) << "the card names them";
  form.heads["medusa"] = "my-medusa";
  form.live = lane_with(catalog, "medusa");
  EXPECT_EQ(why_not(form, catalog, false), "");
  EXPECT_THAT(command_of(form, false).heads, ElementsAre("my-medusa"));
  EXPECT_THAT(reasoning_command(form).heads, ElementsAre("my-medusa"));
  choose_model(form, catalog, "demo-draft");
  EXPECT_THAT(form.heads, IsEmpty()) << "the heads belonged to another model";
}

TEST(SetupHeads, reports_missing_heads) {
  const Catalog catalog = catalog_with_heads();
  const CatalogDecoder &medusa = *catalog.decoder("medusa"), &chimera = *catalog.decoder("chimera");
  const SetupForm target = form_of(catalog, "demo-target");
  EXPECT_EQ(why_unavailable(medusa, target, catalog), "");
  EXPECT_THAT(why_unavailable(chimera, target, catalog),
              AllOf(HasSubstr("the card of demo-target names no heads"),
                    HasSubstr("the available heads belong to other models")));
  // The card names no heads, but available ones fit.
  const SetupForm draft = form_of(catalog, "demo-draft");
  EXPECT_EQ(why_unavailable(medusa, draft, catalog),
            "no heads chosen, and the card of demo-draft names none");
  EXPECT_EQ(why_none_to_choose(draft, catalog, "medusa"), "");
  // Chosen heads that do not fit are reported with the engine's message.
  SetupForm other = form_of(catalog, "other");
  other.heads["medusa"] = "my-medusa";
  EXPECT_EQ(why_unavailable(medusa, other, catalog), "hidden_size: found 64, expected 192");
  other.heads["medusa"] = "torn";
  EXPECT_EQ(why_unavailable(medusa, other, catalog), "torn: model.safetensors: cut off");
  Catalog none = catalog;
  none.heads.clear();
  EXPECT_THAT(why_unavailable(chimera, target, none), HasSubstr("`decoscope train chimera`"));
  // For an unknown model no reason is given.
  EXPECT_EQ(why_unavailable(chimera, form_of(catalog, "/a/folder"), catalog), "");
  // A lane with another model uses the heads of that model's card.
  SetupForm race = target;
  race.heads["medusa"] = "my-medusa";
  LaneForm lane = lane_with(catalog, "medusa");
  lane.model = "demo-draft";
  EXPECT_THAT(why_not(lane, race, catalog), HasSubstr("the card of demo-draft names none"));
}

TEST(SetupHeads, choice_is_greyed_without_heads) {
  scripted::play(
      "heads",
      [](ImGuiTestContext* ctx, scripted::Stage& stage) {
        const auto greyed = [&](const char* item) {
          return (ctx->ItemInfo(item).ItemFlags & ImGuiItemFlags_Disabled) != 0;
        };
        ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
        IM_CHECK(!greyed("##heads_medusa"));
        IM_CHECK(greyed("##heads_chimera"));
        ctx->ItemClick("##heads_medusa");
        ctx->Yield(2);
        IM_CHECK(greyed("//$FOCUSED/torn"));
        IM_CHECK(!ctx->ItemExists("//$FOCUSED/far-chimera"));
        ctx->ItemClick("//$FOCUSED/my-medusa");
        ctx->Yield(2);
        stage.shell->form().live = lane_with(stage.shell->catalog(), "medusa");
        ctx->ItemClick("//##top/###run");
        scripted::wait_until(ctx, [&] { return !stage.replay->started.heads.empty(); });
        IM_CHECK_STR_EQ(stage.replay->started.heads[0].c_str(), "my-medusa");
      },
      {}, catalog_with_heads());
}

TEST(SetupHeads, reuse_includes_heads) {
  const Catalog catalog = catalog_with_heads();
  engine::Timeline timeline;
  for (engine::Event event : streams::one_run("mcsd")) {
    if (auto* model = std::get_if<engine::ModelLoaded>(&event);
        model && model->name == "demo-draft")
      model->name = "my-medusa";
    if (auto* started = std::get_if<engine::RunStarted>(&event)) started->decoder = "medusa";
    timeline.apply(event);
  }
  SetupForm form = form_of(catalog, "demo-target");
  form.heads["chimera"] = "far-chimera";
  use_again(form, catalog, timeline, timeline.runs()[0]);
  ASSERT_EQ(form.heads.size(), 1u);
  EXPECT_EQ(form.heads["medusa"], "my-medusa");
  EXPECT_EQ(form.draft, "");
}

TEST(SetupHeads, bad_tree_blocks_run) {
  const Catalog catalog = catalog_with_heads();
  SetupForm form = form_of(catalog, "demo-target");
  form.live = lane_with(catalog, "medusa");
  EXPECT_EQ(why_not(form, catalog, false), "");
  form.live.options["tree"] = "bad.json";
  EXPECT_EQ(why_not(form, catalog, false), "medusa: tree: bad.json: is not there");
  scripted::play(
      "tree_field",
      [](ImGuiTestContext* ctx, scripted::Stage& stage) {
        LaneForm& lane = stage.shell->form().live;
        lane = lane_with(stage.shell->catalog(), "medusa");
        ctx->Yield(2);
        ctx->SetRef("//Setup###live.setup/tree");
        IM_CHECK(!ctx->ItemExists("##path"));
        ctx->ItemClick("##value");
        ctx->ItemClick("//$FOCUSED/rows16");
        IM_CHECK_STR_EQ(lane.options["tree"].c_str(), "rows16");
        ctx->ItemClick("##value");
        ctx->ItemClick("//$FOCUSED/###file");
        ctx->Yield(2);
        IM_CHECK_STR_EQ(lane.options["tree"].c_str(), "tree.json");
        ctx->ItemInputValue("##path", "bad.json");
        ctx->Yield(2);
        IM_CHECK_STR_EQ(lane.options["tree"].c_str(), "bad.json");
        IM_CHECK((ctx->ItemInfo("//##top/###run").ItemFlags & ImGuiItemFlags_Disabled) != 0);
      },
      {}, catalog);
}

TEST(SetupHeads, tree_size_is_shown_below_its_field) {
  headless::Headless gui;
  engine::CommandQueue commands;
  const Catalog catalog = catalog_with_heads();
  Shell shell(catalog, commands, "");
  shell.show(Screen::Live);
  shell.form().live = lane_with(catalog, "medusa");
  for (int i = 0; i < 4; ++i) gui.frame(shell);
  EXPECT_THAT(gui.said(shell), HasSubstr("15 tokens, 4 deep: 16 rows a step"));
  shell.form().live.options["tree"] = "bad.json";
  gui.frame(shell);
  EXPECT_THAT(gui.said(shell), HasSubstr("medusa: tree: bad.json: is not there"));
}

}  // namespace
