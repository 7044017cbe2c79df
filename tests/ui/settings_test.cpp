#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "tests/support/in_environment.h"
#include "tests/ui/support/streams.h"
#include "ui/files/settings.h"
#include "ui/files/setup_form.h"
#include "ui/prepare/playhead.h"

namespace {

namespace fs = std::filesystem;

fs::path fresh_folder(const std::string& name) {
  const fs::path folder =
      fs::temp_directory_path() / ("decoscope-" + name + std::to_string(getpid()));
  fs::remove_all(folder);
  return folder;
}

TEST(Settings, survive_saving) {
  const fs::path folder = fresh_folder("settings");
  ui::Settings s;
  s.theme = ui::ThemeName::Light;
  s.scale_percent = 150;
  s.marks = false;
  s.space_dots = true;
  s.tour_done = true;
  s.screen = "compare";
  ui::remember_recent(s.recents, "/a = b.pdrun");
  ui::remember_recent(s.recents, "/c.pdrun");
  ui::remember_recent(s.recents, "/a = b.pdrun");
  for (int i = 0; i < 12; i++) ui::remember_recent(s.recent_models, "/m" + std::to_string(i));
  EXPECT_EQ(ui::save_settings(s, folder), "");
  const ui::Settings back = ui::load_settings(folder);
  EXPECT_EQ(ui::to_text(back), ui::to_text(s));
  EXPECT_TRUE(back.space_dots);
  EXPECT_FALSE(ui::Settings{}.space_dots);
  EXPECT_EQ(back.recents, (std::vector<std::string>{"/a = b.pdrun", "/c.pdrun"}));
  ASSERT_EQ(back.recent_models.size(), 10u);
  EXPECT_EQ(back.recent_models.front(), "/m11");
  fs::remove_all(folder);
}

TEST(Settings, broken_file_is_set_aside) {
  const fs::path folder = fresh_folder("broken");
  fs::create_directories(folder);
  std::ofstream(folder / "settings.txt") << "theme = dark\nscale_percent = 9000\n";
  const ui::Settings s = ui::load_settings(folder);
  EXPECT_EQ(s.scale_percent, 100);
  EXPECT_NE(s.why_set_aside.find("line 2"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder / "settings.txt.broken"));
  EXPECT_FALSE(fs::exists(folder / "settings.txt"));
  fs::remove_all(folder);
}

TEST(Settings, unknown_keys_are_ignored_and_missing_ones_default) {
  ui::Settings s;
  std::string why;
  ASSERT_TRUE(ui::from_text("theme = light\nkey_of_a_newer_version = 7\n", s, why)) << why;
  ui::Settings light;
  light.theme = ui::ThemeName::Light;
  EXPECT_EQ(ui::to_text(s), ui::to_text(light));
  EXPECT_FALSE(s.tour_done);
  ASSERT_TRUE(ui::from_text("tour_done = on\n", s, why)) << why;
  EXPECT_TRUE(s.tour_done);
  EXPECT_FALSE(ui::from_text("tour_done = perhaps\n", s, why));
}

TEST(Settings, unwritable_folder_is_reported) {
  EXPECT_NE(ui::save_settings({}, "/proc/nowhere"), "");
  EXPECT_EQ(ui::save_settings({}, ""), "");
}

TEST(Settings, details_of_steps_get_a_quarter_of_the_memory_by_default) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  ui::Settings s;
  EXPECT_EQ(ui::payload_limit(s, 16 * kGiB), std::size_t{4} << 30);
  EXPECT_EQ(ui::payload_limit(s, 0), engine::kPayloadBudget) << "unknown";
  EXPECT_EQ(ui::payload_limit(s, 1), engine::kPayloadBudget) << "the least";
  s.payload_mb = 64;
  EXPECT_EQ(ui::payload_limit(s, 16 * kGiB), 64u << 20);
}

TEST(Settings, motion_follows_the_desktop_by_default) {
  const fs::path folder = fresh_folder("desktop");
  const InEnvironment config("XDG_CONFIG_HOME", folder.string());
  const auto set = [&](const char* version, const char* text) {
    fs::create_directories(folder / version);
    std::ofstream(folder / version / "settings.ini") << text;
  };
  EXPECT_TRUE(ui::desktop_animates()) << "no setting";
  set("gtk-3.0", "[Settings]\ngtk-enable-animations=0\n");
  EXPECT_FALSE(ui::desktop_animates());
  set("gtk-4.0", "[Settings]\ngtk-font-name=Sans 10\n");
  EXPECT_FALSE(ui::desktop_animates()) << "GTK 4 has no such setting";
  set("gtk-4.0", "[Settings]\ngtk-enable-animations = true\n");
  EXPECT_TRUE(ui::desktop_animates()) << "the setting of GTK 4 comes first";
  set("gtk-4.0", "[Settings]\ngtk-enable-animations = false\n");
  EXPECT_FALSE(ui::desktop_animates());
  {
    const InEnvironment none("XDG_CONFIG_HOME", ""), homeless("HOME", "");
    const fs::path was = fs::current_path();
    fs::current_path(folder);
    EXPECT_TRUE(ui::desktop_animates()) << "no folder: not the working directory's files";
    fs::current_path(was);
  }
  using enum ui::Motion;
  EXPECT_EQ(ui::Settings().motion, System);
  EXPECT_EQ(ui::shown_motion(System, true), Full);
  EXPECT_EQ(ui::shown_motion(System, false), None);
  EXPECT_EQ(ui::shown_motion(Full, false), Full);
  fs::remove_all(folder);
}

TEST(SetupForm, disabled_run_has_a_reason) {
  const ui::Catalog catalog = streams::catalog();
  ui::SetupForm form = ui::first_form(catalog, "");
  EXPECT_EQ(ui::why_not(form, catalog, false), "");
  EXPECT_EQ(ui::why_not(form, catalog, true), "");
  form.live = ui::lane_with(catalog, "medusa");
  EXPECT_NE(ui::why_not(form, catalog, false).find("no heads loaded"), std::string::npos);
  form.live = ui::lane_with(catalog, "jacobi");
  form.temperature = 1;
  form.sampling = "rejection";
  EXPECT_NE(ui::why_not(form, catalog, false).find("rejection"), std::string::npos);
  form.live = ui::lane_with(catalog, "lookahead");
  EXPECT_EQ(ui::why_not(form, catalog, false), "");
  form.live.options["ranks"] = "2";
  EXPECT_NE(ui::why_not(form, catalog, false).find("with ranks"), std::string::npos);
  form.prompt.clear();
  EXPECT_EQ(ui::why_not(form, catalog, false), "The prompt is empty.");
}

TEST(SetupForm, race_is_one_command) {
  const ui::Catalog catalog = streams::catalog();
  const ui::SetupForm form = ui::first_form(catalog, "");
  const engine::StartRun race = ui::command_of(form, true);
  ASSERT_EQ(race.lanes.size(), 4u);
  EXPECT_EQ(race.lanes[2].decoder, "lookahead");
  EXPECT_EQ(race.lanes[2].options.at("window"), "5");
  EXPECT_EQ(ui::command_of(form, false).lanes.size(), 1u);
}

}  // namespace
