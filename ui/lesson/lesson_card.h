// Draws the card of a lesson, and the list of lessons.
#pragma once

#include <map>
#include <string>

#include <imgui.h>

namespace ui {

class LessonProgress;
struct Catalog;
struct Context;

/// A request of the card's buttons.
enum class LessonRequest {
  None,
  Next,  ///< reveal the answer, or continue
  Back,
  Restart,
  List,  ///< show the list of lessons
  NextLesson,
  Try,  ///< take over the settings of the card's run
};

/// Draws the card in the current window. Predictions that the mouse makes go to `progress`.
/// @param large  true: large type, for a lecture
/// @param has_next_lesson  offer the next lesson at the end
LessonRequest draw_lesson_card(LessonProgress& progress, bool large, bool has_next_lesson);

/// Draws the list of the lessons that the catalog has.
/// @param results  the result of each lesson that was finished in this session, by path
/// @return  the path of the lesson that was chosen; empty: none
std::string draw_lesson_list(const Catalog& catalog,
                             const std::map<std::string, std::string>& results);

/// Draws a red spot under the mouse, for a lecture.
void draw_laser_spot();

}  // namespace ui
