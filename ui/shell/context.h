// The arguments of panels while they draw: the recorded events, the shared selection and playhead, the user's choices, and the queue of
// commands to the engine.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ui/prepare/selection.h"
#include "ui/shell/panel_state.h"

namespace engine {
class CommandQueue;
class Timeline;
struct RunRecord;
struct TrainingHistory;
}  // namespace engine

namespace ui {

struct Catalog;
struct Notes;
struct Playhead;
struct RunTimes;
struct Settings;
struct SetupForm;

/// The held keys that move a time axis. They are identified by position, as W, S, A and D on a US keyboard.
struct DriveKeys {
  bool in = false, out = false, left = false, right = false;
  double seconds = 0;  // for which held keys move the axis in this frame
  /// Returns true if any of them is held.
  bool any() const { return in || out || left || right; }
};

/// Requests from panels to the shell, which handles them after the frame.
struct Requests {
  bool run = false, race = false;   // start the run or the race of Setup
  std::optional<std::string> open;  // a path to open; empty: show the dialog
  std::string open_training;        // path of a training run to open
  std::string open_lesson;          // path of a lesson to open
  bool export_trace = false, save = false;
  bool show_live_session = false;
  bool tour = false;        // begin the tour of the screen Live
  bool watch_race = false;  // play the bundled race with captions
  std::string screen;       // the name of a screen to show
  std::string copy;         // text for the clipboard
  std::string say;          // a message to show
  bool load = false;        // load the model of the form without a run
  bool pin = false;         // pin or unpin the place in the Inspector
  std::string panel;        // the id of a panel to bring to the front
};

/// The arguments of a panel's functions, valid for one frame. All references belong to the shell.
struct Context {
  const engine::Timeline& timeline;
  Selection& selection;
  Playhead& playhead;
  engine::CommandQueue& commands;
  const Catalog& catalog;
  SetupForm& form;
  Settings& settings;
  Notes& notes;  // notes on the document shown
  PanelStates& states;
  Requests& requests;
  std::string source = {};  // path of the recording shown; empty: the live session
  DriveKeys drive = {};
  bool compare = false;  // the screen Compare is shown
  double reading = -1;   // share of the recording read so far; -1: all of it
  double waiting = -1;   // seconds since a model or a run was requested; -1: no request is pending
  const engine::TrainingHistory* training = nullptr;  // the opened training run, or nullptr

  /// Returns true if token cells show their marks.
  bool marks() const;
  /// Returns the run that the panels of the screen Live show, or nullptr.
  const engine::RunRecord* run() const;
  /// Returns the runs shown side by side: those chosen in Runs, the lanes of the race, or the run of Live.
  std::vector<const engine::RunRecord*> shown_runs() const;
  /// Returns the letter of a run among those shown side by side, from 'A'.
  char letter_of(const engine::RunRecord& run) const;
  /// Returns the name that the user gave the run, or nullptr.
  const std::string* given_name(const engine::RunRecord& run) const;
  /// Returns the user's note on the run, or nullptr.
  const std::string* note_of(const engine::RunRecord& run) const;
  /// Returns the run's name: the given one, else "C lookahead" for a lane of a race, else "lookahead".
  std::string name_of(const engine::RunRecord& run) const;
  /// Returns the positions of the run's complete steps on all clocks, up to date.
  const RunTimes& times(const engine::RunRecord& run) const;
  /// Handles a click on a place with the modifier keys that are held now (Selection::click). A double click shows the Inspector.
  void click(const Place& place, std::span<const Place> in_order = {});
  /// Moves the playhead to the end of a step.
  void show_step(const engine::RunRecord& run, engine::StepId step);
  /// Selects several steps of a run; with Ctrl held, adds them to the selection. Shows a message with their number and `why`, the
  /// property they share ("committed 3 tokens").
  void choose_steps(const engine::RunRecord& run,
                    const std::vector<engine::StepId>& steps,
                    const std::string& why);
  /// Makes the whole run visible on the timeline.
  void show_whole_timeline();
  /// Returns the number of the run's steps that are complete at the playhead.
  std::size_t n_steps(const engine::RunRecord& run) const;
  /// Returns true if the step in progress may be shown too: the playhead follows a run that has not ended.
  bool live(const engine::RunRecord& run) const;
  /// Returns the longest own compute among the runs shown, ns.
  double end() const;
  /// Returns the start of the first of the runs shown, ns: the origin of the timeline's wall clock.
  double wall_origin() const;
};

}  // namespace ui
