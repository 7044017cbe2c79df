// What the window remembers, in one folder: settings.txt ("key = value" lines) and layout.ini.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ui/shell/keys.h"
#include "ui/widgets/theme.h"

namespace ui {

struct Settings {
  ThemeName theme = ThemeName::Dark;
  int scale_percent = 100;  // 50 to 300
  std::string screen;       // last one shown; empty: never opened
  bool marks = true;        // on token cells
  bool flowing_text = false;
  std::string last_folder;
  std::string last_model;
  std::string last_training;         // folder or log opened last on the screen Training
  KeyChoices keys;                   // lines "key.next-step = Ctrl+Right"
  std::vector<std::string> recents;  // .pdrun files, newest first, at most 10

  std::string why_set_aside;  // not kept: a broken file was renamed, this says which line
};

/// $XDG_CONFIG_HOME/decoscope, else $HOME/.config/decoscope; empty if neither is set.
std::filesystem::path settings_folder();
/// A missing file gives the defaults. A broken one is renamed to settings.txt.broken, never fatal.
Settings load_settings(const std::filesystem::path& folder);
/// Through a temporary file and a rename. An empty folder path keeps nothing.
/// @return empty, or why it could not be written
std::string save_settings(const Settings& settings, const std::filesystem::path& folder);

std::string to_text(const Settings& settings);
/// @return false at the first line that cannot be read; `why` names it
bool from_text(const std::string& text, Settings& settings, std::string& why);

void remember_recent(Settings& settings, const std::string& path);

}  // namespace ui
