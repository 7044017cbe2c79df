// A reader's progress through a lesson, without a window.
#include "ui/lesson/progress.h"

#include <gtest/gtest.h>

#include "ui/shell/panel.h"

namespace {

using engine::AskFor;
using ui::LessonProgress;

// Three cards: an explanation, a number (answer 12 +- 1), options of which the second is right.
LessonProgress lesson() {
  engine::Lesson lesson{.path = "x.json", .title = "A lesson"};
  engine::LessonCard explains{.title = "1", .text = "text"};
  explains.view.run = 1;
  engine::LessonCard number = explains, which = explains;
  number.question =
      engine::LessonQuestion{.text = "how many?", .ask = AskFor::Number, .tolerance = 1};
  number.reveal_view.run = 2;
  which.question = engine::LessonQuestion{.text = "which?", .ask = AskFor::Which};
  lesson.cards = {explains, number, which};
  std::vector<engine::SolvedCard> solved(3);
  solved[1].answer = {.number = 12, .text = "12"};
  solved[2].answer = {.kind = engine::AnswerKind::Which, .text = "b"};
  solved[2].options = {"a", "b", "c"};
  solved[2].right = {1};
  return {lesson, solved};
}

TEST(LessonProgress, shows_reveals_and_scores) {
  LessonProgress progress = lesson();
  EXPECT_FALSE(progress.asks());
  progress.next();
  EXPECT_TRUE(progress.asks());
  EXPECT_EQ(progress.view().run, 1U);
  for (const char key : {'1', '3'}) progress.type(key);
  EXPECT_EQ(progress.score().n_answered, 0) << "counts only after the reveal";
  progress.next();
  EXPECT_TRUE(progress.revealed(1));
  EXPECT_EQ(progress.view().run, 2U);
  EXPECT_EQ(progress.result(1), "You said 13. Right: it was 12.");
  progress.next();
  progress.type('3');
  progress.next();
  EXPECT_EQ(progress.result(2), "You said c; it was b.");
  progress.next();
  EXPECT_TRUE(progress.at_end());
  EXPECT_EQ(progress.score().n_questions, 2);
  EXPECT_EQ(progress.score().n_answered, 2);
  EXPECT_EQ(progress.score().n_right, 1);
  progress.next();
  EXPECT_TRUE(progress.at_end());
}

TEST(LessonProgress, a_prediction_cannot_change_after_the_reveal) {
  LessonProgress progress = lesson();
  progress.next();
  progress.type('5');
  progress.next();
  progress.type('9');
  progress.move(-1);
  EXPECT_FALSE(progress.erase());
  EXPECT_EQ(progress.typed(1), "5");
  EXPECT_EQ(progress.result(1), "You said 5; it was 12.");
  progress.back();
  progress.next();
  EXPECT_TRUE(progress.revealed(1)) << "going back keeps it";
}

TEST(LessonProgress, an_answer_can_be_shown_without_a_prediction) {
  LessonProgress progress = lesson();
  for (int i = 0; i < 5; ++i) progress.next();
  EXPECT_TRUE(progress.at_end());
  EXPECT_EQ(progress.result(1), "It was 12.");
  EXPECT_EQ(progress.score().n_answered, 0);
}

TEST(LessonProgress, keys_type_erase_and_move) {
  LessonProgress progress = lesson();
  progress.next();
  for (const char key : {'1', '.', '2', '.', '5'}) progress.type(key);
  EXPECT_EQ(progress.typed(1), "1.25");
  EXPECT_TRUE(progress.erase());
  EXPECT_EQ(progress.typed(1), "1.2");
  progress.move(-1);
  EXPECT_EQ(progress.typed(1), "2.2") << "up counts up";
  progress.move(1);
  progress.move(1);
  progress.move(1);
  EXPECT_EQ(progress.typed(1), "0") << "not below 0";
  for (int i = 0; i < 20; ++i) progress.type('9');
  EXPECT_LE(progress.typed(1).size(), 8U);
  progress.next();
  progress.next();
  progress.type('4');
  EXPECT_FALSE(progress.chosen(2)) << "no such option";
  progress.move(1);
  EXPECT_EQ(progress.chosen(2), 0U);
  progress.move(1);
  EXPECT_EQ(progress.chosen(2), 1U);
  progress.move(5);
  EXPECT_EQ(progress.chosen(2), 2U);
}

TEST(LessonProgress, restart_forgets_predictions) {
  LessonProgress progress = lesson();
  progress.next();
  progress.type('1');
  progress.next();
  progress.restart();
  EXPECT_EQ(progress.card(), 0U);
  EXPECT_FALSE(progress.revealed(1));
  EXPECT_EQ(progress.typed(1), "");
  progress.back();
  EXPECT_EQ(progress.card(), 0U);
}

TEST(LessonPanels, the_window_has_every_panel_that_a_card_can_show) {
  for (const char* id : engine::lesson_panels()) EXPECT_NE(ui::panel_named(id), nullptr) << id;
}

}  // namespace
