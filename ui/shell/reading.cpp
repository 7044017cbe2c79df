// Reads a recording: takes a slice of its events per frame and shows the progress.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "engine/event/recording/training_history.h"
#include "ui/files/exporting.h"
#include "ui/files/opening.h"
#include "ui/files/saving.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

using Clock = std::chrono::steady_clock;

// Time per frame for reading, ms. It is ten times the time to draw a frame, because panels compute their content again after every
// slice: reading then takes most of the time, however long the recording is.
constexpr float kSlice = 12, kLongestSlice = 250, kTimesDrawing = 10;
constexpr std::size_t kPiece = 512;

}  // namespace

void Shell::show_live() {
  opening_.reset();
  opening_is_shown_ = false;
  session_.show_live();
}

double Shell::reading() const {
  return opening_ && opening_is_shown_ ? opening_->fraction() : -1;
}

void Shell::read_on() {
  if (!opening_) return;
  const std::chrono::duration<float, std::milli> slice(
      std::clamp(kTimesDrawing * draw_ms_, kSlice, kLongestSlice));
  const auto until = Clock::now() + slice;
  // Calls ended() before take(), so that after the end one more take() gets everything that was
  // read.
  bool ended = opening_->ended();
  while (Clock::now() < until) {
    std::vector<engine::Event> piece = opening_->take(kPiece);
    if (piece.empty()) {
      if (ended) return end_reading();
      return;
    }
    take_read(std::move(piece));
    ended = opening_->ended();
  }
}

void Shell::take_read(std::vector<engine::Event> events) {
  if (!opening_is_shown_) {
    limit_payload();
    session_.begin(opening_->path());
    adopt_document();
    opening_is_shown_ = true;
    if (!opening_keeps_screen_) show(Screen::Live);
  }
  for (const engine::Event& event : events) {
    const auto* started = std::get_if<engine::RunStarted>(&event);
    if (!started) continue;
    selection_.run = started->run;
    if (started->race == 0) continue;
    if (selection_.race == 0 && !opening_keeps_screen_) show(Screen::Compare);
    selection_.race = started->race;
  }
  session_.grow(events);
}

// A race that was opened begins with its first run with proposals, unless the user has selected another run than the last one meanwhile.
void Shell::show_run_with_proposals() {
  const engine::Timeline& timeline = session_.shown().timeline;
  if (timeline.runs().empty() || timeline.runs().back().id() != selection_.run) return;
  const auto race = timeline.race(selection_.race);
  const auto found = std::ranges::find_if(
      race, [](const engine::RunRecord* run) { return run->totals.n_proposed > 0; });
  if (found != race.end()) selection_.run = (*found)->id();
}

void Shell::end_reading() {
  const std::unique_ptr<Opening> done = std::move(opening_);
  const bool was_shown = opening_is_shown_;
  opening_is_shown_ = false;
  try {
    const engine::RecordingReport report = done->report();
    if (!was_shown) {
      session_.begin(done->path());
      adopt_document();
      if (!opening_keeps_screen_) show(Screen::Live);
    }
    session_.finish(report);
    show_run_with_proposals();
    follow_range();  // the measured range is that of the runs that are shown now
    restore_ranges();
    if (!restored_ || done->path() != restored_->path) {
      remember_recent(settings_.recents, done->path());
      settings_.last_folder = std::filesystem::path(done->path()).parent_path().string();
    }
    if (!report.stopped.empty())
      say(fmt::format("{}: {}", done->path(), report.notices().front()));
    else if (session_.shown().timeline.runs().empty())
      say(done->path() + ": contains no run.");
  } catch (const engine::Error& error) {
    std::error_code ignored;
    if (!std::filesystem::exists(done->path(), ignored))
      std::erase(settings_.recents, done->path());
    say(error.what());
  }
}

float Shell::draw_reading_bar(Context& c, float top) {
  if (!reads() || clock_ - opening_since_ < kBarAfterSeconds) return top;
  const std::string name = std::filesystem::path(opening_->path()).filename().string();
  const std::string events =
      fmt::format("{} events", with_commas(opening_is_shown_ ? c.timeline.n_events() : 0));
  if (work_bar("##reading", top, "Reading " + name, opening_->fraction(), events,
               "Cancel###cancel_reading", "keep the part that was read (Esc)"))
    opening_->give_up();
  return top + px(kWorkBar);
}

}  // namespace ui
