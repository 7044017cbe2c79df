// After a GPU failure the window offers the CPU, and it reports a GPU that does not respond. Events come
// from the test; most tests need no display.
#include <filesystem>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/replay.h"
#include "ui/prepare/failure_words.h"
#include "ui/prepare/time/responding.h"

namespace {

using namespace scripted;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kDevice = 5, kResources = 4, kUsage = 2;
const char* const kOffer = "Run on the CPU";

// Returns the events of a run on a device, cut off after a step or within one.
std::vector<engine::Event> cut_run(const std::string& device, bool mid_step) {
  std::vector<engine::Event> events = streams::one_run("jacobi", 60);
  events.resize(events.size() / 2);
  const auto ends = [&](const engine::Event& event) {
    return mid_step ? std::holds_alternative<engine::Drafted>(event)
                    : std::holds_alternative<engine::StepEnded>(event);
  };
  while (!ends(events.back())) events.pop_back();
  for (engine::Event& event : events)
    if (auto* model = std::get_if<engine::ModelLoaded>(&event)) model->device = device;
  return events;
}

// Returns a failure that is later than all events of these runs.
engine::RunFailed failed(int code, engine::RunId run = 1) {
  return {.t = 1'000'000'000'000,
          .run = run,
          .code = code,
          .message = "cuda:0: cudaStreamSynchronize: an address"};
}

ui::Catalog catalog_with_gpu() {
  ui::Catalog catalog = streams::catalog();
  catalog.devices.push_back({"cuda:0", "cuda:0, a GPU", ""});
  return catalog;
}

// A window in which a run on a device was requested.
struct Asked : DrawnWindow {
  explicit Asked(const std::string& device) {
    catalog = catalog_with_gpu();
    shell.show(ui::Screen::Live);
    shell.form().device = device;
    shell.perform(ui::Action::Run);
    EXPECT_TRUE(commands.try_take());
  }
};

TEST(FailedDevice, cpu_is_offered_after_gpu_failures_only) {
  struct Case {
    const char* device;
    int code;
    bool offered;
  };
  for (const Case& c : {Case{"cuda:0", kDevice, true}, Case{"cuda:0", kResources, true},
                        Case{"cuda:0", kUsage, false}, Case{"cpu", kDevice, false},
                        Case{"auto", kResources, false}}) {
    SCOPED_TRACE(std::string(c.device) + " " + std::to_string(c.code));
    Asked window(c.device);
    window.shell.take(cut_run(c.device, true));
    EXPECT_THAT(window.said(), Not(HasSubstr(kOffer)));
    window.shell.take({failed(c.code)});
    const std::string said = window.said();
    EXPECT_THAT(said, HasSubstr("The run failed at step"));
    EXPECT_EQ(said.find(kOffer) != said.npos, c.offered) << said;
  }
}

// A code is a kind of failure: a full disk and full host memory have the same code as full GPU memory.
TEST(FailedDevice, cpu_is_not_offered_after_other_failures) {
  for (const char* message : {"/home/a/one.pdrun: cannot be written: No space left on device",
                              "out of memory; the runs so far are kept"}) {
    for (const engine::RunId run : {0u, 1u}) {
      Asked window("cuda:0");
      window.shell.take(cut_run("cuda:0", true));
      engine::RunFailed other = failed(kResources, run);
      other.message = message;
      window.shell.take({other});
      EXPECT_THAT(window.said(), Not(HasSubstr(kOffer))) << message << " " << run;
    }
  }
  // A newer request is pending, so this failure belongs to the older one.
  Asked window("cuda:0");
  window.shell.take(cut_run("cuda:0", true));
  window.shell.perform(ui::Action::Run);
  window.shell.take({failed(kDevice)});
  EXPECT_THAT(window.said(), AllOf(HasSubstr("The run failed"), Not(HasSubstr(kOffer))));
}

TEST(FailedDevice, messages_name_settings_instead_of_options) {
  EXPECT_EQ(ui::for_window("cuda:0: gone; earlier results are kept; try --device cpu"),
            "cuda:0: gone; earlier results are kept; try cpu as the device in Setup");
  EXPECT_EQ(ui::for_window("at --scale 4x2: try a smaller --scale, like 1x1, or --device cpu"),
            "at scale 4x2: try a smaller scale, like 1x1, or cpu as the device in Setup");
  EXPECT_EQ(
      ui::for_window("seed needs a draft model and there is none; name one (--draft NAME|DIR)"),
      "seed needs a draft model and there is none; choose one as the draft in Setup");
  EXPECT_EQ(ui::for_window("the same vocabulary; name another with --draft"),
            "the same vocabulary; choose another as the draft in Setup");
  EXPECT_EQ(ui::for_window("the card names none; name them with --heads NAME|DIR"),
            "the card names none; choose them as the heads in Setup");
  EXPECT_EQ(ui::for_window("the context holds 1024; lower --max-tokens or --shots"),
            "the context holds 1024; lower max tokens or examples shown");
  EXPECT_EQ(ui::for_window("the context holds 64; set a longer context with --context N"),
            "the context holds 64; set a longer context in Setup");
  EXPECT_EQ(ui::for_window("temperature 0.6: not applied; --defaults model applies them"),
            "temperature 0.6: not applied; a button of Setup's sampling applies them");
  EXPECT_EQ(ui::for_window("name the folder of the sets with --data DIR or in DECOSCOPE_DATA"),
            "name the folder of the sets in DECOSCOPE_DATA, before the program starts");
  EXPECT_EQ(ui::for_window("--system: not possible: the prompt names special tokens, so it is "
                           "taken as it is; --chat makes a message of it"),
            "a system message: not possible: the prompt names special tokens, so it is taken as it "
            "is; symbols as text in Setup makes a message of it");
  EXPECT_EQ(ui::for_window("--chat: not possible: toy has no chat template"),
            "read as chat: not possible: toy has no chat template");
  EXPECT_EQ(ui::for_window("expected messages that it takes; --raw takes the prompt as it is"),
            "expected messages that it takes; raw in Setup takes the prompt as it is");
  EXPECT_EQ(ui::for_window("a file --named so"), "a file --named so");
  Asked window("cuda:0");
  window.shell.take(cut_run("cuda:0", true));
  engine::RunFailed typed = failed(kDevice);
  typed.message += "; try --device cpu";
  window.shell.take({typed});
  for (const ui::Screen screen : {ui::Screen::Live, ui::Screen::Compare}) {
    window.shell.show(screen);
    EXPECT_THAT(window.said(),
                AllOf(HasSubstr("cpu as the device in Setup"), Not(HasSubstr("--device"))));
  }
  typed.run = 0;
  window.shell.take({typed});
  EXPECT_THAT(window.said(), Not(HasSubstr("--device")));
  EXPECT_THAT(window.shell.message(), HasSubstr("cpu as the device in Setup"));
}

TEST(FailedDevice, bar_stays_until_dismissed) {
  play(
      "dismissed",
      [](ImGuiTestContext* ctx, Stage& stage) {
        ui::Shell& shell = *stage.shell;
        stage.replay->pace = 0;
        shell.form().device = "cuda:0";
        ctx->Yield(3);
        ctx->ItemClick("//##top/###run");
        wait_until(ctx, [&] { return !stage.replay->asked.empty(); });
        shell.take({failed(kDevice, 0)});
        ctx->Yield(3);
        ctx->ItemClick("//##failure/###dismiss_failure");
        ctx->Yield(2);
        IM_CHECK(!ctx->ItemExists("//##failure/###dismiss_failure"));
        shell.take(cut_run("cuda:0", true));
        shell.take({failed(kDevice)});
        ctx->Yield(3);
        IM_CHECK(ctx->ItemExists("//##failure/###cpu"));
        ctx->ItemClick("//##failure/###dismiss_failure");
        ctx->Yield(2);
        IM_CHECK(!ctx->ItemExists("//##failure/###dismiss_failure"));
        IM_CHECK(shell.session().live().timeline.runs().back().failed.has_value());
      },
      {}, catalog_with_gpu());
}

TEST(FailedDevice, cpu_is_offered_after_a_refused_start) {
  Asked window("cuda:0");
  window.shell.take({failed(kDevice, 0)});
  EXPECT_THAT(window.said(), AllOf(HasSubstr("Not started (code 5): cuda:0"), HasSubstr(kOffer)));
  // A run starts; the offer, which belonged to an earlier request, disappears.
  window.shell.take(streams::one_run("ar"));
  EXPECT_THAT(window.said(), Not(HasSubstr(kOffer)));
}

TEST(FailedDevice, offers_cpu_only_for_the_last_request) {
  Asked window("cuda:0");
  window.shell.take(cut_run("cuda:0", true));
  window.shell.take({failed(kDevice)});
  EXPECT_THAT(window.said(), HasSubstr(kOffer));
  window.shell.perform(ui::Action::Run);
  auto second = streams::one_run("ar", 24, 2);
  second.pop_back();
  window.shell.take(std::move(second));
  window.shell.take({failed(kDevice, 2)});
  EXPECT_THAT(window.said(), HasSubstr(kOffer));
  window.shell.selection().run = 1;
  EXPECT_THAT(window.said(), AllOf(HasSubstr("The run failed"), Not(HasSubstr(kOffer))));
}

TEST(FailedDevice, cpu_button_repeats_the_command) {
  play(
      "cpu_goes_on",
      [](ImGuiTestContext* ctx, Stage& stage) {
        ui::Shell& shell = *stage.shell;
        stage.replay->pace = 0;
        shell.form().device = "cuda:0";
        shell.form().scale = "4x1";
        shell.form().live = ui::lane_with(shell.catalog(), "jacobi");
        shell.form().live.options["block"] = "7";
        shell.form().max_tokens = 33;
        ctx->Yield(3);
        ctx->ItemClick("//##top/###run");
        wait_until(ctx, [&] { return !stage.replay->asked.empty(); });
        const engine::StartRun before = stage.replay->started;
        IM_CHECK_STR_EQ(before.device.c_str(), "cuda:0");
        shell.take(cut_run("cuda:0", true));
        shell.take({failed(kDevice)});
        // A choice made meanwhile does not change the failed command.
        shell.form().scale = "1x1";
        shell.form().live.options["block"] = "16";
        ctx->Yield(3);
        IM_CHECK_STR_EQ(shell.form().device.c_str(), "cuda:0");
        ctx->ItemClick("//##failure/###cpu");
        wait_until(ctx, [&] { return stage.replay->asked.size() == 2; });
        const engine::StartRun& now = stage.replay->started;
        IM_CHECK_STR_EQ(now.device.c_str(), "cpu");
        IM_CHECK_STR_EQ(now.scale.c_str(), "4x1");
        IM_CHECK_STR_EQ(now.prompt.c_str(), before.prompt.c_str());
        IM_CHECK_EQ(now.max_tokens, before.max_tokens);
        IM_CHECK_EQ(now.lanes.size(), 1u);
        IM_CHECK(now.lanes[0].options == before.lanes[0].options);
        IM_CHECK_STR_EQ(shell.form().device.c_str(), "cpu");
        ctx->Yield(3);
        IM_CHECK(!ctx->ItemExists("//##failure/###cpu"));
      },
      {}, catalog_with_gpu());
}

TEST(FailedDevice, model_is_loaded_on_cpu_after_gpu_failure) {
  play(
      "cpu_loads",
      [](ImGuiTestContext* ctx, Stage& stage) {
        ui::Shell& shell = *stage.shell;
        shell.form().device = "cuda:0";
        ctx->Yield(3);
        ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
        ctx->ItemClick("Load model");
        ctx->Yield(3);
        shell.take({failed(kResources, 0)});
        ctx->Yield(3);
        IM_CHECK_STR_EQ(shell.form().device.c_str(), "auto");  // the default
        ctx->ItemClick("//##failure/###cpu");
        ctx->Yield(3);
        IM_CHECK_STR_EQ(shell.form().device.c_str(), "cpu");
        IM_CHECK(shell.form().model_error.empty());
        IM_CHECK(shell.ticks());  // the request is pending
      },
      {}, catalog_with_gpu());
}

std::string late(const std::vector<engine::Event>& events,
                 double seconds,
                 const ui::StepDeadlines& deadlines = {}) {
  engine::Timeline timeline;
  for (const engine::Event& event : events) timeline.apply(event);
  const auto found = ui::unanswered(timeline, seconds, deadlines);
  return found ? ui::words_of(*found) + (found->way_out ? ", way out" : "") : "";
}

TEST(LateGpu, reported_after_10_s_and_exit_offered_after_60_s) {
  const auto events = cut_run("cuda:0", true);
  const auto step = std::get<engine::Drafted>(events.back()).step;
  const std::string reported = "GPU not responding, step " + std::to_string(step) + ", ";
  EXPECT_EQ(late(events, 9.9), "");
  EXPECT_EQ(late(events, 10), reported + "10 s");
  EXPECT_EQ(late(events, 59.4), reported + "59 s");
  EXPECT_EQ(late(events, 61), reported + "61 s, way out");
}

TEST(LateGpu, only_a_computing_gpu_is_late) {
  EXPECT_EQ(late({}, 100), "");
  EXPECT_EQ(late(cut_run("cpu", true), 100), "") << "a CPU is never reported";
  EXPECT_EQ(late(cut_run("cuda:0", false), 100), "") << "the run is between two steps";
  auto over = cut_run("cuda:0", true);
  over.push_back(failed(kDevice));
  EXPECT_EQ(late(over, 100), "");
  // Steps of the emulated GPU are slow.
  const auto emulated = cut_run("cuda:emulated", true);
  EXPECT_EQ(late(emulated, 100), "");
  EXPECT_NE(late(emulated, 100, {.emulated = true}), "");
  // A prompt in prefill is late; a run that is paused before its first step is not.
  std::vector<engine::Event> begun = cut_run("cuda:0", true);
  while (!std::holds_alternative<engine::RunStarted>(begun.back())) begun.pop_back();
  EXPECT_EQ(late(begun, 12), "GPU not responding, prompt, 12 s");
  begun.push_back(engine::Held{.held = true});
  EXPECT_EQ(late(begun, 12), "");
}

TEST(LateGpu, a_draft_that_reads_the_prompt_between_steps_is_late) {
  auto events = cut_run("cuda:0", false);
  engine::Phase reading{.t = 1'000'000'000'000, .run = 1, .name = "draft prefill", .total = 30};
  events.push_back(reading);
  EXPECT_EQ(late(events, 12), "GPU not responding, prompt, 12 s");
  reading.done = 30;
  events.push_back(reading);
  EXPECT_EQ(late(events, 12), "");
}

TEST(LateGpu, paused_time_does_not_count) {
  // SEED can be paused within a step, while it drafts or waits in the queue.
  auto events = cut_run("cuda:0", true);
  const engine::StepId step = std::get<engine::Drafted>(events.back()).step;
  events.push_back(engine::Held{.t = 1'000'000'000'000, .held = true});
  EXPECT_EQ(late(events, 100), "");
  const auto paused = events;
  events.push_back(engine::Held{.t = 2'000'000'000'000, .held = false});
  EXPECT_NE(late(events, 100), "");
  // A single step requested while paused runs on the device.
  events = paused;
  events.push_back(
      engine::StepBegun{.t = 1'000'000'000'001, .run = 1, .step = step + 1, .n_rows = 1});
  EXPECT_EQ(late(events, 12), "GPU not responding, step " + std::to_string(step + 1) + ", 12 s");
}

TEST(LateGpu, waiting_sequence_is_not_reported) {
  auto events = cut_run("cuda:0", true);
  events.push_back(engine::Queued{.t = 1'000'000'000'000, .run = 1, .resource = "target"});
  EXPECT_EQ(late(events, 12), "");
  events.push_back(engine::Dequeued{.t = 1'000'000'000'000, .run = 1, .resource = "target"});
  EXPECT_NE(late(events, 12), "");
}

TEST(LateGpu, bar_disappears_with_the_next_event) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  const auto events = cut_run("cuda:0", true);
  window.shell.take(events);
  const auto passes = [&](double seconds) {
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    window.gui.said([&] { window.shell.draw(seconds); });
    return window.said();
  };
  EXPECT_THAT(passes(5), Not(HasSubstr("not responding")));
  EXPECT_THAT(passes(6), AllOf(HasSubstr("GPU not responding, step"), HasSubstr(", 11 s"),
                               Not(HasSubstr("Save and exit"))));
  EXPECT_TRUE(window.shell.ticks());
  EXPECT_THAT(passes(50), AllOf(HasSubstr(", 61 s. Stop takes effect when cuda:0 responds"),
                                HasSubstr("Save and exit"), HasSubstr("Stop the run")));
  // Device samples do not count as progress of the step.
  window.shell.take({engine::Sampled{.t = 2'000'000'000'000}});
  EXPECT_THAT(window.said(), HasSubstr("GPU not responding, step"));
  const engine::StepId step = std::get<engine::Drafted>(events.back()).step;
  window.shell.take({engine::Verified{.run = 1, .step = step}});
  EXPECT_THAT(window.said(), Not(HasSubstr("not responding")));
}

TEST(LateGpu, is_reported_while_a_recording_is_shown) {
  const engine::test::Folder folder;
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  window.shell.take(cut_run("cuda:0", true));
  window.shell.save(folder / "kept.pdrun");
  while (window.shell.saves()) window.said();
  window.shell.open(folder / "kept.pdrun");
  while (window.shell.reads()) window.said();
  ASSERT_FALSE(window.shell.session().live_is_shown());
  EXPECT_TRUE(window.shell.ticks()) << "frames continue";
  window.gui.said([&] { window.shell.draw(70); });
  EXPECT_THAT(window.said(), HasSubstr("GPU not responding, step"));
}

TEST(LateGpu, save_and_exit_returns_code_of_device_failure) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  const engine::test::Folder folder;
  engine::EventQueue events;
  engine::CommandQueue commands;
  for (const engine::Event& event : cut_run("cuda:0", true)) events.push(event);
  ui::WindowOptions options;
  options.config_dir = "-";
  options.screen = "live";
  options.deadlines = {.report_s = 0, .way_out_s = 0};
  options.hooks.draw_always = true;
  Player player("save_and_exit", [&](ImGuiTestContext* ctx, ui::Shell& shell) {
    shell.save(folder / "first.pdrun");  // the next save goes to this folder
    wait_until(ctx, [&] { return !shell.saves(); });
    ctx->ItemClick("//##late/###save_and_exit");
    wait_until(ctx, [&] { return ctx->ItemExists("//##saved/###close_now"); });
    IM_CHECK(!shell.wants_to_close());  // the path stays readable
    while (!shell.wants_to_close() && !ctx->IsError()) ctx->Yield();
  });
  ui::Shell* shell = nullptr;
  options.hooks.shell_made = [&](ui::Shell& made) { shell = &made; };
  options.hooks.context_made = [&] { player.start(*shell); };
  options.hooks.frame_shown = [&] { player.frame_shown(); };
  options.hooks.wants_to_close = [&] { return player.is_done() && !shell->wants_to_close(); };
  options.hooks.before_teardown = [&] { player.stop(); };
  EXPECT_EQ(ui::run_window(events, commands, streams::catalog(), options), kDevice);
  EXPECT_TRUE(std::filesystem::exists(folder / "first.pdrun"));
  const auto saved = std::distance(
      std::filesystem::directory_iterator(std::filesystem::path(folder / "x").parent_path()), {});
  EXPECT_EQ(saved, 2) << "the session was saved again";
}

}  // namespace
