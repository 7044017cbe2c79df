// Pictures of a panel or of the window: redrawn at any size, written without overwriting files.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include "tests/support/files.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/replay.h"

namespace {

using namespace scripted;
using engine::test::Folder;

struct Png {
  int width = 0, height = 0;
  std::string bytes;
};

int number_at(const std::string& bytes, std::size_t at) {
  int number = 0;
  for (std::size_t i = at; i < at + 4; ++i)
    number = number * 256 + static_cast<std::uint8_t>(bytes.at(i));
  return number;
}

Png read_png(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  Png png{.bytes = {std::istreambuf_iterator<char>(in), {}}};
  if (png.bytes.size() < 24 || png.bytes.compare(1, 3, "PNG") != 0) return png;
  png.width = number_at(png.bytes, 16);
  png.height = number_at(png.bytes, 20);
  return png;
}

// Returns the size of a panel with its head, in pixels of the window.
ImVec2 size_of(const char* panel) {
  const ImGuiWindow* window =
      ImGui::FindWindowByName(ui::window_name(ui::Screen::Live, panel, "").c_str());
  return window->DockNode->Size;
}

TEST(Picture, panel_has_requested_size_and_description) {
  const Folder folder;
  const std::string path = folder / "pool.png";
  play("picture_panel", [&](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->take(streams::one_run("lookahead"));
    ctx->WindowFocus("//###live.trajectory");
    ctx->Yield(3);
    for (const int times : {1, 3}) {
      stage.shell->ask_picture(path, "pool", times);  // a tab that is hidden comes to the front
      const std::string taken = times == 1 ? path : folder / "pool-2.png";
      wait_until(ctx, [&] { return std::filesystem::exists(taken); });
      const Png png = read_png(taken);
      const ImVec2 size = size_of("pool");
      IM_CHECK_LE(std::abs(static_cast<float>(png.width) - size.x * times), 1.0f);
      IM_CHECK_LE(std::abs(static_cast<float>(png.height) - size.y * times), 1.0f);
      // A picture of one colour compresses to less than a thousandth.
      IM_CHECK_GT(png.bytes.size(), static_cast<std::size_t>(png.width * png.height / 200));
      IM_CHECK(png.bytes.find("iTXtDescription") != std::string::npos);
      IM_CHECK(png.bytes.find("demo-target") != std::string::npos);
      ctx->Yield(2);
      IM_CHECK(stage.shell->message().find(taken) != std::string::npos);
    }
    IM_CHECK(ImGui::FindWindowByName("###live.pool")->DockTabIsVisible);
  });
}

TEST(Picture, export_dialog_writes_the_window) {
  const Folder folder;
  play("picture_window", [&](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->take(streams::one_run("jacobi"));
    ctx->Yield(3);
    const ImVec2 size = ImGui::GetMainViewport()->Size;
    stage.shell->perform(ui::Action::Export);
    ctx->Yield(3);
    ctx->ItemInputValue("//##export/##path", (folder / "mine.png").c_str());
    ctx->ItemClick("//##export/###do_picture");
    wait_until(ctx, [&] { return std::filesystem::exists(folder / "mine.png"); });
    const Png png = read_png(folder / "mine.png");
    IM_CHECK_EQ(png.width, static_cast<int>(size.x) * 2);
    IM_CHECK_EQ(png.height, static_cast<int>(size.y) * 2);
  });
}

TEST(Picture, unwritable_picture_is_reported) {
  const Folder folder;
  play("picture_refused", [&](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->take(streams::one_run("jacobi"));
    stage.shell->ask_picture(folder / "no-such-folder/mine.png", "", 1);
    wait_until(ctx,
               [&] { return stage.shell->message().find("no-such-folder") != std::string::npos; });
    stage.shell->ask_picture(folder / "lanes.png", "lanes", 1);  // a panel of another screen
    wait_until(ctx, [&] {
      return stage.shell->message().find("not on this screen") != std::string::npos;
    });
    IM_CHECK(!std::filesystem::exists(folder / "lanes.png"));
  });
}

}  // namespace
