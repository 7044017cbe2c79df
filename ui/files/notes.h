// The user's notes on a recording: bookmarks, names of and notes on runs, arrangement of lanes, lens, layout and measured ranges. They are saved
// beside the recording, in NAME.pdrun.ui; the recording itself does not change.
//   decoscope notes 1
//   bookmark = numbered, run 2, step 14, 125000000 ns
//   run 2 = with a wider window
//   note of run 2 = slower than run 1:\nthe window is too wide
//   lanes = target, commit, verify
//   collapsed lanes = A target, B pool hit
//   lens = probability
//   layout = timeline
//   panels = [Window][live.text]
//   range of run 2 = compute, 125000000 to 250000000
//   range of race 1 = compute, 0 to 250000000
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/event/event.h"
#include "engine/event/recording/run_notes.h"
#include "ui/prepare/time/lane_order.h"
#include "ui/prepare/time/run_times.h"

namespace ui {

enum class Lens;  // ui/prepare/tokens/lens.h

/// A moment that the user marked.
struct Bookmark {
  engine::RunId run = 0;
  double compute = 0;        // own compute of the run, ns
  engine::StepId step = -1;  // the step that was selected; -1: none
  /// Passing: a temporary mark, which is not saved. Numbered: keys jump to it.
  enum class Kind { Passing, Kept, Numbered } kind = Kind::Kept;
  bool operator==(const Bookmark&) const = default;
};

/// Returns a bookmark in words: "Bookmark 2 (Ctrl+2) of B jacobi at 12.5 ms, step 14".
/// @param number  its place among the numbered bookmarks, from 1
/// @param run     the name of its run
std::string bookmark_words(const Bookmark& mark, int number, const std::string& run);

using engine::kMaxRunNote;
using engine::notes_path;

/// Returns a note on a run as it is saved: control characters except line feeds become blanks, blanks and line feeds at the end are
/// removed, and whole characters after kMaxRunNote bytes are cut.
std::string as_run_note(std::string_view text);

/// A measured range of the timeline, in the unit of its clock and in the order in which the user dragged its ends.
struct MeasuredRange {
  engine::RunId run = 0;   // the run that it belongs to; 0: a race
  std::uint32_t race = 0;  // the race; both 0, in files of older programs: the runs shown last
  ClockKind clock = ClockKind::Compute;
  double from = 0, to = 0;
  bool operator==(const MeasuredRange&) const = default;
};

/// The size of the largest recorded_layout() that is used, bytes; some 10 KB are usual.
inline constexpr std::size_t kMaxRecordedLayout = 64u << 10;

/// The view of the panels when the document was closed. Undo does not change it.
struct NotedView {
  std::optional<Lens> lens;  // nullopt: the user has not chosen one
  std::string layout;        // word of the layout preset; empty: the user has not chosen one
  std::string panels;        // recorded_layout(); empty: the user has not moved any
  std::vector<MeasuredRange> ranges;  // all on one clock, at most one of a run or a race
  bool operator==(const NotedView&) const = default;
};

/// All notes on one document.
struct Notes {
  std::vector<Bookmark> bookmarks;  // the bookmarks in the order in which they were set
  std::map<engine::RunId, std::string> run_names;  // the names that the user gave to runs
  std::map<engine::RunId, std::string> run_notes;  // the user's notes on runs, of one or more lines
  std::vector<std::string> others;  // lines written by a newer program, kept unchanged
  LaneOrder lanes;                  // arrangement of the timeline's lanes
  NotedView view;  // only in a file; while the document is shown, the panels have it
  /// Returns true if there is nothing to save.
  bool empty() const {
    return bookmarks.empty() && run_names.empty() && run_notes.empty() && others.empty() &&
           lanes.untouched() && view == NotedView();
  }
  bool operator==(const Notes&) const = default;
};

/// Returns the text of the file NAME.pdrun.ui.
std::string to_text(const Notes& notes);
/// Parses such a text. Too long or invalid notes on runs are refused. Lines of a newer program are kept in `others`.
/// @return false if a line cannot be read; `why` names it
bool from_text(const std::string& text, Notes& notes, std::string& why);

/// Reads the notes of a recording; empty notes if the file does not exist. A file that cannot be read is renamed to
/// NAME.pdrun.ui.broken, and `why` names the line.
Notes load_notes(const std::string& recording, std::string& why);
/// Writes the notes of a recording through a temporary file and a rename. Writes nothing if the notes are empty and no file exists.
/// @return empty, or why the file could not be written
std::string save_notes(const Notes& notes, const std::string& recording);

}  // namespace ui
