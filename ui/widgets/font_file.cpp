#include "ui/widgets/font_file.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>

namespace ui {
namespace {

/// A table of the file: its place, checked to be inside.
struct Table {
  std::uint64_t offset = 0, length = 0;
};

/// Reads big-endian numbers of an open file.
class Reader {
 public:
  explicit Reader(std::ifstream& in) : in_(in) {}

  /// Returns the number of `n_bytes` bytes at `offset`; 0 after a failure.
  std::uint32_t at(std::uint64_t offset, int n_bytes) {
    in_.seekg(static_cast<std::streamoff>(offset));
    std::uint32_t value = 0;
    for (int i = 0; i < n_bytes; ++i)
      value = value << 8 | (static_cast<std::uint32_t>(in_.get()) & 0xFF);
    if (!in_) ok_ = false;
    return ok_ ? value : 0;
  }
  bool ok() const { return ok_; }

 private:
  std::ifstream& in_;  // outlives the reader
  bool ok_ = true;
};

constexpr std::uint64_t tag_of(std::string_view name) {
  std::uint64_t tag = 0;
  for (const char c : name) tag = tag << 8 | static_cast<unsigned char>(c);
  return tag;
}

using Tables = std::map<std::uint64_t, Table>;

// Returns the tables; nullopt if one is outside the file.
std::optional<Tables> tables_of(Reader& reader, std::uint64_t n_bytes) {
  constexpr std::uint64_t kHead = 12, kRecord = 16;
  Tables tables;
  const std::uint32_t n = reader.at(4, 2);
  for (std::uint64_t i = 0; i < n && reader.ok(); ++i) {
    const std::uint64_t at = kHead + i * kRecord;
    const Table table{reader.at(at + 8, 4), reader.at(at + 12, 4)};
    if (table.offset + table.length > n_bytes) return std::nullopt;
    tables[reader.at(at, 4)] = table;
  }
  return reader.ok() ? std::optional(tables) : std::nullopt;
}

// Returns true if the table of characters has an encoding that Dear ImGui's reader knows: Unicode, or Unicode of Windows.
bool maps_unicode(Reader& reader, const Table& cmap) {
  const std::uint32_t n = reader.at(cmap.offset + 2, 2);
  if (4 + std::uint64_t{n} * 8 > cmap.length) return false;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t at = cmap.offset + 4 + i * 8;
    const std::uint32_t platform = reader.at(at, 2), encoding = reader.at(at + 2, 2);
    const bool known = platform == 0 || (platform == 3 && (encoding == 1 || encoding == 10));
    if (known && std::uint64_t{reader.at(at + 4, 4)} + 4 <= cmap.length) return reader.ok();
  }
  return false;
}

// Returns the fault of the tables that Dear ImGui's reader uses, as the end of a sentence; empty without one.
std::string fault_of(Reader& reader, const Tables& tables) {
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
  // The glyphs after the last width have a left side bearing only.
  if (table("hmtx").length <
      std::uint64_t{n_widths} * 4 + 2 * (std::uint64_t{std::max(n_glyphs, n_widths)} - n_widths))
    return "has a table that is too short";
  if (!tables.contains(tag_of("CFF "))) {
    if (!tables.contains(tag_of("glyf")) || !tables.contains(tag_of("loca")))
      return "has no outlines (table glyf or CFF)";
    const std::uint64_t each = reader.at(table("head").offset + 50, 2) == 0 ? 2 : 4;
    if (table("loca").length < (std::uint64_t{n_glyphs} + 1) * each)
      return "has a table that is too short";
    for (std::uint64_t i = 0; i <= n_glyphs; ++i) {
      const std::uint64_t at = reader.at(table("loca").offset + i * each, static_cast<int>(each)) *
                               std::uint64_t{4 / each};
      if (at > table("glyf").length) return "has an outline outside its table";
    }
  }
  if (!maps_unicode(reader, table("cmap"))) return "has no Unicode characters";
  return reader.ok() ? "" : "cannot be read";
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
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return path + ": no such file";
  const std::uint64_t n_bytes = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in) return path + ": cannot be opened";
  Reader reader(in);
  const std::uint32_t kind = reader.at(0, 4);
  constexpr std::uint32_t kTrueType = 0x00010000;
  if (kind != kTrueType && kind != tag_of("true") && kind != tag_of("OTTO"))
    return path + ": not a TrueType or OpenType font";
  const auto tables = tables_of(reader, n_bytes);
  if (!tables) return path + ": the file is cut off or damaged";
  const std::string fault = fault_of(reader, *tables);
  return fault.empty() ? "" : path + ": the font " + fault;
}

}  // namespace ui
