// The tour of the screen Live: four steps, each of which ends when the user has done it.
#include <array>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/panels/time/timeline_view.h"
#include "ui/shell/catalog.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/sheet.h"

namespace ui {
namespace {

constexpr std::array<const char*, 4> kSteps{
    "Click a token in the panel Text. Every panel then shows where it came from.",
    "Press the right arrow key. The view goes to the next step of the decoder.",
    "Press Space. The view plays the run; Space stops it again.",
    "Drag over the Timeline. The panel Numbers then covers only that range."};

}  // namespace

void Shell::start_tour() {
  const engine::Timeline& shown = session_.shown().timeline;
  if (shown.runs().empty() && !catalog_.race_recording.empty()) open(catalog_.race_recording, true);
  show(Screen::Live);
  selection_.locked = {};
  tour_step_ = 1;
  tour_selects_ = true;
}

// Shows the next step of the tour when the user has done the present one.
void Shell::follow_tour(const Context& c) {
  if (tour_step_ == 0 || reads()) return;
  if (screen_ != Screen::Live) {
    tour_step_ = 0;
    return;
  }
  const TimeRange& range = state<TimelineView>().range;
  const engine::StepId step = selection_.locked.step;
  const bool is_done = tour_step_ == 1   ? selection_.locked.valid()
                       : tour_step_ == 2 ? step >= 0 && step != tour_begins_at_
                       : tour_step_ == 3 ? playhead_.mode == Playhead::Mode::Playing
                                         : range.range0 != range.range1;
  // Plain decoding has little to show: the tour begins with a run that has proposals.
  if (c.run() && std::exchange(tour_selects_, false) && c.run()->totals.n_proposed == 0)
    for (const engine::RunRecord& run : c.timeline.runs())
      if (run.totals.n_proposed > 0 && c.run()->totals.n_proposed == 0) selection_.run = run.id();
  if (!is_done) return;
  tour_begins_at_ = step;
  if (++tour_step_ <= std::ssize(kSteps)) return;
  tour_step_ = 0;
  say("That was the tour. ? shows all keys; the lessons (Alt+3) explain the decoders.");
}

// Draws the present step of the tour above the status bar. @return where it begins
float Shell::draw_tour(float bottom) {
  if (tour_step_ == 0 || reads()) return bottom;
  const float top =
      begin_sentence_bar("##tour", bottom,
                         fmt::format("{} of {}. {}", tour_step_, kSteps.size(),
                                     kSteps[static_cast<std::size_t>(tour_step_ - 1)]),
                         px(110));
  if (link("End the tour###end_tour")) tour_step_ = 0;
  ImGui::End();
  return top;
}

}  // namespace ui
