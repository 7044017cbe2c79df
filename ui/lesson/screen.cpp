// The screen Lessons: the card of a lesson beside the panels that it names, and lecture mode.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "ui/files/opening.h"
#include "ui/lesson/lesson_card.h"
#include "ui/lesson/progress.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/use_again.h"
#include "ui/shell/catalog.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"
#include "ui/shell/states.h"
#include "ui/widgets/area.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

constexpr ImGuiWindowFlags kStill = ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoResize |
                                    ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoDocking |
                                    ImGuiWindowFlags_NoSavedSettings |
                                    ImGuiWindowFlags_NoBringToFrontOnFocus;

// Frames until the size of a panel's new content is known.
constexpr int kScrollFrames = 3;

// Begins a window that looks like a card; ImGui::End() ends it.
bool begin_still(const char* name, const Area& box, ImVec2 padding, ImGuiWindowFlags flags) {
  ImGui::SetNextWindowPos(box.min);
  ImGui::SetNextWindowSize({std::max(px(40), box.wide()), std::max(px(40), box.high())});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, padding);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(8));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, colour(theme().card));
  ImGui::PushStyleColor(ImGuiCol_TitleBg, colour(theme().card));
  ImGui::PushStyleColor(ImGuiCol_TitleBgActive, colour(theme().card));
  ImGui::PushStyleColor(ImGuiCol_Border, colour(theme().line));
  const bool open = ImGui::Begin(name, nullptr, kStill | flags);
  ImGui::PopStyleColor(4);
  ImGui::PopStyleVar(3);
  return open;
}

// Returns the digit whose key was pressed.
std::optional<int> pressed_digit() {
  for (int digit = 0; digit <= 9; ++digit)
    if (ImGui::IsKeyPressed(static_cast<ImGuiKey>(ImGuiKey_0 + digit)) ||
        ImGui::IsKeyPressed(static_cast<ImGuiKey>(ImGuiKey_Keypad0 + digit)))
      return digit;
  return std::nullopt;
}

// Returns true if the panel shows the runs of a race side by side.
bool compares(const engine::LessonView& view) {
  return std::ranges::any_of(view.panels, [](const std::string& id) {
    const Panel* panel = panel_named(id.c_str());
    return panel && panel->live == Dock::None && panel->compare != Dock::None;
  });
}

}  // namespace

bool Shell::open_lesson(const std::string& path) {
  if (export_waits()) return false;
  try {
    engine::Lesson lesson = engine::read_lesson(path);
    std::vector<engine::SolvedCard> solved =
        engine::solve_lesson(lesson, engine::load_lesson_recording(lesson));
    lesson_ = std::make_unique<LessonProgress>(std::move(lesson), std::move(solved));
  } catch (const engine::Error& error) {
    say(error.what());
    return false;
  }
  show(Screen::Lesson);
  show_lesson_recording();
  return lesson_ != nullptr;
}

// Shows the recording of the lesson instead of another document.
void Shell::show_lesson_recording() {
  opening_.reset();
  opening_is_shown_ = false;
  try {
    session_.open(lesson_->lesson().recording);
  } catch (const engine::Error& error) {  // the file was removed since the lesson was opened
    say(error.what());
    close_lesson();
    return;
  }
  adopt_document();
  show_lesson_view();
}

bool Shell::lesson_compares() const {
  return screen_ == Screen::Lesson && lesson_ && compares(lesson_->view());
}

// Shows the recording of the lesson again after another document, and performs the request of the card's buttons: between frames, because
// panels hold references to the document.
void Shell::follow_lesson() {
  // A trace that is being written reads the document shown.
  if (screen_ != Screen::Lesson || !lesson_ || exports()) return;
  if (session_.shown().source != lesson_->lesson().recording) show_lesson_recording();
  act_on_card(std::exchange(lesson_request_, LessonRequest::None));
}

// Moves selection and playhead to the step that the card names.
void Shell::show_lesson_view() {
  const engine::LessonView& view = lesson_->view();
  Context c = context();
  const engine::RunRecord* run = c.timeline.run(view.run);
  if (!run) return;
  selection_.run = view.run;
  selection_.race = run->started.race;
  selection_.compared.clear();
  selection_.locked = {};
  lesson_scrolls_ = kScrollFrames;
  c.show_whole_timeline();
  const RunTimes& times = c.times(*run);
  const std::size_t i = view.step < 0 ? times.steps.size() : times.index_of(view.step);
  if (i >= times.steps.size()) {
    playhead_.go_to(c.end(), c.end());
    return;
  }
  const double end = std::max(c.end(), times.end_compute());
  playhead_.go_to(view.before ? times.steps[i].compute0 : times.steps[i].compute1, end);
  if (!view.before) selection_.locked = {view.run, view.step, -1, -1};
}

void Shell::act_on_card(LessonRequest request) {
  if (!lesson_ || request == LessonRequest::None) return;
  const bool shows_other = request == LessonRequest::List || request == LessonRequest::NextLesson ||
                           request == LessonRequest::Try;
  if (shows_other && export_waits()) return;
  switch (request) {
    case LessonRequest::Next:
      lesson_->next();
      break;
    case LessonRequest::Back:
      lesson_->back();
      break;
    case LessonRequest::Restart:
      lesson_->restart();
      break;
    case LessonRequest::List:
      close_lesson();
      return;
    case LessonRequest::NextLesson:
      if (const std::string next = next_lesson(); !next.empty()) open_lesson(next);
      return;
    case LessonRequest::Try:
      try_lesson_run();
      return;
    case LessonRequest::None:
      break;
  }
  if (lesson_->at_end()) {
    const LessonScore score = lesson_->score();
    lesson_results_[lesson_->lesson().path] =
        fmt::format("{} of {} right", score.n_right, score.n_questions);
  }
  show_lesson_view();
}

void Shell::close_lesson() {
  lesson_.reset();
  show_live();
  adopt_document();
}

// Takes over the settings of the card's run and shows them on the screen Live. The lesson stays open.
void Shell::try_lesson_run() {
  const engine::RunId id = lesson_->shown().try_run;
  const engine::RunRecord* run = session_.shown().timeline.run(id);
  if (!run) return;
  use_again(form_, catalog_, session_.shown().timeline, *run);
  show_live();
  adopt_document();
  show(Screen::Live);
  say("Setup has the settings of this run. Run (Ctrl+Enter) starts it; Alt+3 returns to the "
      "lesson.");
}

// Returns the path of the lesson after the one shown; empty if it is the last one or not in the list.
std::string Shell::next_lesson() const {
  const auto& lessons = catalog_.lessons;
  const auto at = std::ranges::find(lessons, lesson_->lesson().path, &CatalogLesson::path);
  return at == lessons.end() || at + 1 == lessons.end() ? "" : (at + 1)->path;
}

bool Shell::act_on_lesson(Action action) {
  const bool on = screen_ == Screen::Lesson && lesson_;
  switch (action) {
    case Action::Lessons:
      show(Screen::Lesson);
      return true;
    case Action::LessonNext:
      if (on) act_on_card(lesson_->at_end() ? LessonRequest::NextLesson : LessonRequest::Next);
      return true;
    case Action::LessonBack:
      if (on && !lesson_->erase()) act_on_card(LessonRequest::Back);
      return true;
    case Action::LessonTry:
      if (on && lesson_->can_try()) act_on_card(LessonRequest::Try);
      return true;
    case Action::LessonList:
      if (on) act_on_card(LessonRequest::List);
      return true;
    case Action::LessonRestart:
      if (on) act_on_card(LessonRequest::Restart);
      return true;
    default:
      return false;
  }
}

// Handles the keys that mean something else on other screens: digits, Up and Down, and Space in a lecture. @return whether one was pressed
bool Shell::take_lesson_keys() {
  if (screen_ != Screen::Lesson || shows_sheet()) return false;
  const ImGuiIO& io = ImGui::GetIO();
  if (io.WantTextInput || io.KeyCtrl || io.KeyAlt) return false;
  if (!lesson_) {
    const auto number = static_cast<std::size_t>(io.KeyShift ? 0 : pressed_digit().value_or(0));
    if (number == 0 || number > catalog_.lessons.size()) return false;
    requests_.open_lesson = catalog_.lessons[number - 1].path;
    return true;
  }
  for (const ImGuiKey key : {ImGuiKey_UpArrow, ImGuiKey_DownArrow}) ImGui::SetKeyOwner(key, 1);
  if (presents_ && ImGui::IsKeyPressed(ImGuiKey_Space)) {
    perform(Action::LessonNext);
    return true;
  }
  if (!lesson_->asks() || io.KeyShift) return false;
  if (const std::optional<int> digit = pressed_digit()) {
    lesson_->type(static_cast<char>('0' + *digit));
    return true;
  }
  const bool is_number = lesson_->solved(lesson_->card()).options.empty();
  if (is_number && (ImGui::IsKeyPressed(ImGuiKey_Period) || ImGui::IsKeyPressed(ImGuiKey_Comma))) {
    lesson_->type('.');
    return true;
  }
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) lesson_->move(-1);
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) lesson_->move(1);
  return false;
}

void Shell::draw_lesson_panel(Context& c, const char* id, ImVec2 min, ImVec2 max) {
  const Panel* panel = panel_named(id);
  if (!panel) return;
  c.compare = panel->live == Dock::None && panel->compare != Dock::None;
  const char* title = c.compare && *panel->compare_title ? panel->compare_title : panel->title;
  const ImVec2 padding = panel->bare ? ImVec2(px(4), px(4)) : ImVec2(px(12), px(8));
  const ImGuiWindowFlags scroll = panel->wide ? ImGuiWindowFlags_HorizontalScrollbar : 0;
  if (begin_still(window_name(Screen::Lesson, id, title).c_str(), {min, max}, padding, scroll)) {
    name_run_in_title(c, *panel);
    const std::string empty = panel->empty(c);
    if (empty.empty())
      panel->draw(c);
    else
      empty_state(empty, panel->sketch);
    // The end of the answer, where the card's step is.
    if (lesson_scrolls_ > 0 && std::string_view(id) == "text") ImGui::SetScrollHereY(1);
  }
  ImGui::End();
}

void Shell::draw_lesson_screen(float top, float bottom) {
  Area area{{frame_area().min.x, top}, {frame_area().max.x, bottom}};
  if (!presents_)
    area = {{area.min.x + px(8), area.min.y + px(8)}, {area.max.x - px(8), area.max.y - px(4)}};
  if (!lesson_) {
    const float wide = std::min(area.wide(), px(820)), x = (area.min.x + area.max.x - wide) / 2;
    std::string chosen;
    if (begin_still("##lessons", {{x, area.min.y}, {x + wide, area.max.y}}, {px(24), px(18)},
                    ImGuiWindowFlags_NoTitleBar))
      chosen = draw_lesson_list(catalog_, lesson_results_);
    ImGui::End();
    if (!chosen.empty()) requests_.open_lesson = chosen;
    return;
  }
  const float gap = px(8), card = std::round(area.wide() * (presents_ ? 0.44f : 0.38f));
  LessonRequest request = LessonRequest::None;
  if (begin_still("##lesson_card", {area.min, {area.min.x + card, area.max.y}}, {px(18), px(14)},
                  ImGuiWindowFlags_NoTitleBar))
    request = draw_lesson_card(*lesson_, presents_, !next_lesson().empty());
  ImGui::End();
  Context c = context();
  const std::vector<std::string> panels = lesson_->view().panels;
  const auto n = static_cast<float>(panels.size());
  const float high = (area.high() - gap * (n - 1)) / n, left = area.min.x + card + gap;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const float y = area.min.y + static_cast<float>(i) * (high + gap);
    draw_lesson_panel(c, panels[i].c_str(), {left, y}, {area.max.x, y + high});
  }
  lesson_scrolls_ = std::max(0, lesson_scrolls_ - 1);
  if (request != LessonRequest::None) lesson_request_ = request;
}

void draw_laser_spot() {
  if (!ImGui::IsMousePosValid()) return;
  const ImVec2 at = ImGui::GetMousePos();
  ImDrawList* list = ImGui::GetForegroundDrawList();
  constexpr Rgb kRed{0xFF, 0x2A, 0x2A};
  list->AddCircleFilled(at, px(16), colour(kRed, 0.18f));
  list->AddCircleFilled(at, px(8), colour(kRed, 0.75f));
  list->AddCircle(at, px(8), colour(kWhite, 0.8f));
}

}  // namespace ui
