// The user's notes on runs, which the window saves with its other notes beside a recording, in
// NAME.pdrun.ui (ui/files/notes.h), a line each:
//   note of run 2 = slower than run 1:\nthe window is too wide
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/event/event.h"

namespace engine {

/// The beginning of the file's first line; the version follows.
inline constexpr std::string_view kNotesHead = "decoscope notes ";
/// The version that this program writes. It reads every version from 1 on.
inline constexpr int kNotesVersion = 1;
/// The beginning of the line of a note.
inline constexpr std::string_view kRunNote = "note of run ";
/// The size of the longest note on a run, bytes.
inline constexpr std::size_t kMaxRunNote = 2000;
/// The size of the largest file of notes, bytes.
inline constexpr std::size_t kMaxNotesBytes = 8u << 20;  // the longest notes on two thousand runs

/// The path of the notes of a recording: "run.pdrun.ui" for "run.pdrun".
std::string notes_path(const std::string& recording);
/// Reads the whole file of notes beside a recording.
/// @param why  the reason if it is too large
/// @return     nullopt if there is no file or it is too large
std::optional<std::string> read_notes(const std::string& recording, std::string& why);
/// Checks the first line of such a file.
/// @return  empty, or why the file cannot be read
std::string why_no_notes(std::string_view first_line);
/// True for the control characters of ASCII, which no note contains except line feeds.
bool is_control(char c);
/// The line of a note, without a line feed; the note is as a user may save it.
std::string run_note_line(RunId run, std::string_view note);
/// Parses the line of a note.
/// @return  nullopt if it is no such line, or the note is empty, too long or not text
std::optional<std::pair<RunId, std::string>> run_note_of(std::string_view line);
/// Reads the notes on runs beside a recording and ignores all other lines.
/// @param why  the reason if the file, or a note in it, cannot be read; then no note is returned
/// @return     no notes if there is no file
std::map<RunId, std::string> read_run_notes(const std::string& recording, std::string& why);

}  // namespace engine
