// The sheet Settings, and undo and redo of settings, notes and layout.
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "tests/support/files.h"
#include "tests/support/in_environment.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "ui/files/notes.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/figure.h"
#include "ui/settings/history.h"
#include "ui/settings/layout_presets.h"
#include "ui/settings/recorded_layout.h"
#include "ui/shell/layout.h"
#include "ui/shell/panel.h"
#include "ui/widgets/area.h"
#include "ui/widgets/draw.h"

namespace {

using testing::HasSubstr;
using namespace ui;

struct Stage : DrawnWindow {
  Stage() {
    shell.take(streams::one_run("lookahead"));
    shell.show(Screen::Live);
    settle();
  }
  void settle() {
    for (int i = 0; i < 5; ++i) said();
  }
  std::string perform(Action action) {
    shell.perform(action);
    settle();
    return said();
  }
  ImGuiWindow* window_of(const char* title) {
    for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
      if (window->WasActive &&
          std::string_view(window->Name).starts_with(std::string(title) + "###"))
        return window;
    return nullptr;
  }
};

TEST(History, returns_to_each_arrangement_in_turn) {
  History history;
  EXPECT_FALSE(history.undo());
  history.take({"a", {}, ""});
  history.take({"a", {}, ""});
  history.take({"b", {}, ""});
  history.take({"c", {}, ""});
  EXPECT_EQ(history.undo()->settings, "b");
  history.take({"b", {}, ""});  // what undo has set is no change
  EXPECT_EQ(history.undo()->settings, "a");
  EXPECT_FALSE(history.undo());
  EXPECT_EQ(history.redo()->settings, "b");
  history.take({"d", {}, ""});
  EXPECT_FALSE(history.redo()) << "a new change ends what could be redone";
  EXPECT_EQ(history.undo()->settings, "b");
  history.forget();
  EXPECT_FALSE(history.redo());
}

TEST(History, a_layout_that_becomes_known_belongs_to_all_earlier_steps) {
  History history;
  history.take({"a", {}, ""});
  history.take({"b", {}, ""});
  history.know_layout("first");
  history.take({"b", {}, "second"});
  EXPECT_EQ(history.undo()->layout, "first");
  EXPECT_EQ(history.undo()->layout, "first");
}

TEST(History, is_bounded) {
  History history;
  for (int i = 0; i < 1000; ++i) history.take({std::to_string(i), {}, ""});
  std::size_t n = 0;
  while (history.undo()) ++n;
  EXPECT_EQ(n, History::kMost);
}

// Returns how often the panel Text shows a dot in place of a space.
int dots_in_text() {
  int n_dots = 0;
  ImFontAtlasBuilder* builder = ImGui::GetIO().Fonts->Builder;
  for (const glyphs::Glyph& drawn : glyphs::drawn()) {
    if (drawn.window != "Text###live.text") continue;
    for (int i = 0; i < builder->BakedPool.Size; ++i)
      for (const ImFontGlyph& glyph : builder->BakedPool[i].Glyphs)
        n_dots +=
            glyph.Codepoint == 0xB7 && glyph.U0 == drawn.texture.x && glyph.V0 == drawn.texture.y;
  }
  return n_dots;
}

TEST(Arrangement, spaces_are_dots_by_a_setting_that_is_undone) {
  Stage stage;
  const int others = dots_in_text();  // separators of facts
  stage.shell.settings().space_dots = true;
  stage.settle();
  EXPECT_GT(dots_in_text(), others + 5);
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("Undone: settings"));
  EXPECT_FALSE(stage.shell.settings().space_dots);
  EXPECT_EQ(dots_in_text(), others);
  EXPECT_THAT(stage.perform(Action::Settings), HasSubstr("Spaces of tokens as dots"));
}

TEST(Arrangement, settings_are_undone_and_redone) {
  Stage stage;
  stage.perform(Action::NextTheme);
  stage.perform(Action::ScaleUp);
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("Undone: settings"));
  EXPECT_EQ(stage.shell.settings().scale_percent, 100);
  EXPECT_EQ(stage.shell.settings().theme, ThemeName::Light);
  stage.perform(Action::Undo);
  EXPECT_EQ(stage.shell.settings().theme, ThemeName::Dark);
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("There is nothing to undo."));
  stage.perform(Action::Redo);
  stage.perform(Action::Redo);
  EXPECT_EQ(stage.shell.settings().scale_percent, 110);
  EXPECT_THAT(stage.perform(Action::Redo), HasSubstr("There is nothing to redo."));
}

TEST(Arrangement, a_key_is_undone_while_keys_are_pressed) {
  Stage stage;
  stage.shell.settings().keys["find"] = ImGuiKey_G;
  stage.settle();
  ImGui::GetIO().AddKeyEvent(ImGuiKey_G, true);
  ImGui::GetIO().AddKeyEvent(ImGuiKey_A, true);
  stage.perform(Action::Undo);
  EXPECT_TRUE(stage.shell.settings().keys.empty());
}

TEST(Arrangement, a_bookmark_is_undone) {
  Stage stage;
  stage.shell.selection().locked = {1, 3, -1, -1};
  stage.perform(Action::Bookmark);
  ASSERT_EQ(stage.shell.notes().bookmarks.size(), 1u);
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("Undone: notes"));
  EXPECT_TRUE(stage.shell.notes().bookmarks.empty());
  stage.perform(Action::Redo);
  EXPECT_EQ(stage.shell.notes().bookmarks.size(), 1u);
}

TEST(Arrangement, a_note_on_a_run_is_undone) {
  Stage stage;
  stage.shell.notes().run_notes[1] = "too wide";
  stage.settle();
  stage.shell.notes().run_notes[1] = "too wide,\nbut fast";
  stage.settle();
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("Undone: notes"));
  EXPECT_EQ(stage.shell.notes().run_notes[1], "too wide");
  stage.perform(Action::Undo);
  EXPECT_TRUE(stage.shell.notes().run_notes.empty());
  stage.perform(Action::Redo);
  stage.perform(Action::Redo);
  EXPECT_EQ(stage.shell.notes().run_notes[1], "too wide,\nbut fast");
}

TEST(Arrangement, what_the_window_remembers_by_itself_is_no_step) {
  Stage stage;
  stage.shell.settings().recents = {"/a.pdrun"};
  stage.shell.settings().last_folder = "/a";
  stage.settle();
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("There is nothing to undo."));
  EXPECT_EQ(stage.shell.settings().recents.size(), 1u);
}

TEST(Arrangement, a_moved_panel_returns_to_its_place) {
  Stage stage;
  ImGuiWindow* runs = stage.window_of("Runs");
  ImGuiWindow* text = stage.window_of("Text");
  ASSERT_TRUE(runs && text && runs->DockId != 0);
  const ImGuiID home = runs->DockId, other = text->DockId;
  ASSERT_NE(home, other);
  // As a drag of the tab does: the mouse is down while the panel moves.
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(3, 3);
  io.AddMouseButtonEvent(0, true);
  stage.settle();
  const std::string before = layout_text();
  ImGui::DockBuilderDockWindow(runs->Name, other);
  stage.settle();
  io.AddMouseButtonEvent(0, false);
  stage.settle();
  ASSERT_EQ(runs->DockId, other);
  EXPECT_FALSE(is_same_layout(before, layout_text()));
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("Undone: layout"));
  EXPECT_EQ(stage.window_of("Runs")->DockId, home);
  EXPECT_EQ(stage.window_of("Text")->DockId, other);
  stage.perform(Action::Redo);
  EXPECT_EQ(stage.window_of("Runs")->DockId, other);
}

TEST(Arrangement, a_click_without_a_move_is_no_step) {
  Stage stage;
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(3, 3);
  io.AddMouseButtonEvent(0, true);
  stage.settle();
  io.AddMouseButtonEvent(0, false);
  stage.settle();
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("There is nothing to undo."));
}

// The part of a screen that a part is split from.
Dock host_of(Dock part) {
  switch (part) {
    case Dock::LeftFoot:
      return Dock::Left;
    case Dock::RightMiddle:
    case Dock::RightFoot:
      return Dock::Right;
    case Dock::FootRight:
      return Dock::Foot;
    default:
      return Dock::Centre;
  }
}

TEST(LayoutPresets, name_only_known_panels_and_parts) {
  ASSERT_GE(layout_presets().size(), 4u);
  EXPECT_STREQ(layout_presets().front().word, "standard");
  EXPECT_EQ(&preset_named(""), &layout_presets().front());
  EXPECT_EQ(&preset_named("of-a-newer-program"), &layout_presets().front());
  for (const LayoutPreset& preset : layout_presets()) {
    SCOPED_TRACE(preset.word);
    EXPECT_EQ(&preset_named(preset.word), &preset);
    for (const Screen screen : {Screen::Live, Screen::Compare}) {
      const auto known = panels_of(screen);
      std::map<std::string, Dock> docks;
      for (const char* id : known)
        docks[id] = screen == Screen::Live ? panel_named(id)->live : panel_named(id)->compare;
      for (const PresetPlace& place : preset.places) {
        if (place.screen != screen) continue;
        const std::string id(place.panel);
        ASSERT_TRUE(docks.contains(id)) << id;
        EXPECT_NE(place.dock, Dock::None) << id;
        docks[id] = place.dock;
      }
      std::set<Dock> used;
      for (const auto& [id, dock] : docks) used.insert(dock);
      for (const Dock part : used) EXPECT_TRUE(used.contains(host_of(part)));
      for (const PresetShare& share : preset.shares) {
        if (share.screen != screen) continue;
        EXPECT_TRUE(used.contains(share.part));
        EXPECT_GT(share.share, 0.1f);
        EXPECT_LT(share.share, 0.9f);
      }
    }
  }
}

// Returns the node of each panel of a screen that has a window.
std::map<std::string, ImGuiID> nodes_of(Screen screen) {
  std::map<std::string, ImGuiID> nodes;
  for (const char* id : panels_of(screen))
    if (const ImGuiWindow* window = ImGui::FindWindowByName(window_name(screen, id, "").c_str()))
      nodes[id] = window->DockId;
  return nodes;
}

TEST(LayoutPresets, dock_every_panel) {
  for (const LayoutPreset& preset : layout_presets()) {
    for (const Screen screen : {Screen::Live, Screen::Compare}) {
      SCOPED_TRACE(testing::Message() << preset.word << ", " << screen_name(screen));
      Stage stage;
      stage.shell.take(streams::race({"ar", "jacobi", "lookahead"}, 96, 2, 1));
      stage.shell.show(screen);
      stage.settle();
      stage.shell.use_layout(preset);
      stage.settle();
      const auto nodes = nodes_of(screen);
      EXPECT_GE(nodes.size(), 6u);
      for (const auto& [id, node] : nodes) EXPECT_NE(node, 0u) << id;
      for (const PresetPlace& one : preset.places)
        for (const PresetPlace& other : preset.places) {
          if (one.screen != screen || other.screen != screen || one.dock != other.dock) continue;
          const auto a = nodes.find(std::string(one.panel)),
                     b = nodes.find(std::string(other.panel));
          if (a == nodes.end() || b == nodes.end()) continue;  // the document has nothing for it
          EXPECT_EQ(a->second, b->second) << one.panel << " and " << other.panel;
        }
    }
  }
}

TEST(LayoutPresets, choosing_one_is_undone_in_one_step) {
  Stage stage;
  const auto standard = nodes_of(Screen::Live);
  ASSERT_NE(standard.at("numbers"), standard.at("trajectory"));
  const float text = stage.window_of("Text")->Size.y;
  stage.perform(Action::Settings);  // the sheet has the focus, so no panel has
  stage.shell.use_layout(preset_named("watching"));
  stage.settle();
  const auto watching = nodes_of(Screen::Live);
  EXPECT_EQ(watching.at("numbers"), watching.at("trajectory"));
  EXPECT_GT(stage.window_of("Text")->Size.y, 1.5f * text);
  EXPECT_TRUE(stage.window_of("Trajectory")->DockTabIsVisible) << "the first tab is in front";
  EXPECT_EQ(stage.shell.settings().layout, "watching");
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("Undone: settings and layout"));
  EXPECT_EQ(nodes_of(Screen::Live), standard);
  EXPECT_EQ(stage.shell.settings().layout, "");
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("There is nothing to undo."));
  stage.perform(Action::Redo);
  EXPECT_EQ(stage.shell.settings().layout, "watching");
  EXPECT_EQ(nodes_of(Screen::Live).at("numbers"), nodes_of(Screen::Live).at("trajectory"));
}

TEST(LayoutPresets, change_the_screen_that_is_not_shown) {
  Stage stage;
  stage.shell.take(streams::race({"ar", "jacobi", "lookahead"}, 96, 2, 1));
  stage.shell.show(Screen::Compare);
  stage.settle();
  const auto standard = nodes_of(Screen::Compare);
  ASSERT_NE(standard.at("runs"), standard.at("setup"));
  stage.shell.show(Screen::Live);
  stage.settle();
  stage.shell.use_layout(preset_named("watching"));
  stage.settle();
  stage.shell.show(Screen::Compare);
  stage.settle();
  const auto watching = nodes_of(Screen::Compare);
  EXPECT_EQ(watching.at("runs"), watching.at("setup"));
  EXPECT_EQ(watching.at("difference"), watching.at("gantt"));
  stage.perform(Action::Undo);
  EXPECT_EQ(nodes_of(Screen::Compare), standard);
}

TEST(LayoutPresets, follow_the_size_of_the_window) {
  Stage stage;
  stage.shell.use_layout(preset_named("watching"));
  stage.settle();
  ImGui::GetIO().DisplaySize = {640, 400};
  stage.settle();
  EXPECT_EQ(nodes_of(Screen::Live).at("setup"), nodes_of(Screen::Live).at("text"));
  ImGui::GetIO().DisplaySize = {1600, 1000};
  stage.settle();
  const auto nodes = nodes_of(Screen::Live);
  EXPECT_NE(nodes.at("setup"), nodes.at("text"));
  EXPECT_EQ(nodes.at("numbers"), nodes.at("trajectory"));
}

TEST(RecordedLayout, is_complete_for_every_preset_screen_and_size) {
  constexpr std::array kScreens{Screen::Live, Screen::Compare, Screen::Training, Screen::Lab};
  for (const LayoutPreset& preset : layout_presets()) {
    Stage stage;
    stage.shell.take(streams::race({"ar", "jacobi", "lookahead"}, 96, 2, 1));
    stage.shell.use_layout(preset);
    for (const ImVec2 size : {ImVec2(1600, 1000), ImVec2(900, 600), ImVec2(640, 400)}) {
      ImGui::GetIO().DisplaySize = size;
      for (const Screen screen : kScreens) {
        stage.shell.show(screen);
        stage.settle();
      }
      const std::string recorded = recorded_layout(layout_text());
      EXPECT_EQ(why_not_layout(recorded), "") << preset.word << " at " << size.x << "\n"
                                              << recorded;
      for (const Screen screen : kScreens)
        EXPECT_THAT(recorded, HasSubstr(std::string("[") + screen_name(screen) + "."));
      EXPECT_LT(recorded.size(), kMaxRecordedLayout / 2);
    }
  }
}

TEST(RecordedLayout, refuses_damaged_places) {
  Stage stage;
  stage.shell.take(streams::race({"ar", "jacobi", "lookahead"}, 96, 2, 1));
  stage.shell.show(Screen::Compare);
  stage.settle();
  const std::string sound = recorded_layout(layout_text());
  ASSERT_EQ(why_not_layout(sound), "");
  const std::string text_node = fmt::format("{:08X}", nodes_of(Screen::Live).at("text"));
  struct Alteration {
    const char* found;
    std::string put, why;
  };
  const std::string damaged = "a line is damaged: ";
  for (const auto& [found, put, why] :
       {Alteration{"version=[0-9]+", "version=1", "found version=1, expected version="},
        Alteration{"\\[Window\\]", "[Table]", damaged}, Alteration{"\\[live", "[moon", damaged},
        Alteration{"\\[live.numbers\\]", "[##ground]", damaged},
        Alteration{"Collapsed=0", "ClassId=0x00000001", damaged},
        Alteration{"\\[Window\\]\\[live.numbers\\]\n[^\\[]*", "", "live.numbers is missing"},
        Alteration{"DockId=0x[0-9A-F]{8}", "DockId=0x0000FFFF", " is at no place"},
        Alteration{"(compare[^\n]*\n[^\n]*\nDockId=0x)[0-9A-F]{8}", "$01" + text_node,
                   " is at a place of another screen"},
        Alteration{"DockSpace ", "DockNode  ", damaged},
        Alteration{"DockNode ", "DockSpace", damaged},
        Alteration{"SizeRef=[0-9]+", "SizeRef=0", damaged},
        Alteration{" Size=[0-9]+", " Size=99999", damaged},
        Alteration{" Split=.", " Split=Z", damaged}, Alteration{" Split=.", "", damaged},
        Alteration{" Parent=0x[0-9A-F]{8}", " Parent=0x0000FFFF", damaged},
        Alteration{"(SizeRef=[0-9]+,[0-9]+)(( NoTabBar=1)? Selected=)", "$1 CentralNode=1$2",
                   damaged}}) {
    const std::string altered =
        std::regex_replace(sound, std::regex(found), put, std::regex_constants::format_first_only);
    ASSERT_NE(altered, sound) << found;
    EXPECT_THAT(why_not_layout(altered), HasSubstr(why)) << found;
  }
  const std::size_t last = sound.rfind('\n', sound.size() - 2) + 1, tree = sound.find("[Docking]");
  EXPECT_THAT(why_not_layout(sound.substr(0, last)), HasSubstr("the tree of places is missing"));
  EXPECT_THAT(why_not_layout(sound + sound.substr(last)), HasSubstr(damaged));
  EXPECT_THAT(why_not_layout(sound.substr(0, tree)), HasSubstr(" is at no place"));
  EXPECT_THAT(why_not_layout(sound.substr(0, sound.find('\n') + 1)), HasSubstr("no panels"));
  EXPECT_THAT(why_not_layout(sound + std::string(kMaxRecordedLayout, '\n')), HasSubstr("bytes"));
}

TEST(LayoutPresets, are_in_the_palette) {
  Stage stage;
  stage.perform(Action::Palette);
  ImGuiIO& io = ImGui::GetIO();
  io.AddInputCharactersUTF8("layout: Timeline");
  stage.settle();
  io.AddKeyEvent(ImGuiKey_Enter, true);
  stage.gui.frame(stage.shell);
  io.AddKeyEvent(ImGuiKey_Enter, false);
  stage.settle();
  EXPECT_EQ(stage.shell.settings().layout, "timeline");
  EXPECT_EQ(nodes_of(Screen::Live).at("inspector"), nodes_of(Screen::Live).at("numbers"));
}

TEST(SettingsSheet, shows_the_settings_and_restores_defaults) {
  Stage stage;
  stage.shell.settings().theme = ThemeName::HighContrast;
  stage.shell.settings().payload_mb = 64;
  const std::string shown = stage.perform(Action::Settings);
  for (const char* part : {"Settings", "High contrast", "100 %", "60", "64 MB", "Folder for files"})
    EXPECT_THAT(shown, HasSubstr(part));
  stage.shell.settings().payload_mb = 0;
  stage.settle();
  EXPECT_THAT(stage.said(), HasSubstr("automatic: "));
  stage.perform(Action::Deselect);
  EXPECT_THAT(stage.said(), testing::Not(HasSubstr("Folder for files")));
}

// Returns the positions of the playhead in a second of a view that plays the run in ten seconds.
std::set<double> positions_of_a_second(Stage& stage) {
  const double end = stage.shell.playhead().at;
  stage.shell.playhead() = {.mode = Playhead::Mode::Playing, .at = 0, .speed = end / 1e10};
  std::set<double> seen;
  for (int i = 0; i < 60; ++i) {
    stage.gui.frame(stage.shell);
    seen.insert(stage.shell.playhead().at);
  }
  EXPECT_NEAR(stage.shell.playhead().at, 0.1 * end, 0.051 * end);
  stage.shell.playhead().mode = Playhead::Mode::Follow;
  stage.settle();
  return seen;
}

TEST(Motion, is_reduced_by_the_setting) {
  Stage stage;
  ASSERT_GT(stage.shell.playhead().at, 0);
  EXPECT_GE(positions_of_a_second(stage).size(), 59u);
  stage.shell.settings().motion = Motion::Reduced;
  const std::size_t reduced = positions_of_a_second(stage).size();
  EXPECT_GE(reduced, 7u);
  EXPECT_LE(reduced, 12u);
  stage.shell.settings().motion = Motion::None;
  EXPECT_LE(positions_of_a_second(stage).size(), 4u);
}

TEST(Motion, follows_the_desktop_by_default) {
  const engine::test::Folder folder;
  std::filesystem::create_directory(folder / "gtk-4.0");
  std::ofstream(folder / "gtk-4.0/settings.ini") << "[Settings]\ngtk-enable-animations=0\n";
  const InEnvironment config("XDG_CONFIG_HOME", folder / "");
  Stage stage;
  EXPECT_LE(positions_of_a_second(stage).size(), 4u);
  stage.shell.settings().motion = Motion::Full;
  EXPECT_GE(positions_of_a_second(stage).size(), 59u);
}

TEST(Motion, held_keys_jump_without_it) {
  Stage stage;
  auto& range = stage.shell.state<TimelineView>().range;
  // Returns the frames of a second in which the visible range changes.
  const auto changes = [&] {
    std::vector<int> frames;
    stage.shell.key_at('W', true);
    for (int i = 0; i < 60; ++i) {
      const double before = range.t1 - range.t0;
      stage.gui.frame(stage.shell);
      if (range.t1 - range.t0 != before) frames.push_back(i);
    }
    stage.shell.key_at('W', false);
    stage.shell.perform(Action::FitAll);
    stage.settle();
    return frames;
  };
  EXPECT_GE(changes().size(), 58u);
  stage.shell.settings().motion = Motion::None;
  stage.settle();
  const std::vector<int> jumps = changes();
  ASSERT_GE(jumps.size(), 2u);
  EXPECT_LE(jumps.size(), 3u);
  EXPECT_EQ(jumps.front(), 0) << "the first jump follows the key at once";
}

TEST(Units, are_full_nanoseconds_by_the_setting) {
  const char* const kFull = "[0-9]{1,3}(,[0-9]{3})+ ns";
  {
    Stage stage;
    EXPECT_THAT(stage.said(), testing::Not(testing::ContainsRegex(kFull)));
    stage.shell.settings().units = UnitStyle::Full;
    stage.settle();
    EXPECT_THAT(stage.said(), testing::ContainsRegex(kFull));
    stage.perform(Action::Undo);
    EXPECT_EQ(stage.shell.settings().units, UnitStyle::Short);
    EXPECT_THAT(stage.said(), testing::Not(testing::ContainsRegex(kFull)));
  }
  EXPECT_EQ(unit_style(), UnitStyle::Short);
}

TEST(Presentation, its_area_ends_with_the_window) {
  {
    Stage stage;
    stage.perform(Action::Present);
    EXPECT_LT(frame_area().wide(), 1600);
  }
  const DrawnWindow window;
  EXPECT_EQ(frame_area().wide(), whole_window().wide());
}

TEST(SettingsSheet, motion_and_units_are_saved_and_checked) {
  Settings s;
  s.motion = Motion::Reduced;
  s.units = UnitStyle::Full;
  s.layout = "watching";
  Settings back;
  std::string why;
  ASSERT_TRUE(from_text(to_text(s), back, why)) << why;
  EXPECT_EQ(back.motion, Motion::Reduced);
  EXPECT_EQ(back.units, UnitStyle::Full);
  EXPECT_EQ(back.layout, "watching");
  EXPECT_EQ(to_text(chosen_part(back)), to_text(s));
  for (const char* wrong : {"motion = fast", "motion = ", "units = long", "units = 1"})
    EXPECT_FALSE(from_text(wrong, back, why)) << wrong;
  EXPECT_TRUE(from_text("layout = of-a-newer-program", back, why));
}

TEST(SettingsSheet, is_whole_at_every_size) {
  struct Size {
    float width, height;
    int scale;
  };
  for (const Size& size : {Size{640, 400, 100}, Size{640, 400, 150}, Size{1280, 720, 100},
                           Size{1280, 720, 150}, Size{1600, 1000, 100}}) {
    SCOPED_TRACE(testing::Message() << size.width << "x" << size.height << " at " << size.scale);
    Stage stage;
    ImGui::GetIO().DisplaySize = {size.width, size.height};
    stage.shell.settings().scale_percent = size.scale;
    stage.perform(Action::Settings);
    const auto expect_whole = [](bool also_in_height) {
      int n_glyphs = 0;
      for (const glyphs::Glyph& glyph : glyphs::drawn()) {
        if (!glyph.window.starts_with("##settings")) continue;
        ++n_glyphs;
        EXPECT_FALSE(is_cut_sideways(glyph)) << glyph.window << " at " << glyph.box.Min.x;
        EXPECT_FALSE(also_in_height && is_cut_in_height(glyph)) << "at " << glyph.box.Min.y;
      }
      EXPECT_GT(n_glyphs, 100);
    };
    stage.gui.frame(stage.shell);
    expect_whole(true);
    ImGuiWindow* rows = nullptr;
    for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
      if (window->WasActive && std::string_view(window->Name).starts_with("##settings/rows"))
        rows = window;
    ASSERT_NE(rows, nullptr);
    EXPECT_GE(rows->Size.y, px(100));
    ImGui::SetScrollY(rows, rows->ScrollMax.y);
    stage.settle();
    EXPECT_THAT(stage.said(), HasSubstr("Folder for files"));
    stage.gui.frame(stage.shell);
    expect_whole(false);
  }
}

TEST(SettingsSheet, opens_and_closes_by_its_key) {
  Stage stage;
  ImGuiIO& io = ImGui::GetIO();
  const auto press = [&] {
    io.AddKeyEvent(ImGuiMod_Ctrl, true);
    io.AddKeyEvent(ImGuiKey_Comma, true);
    stage.settle();
    io.AddKeyEvent(ImGuiKey_Comma, false);
    io.AddKeyEvent(ImGuiMod_Ctrl, false);
    stage.settle();
    return stage.said();
  };
  EXPECT_THAT(press(), HasSubstr("Folder for files"));
  EXPECT_THAT(press(), testing::Not(HasSubstr("Folder for files")));
}

TEST(SettingsSheet, limits_are_saved_and_checked) {
  Settings s;
  s.theme = ThemeName::HighContrast;
  s.frames_per_second = 24;
  s.payload_mb = 512;
  s.save_folder = "/tmp/a b";
  Settings back;
  std::string why;
  ASSERT_TRUE(from_text(to_text(s), back, why)) << why;
  EXPECT_EQ(to_text(back), to_text(s));
  EXPECT_EQ(back.theme, ThemeName::HighContrast);
  for (const char* wrong : {"frames_per_second = 0", "payload_mb = 99999", "theme = pink"})
    EXPECT_FALSE(from_text(wrong, back, why)) << wrong;
}

}  // namespace
