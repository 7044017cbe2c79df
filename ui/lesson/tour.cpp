// The tour of the screen Live: four steps, each of which ends when the user has done it.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "engine/event/timeline/timeline.h"
#include "ui/shell/catalog.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/sheet.h"

namespace ui {
namespace {

constexpr double kPlaySeconds = 10;  // the least that the whole run plays in the tour

constexpr std::array<const char*, 4> kSteps{
    "Press Space. The view plays the run from its start.",
    "Press Space again when some tokens are written. The view pauses.",
    "Click a token in the panel Text. Every panel then shows where it came from.",
    "Find its step in the Timeline: click slice {} of the lane target. F centres it."};

}  // namespace

void Shell::start_tour() {
  const engine::Timeline& shown = session_.shown().timeline;
  if (shown.runs().empty() && !catalog_.race_recording.empty()) open(catalog_.race_recording, true);
  show(Screen::Live);
  selection_.locked = {};
  tour_step_ = 1;
  tour_begins_ = true;
}

// Selects the run of the tour and moves the playhead to its start.
void Shell::prepare_tour(const Context& c) {
  // Plain decoding has little to show: the tour begins with a run that has proposals.
  for (const engine::RunRecord& run : c.timeline.runs())
    if (run.totals.n_proposed > 0 && c.run()->totals.n_proposed == 0) selection_.run = run.id();
  playhead_ = {.mode = Playhead::Mode::Paused,
               .at = 0,
               .speed = std::min(1.0, c.end() / 1e9 / kPlaySeconds)};
}

// Shows the next step of the tour when the user has done the present one.
void Shell::follow_tour(const Context& c) {
  if (tour_step_ == 0) return;
  if (screen_ != Screen::Live) return leave_tour();
  if (reads() || !c.run()) return;
  if (std::exchange(tour_begins_, false)) prepare_tour(c);
  const Place& now = selection_.locked;
  const bool is_done = tour_step_ == 1 ? playhead_.mode == Playhead::Mode::Playing
                       : tour_step_ == 2
                           ? playhead_.mode == Playhead::Mode::Paused && playhead_.at < c.end()
                       : tour_step_ == 3 ? now.position >= 0 && now.step >= 0 && now != tour_place_
                                         : now == Place{tour_place_.run, tour_place_.step, -1, -1};
  if (!is_done) return;
  tour_place_ = now;
  if (++tour_step_ <= std::ssize(kSteps)) return;
  leave_tour();
  settings_.tour_done = true;
  say("That was the tour. ? shows all keys; the lessons (Alt+3) explain the decoders.");
}

void Shell::leave_tour() {
  tour_step_ = 0;
  playhead_.speed = 1;
}

// Draws the present step of the tour above the status bar. @return where it begins
float Shell::draw_tour(float bottom) {
  if (tour_step_ == 0 || reads()) return bottom;
  const std::string sentence =
      fmt::format(fmt::runtime(kSteps[static_cast<std::size_t>(tour_step_ - 1)]), tour_place_.step);
  const float top = begin_sentence_bar(
      "##tour", bottom, fmt::format("{} of {}. {}", tour_step_, kSteps.size(), sentence), px(110));
  if (link("End the tour###end_tour")) {
    leave_tour();
    settings_.tour_done = true;
  }
  ImGui::End();
  return top;
}

}  // namespace ui
