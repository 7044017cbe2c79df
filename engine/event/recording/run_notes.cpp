#include "engine/event/recording/run_notes.h"

#include <charconv>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/base/utf8.h"

namespace engine {
namespace {

constexpr std::string_view kEquals = " = ";

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// The note that run_note_line() escaped; nullopt: it is not one.
std::optional<std::string> unescaped(std::string_view line) {
  std::string note;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (is_control(line[i])) return std::nullopt;
    if (line[i] != '\\') {
      note += line[i];
    } else if (++i < line.size() && (line[i] == 'n' || line[i] == '\\')) {
      note += line[i] == 'n' ? '\n' : '\\';
    } else {
      return std::nullopt;
    }
  }
  const bool is_text = !note.empty() && first_bad_utf8(note) == note.size();
  return is_text && note.size() <= kMaxRunNote ? std::optional(note) : std::nullopt;
}

}  // namespace

std::string notes_path(const std::string& recording) {
  return recording + ".ui";
}

std::string run_note_line(RunId run, std::string_view note) {
  std::string line = fmt::format("{}{}{}", kRunNote, run, kEquals);
  for (const char c : note) {
    if (c == '\n')
      line += "\\n";
    else
      line += c == '\\' ? "\\\\" : std::string(1, c);
  }
  return line;
}

std::optional<std::pair<RunId, std::string>> run_note_of(std::string_view line) {
  if (!line.starts_with(kRunNote)) return std::nullopt;
  line.remove_prefix(kRunNote.size());
  RunId run = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), run);
  if (error != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (!line.starts_with(kEquals)) return std::nullopt;
  std::optional<std::string> note = unescaped(line.substr(kEquals.size()));
  if (!note) return std::nullopt;
  return std::pair(run, std::move(*note));
}

std::map<RunId, std::string> read_run_notes(const std::string& recording, std::string& why) {
  std::ifstream in(notes_path(recording), std::ios::binary);
  if (!in) return {};
  std::string text(kMaxNotesBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxNotesBytes) {
    why = fmt::format("found more than {} bytes", kMaxNotesBytes);
    return {};
  }
  std::istringstream lines(text);
  std::string line;
  std::map<RunId, std::string> notes;
  for (int n = 1; std::getline(lines, line); ++n) {
    if (n == 1 ? line.starts_with(kNotesHead) : !line.starts_with(kRunNote)) continue;
    auto note = n == 1 ? std::nullopt : run_note_of(line);
    if (!note) {
      why = fmt::format("line {}: found {}, expected {}", n, escaped(line.substr(0, 40)),
                        n == 1 ? "decoscope notes 1" : "a note of a run");
      return {};
    }
    notes.insert_or_assign(note->first, std::move(note->second));
  }
  return notes;
}

}  // namespace engine
