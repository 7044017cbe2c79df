// "Watch a race": a bundled recording plays by itself, with one caption for each notable moment. Any key or click takes over.
#include <algorithm>

#include <imgui.h>

#include "ui/prepare/captions.h"
#include "ui/prepare/time/run_times.h"
#include "ui/shell/catalog.h"
#include "ui/shell/shell.h"
#include "ui/widgets/area.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/sheet.h"

namespace ui {
namespace {

constexpr double kPlaySeconds = 17;      // of the whole race
constexpr double kCaptionSeconds = 1.6;  // the least for a caption

bool has_input() {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.MouseWheel != 0 || ImGui::IsMouseClicked(ImGuiMouseButton_Left) ||
      ImGui::IsMouseClicked(ImGuiMouseButton_Right))
    return true;
  for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_GamepadStart; ++key)
    if (ImGui::IsKeyPressed(static_cast<ImGuiKey>(key), false)) return true;
  return false;
}

}  // namespace

void Shell::watch_race() {
  if (catalog_.race_recording.empty() || export_waits()) return;
  open(catalog_.race_recording);
  watched_ = Watched::Reading;
}

// Begins to play once the recording is read, and ends the guidance at the first input.
void Shell::follow_watched_race(const Context& c) {
  if (watched_ == Watched::No) return;
  if (watched_ == Watched::Reading) {
    if (reads()) return;
    if (session_.shown().source != catalog_.race_recording) {  // it could not be opened
      watched_ = Watched::No;
      return;
    }
    std::vector<CaptionLane> lanes;
    for (const engine::RunRecord* run : c.shown_runs())
      lanes.push_back({run, &c.times(*run), c.name_of(*run)});
    captions_shown_ = captions_of(c.timeline, lanes, c.end() * kCaptionSeconds / kPlaySeconds);
    watched_ = captions_shown_.empty() ? Watched::No : Watched::Playing;
    playhead_ = {.mode = Playhead::Mode::Playing, .at = 0, .speed = c.end() / 1e9 / kPlaySeconds};
    watched_since_ = clock_;
  } else if (has_input()) {
    watched_ = Watched::No;
    if (playhead_.mode == Playhead::Mode::Playing) playhead_.go_to(playhead_.at, c.end());
    playhead_.speed = 1;
    say("You have taken over. Space plays, the arrow keys go step by step, Home returns to the "
        "start.");
  }
}

bool Shell::plays_captions() const {
  return watched_ == Watched::Playing &&
         clock_ - watched_since_ < kPlaySeconds + 2 * kCaptionSeconds;
}

// Draws the caption above the status bar. @return where it begins
float Shell::draw_caption(const Context& c, float bottom) {
  if (watched_ != Watched::Playing) return bottom;
  // The caption of the end follows the last step.
  const double pace = c.end() / kPlaySeconds;
  const double at = std::max(playhead_.at, (clock_ - watched_since_) * pace);
  // A narrow window has room for the caption alone.
  const bool is_narrow = frame_area().wide() < px(1060);
  const float top = begin_sentence_bar("##caption", bottom, caption_at(captions_shown_, at),
                                       is_narrow ? 0 : px(234));
  if (!is_narrow) words("press any key to take over", theme().dim);
  ImGui::End();
  return top;
}

}  // namespace ui
