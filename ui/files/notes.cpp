#include "ui/files/notes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "engine/base/output_file.h"
#include "engine/base/types.h"
#include "engine/base/utf8.h"
#include "ui/prepare/figure.h"
#include "ui/prepare/tokens/lens.h"

namespace ui {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxName = 80;
constexpr double kMaxTime = 1e18;  // ns; 32 years
constexpr std::string_view kLens = "lens = ", kLayout = "layout = ", kPanels = "panels = ",
                           kRange = "range";
// The names of the clocks, in the order of ClockKind.
constexpr std::array<std::string_view, kClocks> kClockNames{"wall", "compute", "steps", "positions",
                                                            "normalised"};

// Parses words and numbers in sequence; after the first mismatch every call fails.
class Words {
 public:
  explicit Words(std::string_view text) : left_(text) {}
  Words& expect(std::string_view word) {
    ok_ = ok_ && left_.starts_with(word);
    if (ok_) left_.remove_prefix(word.size());
    return *this;
  }
  template <class Number>
  Words& number(Number& to) {
    if (!ok_) return *this;
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), to);
    ok_ = error == std::errc();
    if (ok_) left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    return *this;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && left_.empty(); }
  std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
  bool ok_ = true;
};

bool take_bookmark(std::string_view text, Notes& notes) {
  Bookmark mark;
  const bool numbered = text.starts_with("numbered");
  mark.kind = numbered ? Bookmark::Kind::Numbered : Bookmark::Kind::Kept;
  Words words(text);
  words.expect(numbered ? "numbered" : "kept").expect(", run ").number(mark.run);
  words.expect(", step ").number(mark.step).expect(", ").number(mark.compute).expect(" ns");
  if (!words.done() || mark.step < -1 || !std::isfinite(mark.compute) || mark.compute < 0)
    return false;
  notes.bookmarks.push_back(mark);
  return true;
}

// Replaces control characters by blanks and cuts the text: names are shown in lists and titles.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, engine::whole_characters(text, kMaxName)))
    line += engine::is_control(c) ? ' ' : c;
  return line;
}

bool take_note(std::string_view line, Notes& notes) {
  auto note = engine::run_note_of(line);
  if (note) notes.run_notes.insert_or_assign(note->first, std::move(note->second));
  return note.has_value();
}

// The beginnings of the lines with lanes, in the order of LaneOrder::kept().
constexpr std::array<std::string_view, 3> kLaneLines{
    "lanes = ", "collapsed lanes = ", "hidden lanes = "};

// Returns the name of a lane: "target" if a single run is shown, "B target" for the second of several.
std::string words_of(const LaneKey& lane) {
  const std::string name = lane_name(lane.kind);
  return lane.place < 0 ? name : fmt::format("{} {}", static_cast<char>('A' + lane.place), name);
}

std::optional<LaneKey> lane_named(std::string_view words) {
  LaneKey lane;
  if (words.size() > 2 && words[0] >= 'A' && words[0] <= 'Z' && words[1] == ' ') {
    lane.place = words[0] - 'A';
    words.remove_prefix(2);
  }
  for (int kind = 0; kind < kLaneKinds; ++kind) {
    lane.kind = static_cast<LaneKind>(kind);
    if (words == lane_name(lane.kind)) return lane;
  }
  return std::nullopt;
}

// Parses a list of lanes. @return false if a lane is unknown
bool take_lanes(std::string_view text, std::vector<LaneKey>& lanes) {
  constexpr std::string_view kComma = ", ";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kComma), text.size());
    const auto lane = lane_named(text.substr(0, end));
    if (!lane) return false;
    if (std::find(lanes.begin(), lanes.end(), *lane) == lanes.end()) lanes.push_back(*lane);
    text.remove_prefix(std::min(text.size(), end + kComma.size()));
  }
  return true;
}

bool take_lane_line(std::string_view line, Notes& notes) {
  for (std::size_t i = 0; i < kLaneLines.size(); ++i) {
    if (!line.starts_with(kLaneLines[i])) continue;
    auto kept = notes.lanes.kept();
    if (!take_lanes(line.substr(kLaneLines[i].size()), kept[i])) return false;
    notes.lanes.restore(std::move(kept));
    return true;
  }
  return false;
}

bool take_lens(std::string_view name, Notes& notes) {
  const auto at = std::ranges::find(kLensNames, name);
  if (at == kLensNames.end()) return false;
  notes.view.lens = static_cast<Lens>(at - kLensNames.begin());
  return true;
}

// Parses what follows "range": its run or race, if it has one, its clock and its ends.
bool take_range(std::string_view text, Notes& notes) {
  MeasuredRange range;
  Words owner(text);
  if (text.starts_with(" of run "))
    owner.expect(" of run ").number(range.run);
  else if (text.starts_with(" of race "))
    owner.expect(" of race ").number(range.race);
  if (!owner.expect(" = ").ok()) return false;
  text = owner.rest();
  const auto clock = std::ranges::find_if(
      kClockNames, [&](std::string_view name) { return text.starts_with(name); });
  if (clock == kClockNames.end()) return false;
  range.clock = static_cast<ClockKind>(clock - kClockNames.begin());
  Words words(text);
  words.expect(*clock).expect(", ").number(range.from).expect(" to ").number(range.to);
  const auto is_time = [](double t) { return std::abs(t) < kMaxTime; };  // false for NaN
  if (!words.done() || !is_time(range.from) || !is_time(range.to) || range.from == range.to)
    return false;
  notes.view.ranges.push_back(range);
  return true;
}

bool take_line(std::string_view line, Notes& notes) {
  constexpr std::string_view kBookmark = "bookmark = ";
  if (line.starts_with(kBookmark)) return take_bookmark(line.substr(kBookmark.size()), notes);
  engine::RunId run = 0;
  if (Words words(line); words.expect("run ").number(run).expect(" = ").ok()) {
    notes.run_names[run] = one_line(words.rest());
    return true;
  }
  if (line.starts_with(engine::kRunNote)) return take_note(line, notes);
  if (line.starts_with(kLens)) return take_lens(line.substr(kLens.size()), notes);
  // The window ignores the word of a preset that it does not know.
  if (line.starts_with(kLayout)) {
    notes.view.layout = one_line(line.substr(kLayout.size()));
    return true;
  }
  if (line.starts_with(kPanels)) {
    std::string& panels = notes.view.panels;
    // One byte too many is enough for why_not_layout().
    if (panels.size() <= kMaxRecordedLayout) panels.append(line.substr(kPanels.size())) += '\n';
    return true;
  }
  if (line.starts_with("range = ") || line.starts_with("range of "))
    return take_range(line.substr(kRange.size()), notes);
  if (line.empty() || take_lane_line(line, notes)) return true;
  notes.others.emplace_back(line);
  return line.find(" = ") != std::string_view::npos;
}

}  // namespace

std::string bookmark_words(const Bookmark& mark, int number, const std::string& run) {
  std::string name = "Mark";
  if (mark.kind == Bookmark::Kind::Numbered) {
    name = fmt::format("Bookmark {}", number);
    if (number <= 9) name += fmt::format(" (Ctrl+{})", number);
  }
  const std::string step = mark.step >= 0 ? fmt::format(", step {}", mark.step) : "";
  return fmt::format("{} of {} at {}{}", name, run, short_time(mark.compute), step);
}

std::string as_run_note(std::string_view text) {
  std::string note;
  for (const char c : text.substr(0, engine::whole_characters(text, kMaxRunNote)))
    note += engine::is_control(c) && c != '\n' ? ' ' : c;
  note.erase(note.find_last_not_of(" \n") + 1);
  return note;
}

std::string to_text(const Notes& notes) {
  std::string text = fmt::format("{}{}\n", engine::kNotesHead, engine::kNotesVersion);
  for (const Bookmark& mark : notes.bookmarks)
    text += fmt::format("bookmark = {}, run {}, step {}, {} ns\n",
                        mark.kind == Bookmark::Kind::Numbered ? "numbered" : "kept", mark.run,
                        mark.step, mark.compute);
  for (const auto& [run, name] : notes.run_names)
    text += fmt::format("run {} = {}\n", run, one_line(name));
  for (const auto& [run, written] : notes.run_notes)
    if (const std::string note = as_run_note(written); !note.empty())
      text += engine::run_note_line(run, note) + "\n";
  const auto kept = notes.lanes.kept();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].empty()) continue;
    std::string line;
    for (const LaneKey& lane : kept[i]) line += (line.empty() ? "" : ", ") + words_of(lane);
    text += fmt::format("{}{}\n", kLaneLines[i], line);
  }
  if (const auto& lens = notes.view.lens)
    text += fmt::format("{}{}\n", kLens, kLensNames[static_cast<std::size_t>(*lens)]);
  if (!notes.view.layout.empty()) text += fmt::format("{}{}\n", kLayout, notes.view.layout);
  std::istringstream panels(notes.view.panels);
  for (std::string line; std::getline(panels, line);) text += fmt::format("{}{}\n", kPanels, line);
  for (const MeasuredRange& range : notes.view.ranges) {
    const std::string owner = range.run != 0    ? fmt::format(" of run {}", range.run)
                              : range.race != 0 ? fmt::format(" of race {}", range.race)
                                                : "";
    text += fmt::format("{}{} = {}, {} to {}\n", kRange, owner,
                        kClockNames[static_cast<std::size_t>(range.clock)], range.from, range.to);
  }
  for (const std::string& line : notes.others) text += line + "\n";
  return text;
}

bool from_text(const std::string& text, Notes& notes, std::string& why) {
  std::istringstream in(text);
  std::string line;
  std::getline(in, line);
  if (why = engine::why_no_notes(line); !why.empty()) return false;
  for (int n = 2; std::getline(in, line); ++n) {
    if (take_line(line, notes)) continue;
    why = fmt::format("line {}: {}", n, line.substr(0, 80));
    return false;
  }
  return true;
}

Notes load_notes(const std::string& recording, std::string& why) {
  const std::string path = notes_path(recording);
  const std::optional<std::string> text = engine::read_notes(recording, why);
  Notes notes;
  if (text && from_text(*text, notes, why)) return notes;
  if (why.empty()) return {};  // no file
  std::error_code ignored;
  fs::rename(path, path + ".broken", ignored);
  return {};
}

std::string save_notes(const Notes& notes, const std::string& recording) {
  const std::string path = notes_path(recording);
  std::error_code error;
  if (notes.empty() && !fs::exists(path, error)) return "";
  try {
    engine::write_whole_file(path, to_text(notes));
    return "";
  } catch (const engine::Error& refused) {
    return fmt::format("notes of the recording: {}", refused.what());
  }
}

}  // namespace ui
