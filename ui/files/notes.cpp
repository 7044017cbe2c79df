#include "ui/files/notes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "engine/base/output_file.h"
#include "engine/base/types.h"
#include "engine/base/utf8.h"

namespace ui {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "decoscope notes ";
constexpr int kVersion = 1;
constexpr std::size_t kMaxBytes = 1u << 20;  // a few thousand bookmarks
constexpr std::size_t kMaxName = 80;

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
    line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return line;
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

bool take_line(std::string_view line, Notes& notes) {
  constexpr std::string_view kBookmark = "bookmark = ";
  if (line.starts_with(kBookmark)) return take_bookmark(line.substr(kBookmark.size()), notes);
  engine::RunId run = 0;
  if (Words words(line); words.expect("run ").number(run).expect(" = ").ok()) {
    notes.run_names[run] = one_line(words.rest());
    return true;
  }
  if (line.empty() || take_lane_line(line, notes)) return true;
  notes.others.emplace_back(line);
  return line.find(" = ") != std::string_view::npos;
}

}  // namespace

std::string to_text(const Notes& notes) {
  std::string text = fmt::format("{}{}\n", kHead, kVersion);
  for (const Bookmark& mark : notes.bookmarks)
    text += fmt::format("bookmark = {}, run {}, step {}, {} ns\n",
                        mark.kind == Bookmark::Kind::Numbered ? "numbered" : "kept", mark.run,
                        mark.step, mark.compute);
  for (const auto& [run, name] : notes.run_names)
    text += fmt::format("run {} = {}\n", run, one_line(name));
  const auto kept = notes.lanes.kept();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].empty()) continue;
    std::string line;
    for (const LaneKey& lane : kept[i]) line += (line.empty() ? "" : ", ") + words_of(lane);
    text += fmt::format("{}{}\n", kLaneLines[i], line);
  }
  for (const std::string& line : notes.others) text += line + "\n";
  return text;
}

bool from_text(const std::string& text, Notes& notes, std::string& why) {
  std::istringstream in(text);
  std::string line;
  int version = 0;
  std::getline(in, line);
  if (!Words(line).expect(kHead).number(version).done() || version < 1) {
    why = fmt::format("line 1: found {}, expected {}{}", line.substr(0, 40), kHead, kVersion);
    return false;
  }
  for (int n = 2; std::getline(in, line); ++n) {
    if (take_line(line, notes)) continue;
    why = fmt::format("line {}: {}", n, line.substr(0, 80));
    return false;
  }
  return true;
}

std::string notes_path(const std::string& recording) {
  return recording + ".ui";
}

Notes load_notes(const std::string& recording, std::string& why) {
  const std::string path = notes_path(recording);
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  Notes notes;
  if (text.size() > kMaxBytes)
    why = fmt::format("found more than {} bytes", kMaxBytes);
  else if (from_text(text, notes, why))
    return notes;
  in.close();
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
    return fmt::format("bookmarks and names: {}", refused.what());
  }
}

}  // namespace ui
