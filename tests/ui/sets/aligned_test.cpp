// Lanes whose texts are aligned by token index, and the mark at the first different token.
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "engine/event/timeline/timeline.h"
#include "tests/ui/support/replay.h"
#include "ui/panels/live/lanes.h"
#include "ui/prepare/tokens/difference.h"
#include "ui/prepare/tokens/text_cells.h"

namespace ui {
namespace {

using Align = LanesView::Align;

std::vector<TextCell> cells_of(const std::vector<std::string>& texts) {
  std::vector<TextCell> cells;
  for (const std::string& text : texts) cells.push_back({.text = text});
  return cells;
}

void expect_box(const CellBox& box, float x, float width, int line) {
  EXPECT_EQ(box.x, x);
  EXPECT_EQ(box.width, width);
  EXPECT_EQ(box.line, line);
}

TEST(Aligned, equal_indices_have_equal_places) {
  const CellMetrics metrics{.character = 10, .padding = 0, .mark = 0, .gap = 2};
  const auto a = cells_of({"ab", "c", "d", "e"}), b = cells_of({"a", "cdef"});
  const auto boxes = lay_out_aligned({a, b}, 80, metrics, false);
  ASSERT_EQ(boxes[0].size(), 4u);
  ASSERT_EQ(boxes[1].size(), 2u);
  for (std::size_t i = 0; i < 2; ++i)
    expect_box(boxes[1][i], boxes[0][i].x, boxes[0][i].width, boxes[0][i].line);
  expect_box(boxes[0][0], 0, 20, 0);   // the wider of "ab" and "a"
  expect_box(boxes[0][1], 22, 40, 0);  // the wider of "c" and "cdef"
  expect_box(boxes[0][2], 64, 10, 0);  // only in one lane
  expect_box(boxes[0][3], 0, 10, 1);   // 76 + 10 is beyond 80
}

TEST(Aligned, a_line_feed_of_any_lane_ends_the_line_of_all) {
  const CellMetrics metrics{.character = 10, .padding = 0, .mark = 0, .gap = 2};
  auto a = cells_of({"a", "b"}), b = cells_of({"a", "b"});
  b[0].ends_line = true;
  const auto boxes = lay_out_aligned({a, b}, 80, metrics, false);
  EXPECT_EQ(boxes[0][1].line, 1);
  EXPECT_EQ(boxes[1][1].line, 1);
}

engine::RunRecord run_with(const std::vector<engine::TokenId>& ids, std::uint32_t model = 1) {
  engine::RunRecord run;
  run.started.model = model;
  for (const engine::TokenId id : ids) run.tokens.push_back({.id = id});
  return run;
}

TEST(Aligned, the_first_difference_is_an_index_of_generated_tokens) {
  const auto plain = run_with({5, 6, 7});
  EXPECT_EQ(first_difference(run_with({5, 6, 7}), plain), -1);
  EXPECT_EQ(first_difference(run_with({5, 6}), plain), -1) << "equal as far as it goes";
  EXPECT_EQ(first_difference(run_with({5, 9, 7}), plain), 1);
  EXPECT_EQ(first_difference(run_with({9}), plain), 0);
  EXPECT_EQ(first_difference(run_with({9}, 2), plain), -1) << "another vocabulary";
}

// Returns a race in which lane B has another token at index 3 than AR.
std::vector<engine::Event> differing_race() {
  auto events = streams::race({"ar", "jacobi"});
  int index = 0;
  for (engine::Event& event : events) {
    auto* committed = std::get_if<engine::Committed>(&event);
    if (!committed || committed->run != 2) continue;
    for (engine::TokenId& token : committed->tokens)
      if (index++ == 3) token = token == 1 ? 2 : 1;
  }
  return events;
}

// Returns the number of vertices in the colour of failures and differences in the panel Lanes.
std::size_t n_marked() {
  std::size_t n = 0;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (!window->WasActive || !std::string_view(window->Name).starts_with("Lanes###")) continue;
    for (const ImDrawVert& v : window->DrawList->VtxBuffer) n += v.col == colour(theme().bad);
  }
  return n;
}

TEST(Aligned, a_key_aligns_the_lanes_and_marks_the_difference) {
  scripted::play("align", [](ImGuiTestContext* ctx, scripted::Stage& stage) {
    Shell& shell = *stage.shell;
    shell.show(Screen::Compare);
    ctx->Yield(3);
    shell.take(differing_race());
    ctx->Yield(5);
    scripted::put_mouse_away(ctx);
    const LanesView& view = shell.state<LanesView>();
    IM_CHECK(view.align == Align::Off);
    IM_CHECK_EQ(n_marked(), std::size_t{0});  // the engine reported no difference
    ctx->KeyPress(ImGuiKey_Home);
    ctx->KeyPress(ImGuiKey_End);
    ctx->KeyPress(ImGuiKey_Y);
    ctx->Yield(4);
    IM_CHECK(view.align == Align::Plain);
    // The end of the text is in view; scroll one lane to the start, and the others follow.
    ctx->KeyPress(ImGuiKey_LeftArrow);
    ctx->Yield(3);
    for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
      if (window->WasActive &&
          std::string_view(window->Name).find("/lane1_") != std::string_view::npos &&
          std::string_view(window->Name).find("/text_") != std::string_view::npos)
        ImGui::SetScrollY(window, 0);
    ctx->Yield(4);
    IM_CHECK_EQ(view.scroll, 0.0f);
    IM_CHECK_GT(n_marked(), std::size_t{3});
    // Against the selected lane: lane A differs from lane B.
    ctx->KeyPress(ImGuiKey_Y);
    shell.selection().run = 2;
    ctx->Yield(4);
    IM_CHECK(view.align == Align::Selected);
    IM_CHECK_GT(n_marked(), std::size_t{3});
    ctx->KeyPress(ImGuiKey_Y);
    ctx->Yield(4);
    IM_CHECK(view.align == Align::Off);
    IM_CHECK_EQ(n_marked(), std::size_t{0});
  });
}

}  // namespace
}  // namespace ui
