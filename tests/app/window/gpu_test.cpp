// The window with an engine whose GPU, the emulated one, fails or hangs during a run.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "engine/event/queue.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/app/window/window_engine.h"
#include "ui/prepare/failure_words.h"
#include "ui/prepare/time/responding.h"

namespace {

using namespace with_engine;
using scripted::wait_for;
namespace emulation = kernels::emulation;

/// Resets the emulated GPU at the end.
struct SoundAgain {
  ~SoundAgain() {
    emulation::before_calls({});
    emulation::fail_call(0);
    emulation::forget_faults();
  }
};

/// Blocks every call of the device until it is opened or destroyed.
class Gate {
 public:
  Gate() {
    emulation::before_calls([state = state_](const std::string&) {
      std::unique_lock hold(state->mutex);
      state->holds = !state->open;
      state->opened.wait(hold, [&] { return state->open; });
    });
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  bool holds() {
    const std::lock_guard hold(state_->mutex);
    return state_->holds;
  }
  void open() {
    {
      const std::lock_guard hold(state_->mutex);
      state_->open = true;
    }
    state_->opened.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false, holds = false;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();  // a call may outlive the gate
};

// Holds the run after its first step: no call is made until it continues.
void one_step_on_the_gpu(ImGuiTestContext* ctx,
                         ui::Shell& shell,
                         int max_tokens,
                         const std::string& decoder = "jacobi") {
  ui::SetupForm& form = shell.form();
  form.device = "cuda:emulated";
  form.scale = "1x1";
  form.live = ui::lane_with(shell.catalog(), decoder);
  form.live.options[decoder == "jacobi" ? "block" : "gamma"] = "4";
  form.max_tokens = max_tokens;
  form.ignore_eos = form.start_held = true;
  ctx->Yield(3);
  ctx->ItemClick("//##top/###run");
  IM_CHECK(wait_for(ctx, [&] { return timeline(shell).held(); }));
  ctx->ItemClick("//##top/Step");
  IM_CHECK(wait_for(ctx, [&] { return n_steps(shell) == 1; }));
}

// CU08.
TEST(WindowWithGpu, after_a_gpu_fault_the_cpu_runs_and_the_gpu_gives_a_reason) {
  const SoundAgain after;
  play("gpu_failed", [](ImGuiTestContext* ctx, ui::Shell& shell) {
    one_step_on_the_gpu(ctx, shell, 12);
    emulation::fail_call_for_good(5);
    ctx->ItemClick("//##top/###hold");
    IM_CHECK(wait_for(ctx, [&] { return all_over(shell); }));
    const engine::RunRecord failed = timeline(shell).runs().front();
    IM_CHECK(failed.failed && failed.failed->code == 5);
    IM_CHECK_GT(failed.tokens.size(), 0u);
    ctx->Yield(3);
    if (const char* folder = std::getenv("DECOSCOPE_PICTURES")) {
      shell.ask_picture(std::string(folder) + "/gpu_failed.png", "", 1);
      IM_CHECK(wait_for(ctx, [&] { return !shell.wants_picture(); }));
    }
    shell.form().start_held = false;
    // The next run on the GPU is refused with the first cause.
    shell.perform(ui::Action::Run);
    IM_CHECK(wait_for(
        ctx, [&] { return shell.message().find("cannot be opened again") != std::string::npos; }));
    const std::string cause = ui::for_window(failed.failed->message);
    IM_CHECK(shell.message().find(cause) != std::string::npos);
    IM_CHECK(shell.message().find("--device") == std::string::npos);
    IM_CHECK(cause.find("cpu as the device in Setup") != std::string::npos);
    IM_CHECK_EQ(timeline(shell).runs().size(), 1u);
    ctx->Yield(3);
    ctx->ItemClick("//##failure/###cpu");
    IM_CHECK_STR_EQ(shell.form().device.c_str(), "cpu");
    IM_CHECK(wait_for(ctx, [&] { return timeline(shell).runs().size() == 2 && all_over(shell); }));
    const engine::RunRecord& run = timeline(shell).runs().back();
    IM_CHECK(run.finished.has_value());
    IM_CHECK_EQ(run.finished->n_tokens, 12);
    IM_CHECK_STR_EQ(run.started.decoder.c_str(), "jacobi");
    IM_CHECK(run.started.options == failed.started.options);
    IM_CHECK_STR_EQ(run.started.prompt.c_str(), failed.started.prompt.c_str());
    IM_CHECK_STR_EQ(timeline(shell).model(run.started.model)->device.c_str(), "cpu");
  });
}

// CU12.
TEST(WindowWithGpu, a_hanging_call_is_reported_and_drawing_continues) {
  const SoundAgain after;
  ui::WindowOptions options;
  options.deadlines = {.report_s = 0.2, .way_out_s = 0.4, .emulated = true};
  play(
      "gpu_hangs",
      [](ImGuiTestContext* ctx, ui::Shell& shell) {
        one_step_on_the_gpu(ctx, shell, 400);
        Gate gate;
        ctx->ItemClick("//##top/###hold");
        IM_CHECK(wait_for(ctx, [&] { return gate.holds(); }));
        IM_CHECK(wait_for(ctx, [&] { return ctx->ItemExists("//##late/###stop_late"); }));
        const auto late = shell.late_gpu();
        IM_CHECK(late.has_value());
        IM_CHECK_STR_EQ(late->what.c_str(), "step 1");
        IM_CHECK_STR_EQ(late->device.c_str(), "cuda:emulated");
        if (const char* folder = std::getenv("DECOSCOPE_PICTURES")) {
          shell.ask_picture(std::string(folder) + "/gpu_hangs.png", "", 1);
          IM_CHECK(wait_for(ctx, [&] { return !shell.wants_picture(); }));
        }
        const int frame = ImGui::GetFrameCount();
        ctx->Yield(20);
        IM_CHECK_GE(ImGui::GetFrameCount(), frame + 20);
        IM_CHECK_EQ(n_steps(shell), 1);
        ctx->ItemClick("//##late/###stop_late");
        IM_CHECK(!all_over(shell));
        gate.open();
        IM_CHECK(wait_for(ctx, [&] { return all_over(shell); }));
        IM_CHECK_STR_EQ(timeline(shell).runs().back().finished->stop_reason.c_str(), "stopped");
        IM_CHECK(!shell.late_gpu());
      },
      std::move(options));
}

// CU12.
TEST(WindowWithGpu, a_hanging_draft_is_reported_with_its_step) {
  const SoundAgain after;
  ui::WindowOptions options;
  options.deadlines = {.report_s = 0.2, .way_out_s = 0.4, .emulated = true};
  play(
      "draft_hangs",
      [](ImGuiTestContext* ctx, ui::Shell& shell) {
        one_step_on_the_gpu(ctx, shell, 400, "speculative");
        Gate gate;  // a step's first call is the draft's
        ctx->ItemClick("//##top/###hold");
        IM_CHECK(wait_for(ctx, [&] { return gate.holds(); }));
        IM_CHECK(wait_for(ctx, [&] { return shell.late_gpu().has_value(); }));
        const engine::RunRecord& run = timeline(shell).runs().back();
        IM_CHECK_EQ(run.steps.size(), 2u);
        IM_CHECK(!run.steps.back().has_drafted);
        IM_CHECK_STR_EQ(shell.late_gpu()->what.c_str(), "step 1");
        IM_CHECK(wait_for(ctx, [&] { return ctx->ItemExists("//##late/###stop_late"); }));
        ctx->ItemClick("//##late/###stop_late");
        gate.open();
        IM_CHECK(wait_for(ctx, [&] { return all_over(shell); }));
      },
      std::move(options));
}

// CU12.
TEST(WindowWithGpu, a_hanging_load_does_not_block_closing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ends = [] {
    engine::EventQueue events;
    engine::CommandQueue commands;
    app::EngineThread thread(assets().string(), "", {.n_threads = 1}, commands, events);
    Gate gate;
    commands.push(engine::LoadModel{.model = (assets() / "models/demo-target").string(),
                                    .device = "cuda:emulated"});
    while (!gate.holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    thread.beside([] { return 0; }, std::chrono::milliseconds(50));
  };
  EXPECT_EXIT(ends(), testing::ExitedWithCode(5), "the engine did not respond");
}

}  // namespace
