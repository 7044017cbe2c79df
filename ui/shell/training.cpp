// The screen Training: reads the files of a training run while they grow, and handles its bars and keys.
#include <filesystem>

#include <fmt/format.h>

#include "engine/event/recording/training_history.h"
#include "ui/files/exporting.h"
#include "ui/files/opening.h"
#include "ui/files/saving.h"
#include "ui/panels/live/probe_trajectory.h"
#include "ui/prepare/training.h"
#include "ui/shell/catalog.h"
#include "ui/shell/shell.h"
#include "ui/widgets/area.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

// Interval between checks of the files.
constexpr double kLookSeconds = 0.5;
// Interval between frames that update the time since the last report.
constexpr std::chrono::seconds kUpdateAfter{10};

}  // namespace

bool Shell::open_training(const std::string& path) {
  try {
    training_ = std::make_unique<engine::TrainingReader>(path);
  } catch (const engine::Error& error) {
    say(error.what());
    return false;
  }
  states_.training_changed();
  training_is_behind_ = true;
  settings_.last_training = path;
  return true;
}

// Reads a slice per frame until everything is read; then checks for additions at intervals.
void Shell::read_training() {
  if (!training_) return;
  const bool due = clock_ - training_looked_ >= kLookSeconds;
  if (!training_is_behind_ && !due) return;
  training_is_behind_ = training_->read();
  training_looked_ = clock_;
  looked_at_ = std::chrono::steady_clock::now();
}

bool Shell::has_news() const {
  if (!training_ || screen_ != Screen::Training) return false;
  if (training_is_behind_ || training_->may_have_changed()) return true;
  return training_->history().stage != engine::TrainingStage::Written &&
         std::chrono::steady_clock::now() - looked_at_ >= kUpdateAfter;
}

bool Shell::act_on_training(Action action) {
  if (screen_ != Screen::Training || !training_) return false;
  Context c = context();
  switch (action) {
    case Action::NextStep:
    case Action::PreviousStep:
      walk_probes(c, action == Action::NextStep ? 1 : -1, false);
      return true;
    case Action::ToStart:
    case Action::ToEnd:
      walk_probes(c, action == Action::ToEnd ? 1 : -1, true);
      return true;
    default:
      return false;
  }
}

void Shell::draw_training_state() {
  if (!training_) return;
  const TrainingStatus status = status_of(training_->history());
  ImGui::SameLine(0, px(12));
  ImGui::AlignTextToFramePadding();
  ImGui::PushFont(fonts().bold, kTextSize);
  words(training_->history().name, theme().bright);
  ImGui::PopFont();
  ImGui::SameLine(0, px(8));
  const float end = frame_area().wide() - px(345);
  words_within(status.words, status.is_over ? theme().good : theme().dim,
               std::max(px(40), end - ImGui::GetCursorPosX()));
  if (status.share < 0 || status.is_over) return;
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(11));
  share_bar(static_cast<float>(status.share), {px(90), px(5)}, handle_on(theme()));
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(11));
}

std::vector<std::string> Shell::training_bar() const {
  if (!training_) return {"no training run is open"};
  const engine::TrainingHistory& history = training_->history();
  if (captions_) return caption_forms(catalog_.app_version, history);
  // The folder is omitted first.
  std::vector<BarPart> parts{{history.folder, 0},
                             {fmt::format("{} reports", history.reports.size()), 2}};
  if (!history.probes.empty())
    parts.push_back({fmt::format("{} probes", history.probes.size()), 1});
  if (training_is_behind_) parts.push_back({"reading", 1});
  return forms_of(std::move(parts));
}

}  // namespace ui
