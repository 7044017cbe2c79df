// Chains and trees of thoughts in the window: the commands of Setup, the run that is shown, the status bar.
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/queue.h"
#include "engine/event/reasoning_bounds.h"
#include "tests/support/display.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/play.h"
#include "tests/ui/support/replay.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/following.h"
#include "ui/prepare/use_again.h"

namespace {

using namespace ui;
using engine::Phase;
using engine::RunFinished;
using engine::RunStarted;
using testing::HasSubstr;
using Look = Following::Look;

/// The catalog with SEED.
Catalog catalog() {
  Catalog all = streams::catalog();
  CatalogDecoder seed = *all.decoder("speculative");
  seed.name = "seed";
  seed.title = "SEED";
  seed.options = {{"branches", CatalogOption::Type::Int, "3", 1, 64, {}, "Sequences at once."},
                  {"policy",
                   CatalogOption::Type::Choice,
                   "fcfs",
                   0,
                   0,
                   {"fcfs", "shortest", "priority"},
                   "Which draft is verified next."}};
  all.decoders.push_back(std::move(seed));
  return all;
}

Phase reasoning(std::int64_t done, std::int64_t total, std::string words = {}) {
  return {.name = "reason", .done = done, .total = total, .detail = std::move(words)};
}

TEST(SetupReasoning, defaults_to_a_usable_task_and_seed) {
  const SetupForm form = first_form(catalog(), "");
  EXPECT_EQ(form.mode, SetupMode::Prompt);
  EXPECT_EQ(form.reasoning.chain.task, "kb");
  EXPECT_EQ(form.reasoning.tree.task, "arith");
  EXPECT_EQ(form.reasoning.depth, 4);
  EXPECT_EQ(form.reasoning.tree.count, 3);
  EXPECT_EQ(form.reasoning.decoder.decoder, "seed");
  EXPECT_EQ(form.reasoning.decoder.options.at("branches"), "3");
  Catalog alone = catalog();
  alone.models[0].draft.clear();
  EXPECT_EQ(first_form(alone, "").reasoning.decoder.decoder, "lookahead");
}

TEST(SetupReasoning, examples_choose_mode_and_decoder) {
  Catalog all = catalog();
  CatalogDecoder fastcot = *all.decoder("jacobi");
  fastcot.name = "fastcot";
  all.decoders.push_back(fastcot);
  SetupForm form = first_form(all, "");
  form.reasoning.decoder.options["branches"] = "7";
  ASSERT_TRUE(has_example(form, all, {SetupMode::Tree, "seed"}));
  choose_example(form, all, {SetupMode::Tree, "seed"});
  EXPECT_EQ(form.mode, SetupMode::Tree);
  EXPECT_EQ(form.reasoning.decoder.options.at("branches"), "3");
  EXPECT_EQ(form.reasoning.tree.task, "arith");
  ASSERT_TRUE(has_example(form, all, {SetupMode::Chain, "fastcot"}));
  choose_example(form, all, {SetupMode::Chain, "fastcot"});
  EXPECT_EQ(form.mode, SetupMode::Chain);
  EXPECT_EQ(form.reasoning.decoder.decoder, "fastcot");

  // SEED needs a draft model.
  all.models[0].draft.clear();
  EXPECT_FALSE(has_example(first_form(all, ""), all, {SetupMode::Tree, "seed"}));
}

TEST(SetupReasoning, links_to_examples_start_them) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  engine::EventQueue events;
  engine::CommandQueue commands;
  scripted::in_window("examples", events, commands, catalog(),
                      [&](ImGuiTestContext* ctx, Shell& shell) {
                        ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_1);
                        ctx->Yield(3);
                        IM_CHECK(!ctx->ItemExists("//Setup###live.setup/FastCoT"));
                        ctx->ItemClick("//Setup###live.setup/SEED: three branches");
                        IM_CHECK(shell.form().mode == SetupMode::Tree);
                        IM_CHECK_STR_EQ(shell.form().reasoning.decoder.decoder.c_str(), "seed");
                      });
}

TEST(SetupReasoning, command_matches_the_form) {
  SetupForm form = first_form(catalog(), "");
  form.mode = SetupMode::Tree;
  choose_task(form, SetupMode::Tree, catalog().tree_tasks[1]);
  form.draft = "demo-draft";
  form.reasoning.n_actions = 4;
  form.reasoning.beam = 2;
  form.reasoning.batch = 5;
  form.seed = 7;
  const auto command = next_command(form, false);
  const auto& tree = std::get<engine::StartReasoning>(command);
  EXPECT_EQ(tree.what, engine::StartReasoning::What::Tree);
  EXPECT_EQ(tree.model, form.model);
  EXPECT_EQ(tree.scale, form.scale);
  EXPECT_EQ(tree.draft, "demo-draft");
  EXPECT_EQ(tree.task, "blocks");
  EXPECT_EQ(tree.level, 2);
  EXPECT_EQ(tree.depth, 7);
  EXPECT_EQ(tree.n_actions, 4);
  EXPECT_EQ(tree.beam, 2);
  EXPECT_EQ(tree.temperature, 1) << "thoughts have their own temperature";
  EXPECT_FALSE(tree.value_temperature) << "evaluations have that of the thoughts";
  EXPECT_EQ(tree.seed, 7u);
  EXPECT_EQ(tree.batch, 1) << "SEED has branches";
  form.reasoning.decoder = lane_with(catalog(), "jacobi");
  EXPECT_EQ(reasoning_command(form).batch, 5);
  form.reasoning.value_temperature = 0.25f;
  EXPECT_EQ(reasoning_command(form).value_temperature, 0.25f);
  form.mode = SetupMode::Chain;
  EXPECT_EQ(reasoning_command(form).what, engine::StartReasoning::What::Chain);
  EXPECT_EQ(reasoning_command(form).task, "kb");
  // A race always decodes one prompt.
  EXPECT_TRUE(std::holds_alternative<engine::StartRun>(next_command(form, true)));
  form.mode = SetupMode::Prompt;
  EXPECT_TRUE(std::holds_alternative<engine::StartRun>(next_command(form, false)));
}

/// The catalog with FastCoT and its stopping rules.
Catalog with_fastcot() {
  Catalog all = catalog();
  CatalogDecoder fastcot = all.decoders.front();
  fastcot.name = "fastcot";
  fastcot.title = "FastCoT";
  fastcot.options = {{"stop",
                      CatalogOption::Type::Choice,
                      "none",
                      0,
                      0,
                      {"none", "bound", "probe"},
                      "When a run may end early."},
                     {"bound", CatalogOption::Type::Int, "64", 1, 100, {}, "Steps."}};
  all.decoders.push_back(std::move(fastcot));
  return all;
}

/// The text of the window when Setup shows a chain with this decoder.
std::string said_of_chain(const Catalog& known, const std::string& decoder) {
  headless::Headless gui;
  ImGui::GetIO().DisplaySize = {1600, 2000};  // all of Setup is seen
  engine::CommandQueue commands;
  Shell shell(known, commands, "");
  shell.show(Screen::Live);
  shell.form().mode = SetupMode::Chain;
  shell.form().reasoning.decoder = lane_with(known, decoder);
  for (int i = 0; i < 3; ++i) gui.frame(shell);
  return gui.said(shell);
}

TEST(SetupReasoning, approximate_tokens_are_dropped) {
  SetupForm form = first_form(with_fastcot(), "");
  form.mode = SetupMode::Chain;
  form.reasoning.drop_approximate = true;
  EXPECT_FALSE(reasoning_command(form).drop_approximate) << "all tokens are verified";
  EXPECT_THAT(why_none_approximate(form.reasoning.decoder), HasSubstr("verifies all tokens"));
  form.reasoning.decoder = lane_with(with_fastcot(), "fastcot");
  EXPECT_FALSE(reasoning_command(form).drop_approximate)
      << "a complete rationale has no approximate tokens";
  EXPECT_THAT(why_none_approximate(form.reasoning.decoder), HasSubstr("stop=none"));
  form.reasoning.decoder.options["stop"] = "bound";
  EXPECT_TRUE(reasoning_command(form).drop_approximate);
  form.reasoning.drop_approximate = false;
  EXPECT_FALSE(reasoning_command(form).drop_approximate);
}

TEST(SetupReasoning, checkbox_sets_the_value_temperature_apart) {
  scripted::play(
      "value_temperature",
      [](ImGuiTestContext* ctx, scripted::Stage& stage) {
        ReasoningForm& form = stage.shell->form().reasoning;
        form.temperature = 0.75f;
        ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
        ctx->ItemClick("###mode_tree");
        ctx->Yield(2);
        IM_CHECK(!form.value_temperature);
        IM_CHECK(!ctx->ItemExists("##value_temperature"));
        ctx->ItemClick("##one_temperature");
        ctx->Yield(2);
        IM_CHECK(form.value_temperature == 0.75f);
        IM_CHECK(ctx->ItemExists("##value_temperature"));
        ctx->ItemClick("##one_temperature");
        ctx->Yield(2);
        IM_CHECK(!form.value_temperature);
      },
      {}, with_fastcot());
}

TEST(SetupReasoning, checkbox_drops_approximate_tokens) {
  scripted::play(
      "drop_approximate",
      [](ImGuiTestContext* ctx, scripted::Stage& stage) {
        SetupForm& form = stage.shell->form();
        ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
        ctx->ItemClick("###mode_chain");
        ctx->Yield(2);
        const auto is_greyed = [&] {
          return (ctx->ItemInfo("##drop_approximate").ItemFlags & ImGuiItemFlags_Disabled) != 0;
        };
        IM_CHECK(is_greyed());
        form.reasoning.decoder = lane_with(with_fastcot(), "fastcot");
        form.reasoning.decoder.options["stop"] = "bound";
        ctx->Yield(2);
        IM_CHECK(!is_greyed());
        ctx->ItemClick("##drop_approximate");
        IM_CHECK(form.reasoning.drop_approximate);
        ctx->ItemClick("//##top/###run");
        scripted::wait_until(ctx, [&] { return !stage.replay->asked.empty(); });
        IM_CHECK(stage.replay->reasoned.drop_approximate);
      },
      {}, with_fastcot());
  EXPECT_THAT(said_of_chain(with_fastcot(), "fastcot"), HasSubstr("find bound"));
  EXPECT_THAT(said_of_chain(with_fastcot(), "fastcot"), HasSubstr("split"));
  EXPECT_THAT(said_of_chain(with_fastcot(), "jacobi"), Not(HasSubstr("find bound")));
}

TEST(SetupReasoning, disabled_run_has_a_reason) {
  Catalog known = catalog();
  SetupForm form = first_form(known, "");
  form.prompt.clear();
  form.mode = SetupMode::Chain;
  EXPECT_EQ(why_not(form, known, false), "") << "the task supplies the prompts";
  form.reasoning.chain.task = "aqua";
  EXPECT_THAT(why_not(form, known, false), HasSubstr("DECOSCOPE_DATA"));
  form.reasoning.chain.task = "kb";
  form.draft = "other";
  EXPECT_THAT(why_not(form, known, false), HasSubstr("the draft has 500 tokens"));
  form.draft.clear();
  form.mode = SetupMode::Tree;
  form.reasoning.decoder = lane_with(known, "jacobi");
  EXPECT_EQ(why_not(form, known, false), "");
  form.sampling = "rejection";
  EXPECT_THAT(why_not(form, known, false), HasSubstr("no rejection sampling"));
  form.mode = SetupMode::Chain;
  EXPECT_EQ(why_not(form, known, false), "") << "a chain is greedy";
  // Options that need a question, and options that a tree cannot use.
  known.decoders[1].refusal = [](const auto&) { return std::string("needs a question"); };
  known.decoders[1].refusal_in_chain = [](const auto&) { return std::string(); };
  known.decoders[1].refusal_in_tree = [](const auto&) { return std::string("takes whole texts"); };
  EXPECT_EQ(why_not(form, known, false), "");
  form.mode = SetupMode::Tree;
  form.sampling = "coupled";
  EXPECT_EQ(why_not(form, known, false), "takes whole texts");
  form.mode = SetupMode::Prompt;
  form.prompt = "so";
  form.live = lane_with(known, "jacobi");
  EXPECT_EQ(why_not(form, known, false), "needs a question");
}

TEST(SetupReasoning, files_are_part_of_the_command) {
  SetupForm form = first_form(catalog(), "");
  form.mode = SetupMode::Chain;
  form.reasoning.chain.data = "/somewhere/questions.jsonl";
  form.reasoning.chain.prompts = "/somewhere/examples.jsonl";
  form.reasoning.n_shots = 2;
  EXPECT_EQ(reasoning_command(form).data, "/somewhere/questions.jsonl");
  EXPECT_EQ(reasoning_command(form).prompts, "/somewhere/examples.jsonl");
  EXPECT_EQ(reasoning_command(form).n_shots, 2);
  form.mode = SetupMode::Tree;
  EXPECT_EQ(reasoning_command(form).data, "") << "each task has its own file";
  EXPECT_EQ(first_form(catalog(), "").reasoning.n_shots, -1);
}

TEST(SetupReasoning, missing_file_disables_run_and_file_sets_task) {
  const engine::test::Folder folder;
  const Catalog known = catalog();
  SetupForm form = first_form(known, "");
  form.mode = SetupMode::Tree;
  form.reasoning.tree.prompts = folder / "prompts.jsonl";
  EXPECT_THAT(why_not(form, known, false), HasSubstr("prompts.jsonl: does not exist"));
  engine::test::write_file(folder / "prompts.jsonl", "");
  EXPECT_EQ(why_not(form, known, false), "");
  form.reasoning.tree.data = folder / ".";
  EXPECT_THAT(why_not(form, known, false), HasSubstr("is a folder"));
  EXPECT_THAT(why_no_choice(form.reasoning.tree), HasSubstr("task"));
  form.reasoning.tree.task = "gsm8k";
  form.reasoning.tree.data = folder / "prompts.jsonl";
  EXPECT_EQ(why_not(form, known, false), "") << "the data set is not used";
  form.reasoning.tree.data.clear();
  EXPECT_NE(why_not(form, known, false), "");
  EXPECT_EQ(why_no_choice(form.reasoning.tree), "");
}

TEST(SetupReasoning, missing_file_disables_the_task) {
  const engine::test::Folder folder;
  engine::test::write_file(folder / "questions.jsonl", "{}");
  engine::test::write_file(folder / "other.txt", "");
  // A slash in a name must be escaped in a path of items.
  const auto entry = [&](const std::string& name) {
    std::string item = "//$FOCUSED/" + name + "##";
    for (const char c : folder / name) item += c == '/' ? std::string("\\/") : std::string(1, c);
    return item;
  };
  scripted::play(
      "browse",
      [&](ImGuiTestContext* ctx, scripted::Stage& stage) {
        SetupForm& form = stage.shell->form();
        ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
        ctx->ItemClick("###mode_chain");
        ctx->Yield(2);
        const auto is_greyed = [&] {
          return (ctx->ItemInfo("##task").ItemFlags & ImGuiItemFlags_Disabled) != 0;
        };
        IM_CHECK(!is_greyed());
        form.reasoning.chain.data = folder / "";
        ctx->Yield(2);
        ctx->ItemClick("records/Browse...");
        ctx->Yield(2);
        IM_CHECK(!ctx->ItemExists(entry("other.txt").c_str()));
        ctx->ItemClick(entry("questions.jsonl").c_str());
        ctx->Yield(2);
        IM_CHECK_STR_EQ(form.reasoning.chain.data.c_str(), (folder / "questions.jsonl").c_str());
        IM_CHECK(is_greyed());
        ctx->ItemClick("shots/##below_zero");
        ctx->ItemInputValue("shots/##value", 2);
        IM_CHECK_EQ(form.reasoning.n_shots, 2);
      },
      {}, catalog());
}

TEST(SetupReasoning, tree_of_thoughts_is_run_with_the_mouse) {
  scripted::play(
      "choose_tree",
      [](ImGuiTestContext* ctx, scripted::Stage& stage) {
        ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
        ctx->ItemClick("###mode_tree");
        ctx->Yield(2);
        ctx->ItemClick("##task");
        ctx->Yield(2);
        // Without the folder of the open data sets, only generated tasks can be chosen.
        IM_CHECK((ctx->ItemInfo("//$FOCUSED/gsm8k").ItemFlags & ImGuiItemFlags_Disabled) != 0);
        ctx->ItemClick("//$FOCUSED/blocks");
        ctx->Yield(2);
        ctx->ItemInputValue("##count", 2);
        ctx->ItemInputValue("##start", 11);
        ctx->ItemInputValue("##thoughts", 4);
        ctx->ItemInputValue("##beam", 2);
        ctx->ItemClick("policy/##value");
        ctx->ItemClick("//$FOCUSED/priority");
        ctx->ItemClick("//##top/###run");
        scripted::wait_until(ctx, [&] { return !stage.replay->asked.empty(); });
        IM_CHECK_STR_EQ(stage.replay->asked.front().c_str(), "reason");
        const engine::StartReasoning& asked = stage.replay->reasoned;
        IM_CHECK(asked.what == engine::StartReasoning::What::Tree);
        IM_CHECK_STR_EQ(asked.task.c_str(), "blocks");
        IM_CHECK_EQ(asked.level, 2);
        IM_CHECK_EQ(asked.depth, 7);
        IM_CHECK_EQ(asked.count, 2);
        IM_CHECK_EQ(asked.start, 11);
        IM_CHECK_EQ(asked.n_thoughts, 4);
        IM_CHECK_EQ(asked.beam, 2);
        IM_CHECK_STR_EQ(asked.decoder.decoder.c_str(), "seed");
        IM_CHECK_STR_EQ(asked.decoder.options.at("policy").c_str(), "priority");
      },
      {}, catalog());
}

TEST(SetupReasoning, numbers_have_the_bounds_of_the_command_line) {
  scripted::play(
      "tree_bounds",
      [](ImGuiTestContext* ctx, scripted::Stage& stage) {
        ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
        ctx->ItemClick("###mode_tree");
        ctx->Yield(2);
        namespace bounds = engine::reasoning;
        const ReasoningForm& asked = stage.shell->form().reasoning;
        const auto enter = [&](const char* id, int value) {
          ctx->ItemInputValue(id, value);
          ctx->Yield(2);
        };
        enter("##count", 2'000'000'000);
        IM_CHECK_EQ(asked.tree.count, static_cast<int>(bounds::kCount.high));
        enter("##thoughts", 0);
        IM_CHECK_EQ(asked.n_thoughts, static_cast<int>(bounds::kThoughts.low));
        enter("##beam", 1000);
        IM_CHECK_EQ(asked.beam, static_cast<int>(bounds::kBeam.high));
        enter("##depth", 1000);
        IM_CHECK_EQ(asked.depth, static_cast<int>(bounds::kDepth.high));
      },
      {}, catalog());
}

TEST(SetupReasoning, chain_of_thought_is_run_with_the_keyboard) {
  scripted::play(
      "keys_chain",
      [](ImGuiTestContext* ctx, scripted::Stage& stage) {
        ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
        ctx->NavMoveTo("###mode_chain");
        ctx->NavActivate();
        ctx->Yield(2);
        IM_CHECK(stage.shell->form().mode == SetupMode::Chain);
        ctx->NavMoveTo("##task");
        ctx->NavInput();
        ctx->Yield(2);
        ctx->KeyPress(ImGuiKey_Escape);
        ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
        scripted::wait_until(ctx, [&] { return !stage.replay->asked.empty(); });
        IM_CHECK_STR_EQ(stage.replay->asked.front().c_str(), "reason");
        IM_CHECK(stage.replay->reasoned.what == engine::StartReasoning::What::Chain);
        IM_CHECK_STR_EQ(stage.replay->reasoned.task.c_str(), "kb");
        IM_CHECK_EQ(stage.replay->reasoned.count, 3);
      },
      {}, catalog());
}

TEST(SetupReasoning, unavailable_tasks_have_a_reason) {
  const std::string said = said_of_chain(catalog(), "seed");
  EXPECT_THAT(said, HasSubstr("Chain of thought: questions"));
  EXPECT_THAT(said, HasSubstr("aqua, strategyqa an open set; set DECOSCOPE_DATA"));
  EXPECT_THAT(said, Not(HasSubstr(" batch "))) << "SEED has branches";
  EXPECT_THAT(said_of_chain(catalog(), "jacobi"), HasSubstr(" batch "));
}

TEST(SetupReasoning, narrow_window_shortens_mode_names) {
  for (const float width : {1600.0f, 3000.0f}) {
    headless::Headless gui;
    ImGui::GetIO().DisplaySize = {width, 1000};
    engine::CommandQueue commands;
    const Catalog known = catalog();
    Shell shell(known, commands, "");
    shell.show(Screen::Live);
    for (int i = 0; i < 3; ++i) gui.frame(shell);
    const bool whole = gui.said(shell).find("One prompt") != std::string::npos;
    EXPECT_EQ(whole, width > 2000) << width;
  }
}

TEST(SetupReasoning, race_always_uses_one_prompt) {
  scripted::play(
      "race_of_one",
      [](ImGuiTestContext* ctx, scripted::Stage& stage) {
        stage.shell->form().mode = SetupMode::Tree;
        stage.shell->show(Screen::Compare);
        ctx->Yield(3);
        ctx->SetRef(ImGui::FindWindowByName("Setup###compare.setup"));
        IM_CHECK((ctx->ItemInfo("###mode_tree").ItemFlags & ImGuiItemFlags_Disabled) != 0);
        ctx->ItemClick("//##top/###run");
        scripted::wait_until(ctx, [&] { return !stage.replay->asked.empty(); });
        IM_CHECK_STR_EQ(stage.replay->asked.front().c_str(), "start");
        IM_CHECK(stage.shell->form().mode == SetupMode::Tree);
      },
      {}, catalog());
}

TEST(SetupReasoning, reusing_a_search_run_sets_one_prompt) {
  engine::Timeline timeline;
  for (const engine::Event& event : streams::one_run("jacobi")) timeline.apply(event);
  SetupForm form = first_form(catalog(), "");
  form.mode = SetupMode::Tree;
  use_again(form, catalog(), timeline, timeline.runs()[0]);
  EXPECT_EQ(form.mode, SetupMode::Prompt);
}

TEST(Following, shows_every_single_run) {
  Following following;
  EXPECT_EQ(following.observe(RunStarted{.run = 1}), Look::NewRun);
  EXPECT_EQ(following.observe(RunStarted{.run = 2}), Look::NewRun);
  EXPECT_EQ(following.followed(), 2u);
}

TEST(Following, shows_first_run_of_a_search_then_the_next) {
  Following following;
  following.observe(reasoning(0, 1));
  following.observe(reasoning(0, 6));
  EXPECT_TRUE(following.reasons());
  EXPECT_EQ(following.observe(RunStarted{.run = 4}), Look::NewRun);
  EXPECT_EQ(following.observe(RunStarted{.run = 5}), Look::Stay);
  following.observe(RunFinished{.run = 5});
  EXPECT_EQ(following.observe(RunStarted{.run = 6}), Look::Stay) << "run 4 has not ended";
  following.observe(RunFinished{.run = 4});
  EXPECT_EQ(following.observe(RunStarted{.run = 7}), Look::NextRun);
  following.observe(RunFinished{.run = 7});
  following.observe(reasoning(6, 6));
  EXPECT_FALSE(following.reasons());
  following.observe(reasoning(0, 1));
  EXPECT_EQ(following.observe(RunStarted{.run = 8}), Look::NewRun) << "a run of another search";
}

TEST(Following, stays_at_the_selected_run) {
  engine::CommandQueue commands;
  const Catalog known = catalog();
  Shell shell(known, commands, "");
  const auto start = [&](engine::RunId run) { shell.take({RunStarted{.run = run}}); };
  shell.take({reasoning(0, 6, "chain of thought: 0 of 6 texts")});
  start(1);
  start(2);
  EXPECT_EQ(shell.selection().run, 1u);
  shell.take({RunFinished{.run = 1}, RunStarted{.run = 3}});
  EXPECT_EQ(shell.selection().run, 3u);
  shell.selection().run = 2;
  shell.take({RunFinished{.run = 3}});
  start(4);
  EXPECT_EQ(shell.selection().run, 2u) << "the user selected it";
  EXPECT_TRUE(shell.ticks());
  shell.take({RunFinished{.run = 2}, RunFinished{.run = 4}});
  EXPECT_TRUE(shell.measures()) << "between two runs of a search";
  shell.take({reasoning(1, 1, "Chain of thought, kb by seed: 2 of 3 right.")});
  EXPECT_FALSE(shell.ticks());
  EXPECT_EQ(shell.message(), "Chain of thought, kb by seed: 2 of 3 right.");
}

TEST(Following, request_ends_when_the_search_begins) {
  headless::Headless gui;
  engine::CommandQueue commands;
  const Catalog known = catalog();
  Shell shell(known, commands, "");
  shell.form().mode = SetupMode::Chain;
  shell.show(Screen::Live);
  shell.perform(Action::Run);
  EXPECT_TRUE(shell.ticks());
  shell.take({streams::story().model, reasoning(0, 1), reasoning(1, 1)});
  EXPECT_FALSE(shell.ticks()) << "stopped before the first run";
}

TEST(Status, shows_progress_of_a_search_and_pause) {
  engine::Timeline timeline;
  timeline.apply(
      reasoning(3, 12, "tree of thoughts: question 1 of 3, level 4 of 4, values 1 of 3"));
  EXPECT_TRUE(is_going(timeline));
  const Status status = status_of(timeline, nullptr, 0, false);
  EXPECT_THAT(status.text, HasSubstr("level 4 of 4"));
  EXPECT_THAT(status.shorter,
              testing::ElementsAre("tree of thoughts: question 1 of 3, level 4 of 4",
                                   "tree of thoughts: question 1 of 3"));
  EXPECT_DOUBLE_EQ(status.share, 0.25);
  EXPECT_EQ(status_of(timeline, nullptr, 12, false).level, Status::Level::Amber);
  timeline.apply(engine::Held{.held = true});
  EXPECT_THAT(status_of(timeline, nullptr, 0, false).text, HasSubstr("paused"));
  timeline.apply(reasoning(1, 1));
  EXPECT_FALSE(is_going(timeline));
  EXPECT_EQ(status_of(timeline, nullptr, 0, false).text, "idle");
}

}  // namespace
