// What a person noted on a recording: bookmarks and names of runs. Kept beside the recording in
// NAME.pdrun.ui, so that the recording itself stays what the engine told and any reader opens it.
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

/// A moment a person wants to find again.
struct Bookmark {
  engine::RunId run = 0;
  double compute = 0;        // of that run, ns
  engine::StepId step = -1;  // selected there; -1: none
  enum class Kind { Passing, Kept, Numbered } kind = Kind::Kept;
  bool operator==(const Bookmark&) const = default;
};

struct Notes {
  std::vector<Bookmark> bookmarks;                 // none of them passing
  std::map<engine::RunId, std::string> run_names;  // one line each
  std::vector<std::string> others;                 // lines of a newer program, kept as they are
  LaneOrder lanes;                                 // of the time line
  bool empty() const {
    return bookmarks.empty() && run_names.empty() && others.empty() && lanes.untouched();
  }
  bool operator==(const Notes&) const = default;
};

std::string to_text(const Notes& notes);
/// @return false: it is no such text, or a line cannot be read; `why` says which. Lines of a newer
/// program are kept.
bool from_text(const std::string& text, Notes& notes, std::string& why);

/// "run.pdrun.ui" of "run.pdrun".
std::string notes_path(const std::string& recording);
/// None where the file is absent. A broken one is renamed to NAME.pdrun.ui.broken, never fatal;
/// `why` then says which line.
Notes load_notes(const std::string& recording, std::string& why);
/// Through a temporary file and a rename. Nothing is written for empty notes where no file was.
/// @return empty, or why it could not be written
std::string save_notes(const Notes& notes, const std::string& recording);

}  // namespace ui
