// The settings of the window, in one folder: settings.txt (lines "key = value") and layout.ini.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ui/shell/keys.h"
#include "ui/widgets/theme.h"

namespace ui {

enum class Motion;
enum class UnitStyle;

/// All settings.
struct Settings {
  ThemeName theme = ThemeName::Dark;
  int scale_percent = 100;     // scale of the window, 50 to 300
  int frames_per_second = 60;  // the most that are drawn, 10 to 240
  // Memory for probabilities, block states and n-grams of the session, 1 to 4096 MiB; 0: a quarter
  // of what the machine had available at the start.
  int payload_mb = 0;
  std::string save_folder;  // the folder suggested for files; empty: the user's documents
  std::string screen;       // the last screen shown; empty: none yet
  bool marks = true;        // show the marks of token cells
  bool flowing_text = false;
  bool space_dots = false;  // show the spaces of tokens as dots
  Motion motion{};          // System
  UnitStyle units{};        // Short
  std::string text_font;    // path of a .ttf or .otf file; empty: the program's own font
  std::string layout;       // word of the layout preset; empty: the default layout
  std::string last_folder;
  std::string last_model;
  std::string last_training;         // the training run opened last
  bool tour_done = false;            // the tour was done or ended; Welcome no longer offers it
  KeyChoices keys;                   // the user's keys, lines "key.next-step = Ctrl+Right"
  std::vector<std::string> recents;  // recordings opened last, newest first, at most 10
  std::vector<std::string> recent_models;  // paths of models opened last, newest first, at most 10

  std::string why_set_aside;  // not saved; names the invalid line if the file was renamed as broken
};

/// Returns $XDG_CONFIG_HOME/decoscope, else $HOME/.config/decoscope; empty if neither is set.
std::filesystem::path settings_folder();
/// Reads the settings; the defaults if the file does not exist. A broken file is renamed to settings.txt.broken.
Settings load_settings(const std::filesystem::path& folder);
/// Returns the path of the font in the settings; empty if there is none or the file is broken. It changes nothing.
std::string saved_text_font(const std::filesystem::path& folder);
/// Writes the settings through a temporary file and a rename; nothing for an empty folder path.
/// @return empty, or why the file could not be written
std::string save_settings(const Settings& settings, const std::filesystem::path& folder);

/// Returns the memory that details of steps may take, bytes.
/// @param machine_bytes  memory that was available at the start; 0: unknown
std::size_t payload_limit(const Settings& settings, std::int64_t machine_bytes);
/// Returns false if the desktop's settings turn animations off: `gtk-enable-animations` in
/// gtk-4.0/settings.ini, else in gtk-3.0/settings.ini, of $XDG_CONFIG_HOME, else of $HOME/.config.
bool desktop_animates();

/// Returns the settings that the user chooses (theme, sizes, font, motion, units, layout, limits, keys, marks, spaces, folder), without
/// what the window remembers by itself.
Settings chosen_part(const Settings& settings);
/// Sets the chosen part of `settings` to that of `from`.
void choose(Settings& settings, const Settings& from);

/// Returns the text of settings.txt.
std::string to_text(const Settings& settings);
/// Parses such a text.
/// @return false if a line cannot be read; `why` names it
bool from_text(const std::string& text, Settings& settings, std::string& why);

/// Puts a path at the front of a list of recent ones.
void remember_recent(std::vector<std::string>& recents, const std::string& path);

}  // namespace ui
