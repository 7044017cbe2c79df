// A recording while it is read: a slice of its events each frame, a bar that says how far it is,
// and what becomes of it in the end.
#include <chrono>

#include <fmt/format.h>

#include "ui/widgets/draw.h"
#include "ui/shell/shell.h"

namespace ui {
namespace {

using Clock = std::chrono::steady_clock;

// Of a frame of 33 ms while loading; the rest is for drawing.
constexpr std::chrono::milliseconds kSlice{12};
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
  const auto until = Clock::now() + kSlice;
  // Asked before the last take: what was read until the reader ended is then taken whole.
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
    remember_recent(settings_, done->path());
    settings_.last_folder = std::filesystem::path(done->path()).parent_path().string();
    if (!report.stopped.empty())
      say(fmt::format("{}: {}", done->path(), report.notices().front()));
    else if (session_.shown().timeline.runs().empty())
      say(done->path() + ": holds no run.");
  } catch (const engine::Error& error) {
    say(error.what());
  }
}

float Shell::draw_reading_bar(Context& c, float top) {
  if (!reads() || clock_ - opening_since_ < kBarAfterSeconds) return top;
  const std::string name = std::filesystem::path(opening_->path()).filename().string();
  const std::string events =
      fmt::format("{} events", with_commas(opening_is_shown_ ? c.timeline.n_events() : 0));
  if (work_bar("##reading", top, "Reading " + name, opening_->fraction(), events,
               "Cancel###cancel_reading", "keeps what was read so far (Esc)"))
    opening_->give_up();
  return top + px(kWorkBar);
}

}  // namespace ui
