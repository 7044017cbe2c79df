#include "ui/lesson/progress.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "ui/prepare/tokens/line_feeds.h"

namespace ui {

namespace {

constexpr std::size_t kMaxTyped = 8;

}  // namespace

LessonProgress::LessonProgress(engine::Lesson lesson, std::vector<engine::SolvedCard> solved)
    : lesson_(std::move(lesson)), solved_(std::move(solved)), predictions_(lesson_.cards.size()) {
  for (engine::SolvedCard& card : solved_) {
    show_line_feeds(card.question);
    show_line_feeds(card.answer.text);
    for (std::string& option : card.options) show_line_feeds(option);
  }
}

bool LessonProgress::asks() const {
  return !at_end() && shown().question && !predictions_[card_].revealed;
}

const engine::LessonView& LessonProgress::view() const {
  const std::size_t card = std::min(card_, lesson_.cards.size() - 1);
  const engine::LessonCard& of = lesson_.cards[card];
  return of.question && predictions_[card].revealed ? of.reveal_view : of.view;
}

void LessonProgress::next() {
  if (at_end()) return;
  if (asks())
    predictions_[card_].revealed = true;
  else
    ++card_;
}

void LessonProgress::back() {
  if (card_ > 0) --card_;
}

void LessonProgress::restart() {
  card_ = 0;
  predictions_.assign(lesson_.cards.size(), {});
}

void LessonProgress::choose(std::size_t option) {
  if (asks() && option < solved_[card_].options.size()) predictions_[card_].option = option;
}

void LessonProgress::move(int by) {
  if (!asks()) return;
  const auto n = static_cast<int>(solved_[card_].options.size());
  if (n > 0) {
    const auto now = predictions_[card_].option;
    const int from = now ? static_cast<int>(*now) : (by > 0 ? -1 : n);
    choose(static_cast<std::size_t>(std::clamp(from + by, 0, n - 1)));
    return;
  }
  // The first key press gives 0 or 1; up increases a number.
  const double number = std::max(0.0, number_of(card_).value_or(by < 0 ? 0 : 1) - by);
  predictions_[card_].typed = engine::number_words(number);
}

void LessonProgress::type(char key) {
  if (!asks()) return;
  if (!solved_[card_].options.empty()) {
    if (key >= '1' && key <= '9') choose(static_cast<std::size_t>(key - '1'));
    return;
  }
  std::string& typed = predictions_[card_].typed;
  const bool second_point = key == '.' && typed.find('.') != std::string::npos;
  if (typed.size() < kMaxTyped && !second_point) typed += key;
}

bool LessonProgress::erase() {
  if (!asks() || predictions_[card_].typed.empty()) return false;
  predictions_[card_].typed.pop_back();
  return true;
}

std::optional<double> LessonProgress::number_of(std::size_t card) const {
  const std::string& typed = predictions_[card].typed;
  double number = 0;
  const auto [end, error] = std::from_chars(typed.data(), typed.data() + typed.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool LessonProgress::answered(std::size_t card) const {
  return lesson_.cards[card].question && (predictions_[card].option || number_of(card));
}

bool LessonProgress::right(std::size_t card) const {
  if (!answered(card)) return false;
  if (const auto option = predictions_[card].option)
    return std::ranges::find(solved_[card].right, *option) != solved_[card].right.end();
  return engine::is_right(*lesson_.cards[card].question, solved_[card].answer, *number_of(card));
}

std::string LessonProgress::answer_words(std::size_t card) const {
  const engine::SolvedCard& solved = solved_[card];
  if (solved.options.empty()) return solved.answer.text;
  std::string words;
  for (const std::size_t i : solved.right)
    words += (words.empty() ? "" : " or ") + solved.options[i];
  // A range of numbers does not say which number it was.
  if (solved.answer.kind == engine::AnswerKind::Number) words += " (" + solved.answer.text + ")";
  return words;
}

std::string LessonProgress::result(std::size_t card) const {
  const std::string answer = answer_words(card);
  if (!answered(card)) return fmt::format("It was {}.", answer);
  const auto option = predictions_[card].option;
  const std::string said =
      option ? solved_[card].options[*option] : engine::number_words(*number_of(card));
  if (right(card)) return fmt::format("You said {}. Right: it was {}.", said, answer);
  return fmt::format("You said {}; it was {}.", said, answer);
}

LessonScore LessonProgress::score() const {
  LessonScore score;
  for (std::size_t card = 0; card < lesson_.cards.size(); ++card) {
    if (!lesson_.cards[card].question) continue;
    ++score.n_questions;
    if (!revealed(card) || !answered(card)) continue;
    ++score.n_answered;
    if (right(card)) ++score.n_right;
  }
  return score;
}

}  // namespace ui
