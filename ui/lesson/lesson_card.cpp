#include "ui/lesson/lesson_card.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "ui/lesson/progress.h"
#include "ui/prepare/tokens/line_feeds.h"
#include "ui/shell/catalog.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

struct Sizes {
  float title, text;
};
constexpr Sizes kNormal{22, 17.5f}, kLarge{28, 22};

// Draws paragraphs, which an empty line separates.
void paragraphs(const std::string& text, Rgb rgb) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", at), text.size());
    std::string paragraph = text.substr(at, end - at);
    show_line_feeds(paragraph);  // of recorded tokens
    wrapped(paragraph, rgb);
    ImGui::Dummy({1, px(3)});
    at = end + 2;
  }
}

// Draws one option as a row that wraps. @return whether it was clicked
bool option_row(const LessonProgress& progress, std::size_t i) {
  const std::size_t card = progress.card();
  const engine::SolvedCard& solved = progress.solved(card);
  const bool chosen = progress.chosen(card) == i, revealed = progress.revealed(card);
  const bool right = std::ranges::find(solved.right, i) != solved.right.end();
  const std::string label = fmt::format("{}  {}", i + 1, solved.options[i]);
  const float wide = ImGui::GetContentRegionAvail().x, inside = wide - px(52);
  const float high = ImGui::CalcTextSize(label.c_str(), nullptr, false, inside).y + px(12);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::BeginDisabled(revealed);
  const bool clicked =
      ImGui::InvisibleButton(fmt::format("###option{}", i + 1).c_str(), {wide, high});
  ImGui::EndDisabled();
  const bool hovered = ImGui::IsItemHovered();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 end{at.x + wide, at.y + high};
  list->AddRectFilled(at, end, colour(hovered && !revealed ? theme().button_hot : theme().button),
                      px(6));
  if (chosen) list->AddRect(at, end, colour(handle_on(theme())), px(6), px(2));
  const char* mark = !revealed ? (chosen ? ">" : "") : right ? "+" : chosen ? "x" : "";
  const Rgb ink = !revealed ? theme().bright
                  : right   ? theme().good
                  : chosen  ? theme().bad
                            : theme().dim;
  list->AddText({at.x + px(10), at.y + px(6)}, colour(ink), mark);
  list->AddText(ImGui::GetFont(), ImGui::GetFontSize(), {at.x + px(30), at.y + px(6)}, colour(ink),
                label.c_str(), nullptr, inside);
  return clicked;
}

// Draws the number that the user types.
void number_row(LessonProgress& progress) {
  const std::string& typed = progress.typed(progress.card());
  ImGui::BeginDisabled(!progress.asks());
  if (button("-###less", false, true, "Down")) progress.move(1);
  ImGui::SameLine();
  const std::string shown = typed.empty() ? "_" : typed;
  ImGui::AlignTextToFramePadding();
  ImGui::PushFont(fonts().bold, 0);
  words(shown, theme().bright);
  ImGui::PopFont();
  ImGui::SameLine();
  if (button("+###more", false, true, "Up")) progress.move(-1);
  ImGui::EndDisabled();
  if (!progress.asks()) return;
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  words_within("or type a number", theme().dim, ImGui::GetContentRegionAvail().x);
}

void question_part(LessonProgress& progress) {
  const std::size_t card = progress.card();
  const engine::SolvedCard& solved = progress.solved(card);
  ImGui::PushFont(fonts().bold, 0);
  wrapped(solved.question, theme().bright);
  ImGui::PopFont();
  for (std::size_t i = 0; i < solved.options.size(); ++i)
    if (option_row(progress, i)) progress.choose(i);
  if (solved.options.empty()) number_row(progress);
  if (!progress.revealed(card)) return;
  ImGui::Dummy({1, px(4)});
  const bool answered = progress.answered(card), right = progress.right(card);
  ImGui::PushFont(fonts().bold, 0);
  wrapped((!answered ? ""
           : right   ? "+ "
                     : "x ") +
              progress.result(card),
          !answered ? theme().bright
          : right   ? theme().good
                    : theme().bad);
  ImGui::PopFont();
  paragraphs(solved.reveal, theme().text);
  // Shows the explanation, which may be below the window's edge: twice, because the text is higher once it is beside a scroll bar.
  int& n_scrolls = *ImGui::GetStateStorage()->GetIntRef(ImGui::GetID("revealed"));
  if (n_scrolls == 2) return;
  ++n_scrolls;
  ImGui::SetScrollHereY(1);
}

void score_part(const LessonProgress& progress) {
  const LessonScore score = progress.score();
  wrapped(fmt::format("{} of {} predictions were right.", score.n_right, score.n_questions),
          theme().bright);
  ImGui::Dummy({1, px(4)});
  for (std::size_t card = 0; card < progress.lesson().cards.size(); ++card) {
    if (!progress.lesson().cards[card].question) continue;
    const bool answered = progress.revealed(card) && progress.answered(card);
    const bool right = answered && progress.right(card);
    wrapped(fmt::format("{} {}",
                        right      ? "+"
                        : answered ? "x"
                                   : "-",
                        progress.solved(card).question),
            theme().text);
    wrapped(answered ? progress.result(card) : "Not answered. " + progress.result(card),
            right ? theme().good : theme().dim);
    ImGui::Dummy({1, px(4)});
  }
}

// Widths of a card with room for all buttons in one row, of a question and at the end, px at 100 %.
constexpr float kOneRow = 280, kOneRowAtEnd = 340;
constexpr const char* kListWords = "all lessons (Ctrl+Backspace)";

LessonRequest buttons_at_end(bool has_next_lesson) {
  LessonRequest request = LessonRequest::None;
  if (has_next_lesson && button("Next lesson###next_lesson", true, true, "Enter"))
    request = LessonRequest::NextLesson;
  if (has_next_lesson) continue_row("Lessons");
  if (button("Lessons###list", !has_next_lesson, true, kListWords)) request = LessonRequest::List;
  continue_row("Restart");
  if (button("Restart###restart", false, true, "Shift+Backspace")) request = LessonRequest::Restart;
  continue_row("Back");
  if (button("Back###back", false, true, "Backspace")) request = LessonRequest::Back;
  return request;
}

LessonRequest buttons_of(const LessonProgress& progress) {
  LessonRequest request = LessonRequest::None;
  const bool asks = progress.asks();
  if (button(asks ? "Show the answer###next" : "Continue###next", true, true, "Enter"))
    request = LessonRequest::Next;
  continue_row("Back");
  if (button("Back###back", false, progress.card() > 0, "Backspace")) request = LessonRequest::Back;
  if (progress.can_try()) {
    continue_row("Try it");
    if (button("Try it###try", false, true, "fill in Setup with the settings of this run (Ctrl+T)"))
      request = LessonRequest::Try;
  }
  continue_row("Lessons");
  if (button("Lessons###list", false, true, kListWords)) request = LessonRequest::List;
  return request;
}

}  // namespace

LessonRequest draw_lesson_card(LessonProgress& progress, bool large, bool has_next_lesson) {
  // A low window has no room for a question below a text of the large size.
  const Sizes& sizes = large && ImGui::GetMainViewport()->Size.y >= px(600) ? kLarge : kNormal;
  const std::size_t n = progress.lesson().cards.size();
  words_within(progress.at_end() ? progress.lesson().title
                                 : fmt::format("{}, card {} of {}", progress.lesson().title,
                                               progress.card() + 1, n),
               theme().dim, ImGui::GetContentRegionAvail().x);
  share_bar(static_cast<float>(progress.card()) / static_cast<float>(n),
            {ImGui::GetContentRegionAvail().x, px(4)}, handle_on(theme()));
  ImGui::Dummy({1, px(4)});
  const float row = ImGui::GetFrameHeight() + ImGui::GetStyle().ItemSpacing.y;
  const float wide = progress.at_end() ? kOneRowAtEnd : kOneRow;
  const float foot = (ImGui::GetContentRegionAvail().x < px(wide) ? 2 : 1) * row + px(4);
  ImGui::BeginChild("card", {0, -foot}, ImGuiChildFlags_None, ImGuiWindowFlags_None);
  ImGui::PushID(static_cast<int>(progress.card()));
  ImGui::PushFont(fonts().bold, sizes.title);
  wrapped(progress.at_end() ? "Your score" : progress.shown().title, theme().bright);
  ImGui::PopFont();
  ImGui::PushFont(fonts().regular, sizes.text);
  if (progress.at_end()) {
    score_part(progress);
  } else {
    paragraphs(progress.solved(progress.card()).text, theme().text);
    if (progress.shown().question) question_part(progress);
  }
  ImGui::PopFont();
  ImGui::PopID();
  ImGui::EndChild();
  return progress.at_end() ? buttons_at_end(has_next_lesson) : buttons_of(progress);
}

std::string draw_lesson_list(const Catalog& catalog,
                             const std::map<std::string, std::string>& results) {
  std::string chosen;
  ImGui::PushFont(fonts().bold, 26);
  words("Lessons", theme().bright);
  ImGui::PopFont();
  wrapped(
      "Each lesson is a recording of a real run. You predict what happens next, then see it. 1 to "
      "9 "
      "open a lesson. In it, Up, Down and digits choose an answer, Enter shows it and continues, "
      "Backspace goes back.",
      theme().dim);
  ImGui::Dummy({1, px(6)});
  if (catalog.lessons.empty()) wrapped("No lesson is installed.", theme().dim);
  for (std::size_t i = 0; i < catalog.lessons.size(); ++i) {
    const CatalogLesson& lesson = catalog.lessons[i];
    const auto result = results.find(lesson.path);
    ImGui::PushFont(fonts().bold, 17);
    if (link(fmt::format("{}. {}###lesson{}", i + 1, lesson.title, i + 1).c_str()))
      chosen = lesson.path;
    ImGui::PopFont();
    ImGui::SameLine();
    words(engine::counted(lesson.minutes, "minute") +
              (result == results.end() ? "" : ", " + result->second),
          result == results.end() ? theme().dim : theme().good);
    wrapped(lesson.summary, theme().dim);
    ImGui::Dummy({1, px(4)});
  }
  return chosen;
}

}  // namespace ui
