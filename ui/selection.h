// The one selection all panels share: what is hovered in one lights up in all, a click locks it,
// Shift+click and Ctrl+click choose several, and so does a click on a number.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/event.h"

namespace ui {

/// Something a panel can point at. Parts that are unknown are -1 (run: 0).
struct Place {
  engine::RunId run = 0;
  engine::StepId step = -1;
  int position = -1;  // from the sequence's start
  int row = -1;       // of the step's tree

  bool valid() const { return run != 0 && (step >= 0 || position >= 0); }
  bool operator==(const Place&) const = default;
};

/// Several places at once, looked up in the time it takes to halve their number.
class Chosen {
 public:
  Chosen() = default;
  Chosen(std::vector<Place> places, std::string why)
      : places_(std::move(places)), why_(std::move(why)) {
    for (const Place& p : places_) {
      if (p.step >= 0) steps_.emplace_back(p.run, p.step);
      if (p.position >= 0) positions_.emplace_back(p.run, p.position);
    }
    std::sort(steps_.begin(), steps_.end());
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
    std::sort(positions_.begin(), positions_.end());
  }

  std::span<const Place> places() const { return places_; }
  /// What they have in common, where a number chose them: "brought 3 tokens".
  const std::string& why() const { return why_; }
  std::size_t n_steps() const { return steps_.size(); }
  bool has(const Place& place) const {
    return std::find(places_.begin(), places_.end(), place) != places_.end();
  }
  /// Whether a step between two is among them, both ends included.
  bool has_step(engine::RunId run, engine::StepId first, engine::StepId last) const {
    const auto at = std::lower_bound(steps_.begin(), steps_.end(), std::pair(run, first));
    return at != steps_.end() && at->first == run && at->second <= last;
  }
  bool has_position(engine::RunId run, int position) const {
    return std::binary_search(positions_.begin(), positions_.end(), std::pair(run, position));
  }

 private:
  std::vector<Place> places_;
  std::string why_;
  std::vector<std::pair<engine::RunId, engine::StepId>> steps_;  // sorted, each once
  std::vector<std::pair<engine::RunId, int>> positions_;         // sorted
};

struct Selection {
  engine::RunId run = 0;                // the run the Live panels show
  std::uint32_t race = 0;               // the race Compare shows; 0: none
  std::vector<engine::RunId> compared;  // runs Compare shows in place of the race; empty: the race
  Place locked;                         // clicked
  Place hovered;                        // under the mouse in the previous frame
  Place next_hovered;                   // gathered during this frame

  void begin_frame() {
    hovered = next_hovered;
    next_hovered = {};
    if (locked != chosen_with_) choose({}, locked);  // another place was locked: they are forgotten
  }
  void hover(const Place& place) { next_hovered = place; }
  /// Locks the place alone, or frees it when it was locked alone already.
  void click(const Place& place) { choose({}, locked == place && !several() ? Place{} : place); }
  /// Ctrl+click: chooses the place beside what is chosen, or leaves it out again.
  void add(const Place& place) {
    std::vector<Place> all(chosen().places().begin(), chosen().places().end());
    if (all.empty() && locked.valid()) all.push_back(locked);
    if (std::erase(all, place) == 0) all.push_back(place);
    choose(all, all.empty() ? Place{} : all.back());
  }
  /// Chooses places together; `lead`, one of them, is what keys start from.
  void choose(std::vector<Place> places, const Place& lead, std::string why = {}) {
    locked = lead;
    chosen_with_ = lead;
    chosen_ = Chosen(std::move(places), std::move(why));
  }
  /// Locks another of the places chosen; they stay chosen.
  void move_to(const Place& place) { locked = chosen_with_ = place; }
  /// All places chosen together, the locked one among them; empty where none or one alone is
  /// locked, and as soon as another is.
  const Chosen& chosen() const {
    static const Chosen kNone;
    return locked.valid() && locked == chosen_with_ ? chosen_ : kNone;
  }
  bool several() const { return chosen().places().size() > 1; }

  /// What the panels describe: the hovered place, else the locked one.
  const Place& shown() const { return hovered.valid() ? hovered : locked; }
  bool lights_step(engine::RunId of, engine::StepId step) const {
    return lights_steps(of, step, step);
  }
  /// Whether a step between two lights up, both ends included: a slice may stand for many.
  bool lights_steps(engine::RunId of, engine::StepId first, engine::StepId last) const {
    const Place& p = shown();
    if (p.run == of && p.step >= 0 && first <= p.step && p.step <= last) return true;
    return !hovered.valid() && last >= 0 && chosen().has_step(of, std::max(0, first), last);
  }
  bool lights_position(engine::RunId of, int position) const {
    const Place& p = shown();
    if (p.run == of && p.position == position && position >= 0) return true;
    return !hovered.valid() && chosen().has_position(of, position);
  }
  /// Whether the position was clicked, alone or with others.
  bool locks_position(engine::RunId of, int position) const {
    return (locked.run == of && locked.position == position && position >= 0) ||
           chosen().has_position(of, position);
  }

 private:
  Chosen chosen_;
  Place chosen_with_;  // what was locked when they were chosen
};

}  // namespace ui
