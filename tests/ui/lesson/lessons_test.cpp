// Scripts that play the bundled lessons in a window, with the keyboard alone.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "engine/lesson/lesson.h"
#include "tests/support/needs.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/streams.h"
#include "ui/lesson/progress.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"

namespace {

namespace fs = std::filesystem;

using namespace scripted;

ui::Catalog catalog_with_lessons() {
  ui::Catalog catalog = streams::catalog();
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(DECOSCOPE_SOURCE_DIR "/assets/lessons"))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    const engine::Lesson lesson = engine::read_lesson(path.string());
    catalog.lessons.push_back({path.string(), lesson.title, lesson.summary, lesson.minutes});
  }
  return catalog;
}

ImGuiKey key_of(char c) {
  return c == '.' ? ImGuiKey_Period : static_cast<ImGuiKey>(ImGuiKey_0 + (c - '0'));
}

// Enters a right or a wrong prediction.
void predict(ImGuiTestContext* ctx, const ui::LessonProgress& lesson, bool right) {
  const engine::SolvedCard& solved = lesson.solved(lesson.card());
  if (solved.options.empty()) {
    const double off = right ? 0 : lesson.shown().question->tolerance + 1;
    for (const char c : engine::number_words(solved.answer.number + off)) ctx->KeyPress(key_of(c));
    return;
  }
  for (std::size_t i = 0; i < solved.options.size(); ++i) {
    const bool is_right = std::ranges::find(solved.right, i) != solved.right.end();
    if (is_right != right) continue;
    ctx->KeyPress(key_of(static_cast<char>('1' + i)));
    return;
  }
}

// Checks that the panels of the card are on the screen and show its moment of its run.
void check_view(ImGuiTestContext* ctx, Stage& stage) {
  const ui::LessonProgress& lesson = *stage.shell->lesson();
  const engine::LessonView& view = lesson.view();
  ctx->Yield(2);
  IM_CHECK_EQ(stage.shell->selection().run, view.run);
  for (const std::string& id : view.panels) {
    const std::string name = ui::window_name(ui::Screen::Lesson, id.c_str(), "");
    const ImGuiWindow* window = ImGui::FindWindowByName(name.c_str());
    IM_CHECK(window != nullptr && window->WasActive);
  }
  const engine::RunRecord* run = run_of(stage);
  IM_CHECK(run != nullptr);
  if (!view.before) return;
  const auto step = static_cast<std::size_t>(view.step);
  IM_CHECK_LE(stage.shell->playhead().at, static_cast<double>(run->steps.head(step).begun.compute));
}

// Plays a lesson to its end. @return the score
ui::LessonScore play_to_the_end(ImGuiTestContext* ctx, Stage& stage, bool right) {
  ui::LessonProgress& lesson = *stage.shell->lesson();
  while (!lesson.at_end() && !ctx->IsError()) {
    const std::size_t card = lesson.card();
    check_view(ctx, stage);
    if (lesson.asks()) {
      predict(ctx, lesson, right);
      ctx->KeyPress(ImGuiKey_Enter);
      if (!lesson.revealed(card)) ctx->LogError("not revealed");
      if (lesson.right(card) != right)
        ctx->LogError("card %d: %s", static_cast<int>(card + 1), lesson.result(card).c_str());
      check_view(ctx, stage);
    }
    ctx->KeyPress(ImGuiKey_Enter);
    if (lesson.card() != card + 1) {
      ctx->LogError("card %d does not continue", static_cast<int>(card + 1));
      break;
    }
  }
  return lesson.score();
}

// One window for each lesson, because the test engine stops a script after a minute.
TEST(LessonScripts, every_lesson_scores_right_and_wrong_answers) {
  const ui::Catalog catalog = catalog_with_lessons();
  ASSERT_EQ(catalog.lessons.size(), 8U);
  for (std::size_t i = 0; i < catalog.lessons.size(); ++i) {
    const std::string name = "lesson_" + std::to_string(i + 1);
    play(
        name.c_str(),
        [&](ImGuiTestContext* ctx, Stage& stage) {
          ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_3);
          ctx->Yield(2);
          ctx->KeyPress(key_of(static_cast<char>('1' + i)));
          ctx->Yield(2);
          IM_CHECK(stage.shell->lesson() != nullptr);
          IM_CHECK_EQ(stage.shell->lesson()->lesson().path, catalog.lessons[i].path);
          const ui::LessonScore right = play_to_the_end(ctx, stage, true);
          IM_CHECK_GE(right.n_questions, 3);
          IM_CHECK_EQ(right.n_right, right.n_questions);
          ctx->KeyPress(ImGuiMod_Shift | ImGuiKey_Backspace);
          IM_CHECK_EQ(stage.shell->lesson()->card(), std::size_t{0});
          const ui::LessonScore wrong = play_to_the_end(ctx, stage, false);
          IM_CHECK_EQ(wrong.n_right, 0);
          IM_CHECK_EQ(wrong.n_answered, wrong.n_questions);
          ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Backspace);
          ctx->Yield(2);
          IM_CHECK(stage.shell->lesson() == nullptr);
          IM_CHECK(stage.shell->session().live_is_shown());
        },
        {}, catalog);
  }
}

TEST(LessonScripts, back_keeps_and_restart_forgets) {
  const ui::Catalog catalog = catalog_with_lessons();
  play(
      "lesson_back",
      [&](ImGuiTestContext* ctx, Stage& stage) {
        IM_CHECK(stage.shell->open_lesson(catalog.lessons[1].path));
        ui::LessonProgress& lesson = *stage.shell->lesson();
        ctx->KeyPress(ImGuiKey_Enter);
        IM_CHECK(lesson.asks());
        ctx->KeyPress(ImGuiKey_UpArrow);
        IM_CHECK_EQ(lesson.typed(1), std::string("1"));
        ctx->KeyPress(ImGuiKey_Backspace);
        IM_CHECK_EQ(lesson.typed(1), std::string());
        ctx->KeyPress(ImGuiKey_Backspace);
        IM_CHECK_EQ(lesson.card(), std::size_t{0});
        ctx->KeyPress(ImGuiKey_Enter, 2);
        IM_CHECK(lesson.revealed(1));
        ctx->KeyPress(ImGuiKey_Enter);
        IM_CHECK_EQ(lesson.card(), std::size_t{2});
        ctx->KeyPress(ImGuiKey_Backspace);
        IM_CHECK_EQ(lesson.card(), std::size_t{1});
        IM_CHECK(lesson.revealed(1));
      },
      {}, catalog);
}

// The lesson stays open behind other screens, and its settings can be tried.
TEST(LessonScripts, a_lesson_can_be_left_and_tried) {
  const ui::Catalog catalog = catalog_with_lessons();
  play(
      "lesson_try",
      [&](ImGuiTestContext* ctx, Stage& stage) {
        // Opened from the command palette.
        ctx->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P);
        ctx->Yield(2);
        ctx->KeyChars("lesson: Draft");
        ctx->KeyPress(ImGuiKey_Enter);
        ctx->Yield(2);
        IM_CHECK(stage.shell->screen() == ui::Screen::Lesson);
        IM_CHECK_EQ(stage.shell->lesson()->lesson().path, catalog.lessons[1].path);
        ui::LessonProgress& lesson = *stage.shell->lesson();
        ctx->KeyPress(ImGuiKey_Enter);
        const std::size_t card = lesson.card();
        ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_1);
        ctx->Yield(2);
        IM_CHECK(stage.shell->screen() == ui::Screen::Live);
        ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_3);
        ctx->Yield(2);
        IM_CHECK(stage.shell->lesson() == &lesson);
        IM_CHECK_EQ(lesson.card(), card);
        // To the last card with a run to try. The key waits for the answer of a card that asks.
        const std::size_t last = lesson.lesson().cards.size() - 1;
        IM_CHECK_GT(lesson.lesson().cards[last].try_run, engine::RunId{0});
        for (std::size_t i = 0; i < 2 * last && lesson.card() < last; ++i)
          ctx->KeyPress(ImGuiKey_Enter);
        IM_CHECK_EQ(lesson.card(), last);
        if (lesson.asks()) {
          ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_T);
          IM_CHECK(stage.shell->screen() == ui::Screen::Lesson);
          ctx->KeyPress(ImGuiKey_Enter);
        }
        ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_T);
        ctx->Yield(2);
        IM_CHECK(stage.shell->screen() == ui::Screen::Live);
        IM_CHECK(stage.shell->session().live_is_shown());
        IM_CHECK_EQ(stage.shell->form().prompt, std::string("Write a short poem about the sea."));
        ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_3);
        ctx->Yield(3);
        IM_CHECK_EQ(stage.shell->session().shown().source, lesson.lesson().recording);
      },
      {}, catalog);
}

// In a small window at 150 % the prompt fills the panel Text.
TEST(LessonScripts, the_text_scrolls_to_the_step) {
  const ui::Catalog catalog = catalog_with_lessons();
  ui::WindowOptions small;
  small.width = 1280, small.height = 720, small.ui_scale = 150;
  play(
      "lesson_scroll",
      [&](ImGuiTestContext* ctx, Stage& stage) {
        IM_CHECK(stage.shell->open_lesson(catalog.lessons[1].path));
        ctx->Yield(6);
        const ImGuiWindow* text = ImGui::FindWindowByName("###lesson.text");
        IM_CHECK(text != nullptr);
        IM_CHECK_GT(text->ScrollMax.y, 0.0f);
        IM_CHECK_GE(text->Scroll.y, text->ScrollMax.y - 1);
        // The user can scroll back.
        ImGui::SetScrollY(const_cast<ImGuiWindow*>(text), 0);
        ctx->Yield(6);
        IM_CHECK_EQ(text->Scroll.y, 0.0f);
      },
      small, catalog);
}

TEST(LessonScripts, a_faulty_lesson_says_where) {
  play("lesson_faulty", [&](ImGuiTestContext*, Stage& stage) {
    IM_CHECK(!stage.shell->open_lesson(DECOSCOPE_SOURCE_DIR "/assets/trees/rows8.json"));
    IM_CHECK(stage.shell->message().find("rows8.json") != std::string::npos);
    IM_CHECK(stage.shell->lesson() == nullptr);
  });
}

bool is_shown(const char* name) {
  const ImGuiWindow* window = ImGui::FindWindowByName(name);
  return window && window->WasActive;
}

TEST(LessonScripts, a_lecture_shows_the_lesson_alone) {
  const ui::Catalog catalog = catalog_with_lessons();
  play(
      "lecture",
      [&](ImGuiTestContext* ctx, Stage& stage) {
        IM_CHECK(stage.shell->open_lesson(catalog.lessons[1].path));
        ui::LessonProgress& lesson = *stage.shell->lesson();
        ctx->Yield(2);
        IM_CHECK(is_shown("##top") && is_shown("##status"));
        const float normal = ImGui::GetFontSize();
        ctx->KeyPress(ImGuiKey_F11);
        ctx->Yield(4);
        IM_CHECK(stage.shell->presents());
        IM_CHECK(!is_shown("##top") && !is_shown("##status"));
        IM_CHECK_GT(ImGui::GetFontSize(), normal);
        // Space reveals and continues; the answer is hidden until then.
        ctx->KeyPress(ImGuiKey_Space);
        IM_CHECK_EQ(lesson.card(), std::size_t{1});
        IM_CHECK(!lesson.revealed(1));
        ctx->KeyPress(ImGuiKey_Space);
        IM_CHECK(lesson.revealed(1));
        ctx->KeyPress(ImGuiKey_Space);
        IM_CHECK_EQ(lesson.card(), std::size_t{2});
        // Everything is inside a rectangle of 16:9 in the middle.
        ctx->Yield(2);
        const ImVec2 size = ImGui::GetMainViewport()->Size;
        const float wide = std::min(size.x, size.y * 16 / 9), high = wide * 9 / 16;
        const ImRect safe({(size.x - wide) / 2, (size.y - high) / 2},
                          {(size.x + wide) / 2, (size.y + high) / 2});
        for (const char* name : {"##lesson_card", "###lesson.text", "###lesson.tree"}) {
          const ImGuiWindow* window = ImGui::FindWindowByName(name);
          IM_CHECK(window != nullptr);
          IM_CHECK(safe.Contains(window->Rect()));
        }
        // A red spot follows the mouse.
        ctx->MouseMoveToPos({safe.GetCenter().x, safe.GetCenter().y});
        ctx->Yield(2);
        IM_CHECK_GT(ImGui::GetForegroundDrawList()->VtxBuffer.Size, 0);
        ctx->KeyPress(ImGuiKey_F11);
        ctx->Yield(4);
        IM_CHECK(is_shown("##top"));
      },
      {}, catalog);
}

}  // namespace
