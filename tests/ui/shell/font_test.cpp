// The font that the user chooses: checks of the file, loading, the setting.
#include <unistd.h>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "tests/support/files.h"
#include "tests/ui/support/drawn_window.h"
#include "ui/files/settings.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/font_file.h"
#include "ui/widgets/fonts.h"

// The program's own font, as ui/widgets/fonts.cpp embeds it.
extern "C" const char ui_font_mono_begin[];
extern "C" const char ui_font_mono_end[];

namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace ui;
namespace fs = std::filesystem;

// A folder with a usable font, removed at the end.
struct FontFolder {
  FontFolder() {
    fs::remove_all(path);
    fs::create_directories(path);
    write("own.ttf", own());
  }
  ~FontFolder() { fs::remove_all(path); }
  static std::string own() { return {ui_font_mono_begin, ui_font_mono_end}; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return (path / name).string();
  }
  std::string font() const { return (path / "own.ttf").string(); }

  fs::path path = fs::temp_directory_path() / ("decoscope-font-" + std::to_string(getpid()));
};

TEST(FontFile, accepts_a_font_and_the_automatic_choice) {
  const FontFolder folder;
  EXPECT_EQ(why_not_font(""), "");
  EXPECT_EQ(why_not_font(folder.font()), "");
  EXPECT_EQ(why_not_font(folder.write("OWN.TTF", FontFolder::own())), "");
}

TEST(FontFile, says_why_a_file_is_refused) {
  const FontFolder folder;
  const auto why = [&](const std::string& name, const std::string& bytes) {
    const std::string path = folder.write(name, bytes);
    const std::string found = why_not_font(path);
    EXPECT_THAT(found, HasSubstr(path));
    return found;
  };
  EXPECT_THAT(why_not_font((folder.path / "none.ttf").string()), HasSubstr("no such file"));
  EXPECT_THAT(why_not_font(folder.path.string()), HasSubstr(".ttf or .otf"));
  fs::create_directory(folder.path / "folder.ttf");
  EXPECT_THAT(why_not_font((folder.path / "folder.ttf").string()), HasSubstr("no such file"));
  EXPECT_THAT(why("font.txt", FontFolder::own()), HasSubstr(".ttf or .otf"));
  EXPECT_THAT(why("text.ttf", "This is no font."), HasSubstr("not a TrueType or OpenType font"));
  EXPECT_THAT(why("empty.otf", ""), HasSubstr("not a TrueType or OpenType font"));
  const std::string collection = "ttcf" + FontFolder::own().substr(4);
  EXPECT_THAT(why("collection.ttf", collection), HasSubstr("not a TrueType"));
}

TEST(FontFile, refuses_truncated_and_altered_copies) {
  const FontFolder folder;
  const std::string own = FontFolder::own();
  for (const std::size_t n_bytes : {std::size_t{3}, std::size_t{11}, std::size_t{40},
                                    std::size_t{300}, own.size() / 2, own.size() - 64}) {
    EXPECT_THAT(why_not_font(folder.write("cut.ttf", own.substr(0, n_bytes))), Not(IsEmpty()))
        << n_bytes;
  }
  // A table that is missing: its name in the list of tables is overwritten.
  for (const char* table : {"cmap", "head", "hhea", "hmtx", "maxp", "glyf", "loca"}) {
    std::string without = own;
    const std::size_t at = without.substr(0, 512).find(table);
    if (at == std::string::npos) continue;
    without.replace(at, 4, "none");
    EXPECT_THAT(why_not_font(folder.write("without.ttf", without)), Not(IsEmpty())) << table;
  }
}

// Alters one byte of a font at each place. Loads the copies that are accepted and draws their characters. @return how many these are
std::size_t n_drawn(const std::string& own,
                    const std::vector<std::size_t>& places,
                    const std::string& ending) {
  const FontFolder folder;
  std::size_t n = 0;
  for (std::size_t first = 0; first < places.size(); first += 64) {
    // A new context for every 64 files keeps the font atlas small.
    const headless::Headless gui;
    for (std::size_t i = first; i < std::min(first + 64, places.size()); ++i) {
      SCOPED_TRACE(places[i]);
      std::string altered = own;
      altered[places[i]] = static_cast<char>(altered[places[i]] ^ 0xFF);
      const std::string path =
          folder.write("altered" + std::to_string(places[i]) + ending, altered);
      if (!why_not_font(path).empty()) continue;
      load_fonts(path);
      EXPECT_EQ(loaded_text_font(), path);
      float wide = 0;
      for (ImWchar c = 0x20; c < 0x180; ++c)
        wide += fonts().regular->GetFontBaked(20)->FindGlyph(c)->AdvanceX;
      EXPECT_FALSE(std::isnan(wide));
      ++n;
    }
  }
  return n;
}

TEST(FontFile, altered_copies_are_refused_or_drawn) {
  const std::string own = FontFolder::own();
  // The first bytes list the tables with their offsets and lengths; the others are in the tables.
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < 512; ++at) places.push_back(at);
  for (std::size_t at = 512; at < own.size(); at += own.size() / 512) places.push_back(at);
  EXPECT_GT(n_drawn(own, places, ".ttf"), 300u);
}

TEST(FontFile, altered_cff_outlines_are_refused_or_drawn) {
  const std::string own = engine::test::read_file(UI_SMALL_CFF_FONT);
  const std::size_t record = own.substr(0, 512).find("CFF ");
  ASSERT_NE(record, std::string::npos);
  const auto number_at = [&](std::size_t at) {
    std::size_t value = 0;
    for (const char c : own.substr(at, 4)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  };
  const std::size_t begin = number_at(record + 8), end = begin + number_at(record + 12);
  // The lists and dictionaries, then programs of glyphs.
  std::vector<std::size_t> places;
  for (std::size_t at = begin; at < begin + 128; ++at) places.push_back(at);
  for (std::size_t at = begin + 128; at < end; at += 96) places.push_back(at);
  EXPECT_GT(n_drawn(own, places, ".otf"), 150u);
}

TEST(FontFile, accepts_and_draws_cff_outlines) {
  for (const char* path : {UI_SMALL_CFF_FONT, UI_LARGE_CFF_FONT}) {
    EXPECT_EQ(why_not_font(path), "");
    const headless::Headless gui;
    load_fonts(path);
    EXPECT_EQ(loaded_text_font(), path);
    const ImFontGlyph* glyph = fonts().regular->GetFontBaked(20)->FindGlyph('A');
    EXPECT_TRUE(glyph->Visible);
    EXPECT_EQ(static_cast<int>(glyph->SourceIdx), 0) << "from another font";
  }
}

// The reader takes the first of two tables with one name, and the table CFF only without a table glyf.
TEST(FontFile, checks_the_tables_that_the_reader_uses) {
  const FontFolder folder;
  const auto why_renamed = [&](const std::vector<std::pair<const char*, const char*>>& names) {
    std::string altered = FontFolder::own();
    for (const auto& [from, to] : names) altered.replace(altered.substr(0, 512).find(from), 4, to);
    return why_not_font(folder.write("renamed.ttf", altered));
  };
  EXPECT_EQ(why_renamed({{"GDEF", "none"}}), "");
  EXPECT_THAT(why_renamed({{"GDEF", "hmtx"}}), HasSubstr("a table that is too short"));
  EXPECT_THAT(why_renamed({{"GDEF", "CFF "}, {"loca", "none"}}), HasSubstr("no table loca"));
  EXPECT_THAT(why_renamed({{"GDEF", "CFF "}, {"glyf", "none"}}), HasSubstr("damaged outline"));
}

// Returns a font as the only one of a collection: the places of its tables count from the beginning of the file.
std::string collection_of(const std::string& font) {
  constexpr std::size_t kHeader = 16, kRecord = 16;
  const auto number = [](std::size_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
    return bytes;
  };
  std::string bytes = "ttcf" + number(0x00010000) + number(1) + number(kHeader) + font;
  const auto n_tables = static_cast<std::size_t>(static_cast<unsigned char>(font[5]));
  for (std::size_t i = 0; i < n_tables; ++i) {
    const std::size_t at = kHeader + 12 + i * kRecord + 8;
    std::size_t place = 0;
    for (const char c : bytes.substr(at, 4)) place = place << 8 | static_cast<unsigned char>(c);
    bytes.replace(at, 4, number(place + kHeader));
  }
  return bytes;
}

TEST(Fonts, fonts_of_the_system_are_checked) {
  const FontFolder folder;
  const std::string own = FontFolder::own(), cut = own.substr(0, own.size() / 2);
  EXPECT_THAT(system_fonts({folder.path}), IsEmpty()) << "no name that is wanted";
  folder.write("DejaVuSans.ttf", cut);
  folder.write("wqy-microhei.ttc", collection_of(cut));
  EXPECT_THAT(system_fonts({folder.path}), IsEmpty());
  const std::string second = folder.write("LiberationSans-Regular.ttf", own),
                    collection = folder.write("wqy-zenhei.ttc", collection_of(own));
  EXPECT_THAT(system_fonts({folder.path, folder.path / "none"}),
              testing::ElementsAre(second, collection))
      << "the next font of a script replaces a damaged one";
  std::string altered = engine::test::read_file(UI_SMALL_CFF_FONT);
  const std::string symbols = folder.write("Symbola.otf", altered);
  EXPECT_THAT(system_fonts({folder.path}), testing::Contains(symbols));
  // The offsets of the outlines lead out of the table.
  const std::size_t record = altered.substr(0, 512).find("CFF ");
  ASSERT_NE(record, std::string::npos);
  altered.replace(record + 12, 4, std::string("\0\0\0\x40", 4));
  folder.write("Symbola.otf", altered);
  EXPECT_THAT(system_fonts({folder.path}), Not(testing::Contains(symbols)));
}

TEST(Fonts, a_chosen_font_replaces_the_font_of_the_interface) {
  const FontFolder folder;
  DrawnWindow window;
  EXPECT_EQ(loaded_text_font(), "");
  window.said();
  const auto width_of_i = [] { return fonts().regular->CalcTextSizeA(20, FLT_MAX, 0, "iii").x; };
  const float width = width_of_i();
  const int n_sources = fonts().regular->Sources.Size;
  load_fonts(folder.font());
  EXPECT_EQ(loaded_text_font(), folder.font());
  EXPECT_EQ(fonts().regular->Sources.Size, n_sources + 1) << "the program's fonts stay behind it";
  EXPECT_EQ(fonts().bold->Sources.Size, n_sources + 1);
  // The chosen font is monospaced, so "i" is wider.
  EXPECT_GT(width_of_i(), 1.3f * width);
  ImGui::GetIO().FontDefault = fonts().regular;
  EXPECT_THAT(window.said(), Not(IsEmpty()));
  load_fonts((folder.path / "none.ttf").string());
  EXPECT_EQ(loaded_text_font(), "") << "a file that cannot be used is ignored";
}

TEST(Fonts, the_setting_is_saved_checked_and_undone) {
  const FontFolder folder;
  Settings s;
  s.text_font = folder.font();
  EXPECT_EQ(save_settings(s, folder.path / "config"), "");
  EXPECT_EQ(saved_text_font(folder.path / "config"), folder.font());
  EXPECT_EQ(load_settings(folder.path / "config").text_font, folder.font());
  EXPECT_EQ(saved_text_font(folder.path / "none"), "");
  EXPECT_EQ(saved_text_font(""), "");
  Settings back;
  std::string why;
  EXPECT_FALSE(from_text("text_font = /etc/passwd", back, why));
  EXPECT_THAT(why, HasSubstr("line 1"));

  DrawnWindow window;
  window.said();
  window.shell.settings().text_font = folder.font();
  window.said();
  window.shell.perform(Action::Settings);
  EXPECT_THAT(window.said(), HasSubstr("The font changes at the next start of the program."));
  window.shell.perform(Action::Undo);
  EXPECT_EQ(window.shell.settings().text_font, "");
  EXPECT_THAT(window.said(), Not(HasSubstr("The font changes")));
  window.shell.perform(Action::Redo);
  EXPECT_EQ(window.shell.settings().text_font, folder.font());
}

TEST(Fonts, the_window_says_why_a_saved_font_is_not_used) {
  const FontFolder folder;
  Settings s;
  s.text_font = (folder.path / "gone.ttf").string();
  EXPECT_EQ(save_settings(s, folder.path), "");
  const headless::Headless gui;
  engine::CommandQueue commands;
  const Catalog catalog = streams::catalog();
  Shell shell(catalog, commands, folder.path);
  EXPECT_THAT(shell.message(), HasSubstr("gone.ttf: no such file; the program's own font is used"));
  EXPECT_EQ(shell.settings().text_font, s.text_font) << "the setting stays, for when it is back";
}

TEST(Fonts, a_typed_path_is_checked) {
  const FontFolder folder;
  const auto type = [](DrawnWindow& window, const std::string& path) {
    window.said();
    window.shell.perform(Action::Settings);
    window.said();
    // Focuses the field as a click does.
    ImGuiWindow* rows = nullptr;
    for (ImGuiWindow* one : ImGui::GetCurrentContext()->Windows)
      if (one->WasActive && std::string_view(one->Name).starts_with("##settings/rows")) rows = one;
    ASSERT_NE(rows, nullptr);
    const float row = ImGui::GetFrameHeight() + px(4);
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(rows->Pos.x + rows->Size.x - 60, rows->Pos.y + 2.5f * row);
    window.said();
    io.AddMouseButtonEvent(0, true);
    window.said();
    io.AddMouseButtonEvent(0, false);
    window.said();
    io.AddInputCharactersUTF8(path.c_str());
    window.said();
    io.AddKeyEvent(ImGuiKey_Enter, true);
    window.said();
    io.AddKeyEvent(ImGuiKey_Enter, false);
    window.said();
  };
  {
    DrawnWindow window;
    type(window, folder.font());
    EXPECT_EQ(window.shell.settings().text_font, folder.font());
    EXPECT_THAT(window.said(), HasSubstr("at the next start"));
  }
  DrawnWindow window;
  type(window, "/nowhere/font.ttf");
  EXPECT_EQ(window.shell.settings().text_font, "");
  EXPECT_THAT(window.said(), HasSubstr("/nowhere/font.ttf: no such file. The font is not used."));
}

}  // namespace
