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

std::optional<std::string> read_notes(const std::string& recording, std::string& why) {
  std::ifstream in(notes_path(recording), std::ios::binary);
  if (!in) return std::nullopt;
  std::string text(kMaxNotesBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() <= kMaxNotesBytes) return text;
  why = fmt::format("found more than {} bytes", kMaxNotesBytes);
  return std::nullopt;
}

std::string why_no_notes(std::string_view first_line) {
  if (first_line.starts_with(kNotesHead)) {
    const std::string_view number = first_line.substr(kNotesHead.size());
    int version = 0;
    const char* const last = number.data() + number.size();
    const auto [end, error] = std::from_chars(number.data(), last, version);
    if (error == std::errc() && end == last && version >= 1) return "";
  }
  return fmt::format("line 1: found {}, expected {}{}", escaped(first_line.substr(0, 40)),
                     kNotesHead, kNotesVersion);
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
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
  const std::optional<std::string> text = read_notes(recording, why);
  if (!text) return {};
  std::istringstream lines(*text);
  std::string line;
  std::getline(lines, line);
  if (why = why_no_notes(line); !why.empty()) return {};
  std::map<RunId, std::string> notes;
  for (int n = 2; std::getline(lines, line); ++n) {
    if (!line.starts_with(kRunNote)) continue;
    auto note = run_note_of(line);
    if (!note) {
      why = fmt::format("line {}: found {}, expected a note of a run", n,
                        escaped(line.substr(0, 40)));
      return {};
    }
    notes.insert_or_assign(note->first, std::move(note->second));
  }
  return notes;
}

}  // namespace engine
