#include "ui/widgets/font_file.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "ui/widgets/font_cff.h"

namespace ui {
namespace {

/// A table of the file: its place, checked to be inside.
struct Table {
  std::uint64_t offset = 0, length = 0;
};

/// Reads big-endian numbers of a file.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  /// Returns the number of `n_bytes` bytes at `offset`; 0 after a failure.
  std::uint32_t at(std::uint64_t offset, std::uint64_t n_bytes) {
    ok_ = ok_ && offset + n_bytes <= bytes_.size();
    if (!ok_) return 0;
    std::uint32_t value = 0;
    for (const char c : bytes_.substr(offset, n_bytes))
      value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  /// Returns the signed number of two bytes.
  int signed_at(std::uint64_t offset) { return static_cast<std::int16_t>(at(offset, 2)); }
  bool ok() const { return ok_; }

 private:
  std::string_view bytes_;  // outlives the reader
  bool ok_ = true;
};

constexpr std::uint64_t tag_of(std::string_view name) {
  std::uint64_t tag = 0;
  for (const char c : name) tag = tag << 8 | static_cast<unsigned char>(c);
  return tag;
}

using Tables = std::map<std::uint64_t, Table>;

// Returns where the font begins: the first one of a collection, else at 0.
std::uint64_t begin_of_font(Reader& reader) {
  constexpr std::uint64_t kNumberOfFonts = 8, kFirst = 12;
  const bool is_collection = reader.at(0, 4) == tag_of("ttcf") && reader.at(kNumberOfFonts, 4) > 0;
  return is_collection ? reader.at(kFirst, 4) : 0;
}

// Returns the tables of the font at `begin`, of two with one name the first, as the reader does; nullopt if one is outside the file.
std::optional<Tables> tables_of(Reader& reader, std::uint64_t begin, std::uint64_t n_bytes) {
  constexpr std::uint64_t kHead = 12, kRecord = 16;
  Tables tables;
  const std::uint32_t n = reader.at(begin + 4, 2);
  for (std::uint64_t i = 0; i < n && reader.ok(); ++i) {
    const std::uint64_t at = begin + kHead + i * kRecord;
    const Table table{reader.at(at + 8, 4), reader.at(at + 12, 4)};
    if (table.offset == 0 || table.offset + table.length > n_bytes) return std::nullopt;
    tables.try_emplace(reader.at(at, 4), table);
  }
  return reader.ok() ? std::optional(tables) : std::nullopt;
}

// Returns the place of the encoding that Dear ImGui's reader uses, the last one of Unicode or of Unicode in Windows; nullopt if there is none.
std::optional<std::uint64_t> unicode_map(Reader& reader, const Table& cmap) {
  std::optional<std::uint64_t> found;
  const std::uint32_t n = reader.at(cmap.offset + 2, 2);
  if (4 + std::uint64_t{n} * 8 > cmap.length) return found;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t at = cmap.offset + 4 + i * 8;
    const std::uint32_t platform = reader.at(at, 2), encoding = reader.at(at + 2, 2);
    if (platform == 0 || (platform == 3 && (encoding == 1 || encoding == 10)))
      found = cmap.offset + reader.at(at + 4, 4);
  }
  return found;
}

// Returns true if an encoding leads to glyphs of the font only. The reader does not check that.
bool maps_to_glyphs(Reader& reader, std::uint64_t map, std::uint64_t n_glyphs) {
  switch (reader.at(map, 2)) {
    case 4: {  // segments of 16-bit characters
      const std::uint64_t twice = reader.at(map + 6, 2), ends = map + 14, starts = ends + twice + 2;
      for (std::uint64_t i = 0; i < twice && reader.ok(); i += 2) {
        const std::uint32_t end = reader.at(ends + i, 2), start = reader.at(starts + i, 2),
                            delta = reader.at(starts + twice + i, 2);
        const std::uint64_t range = starts + 2 * twice + i, offset = reader.at(range, 2);
        for (std::uint64_t c = start; c <= end; ++c) {
          const std::uint64_t glyph =
              offset == 0 ? (c + delta) & 0xFFFF : reader.at(range + offset + 2 * (c - start), 2);
          if (glyph >= n_glyphs && c != 0xFFFF)
            return false;  // the last segment only ends the list
        }
      }
      return reader.ok();
    }
    case 6: {  // a range of 16-bit characters
      const std::uint64_t n = reader.at(map + 8, 2);
      for (std::uint64_t i = 0; i < n; ++i)
        if (reader.at(map + 10 + 2 * i, 2) >= n_glyphs) return false;
      return reader.ok();
    }
    case 12: {  // groups of 32-bit characters
      const std::uint64_t n = reader.at(map + 12, 4);
      for (std::uint64_t i = 0; i < n && reader.ok(); ++i) {
        const std::uint64_t group = map + 16 + 12 * i, start = reader.at(group, 4),
                            end = reader.at(group + 4, 4), glyph = reader.at(group + 8, 4);
        if (end < start || glyph + (end - start) >= n_glyphs) return false;
      }
      return reader.ok();
    }
    default:
      return false;
  }
}

/// Checks the outlines of a TrueType font: the reader of Dear ImGui takes their counts and references as they are.
class Outlines {
 public:
  Outlines(Reader& reader, Table glyf, Table loca, std::uint64_t wide, std::uint32_t n, int most)
      : reader_(reader), glyf_(glyf), loca_(loca), wide_(wide), states_(n), most_(most) {}

  /// Returns true if every outline is inside its place in the table.
  bool are_whole() {
    if (loca_.length < (states_.size() + 1) * wide_) return false;
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (!is_whole(i)) return false;
    return true;
  }

 private:
  enum class State : char { Unknown, Checking, Whole };

  std::uint64_t place(std::size_t glyph) {
    return glyf_.offset + reader_.at(loca_.offset + glyph * wide_, wide_) * (4 / wide_);
  }
  bool is_whole(std::size_t glyph) {
    if (glyph >= states_.size() || states_[glyph] == State::Checking) return false;
    if (states_[glyph] == State::Whole) return true;
    states_[glyph] = State::Checking;
    const std::uint64_t at = place(glyph), end = place(glyph + 1);
    if (at > end || end > glyf_.offset + glyf_.length) return false;
    const int n_contours = at < end ? reader_.signed_at(at) : 0;
    if (at < end) {
      for (const std::uint64_t least : {at + 2, at + 4}) {
        const int extent = reader_.signed_at(least + 4) - reader_.signed_at(least);
        if (extent < 0 || extent > most_) return false;
      }
      const std::uint64_t after =
          n_contours < 0 ? after_parts(at + 10, end) : after_points(at + 10, n_contours, end);
      if (after == 0 || after > end || !reader_.ok()) return false;
    }
    states_[glyph] = State::Whole;
    return true;
  }
  // Returns where the points of an outline end; 0 if they do not.
  std::uint64_t after_points(std::uint64_t at, int n_contours, std::uint64_t end) {
    if (n_contours == 0) return at;
    int last = -1;
    for (int i = 0; i < n_contours; ++i, at += 2) {
      const int next = static_cast<int>(reader_.at(at, 2));
      if (next <= last || at + 2 > end) return 0;
      last = next;
    }
    at += 2 + reader_.at(at, 2);  // the instructions
    std::uint64_t n_bytes = 0;    // of the coordinates
    for (int i = 0; i <= last && at < end;) {
      constexpr std::uint32_t kShortX = 2, kShortY = 4, kRepeat = 8, kSameX = 16, kSameY = 32;
      const std::uint32_t flags = reader_.at(at++, 1);
      const std::uint64_t n = 1 + (flags & kRepeat ? reader_.at(at++, 1) : 0);
      n_bytes += n * (flags & kShortX ? 1 : flags & kSameX ? 0 : 2);
      n_bytes += n * (flags & kShortY ? 1 : flags & kSameY ? 0 : 2);
      i += static_cast<int>(n);
      if (i > last) return at + n_bytes;
    }
    return 0;
  }
  // Returns where the list of parts, which are other glyphs, ends; 0 if it does not.
  std::uint64_t after_parts(std::uint64_t at, std::uint64_t end) {
    constexpr std::uint32_t kWords = 1, kOffsets = 2, kScale = 8, kMore = 32, kTwoScales = 64,
                            kMatrix = 128;
    while (at < end) {
      const std::uint32_t flags = reader_.at(at, 2);
      // The reader knows only parts that are placed by offsets.
      if (!(flags & kOffsets) || !is_whole(reader_.at(at + 2, 2))) return 0;
      at += 4 + (flags & kWords ? 4 : 2) +
            (flags & kScale       ? 2
             : flags & kTwoScales ? 4
             : flags & kMatrix    ? 8
                                  : 0);
      if (!(flags & kMore)) return at;
    }
    return 0;
  }

  Reader& reader_;  // outlives the object
  Table glyf_, loca_;
  std::uint64_t wide_;  // bytes of a place in loca
  std::vector<State> states_;
  int most_;  // the most that a glyph may extend
};

// Returns the fault of the tables that Dear ImGui's reader uses, as the end of a sentence; empty without one.
std::string fault_of(Reader& reader, const Tables& tables, std::string_view bytes) {
  constexpr std::uint64_t kHead = 54, kHhea = 36, kMaxp = 6;  // least lengths
  for (const char* needed : {"cmap", "head", "hhea", "hmtx", "maxp"})
    if (!tables.contains(tag_of(needed))) return std::string("has no table ") + needed;
  const auto table = [&](const char* name) { return tables.at(tag_of(name)); };
  if (table("head").length < kHead || table("hhea").length < kHhea || table("maxp").length < kMaxp)
    return "has a table that is too short";
  const std::uint32_t n_glyphs = reader.at(table("maxp").offset + 4, 2),
                      n_widths = reader.at(table("hhea").offset + 34, 2),
                      units = reader.at(table("head").offset + 18, 2);
  if (n_glyphs == 0 || n_widths == 0 || units == 0) return "has no characters";
  // A line is as high as the font says; outlines are enlarged with it.
  constexpr int kMostLines = 32;
  const int high =
      reader.signed_at(table("hhea").offset + 4) - reader.signed_at(table("hhea").offset + 6);
  if (high < static_cast<int>(units) / 4) return "has lines without height";
  // The glyphs after the last width have a left side bearing only.
  if (table("hmtx").length <
      std::uint64_t{n_widths} * 4 + 2 * (std::uint64_t{std::max(n_glyphs, n_widths)} - n_widths))
    return "has a table that is too short";
  // The reader uses the table CFF only if there is no table glyf.
  if (tables.contains(tag_of("glyf"))) {
    if (!tables.contains(tag_of("loca"))) return "has no table loca";
    const std::uint64_t wide = reader.at(table("head").offset + 50, 2) == 0 ? 2 : 4;
    if (!Outlines(reader, table("glyf"), table("loca"), wide, n_glyphs, kMostLines * high)
             .are_whole())
      return "has a damaged outline";
  } else if (!tables.contains(tag_of("CFF "))) {
    return "has no outlines (table glyf or CFF)";
  } else if (const Table cff = table("CFF "); !are_cff_outlines_safe(
                 bytes.substr(cff.offset, cff.length), n_glyphs, kMostLines * high)) {
    return "has a damaged outline";
  }
  const auto map = unicode_map(reader, table("cmap"));
  if (!map) return "has no Unicode characters";
  if (!maps_to_glyphs(reader, *map, n_glyphs)) return "has a damaged list of characters";
  return reader.ok() ? "" : "cannot be read";
}

// Returns why a file cannot be used, as why_not_font().
std::string why_not_file(const std::string& path, bool may_be_collection) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return path + ": no such file";
  std::ifstream in(path, std::ios::binary);
  if (!in) return path + ": cannot be opened";
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  Reader reader(bytes);
  const std::uint64_t begin = may_be_collection ? begin_of_font(reader) : 0;
  const std::uint32_t kind = reader.at(begin, 4);
  constexpr std::uint32_t kTrueType = 0x00010000;
  if (kind != kTrueType && kind != tag_of("true") && kind != tag_of("OTTO"))
    return path + ": not a TrueType or OpenType font";
  const auto tables = tables_of(reader, begin, bytes.size());
  if (!tables) return path + ": the file is cut off or damaged";
  const std::string fault = fault_of(reader, *tables, bytes);
  return fault.empty() ? "" : path + ": the font " + fault;
}

}  // namespace

bool is_font_name(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".ttf" || ending == ".otf";
}

std::string why_not_font(const std::string& path) {
  if (path.empty()) return "";
  if (!is_font_name(path)) return path + ": not the name of a .ttf or .otf file";
  return why_not_file(path, false);
}

std::string why_not_system_font(const std::string& path) {
  return why_not_file(path, true);
}

}  // namespace ui
