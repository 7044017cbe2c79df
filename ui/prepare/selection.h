// The selection that all panels share. The place under the pointer is highlighted in all panels; a click locks it; Shift+click,
// Ctrl+click and a click on a figure select several places.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/event.h"

namespace ui {

/// A step, a token or a row of a run. Unknown parts are -1; an unknown run is 0.
struct Place {
  engine::RunId run = 0;
  engine::StepId step = -1;
  int position = -1;  // position in the sequence
  int row = -1;       // row of the step's token tree

  /// True if at least one part is known.
  bool valid() const { return run != 0 && (step >= 0 || position >= 0); }
  bool operator==(const Place&) const = default;
};

/// Several places; lookups take logarithmic time.
class Chosen {
 public:
  Chosen() = default;
  /// @param why  the property that the places share
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

  /// Returns all places, in the order of selection.
  std::span<const Place> places() const { return places_; }
  /// If a figure selected the places, the property that they share: "committed 3 tokens".
  const std::string& why() const { return why_; }
  /// Returns the number of different steps.
  std::size_t n_steps() const { return steps_.size(); }
  /// Returns true if a place is among them.
  bool has(const Place& place) const {
    return std::find(places_.begin(), places_.end(), place) != places_.end();
  }
  /// Returns true if a step of [first, last] is among them.
  bool has_step(engine::RunId run, engine::StepId first, engine::StepId last) const {
    const auto at = std::lower_bound(steps_.begin(), steps_.end(), std::pair(run, first));
    return at != steps_.end() && at->first == run && at->second <= last;
  }
  /// Returns true if a position is among them.
  bool has_position(engine::RunId run, int position) const {
    return std::binary_search(positions_.begin(), positions_.end(), std::pair(run, position));
  }

 private:
  std::vector<Place> places_;
  std::string why_;
  std::vector<std::pair<engine::RunId, engine::StepId>> steps_;  // sorted, each once
  std::vector<std::pair<engine::RunId, int>> positions_;         // sorted
};

/// The modifier keys that are held during a click.
struct Modifiers {
  bool ctrl = false, shift = false;
};

/// The selection of the window.
struct Selection {
  engine::RunId run = 0;   // the run that the screen Live shows
  std::uint32_t race = 0;  // the race that the screen Compare shows; 0: none
  std::vector<engine::RunId>
      compared;        // the runs that Compare shows instead of the race; empty: the race
  Place locked;        // the place that was clicked
  Place hovered;       // the place under the mouse in the previous frame
  Place next_hovered;  // the place that was reported in this frame

  /// Begins a frame: the place that was reported in the last frame becomes the hovered place.
  void begin_frame() {
    hovered = next_hovered;
    next_hovered = {};
    if (locked.run != 0 && locked.run != run) locked = {};  // another run is shown
    if (locked != chosen_with_) choose({}, locked);         // another was locked: deselect the rest
  }
  /// Reports the place under the pointer.
  void hover(const Place& place) { next_hovered = place; }
  /// Handles a click on a place. Without a modifier it locks the place, or unlocks it if it was the only locked one. With Ctrl it adds the
  /// place or removes it. With Shift it selects everything from the locked place to this one.
  /// @param in_order  the places that a range can run through; if the locked place is not among them, Shift has no effect
  void click(const Place& place, Modifiers held = {}, std::span<const Place> in_order = {}) {
    run = place.run;
    if (held.shift && choose_range(place, in_order)) return;
    if (held.ctrl) return add(place);
    choose({}, locked == place && !several() ? Place{} : place);
  }
  /// Handles a click on something that represents several places: selects them, with Ctrl in addition to the selected ones.
  void click_several(const std::vector<Place>& places, const std::string& why, Modifiers held) {
    if (places.empty()) return;
    std::vector<Place> all = held.ctrl ? all_chosen() : std::vector<Place>{};
    std::string all_why = held.ctrl && !chosen().why().empty() ? chosen().why() + " or " : "";
    for (const Place& place : places)
      if (std::find(all.begin(), all.end(), place) == all.end()) all.push_back(place);
    run = places.back().run;
    choose(std::move(all), places.back(), all_why + why);
  }
  /// Selects places together and locks `lead`, one of them, from which keys move.
  void choose(std::vector<Place> places, const Place& lead, std::string why = {}) {
    locked = lead;
    chosen_with_ = lead;
    chosen_ = Chosen(std::move(places), std::move(why));
  }
  /// Locks another one of the selected places; the selection stays.
  void move_to(const Place& place) {
    run = place.run;
    locked = chosen_with_ = place;
  }
  /// Returns the places that were selected together, including the locked one; empty if another place was locked since.
  const Chosen& chosen() const {
    static const Chosen kNone;
    return locked.valid() && locked == chosen_with_ ? chosen_ : kNone;
  }
  /// Returns true if several places are selected.
  bool several() const { return chosen().places().size() > 1; }

  /// Returns the place that panels describe: the one under the pointer, else the locked one.
  const Place& shown() const { return hovered.valid() ? hovered : locked; }
  /// Returns true if a step is highlighted.
  bool lights_step(engine::RunId of, engine::StepId step) const {
    return lights_steps(of, step, step);
  }
  /// Returns true if a step of [first, last] is highlighted; a slice may represent several steps.
  bool lights_steps(engine::RunId of, engine::StepId first, engine::StepId last) const {
    const Place& p = shown();
    if (p.run == of && p.step >= 0 && first <= p.step && p.step <= last) return true;
    return !hovered.valid() && last >= 0 && chosen().has_step(of, std::max(0, first), last);
  }
  /// Returns true if a position is highlighted.
  bool lights_position(engine::RunId of, int position) const {
    const Place& p = shown();
    if (p.run == of && p.position == position && position >= 0) return true;
    return !hovered.valid() && chosen().has_position(of, position);
  }
  /// Returns true if a row of a step's tree is highlighted.
  bool lights_row(engine::RunId of, engine::StepId step, int row) const {
    const Place& p = shown();
    if (row < 0) return false;
    if (p.run == of && p.step == step && p.row == row) return true;
    return !hovered.valid() && std::ranges::any_of(chosen().places(), [&](const Place& c) {
      return c.run == of && c.step == step && c.row == row;
    });
  }
  /// Returns true if a position is selected.
  bool locks_position(engine::RunId of, int position) const {
    return (locked.run == of && locked.position == position && position >= 0) ||
           chosen().has_position(of, position);
  }

 private:
  std::vector<Place> all_chosen() const {
    std::vector<Place> all(chosen().places().begin(), chosen().places().end());
    if (all.empty() && locked.valid()) all.push_back(locked);
    return all;
  }
  void add(const Place& place) {
    std::vector<Place> all = all_chosen();
    if (std::erase(all, place) == 0) all.push_back(place);
    const Place lead = all.empty() ? Place{} : all.back();
    choose(std::move(all), lead);
  }
  // Selects from the locked place to this one; the locked place stays, so that another Shift+click starts there.
  bool choose_range(const Place& place, std::span<const Place> in_order) {
    const auto is_locked = [this](const Place& p) {
      return p.run == locked.run && p.position == locked.position;
    };
    const auto anchor = std::find_if(in_order.begin(), in_order.end(), is_locked);
    const auto end = std::find(in_order.begin(), in_order.end(), place);
    if (anchor == in_order.end() || end == in_order.end()) return false;
    const auto [first, last] = std::minmax(anchor, end);
    choose({first, last + 1}, *anchor);
    return true;
  }

  Chosen chosen_;
  Place chosen_with_;  // the locked place when chosen_ was set
};

}  // namespace ui
