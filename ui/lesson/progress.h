// The progress of a reader through a lesson: the card, the predictions and the score. Nothing of it is stored or sent.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/lesson/lesson.h"

namespace ui {

/// The number of questions, of those that were answered, and of those that were answered right.
struct LessonScore {
  int n_questions = 0, n_answered = 0, n_right = 0;
};

/// A lesson in progress.
class LessonProgress {
 public:
  /// @param solved  [lesson.cards] from solve_lesson()
  LessonProgress(engine::Lesson lesson, std::vector<engine::SolvedCard> solved);

  /// Returns the lesson.
  const engine::Lesson& lesson() const { return lesson_; }
  /// Returns the index of the card; the number of cards at the end, where the score is shown.
  std::size_t card() const { return card_; }
  /// Returns true at the end.
  bool at_end() const { return card_ == lesson_.cards.size(); }
  /// Returns a card. Only while not at_end().
  const engine::LessonCard& shown() const { return lesson_.cards[card_]; }
  /// Returns the texts and the answer of a card.
  const engine::SolvedCard& solved(std::size_t card) const { return solved_[card]; }
  /// Returns true if the card asks and the answer is not shown yet.
  bool asks() const;
  /// Returns true if the card offers the settings of its run: its answer is shown, or it has none.
  bool can_try() const { return !at_end() && shown().try_run > 0 && !asks(); }
  /// Returns the part of the recording that belongs to the card, or to its answer once that is shown. At the end that of the last card.
  const engine::LessonView& view() const;

  /// Shows the answer of a card that asks, else the next card. An answer can be shown without a prediction.
  void next();
  /// Shows the previous card, with the answer if it was shown before.
  void back();
  /// Starts over without predictions.
  void restart();

  /// Chooses an option of the card that asks; without effect if there is no such option.
  void choose(std::size_t option);
  /// Moves the chosen option, or changes the typed number, by `by`.
  void move(int by);
  /// Appends a digit or a decimal point to the typed number, or chooses option 1 to 9.
  void type(char key);
  /// Removes the last typed character. @return false if there was none
  bool erase();
  /// Returns the chosen option.
  std::optional<std::size_t> chosen(std::size_t card) const { return predictions_[card].option; }
  /// Returns the typed number as text.
  const std::string& typed(std::size_t card) const { return predictions_[card].typed; }

  /// Returns true if the card's answer is shown.
  bool revealed(std::size_t card) const { return predictions_[card].revealed; }
  /// Returns true if the user has made a prediction.
  bool answered(std::size_t card) const;
  /// Returns true if the prediction was right.
  bool right(std::size_t card) const;
  /// Returns the result of a card: "You said 3, and it was 2."
  std::string result(std::size_t card) const;
  /// Returns the score so far.
  LessonScore score() const;

 private:
  struct Prediction {
    std::optional<std::size_t> option;
    std::string typed;
    bool revealed = false;
  };

  std::optional<double> number_of(std::size_t card) const;
  std::string answer_words(std::size_t card) const;

  engine::Lesson lesson_;
  std::vector<engine::SolvedCard> solved_;
  std::vector<Prediction> predictions_;  // [cards]
  std::size_t card_ = 0;
};

}  // namespace ui
