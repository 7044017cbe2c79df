// The user's notes on a recording: bookmarks, names of runs, arrangement of lanes. They are saved beside the recording, in NAME.pdrun.ui;
// the recording itself does not change.
//   decoscope notes 1
//   bookmark = numbered, run 2, step 14, 125000000 ns
//   run 2 = with a wider window
//   lanes = target, commit, verify
//   collapsed lanes = A target, B pool hit
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/event/event.h"
#include "ui/prepare/time/lane_order.h"

namespace ui {

/// A moment that the user marked.
struct Bookmark {
  engine::RunId run = 0;
  double compute = 0;        // own compute of the run, ns
  engine::StepId step = -1;  // the step that was selected; -1: none
  /// Passing: a temporary mark, which is not saved. Numbered: keys jump to it.
  enum class Kind { Passing, Kept, Numbered } kind = Kind::Kept;
  bool operator==(const Bookmark&) const = default;
};

/// All notes on one document.
struct Notes {
  std::vector<Bookmark> bookmarks;  // the bookmarks in the order in which they were set
  std::map<engine::RunId, std::string> run_names;  // the names that the user gave to runs
  std::vector<std::string> others;  // lines written by a newer program, kept unchanged
  LaneOrder lanes;                  // arrangement of the timeline's lanes
  /// Returns true if there is nothing to save.
  bool empty() const {
    return bookmarks.empty() && run_names.empty() && others.empty() && lanes.untouched();
  }
  bool operator==(const Notes&) const = default;
};

/// Returns the text of the file NAME.pdrun.ui.
std::string to_text(const Notes& notes);
/// Parses such a text. Lines of a newer program are kept in `others`.
/// @return false if a line cannot be read; `why` names it
bool from_text(const std::string& text, Notes& notes, std::string& why);

/// Returns the path of the notes of a recording: "run.pdrun.ui" for "run.pdrun".
std::string notes_path(const std::string& recording);
/// Reads the notes of a recording; empty notes if the file does not exist. A file that cannot be read is renamed to
/// NAME.pdrun.ui.broken, and `why` names the line.
Notes load_notes(const std::string& recording, std::string& why);
/// Writes the notes of a recording through a temporary file and a rename. Writes nothing if the notes are empty and no file exists.
/// @return empty, or why the file could not be written
std::string save_notes(const Notes& notes, const std::string& recording);

}  // namespace ui
