// The form of Setup: the loaded model, the scale, the reuse of recorded settings.
#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/queue.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/play.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/streams.h"
#include "ui/prepare/recorded_setup.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/gantt.h"
#include "ui/prepare/tokens/describe_place.h"
#include "ui/prepare/use_again.h"

namespace {

using namespace ui;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Setup, scale_is_limited_by_the_cost_of_a_step) {
  EXPECT_STREQ(worthwhile_scale(2'700'000), "4x2");
  EXPECT_STREQ(worthwhile_scale(4'000'000), "4x1");
  EXPECT_STREQ(worthwhile_scale(40'000'000), "1x2");
  EXPECT_STREQ(worthwhile_scale(7'000'000'000), "1x1");
  EXPECT_STREQ(worthwhile_scale(0), "1x1");
  SetupForm form;
  choose_model(form, streams::catalog(), "a folder the catalog does not know");
  EXPECT_EQ(form.scale, "1x1");
}

// Returns a catalog with a target, its consistency-trained version, and an unrelated model.
Catalog family() {
  Catalog catalog = streams::catalog();
  catalog.models.clear();
  catalog.models.push_back({.name = "other", .n_params = 2'700'000});
  catalog.models.push_back({.name = "demo-target", .n_params = 2'700'000});
  catalog.models.push_back({.name = "demo-cllm", .n_params = 2'700'000, .before = "demo-target"});
  return catalog;
}

TEST(Setup, a_lane_names_its_model_below_a_long_title) {
  // Returns how often the screen has the word "with".
  const auto n_with = [](const std::string& title, const std::string& model) {
    DrawnWindow window;
    window.catalog.decoders.front().title = title;
    window.shell.show(Screen::Compare);
    for (LaneForm& lane : window.shell.form().lanes)
      lane = lane_with(window.catalog, window.catalog.decoders.front().name);
    window.shell.form().lanes.front().model = model;
    std::istringstream words(window.said());
    return std::count(std::istream_iterator<std::string>(words), {}, "with");
  };
  const std::string long_title(80, 'm');
  const auto n = n_with("short", "");
  EXPECT_EQ(n_with("short", "tiny"), n);
  EXPECT_EQ(n_with(long_title, ""), n);
  EXPECT_EQ(n_with(long_title, "tiny"), n + 1);
}

TEST(Setup, before_and_after_training_races_both_models) {
  const Catalog catalog = family();
  for (const char* chosen : {"demo-target", "demo-cllm"}) {
    SetupForm form;
    choose_model(form, catalog, chosen);
    form.prompt = "a prompt";
    const auto pair = consistency_pair(form, catalog);
    ASSERT_TRUE(pair);
    choose_before_and_after(form, catalog, *pair);
    EXPECT_EQ(form.model, "demo-target");
    EXPECT_EQ(why_not(form, catalog, true), "");
    const engine::StartRun start = command_of(form, true);
    EXPECT_EQ(start.model, "demo-target");
    ASSERT_EQ(start.lanes.size(), 4u);
    const std::vector<std::string> decoders{"jacobi", "jacobi", "ar", "ar"};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(start.lanes[i].decoder, decoders[i]);
      EXPECT_EQ(start.lanes[i].model, i % 2 ? "demo-cllm" : "");
      EXPECT_EQ(start.lanes[i].options, lane_with(catalog, decoders[i]).options);
    }
  }
}

TEST(Setup, before_and_after_needs_a_model_pair) {
  const auto is_offered = [](const std::string& chosen, const Catalog& catalog) {
    SetupForm form;
    choose_model(form, catalog, chosen);
    return consistency_pair(form, catalog).has_value();
  };
  Catalog catalog = family();
  EXPECT_TRUE(is_offered("demo-target", catalog));
  EXPECT_FALSE(is_offered("other", catalog)) << "nothing was trained from this model";
  catalog.models[2].before.clear();
  EXPECT_FALSE(is_offered("demo-target", catalog));
  catalog = family();
  catalog.models[1].unavailable = "its weights are cut off";
  EXPECT_FALSE(is_offered("demo-cllm", catalog)) << "one of the two cannot be loaded";
}

// Returns the catalog of family() with SEED and a draft model.
Catalog whole_family() {
  Catalog catalog = family();
  catalog.models.push_back({.name = "demo-draft", .n_params = 300'000});
  for (CatalogModel& model : catalog.models) model.draft = "demo-draft";
  CatalogDecoder seed = *catalog.decoder("speculative");
  seed.name = "seed";
  catalog.decoders.push_back(std::move(seed));
  return catalog;
}

std::vector<std::string> raced_first(const Catalog& catalog, const std::string& model) {
  std::vector<std::string> lanes;
  for (const LaneForm& lane : first_form(catalog, model).lanes)
    lanes.push_back(lane.model.empty() ? lane.decoder : lane.decoder + "@" + lane.model);
  return lanes;
}

TEST(Setup, first_race_includes_the_consistency_model) {
  const Catalog catalog = whole_family();
  const std::vector<std::string> with{"ar", "lookahead", "jacobi@demo-cllm", "seed",
                                      "ar@demo-cllm"};
  EXPECT_EQ(raced_first(catalog, "demo-target"), with);
  const SetupForm form = first_form(catalog, "demo-target");
  EXPECT_EQ(form.lanes[2].options.at("refill"), "slide");
  EXPECT_EQ(form.lanes[2].options.at("block"), "10") << "the default for two cores";
  EXPECT_EQ(form.live.decoder, "lookahead");
  SetupForm asked = form;
  asked.prompt = "a prompt";
  EXPECT_EQ(why_not(asked, catalog, true), "");
  EXPECT_LE(form.lanes.size(), engine::kMaxLanes);
}

TEST(Setup, first_race_has_defaults_without_consistency_model) {
  const std::vector<std::string> without{"ar", "jacobi", "lookahead", "prompt-lookup"};
  EXPECT_EQ(raced_first(streams::catalog(), ""), without);
  EXPECT_EQ(raced_first(whole_family(), "other"), without)
      << "this model has no consistency-trained version";
  Catalog broken = whole_family();
  broken.models[2].unavailable = "its weights are cut off";
  EXPECT_EQ(raced_first(broken, "demo-target"), without);
  Catalog alone = whole_family();
  for (CatalogModel& model : alone.models) model.draft.clear();
  EXPECT_EQ(raced_first(alone, "demo-target"), without) << "SEED has no draft model";
}

TEST(Setup, first_race_of_an_assistant_includes_what_was_trained_for_it) {
  Catalog catalog = streams::catalog();
  CatalogModel& model = catalog.models[0];
  model.chat = [](const std::string&, const std::string&, bool) { return ChatPreview{}; };
  model.draft = "demo-draft";
  EXPECT_THAT(raced_first(catalog, model.name), ElementsAre("ar", "lookahead", "speculative"));
  model.draft.clear();
  EXPECT_THAT(raced_first(catalog, model.name), ElementsAre("ar", "lookahead", "prompt-lookup"));
}

TEST(Setup, lane_model_that_cannot_run_has_a_reason) {
  Catalog catalog = family();
  SetupForm form;
  choose_model(form, catalog, "demo-target");
  LaneForm lane = lane_with(catalog, "jacobi");
  lane.model = "demo-cllm";
  EXPECT_EQ(why_not(lane, form, catalog), "");
  catalog.models[2].unavailable = "its weights are cut off";
  EXPECT_EQ(why_not(lane, form, catalog), "demo-cllm: its weights are cut off");
  lane.model.clear();
  EXPECT_EQ(why_not(lane, form, catalog), "");
}

TEST(Setup, reused_race_keeps_both_models) {
  engine::Timeline timeline;
  for (engine::Event& event : streams::race({"jacobi", "jacobi"})) {
    if (auto* model = std::get_if<engine::ModelLoaded>(&event)) {
      model->name = "demo-target";
      timeline.apply(event);
      model->model += 100;
      model->name = "demo-cllm";
    }
    auto* started = std::get_if<engine::RunStarted>(&event);
    if (started && started->lane == 1) started->model += 100;
    timeline.apply(event);
  }
  const Catalog catalog = family();
  SetupForm form;
  use_again(form, catalog, timeline, timeline.runs()[0]);
  EXPECT_EQ(form.model, "demo-target");
  ASSERT_EQ(form.lanes.size(), 2u);
  EXPECT_EQ(form.lanes[0].model, "");
  EXPECT_EQ(form.lanes[1].model, "demo-cllm");
  const RecordedSetup setup =
      recorded_setup(timeline, {&timeline.runs()[0], &timeline.runs()[1]}, catalog);
  const bool reported = std::ranges::any_of(setup.rows, [](const RecordedRow& row) {
    return row.label == "model of B" && row.value == "demo-cllm";
  });
  EXPECT_TRUE(reported);
}

TEST(Setup, context_length_belongs_to_its_model) {
  Catalog catalog = family();
  SetupForm form;
  choose_model(form, catalog, "demo-target");
  form.context = 4000;
  EXPECT_EQ(command_of(form, false).context, 4000);
  EXPECT_EQ(reasoning_command(form).context, 4000);
  choose_model(form, catalog, "other");
  EXPECT_EQ(form.context, 0);
}

TEST(Setup, model_sampling_fills_the_form) {
  Catalog catalog = family();
  catalog.models[0].sampling = {.temperature = 0.6f,
                                .top_p = 0.9f,
                                .repetition_penalty = 1.1f,
                                .top_k = 20,
                                .max_tokens = 300};
  SetupForm form;
  choose_model(form, catalog, "demo-target");
  EXPECT_FALSE(has_model_sampling(form, catalog));
  choose_model(form, catalog, "other");
  ASSERT_TRUE(has_model_sampling(form, catalog));
  choose_model_sampling(form, catalog);
  const engine::StartRun start = command_of(form, false);
  EXPECT_EQ(start.temperature, 0.6f);
  EXPECT_EQ(start.top_p, 0.9f);
  EXPECT_EQ(start.top_k, 20);
  EXPECT_EQ(start.repetition_penalty, 1.1f);
  EXPECT_EQ(start.max_tokens, 300);
}

TEST(Setup, before_and_after_is_one_button) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  engine::EventQueue events;
  engine::CommandQueue commands;
  scripted::in_window(
      "before_after", events, commands, family(), [&](ImGuiTestContext* ctx, Shell& shell) {
        const char* offer = "//Setup###compare.setup/Before and after consistency training";
        ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_2);
        ctx->Yield(3);
        IM_CHECK(!ctx->ItemExists(offer));
        choose_model(shell.form(), family(), "demo-target");
        ctx->Yield(3);
        ctx->ItemClick(offer);
        IM_CHECK_EQ(shell.form().lanes.size(), 4u);
        IM_CHECK_STR_EQ(shell.form().lanes[1].model.c_str(), "demo-cllm");
      });
}

TEST(Setup, list_of_counts_may_be_long) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  Catalog catalog = streams::catalog();
  catalog.decoders.push_back({.name = "tree", .title = "Tree"});
  catalog.decoders.back().options = {
      {"k_config", CatalogOption::Type::Counts, "2,2,1", 1, 64, {}, "Level by level."}};
  std::string wanted = "4";
  for (int level = 0; level < 60; ++level) wanted += ",1";
  ASSERT_GT(wanted.size(), 100u);
  engine::EventQueue events;
  engine::CommandQueue commands;
  scripted::in_window(
      "counts", events, commands, catalog, [&](ImGuiTestContext* ctx, Shell& shell) {
        shell.form().live = lane_with(catalog, "tree");
        ctx->Yield(3);
        ctx->ItemInputValue("//Setup###live.setup/k_config/##value", wanted.c_str());
        IM_CHECK_EQ(shell.form().live.options.at("k_config"), wanted);
      });
}

TEST(Setup, irrelevant_option_is_greyed) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  Catalog catalog = streams::catalog();
  catalog.decoders.push_back({.name = "several", .title = "Several"});
  catalog.decoders.back().options = {
      {"branches", CatalogOption::Type::Int, "3", 1, 64, {}, "Texts at a time."},
      {"gamma", CatalogOption::Type::Int, "4", 1, 64, {}, "Tokens drafted."}};
  catalog.decoders.back().idle_options = {{"branches", "A run here is one text."}};
  engine::EventQueue events;
  engine::CommandQueue commands;
  scripted::in_window(
      "idle_option", events, commands, catalog, [&](ImGuiTestContext* ctx, Shell& shell) {
        shell.form().live = lane_with(catalog, "several");
        ctx->Yield(3);
        const auto greyed = [&](const char* option) {
          const std::string item = std::string("//Setup###live.setup/") + option + "/##value";
          return (ctx->ItemInfo(item.c_str()).ItemFlags & ImGuiItemFlags_Disabled) != 0;
        };
        IM_CHECK(greyed("branches"));
        IM_CHECK(!greyed("gamma"));
        IM_CHECK_STR_EQ(why_not(shell.form().live, shell.form(), catalog).c_str(), "");
      });
}

TEST(Setup, negative_default_is_shown_by_meaning) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  Catalog catalog = streams::catalog();
  catalog.decoders.push_back({.name = "drafts", .title = "Drafts"});
  catalog.decoders.back().options = {
      {"draft_top_k", CatalogOption::Type::Int, "-1", -1, 64, {}, "Of the draft.", "the target's"}};
  engine::EventQueue events;
  engine::CommandQueue commands;
  scripted::in_window("below_zero", events, commands, catalog,
                      [&](ImGuiTestContext* ctx, Shell& shell) {
                        shell.form().live = lane_with(catalog, "drafts");
                        ctx->Yield(3);
                        ctx->SetRef("//Setup###live.setup/draft_top_k");
                        IM_CHECK(!ctx->ItemExists("##value"));
                        ctx->ItemClick("##below_zero");
                        ctx->Yield(2);
                        IM_CHECK_STR_EQ(shell.form().live.options.at("draft_top_k").c_str(), "0");
                        ctx->ItemInputValue("##value", 5);
                        IM_CHECK_STR_EQ(shell.form().live.options.at("draft_top_k").c_str(), "5");
                        ctx->ItemClick("##below_zero");
                        IM_CHECK_STR_EQ(shell.form().live.options.at("draft_top_k").c_str(), "-1");
                      });
  const CatalogOption& option = catalog.decoders.back().options.front();
  EXPECT_EQ(value_words(option, "-1"), "the target's");
  EXPECT_EQ(value_words(option, "3"), "3");
  EXPECT_EQ(value_words(catalog, "drafts", "draft_top_k", "-1"), "the target's");
  EXPECT_EQ(value_words(catalog, "drafts", "other", "-1"), "-1");
}

TEST(Setup, stop_strings_and_ids_are_part_of_the_command) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  const Catalog catalog = streams::catalog();
  engine::EventQueue events;
  engine::CommandQueue commands;
  scripted::in_window("stops", events, commands, catalog, [&](ImGuiTestContext* ctx, Shell& shell) {
    SetupForm& form = shell.form();
    form.prompt = "a prompt";
    ctx->Yield(3);
    ctx->SetRef("//Setup###live.setup");
    ctx->ItemInputValue("##stop_texts", "END\\n");
    ctx->ItemInputValue("##stop_ids", "5, 7");
    ctx->Yield(2);
    const engine::StartRun start = command_of(form, false);
    IM_CHECK(start.stop_texts == std::vector<std::string>{"END\n"});
    IM_CHECK((start.stop_ids == std::vector<engine::TokenId>{5, 7}));
    IM_CHECK_STR_EQ(why_not(form, catalog, false).c_str(), "");
    ctx->ItemInputValue("##stop_ids", "five");
    ctx->Yield(2);
    IM_CHECK(why_not(form, catalog, false).starts_with("stop ids: "));
  });
}

TEST(Setup, invalid_stop_strings_and_ids_have_a_reason) {
  Catalog catalog = streams::catalog();
  SetupForm form = first_form(catalog, "");
  form.prompt = "a prompt";
  for (CatalogModel& model : catalog.models)
    if (model.name == form.model) model.vocab_size = 8;
  form.stop_ids = "7";
  EXPECT_EQ(why_not(form, catalog, false), "");
  form.stop_ids = "8";
  EXPECT_THAT(why_not(form, catalog, false), HasSubstr("stop id 8: "));
  form.stop_ids = "";
  form.stop_texts = std::string(2000, 'x');
  EXPECT_THAT(why_not(form, catalog, true), HasSubstr("stop strings: found 2000 bytes"));
  form.stop_texts.clear();
  for (int i = 0; i < 65; i++) form.stop_texts += "x\n";
  EXPECT_THAT(why_not(form, catalog, false), HasSubstr("stop strings: found 65"));
}

TEST(Setup, reuse_copies_all_settings) {
  engine::Timeline timeline;
  std::vector<engine::Event> events = streams::race({"ar", "jacobi"});
  const ModelChoice expected{"demo-target", "4x2", "f16", "auto", 0, "q8_0"};
  for (engine::Event& event : events) {
    if (auto* model = std::get_if<engine::ModelLoaded>(&event)) {
      model->name = "demo-target";
      model->scale = "4x2";
      model->dtype = "f16";
      model->cache_type = "q8_0";
      model->device = "one that is not here";
    }
    if (auto* started = std::get_if<engine::RunStarted>(&event)) {
      started->seed = 0xFFFF'FFFF'FFFF'FFF1;
      started->ignore_eos = true;
      started->stop_texts = {"\n\n", "END"};
      started->stop_ids = {5, 7};
      started->no_special = true;
      started->temperature = 0.5f;
      started->max_tokens = 77;
    }
    timeline.apply(event);
  }
  Catalog catalog;
  catalog.models.push_back({.name = "demo-target", .n_params = 2'700'000});
  catalog.models.push_back({.name = "other"});
  SetupForm form;
  form.model = "other";
  use_again(form, catalog, timeline, timeline.runs()[1]);
  EXPECT_EQ(static_cast<ModelChoice&>(form), expected);
  EXPECT_EQ(form.model_error, "");
  EXPECT_EQ(form.live.decoder, "jacobi");
  ASSERT_EQ(form.lanes.size(), 2u);
  EXPECT_EQ(form.lanes[0].decoder, "ar");
  const engine::StartRun again = command_of(form, false);
  EXPECT_EQ(again.cache_type, "q8_0");
  EXPECT_EQ(again.seed, 0xFFFF'FFFF'FFFF'FFF1);
  EXPECT_TRUE(again.ignore_eos);
  EXPECT_TRUE(again.no_special);
  EXPECT_EQ(again.stop_texts, (std::vector<std::string>{"\n\n", "END"}));
  EXPECT_EQ(again.stop_ids, (std::vector<engine::TokenId>{5, 7}));
  EXPECT_EQ(again.temperature, 0.5f);
  EXPECT_EQ(again.max_tokens, 77);
  EXPECT_EQ(again.scale, "4x2");

  catalog.models.erase(catalog.models.begin());
  form.model = "other";
  use_again(form, catalog, timeline, timeline.runs()[1]);
  EXPECT_EQ(form.model, "other");
  EXPECT_THAT(form.model_error, HasSubstr("demo-target"));
}

TEST(Setup, reuse_of_quantised_weights_computes_them_as_stored) {
  engine::Timeline timeline;
  for (engine::Event& event : streams::race({"ar", "jacobi"})) {
    if (auto* model = std::get_if<engine::ModelLoaded>(&event))
      model->dtype = "q4_1", model->cache_type = "f16";
    timeline.apply(event);
  }
  SetupForm form;
  form.dtype = form.cache_type = "bf16";
  Catalog catalog;
  catalog.models.push_back({.name = timeline.model(timeline.runs()[0].started.model)->name});
  use_again(form, catalog, timeline, timeline.runs()[0]);
  EXPECT_EQ(form.model_error, "");
  EXPECT_EQ(form.dtype, "") << "--dtype has no quantised types";
  EXPECT_EQ(form.cache_type, "") << "f16 is the default of quantised weights";
}

TEST(Setup, failed_load_keeps_the_loaded_model) {
  const engine::test::Folder folder;
  std::ofstream(folder / "config.json") << "{}";
  const std::string path = std::filesystem::path(folder / "config.json").parent_path().string();
  headless::Headless gui;
  engine::CommandQueue commands;
  const Catalog catalog = streams::catalog();
  Shell shell(catalog, commands, "");
  const ModelChoice before = shell.form();
  shell.open(path);
  EXPECT_EQ(shell.form().model, path);
  EXPECT_TRUE(shell.ticks()) << "the time of the pending request is shown";
  gui.frame(shell);
  shell.take({engine::RunFailed{.code = 2, .message = "config.json: no hidden_size"}});
  EXPECT_EQ(static_cast<ModelChoice&>(shell.form()), before);
  EXPECT_THAT(shell.form().model_error, HasSubstr("no hidden_size"));
  EXPECT_FALSE(shell.ticks());
  for (int i = 0; i < 3; ++i) gui.frame(shell);
  // A successful load clears the error; later failures do not concern the model.
  shell.open(path);
  shell.take({streams::story().model});
  EXPECT_EQ(shell.form().model, path);
  EXPECT_EQ(shell.form().model_error, "");
  EXPECT_EQ(shell.run_race(), why_not(shell.form(), catalog, true));
  shell.take({engine::RunFailed{.code = 2, .message = "the prompt is too long"}});
  EXPECT_EQ(shell.form().model, path);
  EXPECT_EQ(shell.form().model_error, "");
}

TEST(Setup, draft_defaults_to_card_and_must_share_vocabulary) {
  const Catalog catalog = streams::catalog();
  SetupForm form = first_form(catalog, "");
  form.live = lane_with(catalog, "speculative");
  EXPECT_EQ(draft_of(form, catalog), "demo-draft");
  EXPECT_EQ(why_not(form, catalog, false), "");
  EXPECT_EQ(command_of(form, false).draft, "") << "the engine reads the card itself";
  form.draft = "other";
  EXPECT_THAT(why_not(form, catalog, false), HasSubstr("the draft has 500 tokens, the target 512"));
  EXPECT_EQ(command_of(form, false).draft, "other");
  form.live = lane_with(catalog, "jacobi");
  EXPECT_EQ(why_not(form, catalog, false), "") << "it needs no draft";
  // The same number of tokens, but another vocabulary.
  Catalog renamed = catalog;
  renamed.models[1].vocabulary = 9;
  form.draft.clear();
  form.live = lane_with(catalog, "speculative");
  EXPECT_THAT(why_not(form, renamed, false), HasSubstr("different vocabularies"));
  // A draft that shares its target's embedding is no model of its own, but valid as a draft.
  renamed.models[1].shares_with = "demo-target";
  renamed.models[1].unavailable = "a draft of demo-target";
  EXPECT_EQ(why_not(form, renamed, false), "");
  // No card names a draft for this model; every model with the same vocabulary is valid.
  choose_model(form, catalog, "demo-draft");
  EXPECT_THAT(why_not(form, catalog, false), HasSubstr("no draft model chosen"));
  form.draft = "demo-target";
  EXPECT_EQ(why_not(form, catalog, false), "");
  choose_model(form, catalog, "demo-target");
  EXPECT_EQ(form.draft, "") << "the draft is cleared for another model";
}

TEST(Setup, unusable_options_have_a_reason) {
  Catalog catalog = streams::catalog();
  catalog.decoders[0].refusal = [](const std::map<std::string, std::string>& options) {
    return options.contains("bad") ? std::string("bad is bad") : std::string();
  };
  SetupForm form = first_form(catalog, "");
  form.live = lane_with(catalog, "ar");
  EXPECT_EQ(why_not(form, catalog, false), "");
  form.live.options["bad"] = "1";
  EXPECT_EQ(why_not(form, catalog, false), "bad is bad");
}

TEST(Setup, reused_settings_include_the_draft) {
  engine::Timeline timeline;
  for (engine::Event& event : streams::one_run("speculative")) {
    auto* model = std::get_if<engine::ModelLoaded>(&event);
    if (model && model->name == "demo-draft") model->name = "other";
    timeline.apply(event);
  }
  const Catalog catalog = streams::catalog();
  SetupForm form = first_form(catalog, "");
  use_again(form, catalog, timeline, timeline.runs()[0]);
  EXPECT_EQ(form.draft, "other");
  engine::Timeline carded;
  for (const engine::Event& event : streams::one_run("speculative")) carded.apply(event);
  use_again(form, catalog, carded, carded.runs()[0]);
  EXPECT_EQ(form.draft, "") << "the card names it";
}

TEST(Setup, recorded_run_names_its_draft) {
  engine::Timeline timeline;
  for (const engine::Event& event : streams::one_run("mcsd")) timeline.apply(event);
  const RecordedSetup setup = recorded_setup(timeline, {&timeline.runs()[0]}, streams::catalog());
  const auto is_draft = [](const RecordedRow& fact) {
    return fact.label == "draft" && fact.value == "demo-draft";
  };
  EXPECT_TRUE(std::ranges::any_of(setup.rows, is_draft));
  headless::Headless gui;
  engine::CommandQueue commands;
  const Catalog catalog = streams::catalog();
  Shell shell(catalog, commands, "");
  shell.take(streams::one_run("mcsd"));
  shell.show(Screen::Live);
  for (int i = 0; i < 3; ++i) gui.frame(shell);
  EXPECT_THAT(gui.said(shell), HasSubstr("draft model demo-draft"));
}

TEST(Setup, speculative_decoder_runs_from_setup) {
  scripted::play("choose_draft", [](ImGuiTestContext* ctx, scripted::Stage& stage) {
    ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
    ctx->ItemClick("##decoder");
    ctx->ItemClick("//$FOCUSED/Speculative");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(stage.shell->form().live.decoder.c_str(), "speculative");
    ctx->ItemClick("##draft");
    ctx->Yield(2);
    // A model with another vocabulary is listed but disabled.
    IM_CHECK((ctx->ItemInfo("//$FOCUSED/other").ItemFlags & ImGuiItemFlags_Disabled) != 0);
    ctx->ItemClick("//$FOCUSED/demo-draft");
    ctx->Yield(2);
    scripted::run_to_the_end(ctx, stage);
    IM_CHECK_STR_EQ(stage.replay->started.draft.c_str(), "demo-draft");
    IM_CHECK_STR_EQ(stage.replay->started.lanes[0].decoder.c_str(), "speculative");
    IM_CHECK_STR_EQ(stage.replay->started.lanes[0].options.at("gamma").c_str(), "4");
  });
}

TEST(Status, request_is_shown_before_the_first_event) {
  const engine::Timeline timeline;
  EXPECT_EQ(awaited_words(timeline, -1), "");
  EXPECT_THAT(awaited_words(timeline, 3.2), HasSubstr("Loading the model: 3 s"));
}

TEST(Status, race_shows_compute_per_lane) {
  const auto text = [](double at, std::size_t n_done, std::size_t n_stopped) {
    return race_status(at, n_done, n_stopped, 4).text;
  };
  EXPECT_EQ(text(1.5e9, 0, 0), "1.50 s of compute per lane");
  EXPECT_EQ(text(12.7e9, 3, 0), "3 of 4 done, 12.7 s of compute per lane");
  EXPECT_EQ(text(12.7e9, 1, 3), "1 of 4 done, 3 stopped, 12.7 s of compute per lane");
  EXPECT_EQ(text(12.7e9, 0, 4), "4 stopped, 12.7 s of compute per lane");
  engine::Timeline timeline;
  for (const engine::Event& event : streams::race({"ar", "jacobi"})) timeline.apply(event);
  EXPECT_EQ(name_of(timeline.runs()[1]), "B jacobi");
}

TEST(Status, shorter_forms_keep_the_state) {
  EXPECT_THAT(race_status(12.7e9, 1, 3, 4).shorter, ElementsAre("1 of 4 done, 3 stopped"));
  EXPECT_THAT(race_status(1.5e9, 0, 0, 4).shorter, ElementsAre("1.50 s"));
  EXPECT_THAT(forms_of(race_status(12.7e9, 3, 0, 4), "repeat 3 of 10"),
              ElementsAre("repeat 3 of 10: 3 of 4 done, 12.7 s of compute per lane",
                          "repeat 3 of 10: 3 of 4 done", "3 of 4 done"));
  engine::Timeline timeline;
  for (const engine::Event& event : streams::one_run("lookahead")) timeline.apply(event);
  const engine::RunRecord* run = timeline.run(1);
  const std::vector<std::string> live = forms_of(status_of(timeline, run, 0, false), "");
  EXPECT_THAT(live,
              ElementsAre(HasSubstr("ended at max tokens, "), "ended at max tokens", "max tokens"));
  EXPECT_THAT(forms_of(status_of(timeline, run, 0, true), ""),
              ElementsAre("recording, ended at max tokens", "ended at max tokens", "max tokens"));
}

TEST(Gantt, ruler_zero_has_no_sign) {
  const ClockView view{.t0 = -1e9, .t1 = 9e9};
  EXPECT_EQ(tick_labels(view, std::array{-1e9, -1e-7, 1e9}),
            (std::vector<std::string>{"-1.0 s", "0.0 s", "1.0 s"}));
}

TEST(Describe, line_feed_is_shown_as_in_the_text) {
  engine::Timeline timeline;
  std::vector<engine::Event> events = streams::one_run("lookahead");
  for (engine::Event& event : events) {
    if (auto* model = std::get_if<engine::ModelLoaded>(&event))
      for (std::string& piece : model->pieces) piece = "\n";
    timeline.apply(event);
  }
  const engine::RunRecord& run = *timeline.run(1);
  int n_bonus = 0;
  for (const engine::StepRecord& step : run.steps) {
    const std::string sentence = describe_step(timeline, run, step);
    if (sentence.find("bonus") == std::string::npos) continue;
    ++n_bonus;
    EXPECT_THAT(sentence, HasSubstr("bonus \"\xC2\xB6\""));
  }
  EXPECT_GT(n_bonus, 0);
}

}  // namespace
