// Scripts of the Dear ImGui Test Engine that move mouse and keys in a real window. Without a display,
// Xvfb is started.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include "engine/event/queue.h"
#include "tests/support/display.h"
#include "ui/shell/shell.h"
#include "ui/shell/window.h"

namespace scripted {

using Script = std::function<void(ImGuiTestContext*, ui::Shell&)>;

/// Runs one script with the test engine of a window.
class Player {
 public:
  Player(const char* name, Script script) : name_(name), script_(std::move(script)) {}
  ~Player() {
    if (tester_) ImGuiTestEngine_DestroyContext(tester_);
  }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  void start(ui::Shell& shell) {
    tester_ = ImGuiTestEngine_CreateContext();
    ImGuiTestEngineIO& io = ImGuiTestEngine_GetIO(tester_);
    io.ConfigRunSpeed = ImGuiTestRunSpeed_Fast;
    io.ConfigNoThrottle = true;
    io.ConfigSavedSettings = false;
    io.ConfigLogToTTY = true;
    io.ConfigVerboseLevel = ImGuiTestVerboseLevel_Error;
    io.ConfigVerboseLevelOnError = ImGuiTestVerboseLevel_Info;
    test_ = ImGuiTestEngine_RegisterTest(tester_, "window", name_);
    test_->TestFunc = [this, &shell](ImGuiTestContext* ctx) { script_(ctx, shell); };
    ImGuiTestEngine_Start(tester_, ImGui::GetCurrentContext());
    ImGuiTestEngine_QueueTest(tester_, test_);
  }
  void frame_shown() { ImGuiTestEngine_PostSwap(tester_); }
  bool is_done() const {
    return ImGuiTestEngine_IsTestQueueEmpty(tester_) &&
           test_->Output.Status != ImGuiTestStatus_Queued &&
           test_->Output.Status != ImGuiTestStatus_Running;
  }
  void stop() {
    if (tester_) ImGuiTestEngine_Stop(tester_);
  }
  bool succeeded() const { return test_ && test_->Output.Status == ImGuiTestStatus_Success; }

 private:
  const char* name_;
  Script script_;
  ImGuiTestEngine* tester_ = nullptr;
  ImGuiTest* test_ = nullptr;
};

/// Runs a script in a window that shows `events`; the test fails if the script does. Needs
/// display::ready().
/// @param each_frame  called once per frame; answers the commands on this thread
inline void in_window(const char* name,
                      engine::EventQueue& events,
                      engine::CommandQueue& commands,
                      const ui::Catalog& catalog,
                      const Script& script,
                      ui::WindowOptions options = {},
                      const std::function<void()>& each_frame = {}) {
  Player player(name, script);
  ui::Shell* shell = nullptr;
  if (options.config_dir.empty()) options.config_dir = "-";
  options.screen = "live";
  options.hooks.draw_always = true;
  options.hooks.shell_made = [&](ui::Shell& made) { shell = &made; };
  options.hooks.context_made = [&] { player.start(*shell); };
  options.hooks.frame_shown = [&] { player.frame_shown(); };
  options.hooks.wants_to_close = [&] {
    if (each_frame) each_frame();
    return player.is_done();
  };
  options.hooks.before_teardown = [&] { player.stop(); };
  ui::run_window(events, commands, catalog, options);
  EXPECT_TRUE(player.succeeded()) << name;
}

/// Yields frames until `done`, for two minutes at most.
/// @return whether `done` became true
inline bool wait_for(ImGuiTestContext* ctx, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!done() && std::chrono::steady_clock::now() < end) ctx->Yield();
  return done();
}

}  // namespace scripted
