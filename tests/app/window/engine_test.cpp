// The window and the engine together: real queues, a real model, clicks and keys.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "app/window/tasks.h"
#include "engine/decode/registry.h"
#include "engine/store/model_store.h"
#include "tests/app/window/window_engine.h"
#include "tests/support/files.h"
#include "ui/panels/time/schedule.h"
#include "ui/prepare/failure_words.h"
#include "ui/prepare/option_labels.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/schedule.h"
#include "ui/prepare/time/simulation.h"
#include "ui/prepare/tokens/verdicts.h"
#include "ui/widgets/draw.h"

namespace {

namespace fs = std::filesystem;
using namespace with_engine;
using scripted::wait_for;

TEST(WindowWithEngine, a_race_ends_with_identical_lanes) {
  play("race", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.form().max_tokens = 24;
    shell.show(ui::Screen::Compare);
    ctx->Yield(3);
    ctx->ItemClick("//##top/###run");
    IM_CHECK(wait_for(ctx, [&] { return all_over(shell); }));
    IM_CHECK_EQ(timeline(shell).runs().size(), 4u);
    IM_CHECK(wait_for(ctx, [&] { return timeline(shell).runs().back().agreement.has_value(); }));
    for (const engine::RunRecord& run : timeline(shell).runs()) {
      IM_CHECK(run.finished.has_value());
      if (run.started.decoder == "ar") continue;
      IM_CHECK(run.agreement.has_value());
      IM_CHECK_EQ(run.agreement->first_difference, -1);
      IM_CHECK(timeline(shell).speedup(run).value_or(0) > 0);
    }
  });
}

TEST(WindowWithEngine, marks_the_same_runs_as_not_lossless_as_the_decoders) {
  int n_lost = 0;
  for (const engine::DecoderInfo& info : engine::decoders()) {
    for (const char* released : {"false", "true"}) {
      for (const char* of_draft : {"-1", "0", "0.7"}) {
        engine::OptionValues options = engine::complete_options(info, {});
        if (options.contains("as_released")) options["as_released"] = released;
        if (options.contains("draft_temperature")) options["draft_temperature"] = of_draft;
        for (const float temperature : {0.0f, 0.8f}) {
          for (const auto mode :
               {engine::Sampling::Mode::Coupled, engine::Sampling::Mode::Rejection}) {
            const bool rejects = mode == engine::Sampling::Mode::Rejection;
            const bool lossless =
                engine::is_lossless(info, options, {.temperature = temperature, .mode = mode});
            const engine::RunStarted run{.decoder = info.name,
                                         .options = options,
                                         .temperature = temperature,
                                         .sampling = rejects ? "rejection" : "coupled"};
            EXPECT_EQ(ui::why_not_lossless(run, nullptr).empty(), lossless) << info.name;
            n_lost += !lossless;
          }
        }
      }
    }
  }
  EXPECT_EQ(n_lost, 1) << "mcsd as released, whose argmax drafts are verified by rejection";
}

TEST(WindowWithEngine, lists_have_the_titles_of_the_decoders) {
  for (const engine::DecoderInfo& info : engine::decoders())
    EXPECT_EQ(ui::title_in_lists(info.name, info.title), info.name == "ar" ? "AR" : info.title);
}

TEST(WindowWithEngine, every_option_has_a_label) {
  constexpr std::size_t kLongest = 24;
  for (const engine::DecoderInfo& info : engine::decoders()) {
    std::set<std::string> labels;
    for (const engine::OptionInfo& option : info.options) {
      SCOPED_TRACE(info.name + " " + option.name);
      const std::string label = ui::option_label(info.name, option.name);
      EXPECT_NE(label, option.name) << "ui/prepare/option_labels.cpp has no label";
      EXPECT_LE(label.size(), kLongest) << label;
      EXPECT_EQ(label.find('_'), std::string::npos) << label;
      EXPECT_TRUE(labels.insert(label).second) << "another option has this label: " << label;
      EXPECT_EQ(ui::label_with_name(info.name, option.name), label + " (" + option.name + ")");
    }
  }
  EXPECT_EQ(ui::option_label("lookahead", "n_guesses"), "n-grams verified");
  EXPECT_NE(ui::option_label("lookahead", "window"), ui::option_label("fastcot", "window"));
  EXPECT_EQ(ui::option_label("lookahead", "of_tomorrow"), "of_tomorrow");
  EXPECT_EQ(ui::label_with_name("lookahead", "of_tomorrow"), "of_tomorrow");
}

TEST(WindowWithEngine, refusals_name_no_command_line_options) {
  engine::ModelStore store(assets().string(), 1);
  const std::string other = DECOSCOPE_SOURCE_DIR "/tests/fixtures/hf/llama_gqa";
  const engine::DecoderContext context{
      .target = *store.get({}).model, .sampling = {}, .limits = {}};
  const std::function<void()> refused[] = {
      [&] { store.get_with_draft({.model = "demo-draft"}, {}, "seed"); },
      [&] { store.get_with_draft({.needs_tokenizer = false}, {.draft = other}, "seed"); },
      [&] { store.get_for({.model = "demo-draft"}, {}, {"medusa"}); },
      [&] { store.device("gpu"); },
      [&] { store.get({.scale = "3x1"}); },
      [&] { store.get({.dtype = "f8"}); },
      [&] { engine::make_decoder("seed", context); },
      [&] { engine::make_decoder("medusa", context); },
  };
  for (const auto& refuse : refused) {
    std::string message;
    try {
      refuse();
    } catch (const engine::Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find("--"), std::string::npos) << "names a command-line option: " << message;
    EXPECT_EQ(ui::for_window(message).find("--"), std::string::npos) << ui::for_window(message);
  }
}

TEST(WindowWithEngine, a_lane_with_a_draft_model_races_and_fills_its_panels) {
  play("draft_race", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.form().max_tokens = 24;
    shell.form().lanes = {ui::lane_with(shell.catalog(), "ar"),
                          ui::lane_with(shell.catalog(), "mcsd")};
    shell.form().lanes[1].options["k_config"] = "2,1,1";
    IM_CHECK_STR_EQ(ui::why_not(shell.form(), shell.catalog(), true).c_str(), "");
    shell.show(ui::Screen::Compare);
    ctx->Yield(3);
    ctx->ItemClick("//##top/###run");
    IM_CHECK(wait_for(ctx, [&] { return all_over(shell); }));
    const engine::RunRecord& run = timeline(shell).runs().back();
    IM_CHECK(wait_for(ctx, [&] { return run.agreement.has_value(); }));
    IM_CHECK_EQ(run.agreement->first_difference, -1);
    const engine::ModelLoaded* draft = timeline(shell).model(run.started.draft);
    IM_CHECK(draft != nullptr);
    IM_CHECK_STR_EQ(draft->name.c_str(), "demo-draft");
    int n_told = 0;
    for (const engine::StepRecord& step : run.steps) {
      for (const float p : step.verified.p) n_told += p >= 0;
      IM_CHECK(step.drafted.tree.n_rows() == 1 || !step.drafted.forwards.empty());
    }
    IM_CHECK_GT(n_told, 10);
    // The Live screen shows only the selected run, with its tree.
    shell.show(ui::Screen::Live);
    shell.selection().run = run.id();
    ctx->Yield(3);
    ctx->WindowFocus("Tree###live.tree");
    ctx->Yield(3);
    ctx->SetRef(ImGui::FindWindowByName("Tree###live.tree"));
    ctx->ItemClick("$$1/row");
    IM_CHECK_EQ(shell.selection().locked.row, 1);
  });
}

TEST(WindowWithEngine, a_chain_of_thought_of_two_questions_completes) {
  play("chain", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.form().scale = "1x1";
    ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
    ctx->ItemClick("###mode_chain");
    ctx->Yield(2);
    ctx->ItemInputValue("##count", 2);
    ctx->ItemClick("//##top/###run");
    const auto ended = [&] { return shell.message().find("of 2 right") != std::string::npos; };
    IM_CHECK(wait_for(ctx, ended));
    IM_CHECK(all_over(shell));
    IM_CHECK_GE(timeline(shell).runs().size(), 2u);
    const engine::RunStarted& started = timeline(shell).runs().front().started;
    IM_CHECK_STR_EQ(started.decoder.c_str(), "seed");
    IM_CHECK_STR_EQ(started.prompt_id.c_str(), "kb/1/test/0");
    IM_CHECK_EQ(timeline(shell).n_inconsistent(), 0);
    IM_CHECK(!shell.ticks());
  });
}

TEST(WindowWithEngine, a_schedule_is_simulated_with_other_times_and_branches) {
  play("simulate", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.form().scale = "1x1";
    shell.form().mode = ui::SetupMode::Chain;
    shell.form().reasoning.chain.count = 3;
    shell.form().reasoning.decoder.options["branches"] = "2";
    ctx->Yield(3);
    ctx->ItemClick("//##top/###run");
    IM_CHECK(
        wait_for(ctx, [&] { return shell.message().find("of 3 right") != std::string::npos; }));
    ImGuiWindow* window = ImGui::FindWindowByName("Schedule###live.schedule");
    IM_CHECK(wait_for(ctx, [&] {
      window = ImGui::FindWindowByName("Schedule###live.schedule");
      return window && window->DockNode;
    }));
    ctx->WindowFocus("//Schedule###live.schedule");
    ctx->Yield(3);
    ctx->SetRef(window->DockNode->HostWindow);
    ctx->ItemCheck("**/fixed times");
    ctx->Yield(3);
    ctx->SetRef(window);
    const auto simulated = [&] {
      ctx->Yield(3);
      const engine::Schedule recorded = ui::schedule_lanes_of(timeline(shell).runs()).schedule;
      return ui::simulation_of(shell.catalog().simulate(
          recorded, ui::stages_of(shell.state<ui::ScheduleView>().simulation, recorded)));
    };
    const double as_recorded = simulated().speedup();
    IM_CHECK_GT(as_recorded, 1.0);
    ctx->ItemInputValue("##simulated_draft", 9.0f);
    ctx->ItemInputValue("##simulated_verify", 3.0f);
    ctx->ItemInputValue("##simulated_branches", 1);
    IM_CHECK_LT(std::abs(simulated().speedup() - 1), 1e-9);
    ctx->ItemInputValue("##simulated_branches", 3);
    IM_CHECK_LT(std::abs(simulated().bound - 3), 1e-9);  // min(3, (9 + 3) / 3)
    IM_CHECK_GT(simulated().speedup(), 1.5);
    // A simulated slice belongs to the recorded step.
    const ui::Simulation last = simulated();
    const ImRect box = ctx->ItemInfo("lanes").RectFull;
    const ui::ScheduleSlice& slice = last.lanes.rows[0].slices[1];
    const auto share = static_cast<float>((slice.t0 + slice.t1) / 2 / 1.05 / last.lanes.end);
    ctx->MouseMoveToPos({box.Min.x + box.GetWidth() * share, box.Min.y + ui::px(12)});
    ctx->MouseClick();
    ctx->Yield(2);
    IM_CHECK(shell.selection().locked == ui::place_of(last.lanes, slice));
    const ui::Place& place = shell.selection().locked;
    const engine::RunRecord* run = timeline(shell).run(place.run);
    IM_CHECK(run && place.step < static_cast<int>(run->steps.size()));
    ctx->ItemClick("###simulated_reset");
    IM_CHECK(shell.state<ui::ScheduleView>().simulation == ui::SimulationForm{.on = true});
    // The laboratory has the same settings, and a chart over the number of branches.
    ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_4);
    IM_CHECK(shell.screen() == ui::Screen::Lab);
    ctx->Yield(4);
    ctx->SetRef("//What if###lab.what_if");
    ctx->ItemInputValue("##simulated_branches", 3);
    IM_CHECK_GT(simulated().speedup(), 1.0);
    const ImRect chart = ctx->ItemInfo("##branches").RectFull;
    ctx->MouseMoveToPos({chart.Min.x + chart.GetWidth() * 0.07f, chart.GetCenter().y});
    ctx->MouseClick();
    IM_CHECK_EQ(shell.state<ui::ScheduleView>().simulation.n_branches, 1);
    IM_CHECK_LT(std::abs(simulated().speedup() - 1), 1e-9);
  });
}

TEST(WindowTasks, open_sets_need_their_folder_and_generated_tasks_none) {
  const auto reasons = [](const std::string& data_dir) {
    ui::Catalog all;
    app::add_tasks(all, data_dir);
    std::map<std::string, std::string> why;
    for (const auto* tasks : {&all.chain_tasks, &all.tree_tasks})
      for (const ui::CatalogTask& task : *tasks) why[task.name] = task.unavailable;
    return why;
  };
  auto why = reasons("");
  EXPECT_EQ(why.size(), 10u);
  for (const char* generated : {"kb", "arith", "blocks", "write"}) EXPECT_EQ(why.at(generated), "");
  EXPECT_NE(why.at("gsm8k").find("DECOSCOPE_DATA"), std::string::npos);
  const engine::test::Folder folder;
  fs::create_directories(folder / "gsm8k");
  why = reasons(folder.path());
  EXPECT_EQ(why.at("gsm8k"), "");
  EXPECT_NE(why.at("aqua"), "");
  EXPECT_EQ(why.at("kb"), "");
}

TEST(WindowTasks, every_task_has_its_own_description) {
  ui::Catalog all;
  app::add_tasks(all, "");
  std::map<std::string, std::string> task_of;  // by its description
  for (const auto* tasks : {&all.chain_tasks, &all.tree_tasks})
    for (const ui::CatalogTask& task : *tasks) {
      EXPECT_NE(task.summary, "") << task.name;
      const auto [at, is_new] = task_of.emplace(task.summary, task.name);
      EXPECT_EQ(at->second, task.name);
    }
}

TEST(WindowWithEngine, a_tree_of_thoughts_can_be_stopped_and_run_again) {
  play("tree_stop", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.form().mode = ui::SetupMode::Tree;
    // The search starts held, so it is running when the stop arrives, on any machine.
    shell.form().start_held = true;
    ctx->Yield(3);
    ctx->ItemClick("//##top/###run");
    IM_CHECK(wait_for(ctx, [&] { return timeline(shell).held(); }));
    ctx->ItemClick("//##top/Step");
    IM_CHECK(wait_for(ctx, [&] { return n_steps(shell) > 0; }));
    IM_CHECK_EQ(timeline(shell).searches().size(), 1u);
    ctx->ItemClick("//##top/Stop");
    IM_CHECK(wait_for(ctx, [&] { return all_over(shell) && !shell.ticks(); }));
    IM_CHECK(timeline(shell).searches().back().ended->stopped);
    const auto n_runs = timeline(shell).runs().size();
    shell.form().mode = ui::SetupMode::Prompt;
    shell.form().start_held = false;
    shell.form().max_tokens = 4;
    shell.perform(ui::Action::Run);
    IM_CHECK(wait_for(
        ctx, [&] { return timeline(shell).runs().size() == n_runs + 1 && all_over(shell); }));
    IM_CHECK(!timeline(shell).runs().back().failed);
  });
}

TEST(WindowWithEngine, seed_with_one_prompt_has_no_schedule) {
  play("seed", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.form().max_tokens = 16;
    shell.form().live = ui::lane_with(shell.catalog(), "seed");
    shell.form().live.options["branches"] = "3";
    shell.form().live.options["k_config"] = "1,1,1";
    IM_CHECK_STR_EQ(ui::why_not(shell.form(), shell.catalog(), false).c_str(), "");
    ctx->Yield(3);
    ctx->ItemClick("//##top/###run");
    IM_CHECK(wait_for(ctx, [&] { return all_over(shell); }));
    const engine::RunRecord& run = timeline(shell).runs().back();
    IM_CHECK(run.finished.has_value());
    IM_CHECK_EQ(run.finished->n_tokens, 16);
    IM_CHECK(run.queueing.empty());
    IM_CHECK(run.n_proposed() > 0);
    ctx->Yield(3);
    const ImGuiWindow* window = ImGui::FindWindowByName("Schedule###live.schedule");
    IM_CHECK(!window || !window->WasActive);
  });
}

TEST(WindowWithEngine, starting_at_once_races_four_decoders) {
  play("start",
       [](ImGuiTestContext* ctx, ui::Shell& shell) {
         IM_CHECK(wait_for(ctx, [&] { return timeline(shell).runs().size() == 4; }));
         std::vector<std::string> decoders;
         for (const engine::RunRecord& run : timeline(shell).runs()) {
           decoders.push_back(run.started.decoder);
           IM_CHECK_EQ(run.started.prompt, shell.catalog().prompts.front().text);
         }
         IM_CHECK(decoders ==
                  (std::vector<std::string>{"ar", "jacobi", "lookahead", "prompt-lookup"}));
         IM_CHECK(wait_for(ctx, [&] { return n_steps(shell) > 4; }));
         ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_0);
         IM_CHECK_EQ(static_cast<int>(shell.screen()), static_cast<int>(ui::Screen::Welcome));
       },
       {.race_first = true});
}

TEST(WindowWithEngine, hold_pauses_the_engine_and_step_advances_one_step) {
  play("hold", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.form().start_held = true;
    shell.form().ignore_eos = true;
    ctx->Yield(3);
    ctx->ItemClick("//##top/###run");
    IM_CHECK(
        wait_for(ctx, [&] { return timeline(shell).held() && !timeline(shell).runs().empty(); }));
    IM_CHECK_EQ(n_steps(shell), 0);
    ctx->ItemClick("//##top/Step");
    IM_CHECK(wait_for(ctx, [&] { return n_steps(shell) == 1; }));
    ctx->Yield(20);
    IM_CHECK_EQ(n_steps(shell), 1);
    ctx->ItemClick("//##top/###hold");
    IM_CHECK(wait_for(ctx, [&] { return n_steps(shell) > 3; }));
    ctx->ItemClick("//##top/Stop");
    IM_CHECK(wait_for(ctx, [&] { return all_over(shell); }));
    IM_CHECK(all_over(shell));
  });
}

TEST(WindowWithEngine, a_stop_during_prefill_is_not_a_failure) {
  play("stop_prefill", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.form().max_tokens = 8;
    ctx->Yield(3);
    shell.perform(ui::Action::Run);  // the model is loaded after this run
    IM_CHECK(wait_for(ctx, [&] { return all_over(shell); }));
    // The prompt is long enough that the stop arrives during prefill, however late this thread is.
    for (int i = 0; i < 120; i++) shell.form().prompt += " and 7 more";
    shell.form().max_tokens = 100;
    shell.form().ignore_eos = true;
    shell.perform(ui::Action::Run);
    shell.perform(ui::Action::Stop);
    IM_CHECK(wait_for(ctx, [&] { return timeline(shell).runs().size() == 2 && all_over(shell); }));
    IM_CHECK_EQ(timeline(shell).runs().size(), 2u);
    const engine::RunRecord& run = timeline(shell).runs().back();
    IM_CHECK(!run.failed);
    IM_CHECK(run.finished.has_value());
    IM_CHECK_EQ(run.finished->stop_reason, std::string("stopped"));
  });
}

TEST(WindowWithEngine, closes_during_decoding) {
  play("close", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.form().max_tokens = 400;
    shell.form().ignore_eos = true;
    ctx->Yield(3);
    ctx->ItemClick("//##top/###run");
    IM_CHECK(wait_for(ctx, [&] { return n_steps(shell) > 0; }));
    IM_CHECK(n_steps(shell) > 0);
  });
}

TEST(WindowWithEngine, a_folder_dropped_on_the_window_is_opened_as_a_model) {
  play("drop", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.form().model.clear();
    shell.open((assets() / "models/demo-target").string());
    IM_CHECK(!shell.form().model.empty());
    ctx->Yield(3);
    ctx->ItemClick("//##top/###run");
    IM_CHECK(wait_for(ctx, [&] { return all_over(shell); }));
    IM_CHECK(all_over(shell));
    shell.open(assets().string());  // a folder without a model
    IM_CHECK(shell.message().find("neither config.json") != std::string::npos);
  });
}

// Each run is refused at another place: before the model, by its files, by the prompt, by an
// option. The window shows the reason, continues, and closes at once.
TEST(WindowWithEngine, closes_after_a_run_was_refused) {
  const std::vector<std::function<void(ui::SetupForm&)>> refusals{
      [](ui::SetupForm& form) { form.model = "/nowhere/at/all"; },
      [](ui::SetupForm& form) { form.dtype = "f99"; },
      [](ui::SetupForm& form) { form.scale = "3x"; },
      [](ui::SetupForm& form) { form.device = "cuda:7"; },
      [](ui::SetupForm& form) {
        while (form.prompt.size() < 200'000) form.prompt += form.prompt;
      },
      [](ui::SetupForm& form) { form.live.options["window"] = "minus one"; }};
  for (std::size_t i = 0; i < refusals.size(); ++i) {
    SCOPED_TRACE(i);
    auto closing = std::chrono::steady_clock::now();
    play("refused", [&](ImGuiTestContext* ctx, ui::Shell& shell) {
      refusals[i](shell.form());
      ctx->Yield(3);
      ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
      IM_CHECK(wait_for(ctx, [&] { return !shell.message().empty(); }));
      IM_CHECK(!shell.message().empty());
      IM_CHECK(!shell.ticks());
      closing = std::chrono::steady_clock::now();
    });
    EXPECT_LT(std::chrono::steady_clock::now() - closing, std::chrono::seconds(20));
  }
}

// The options of the window command reach the run.
TEST(WindowWithEngine, command_line_dtype_and_device_are_used) {
  play("dtype",
       [](ImGuiTestContext* ctx, ui::Shell& shell) {
         IM_CHECK_EQ(shell.form().dtype, std::string("f32"));
         IM_CHECK_EQ(shell.form().device, std::string("cpu"));
         shell.form().max_tokens = 4;
         ctx->Yield(3);
         ctx->ItemClick("//##top/###run");
         IM_CHECK(wait_for(ctx, [&] { return all_over(shell); }));
         const engine::ModelLoaded* model =
             timeline(shell).model(timeline(shell).runs().front().started.model);
         IM_CHECK(model != nullptr);
         IM_CHECK_EQ(model->dtype, std::string("f32"));
         IM_CHECK(std::find(model->special_names.begin(), model->special_names.end(), "</s>") !=
                  model->special_names.end());
       },
       {.dtype = "f32", .device = "cpu"});
}

}  // namespace
