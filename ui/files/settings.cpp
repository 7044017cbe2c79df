#include "ui/files/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "engine/base/output_file.h"
#include "engine/base/types.h"
#include "engine/event/timeline/timeline.h"
#include "ui/widgets/font_file.h"

namespace ui {
namespace {

constexpr std::size_t kMostRecents = 10;

// The words of choices in settings.txt, in the order of their enumerations.
constexpr std::array<std::string_view, 4> kMotions{"system", "full", "reduced", "none"};
constexpr std::array<std::string_view, 2> kUnits{"short", "full"};

bool take(Settings& s, const std::string& key, const std::string& value) {
  const auto flag = [&value](bool& to) {
    to = value == "on";
    return value == "on" || value == "off";
  };
  if (key == "theme") {
    const auto found = std::ranges::find(kThemes, value, &NamedTheme::word);
    if (found != kThemes.end()) s.theme = found->theme->name;
    return found != kThemes.end();
  }
  const auto whole = [&value](int& to, int least, int most) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), to);
    return error == std::errc() && end == value.data() + value.size() && to >= least && to <= most;
  };
  const auto word_of = [&value](const auto& words, auto& to) {
    const auto found = std::ranges::find(words, value);
    if (found != words.end())
      to = static_cast<std::remove_reference_t<decltype(to)>>(found - words.begin());
    return found != words.end();
  };
  if (key == "motion") return word_of(kMotions, s.motion);
  if (key == "units") return word_of(kUnits, s.units);
  if (key == "scale_percent") return whole(s.scale_percent, 50, 300);
  if (key == "frames_per_second") return whole(s.frames_per_second, 10, 240);
  if (key == "payload_mb") return whole(s.payload_mb, 0, 4096);
  constexpr std::string_view kKey = "key.";
  if (key.starts_with(kKey)) {
    const auto chord = chord_of(value);
    if (chord) s.keys[key.substr(kKey.size())] = *chord;
    return chord.has_value();
  }
  if (key == "marks") return flag(s.marks);
  if (key == "flowing_text") return flag(s.flowing_text);
  if (key == "space_dots") return flag(s.space_dots);
  if (key == "layout") s.layout = value;
  if (key == "text_font") {
    s.text_font = value;
    return value.empty() || is_font_name(value);
  }
  if (key == "save_folder") s.save_folder = value;
  if (key == "screen") s.screen = value;
  if (key == "last_folder") s.last_folder = value;
  if (key == "last_model") s.last_model = value;
  if (key == "last_training") s.last_training = value;
  if (key == "tour_done") return flag(s.tour_done);
  const auto keep = [&value](std::vector<std::string>& recents) {
    if (recents.size() < kMostRecents) recents.push_back(value);
  };
  if (key == "recent") keep(s.recents);
  if (key == "recent_model") keep(s.recent_models);
  return true;  // a key of a newer version is ignored
}

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(" \t\r");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

// Returns the text of a file, at most 64 KiB; empty if it cannot be read.
std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return "";
  std::string text(64 * 1024, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

// Returns the text of settings.txt; empty if there is none.
std::string saved_text(const std::filesystem::path& folder) {
  return folder.empty() ? "" : text_of(folder / "settings.txt");
}

// Returns the folder for settings of all programs; empty if the environment names none.
std::filesystem::path config_folder() {
  if (const char* xdg = std::getenv("XDG_CONFIG_HOME"); xdg && *xdg) return xdg;
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".config";
  return {};
}

}  // namespace

std::filesystem::path settings_folder() {
  const std::filesystem::path folder = config_folder();
  return folder.empty() ? folder : folder / "decoscope";
}

std::size_t payload_limit(const Settings& settings, std::int64_t machine_bytes) {
  if (settings.payload_mb > 0) return static_cast<std::size_t>(settings.payload_mb) << 20;
  return std::max(engine::kPayloadBudget, static_cast<std::size_t>(machine_bytes) / 4);
}

bool desktop_animates() {
  if (config_folder().empty()) return true;
  for (const char* version : {"gtk-4.0", "gtk-3.0"}) {
    std::istringstream in(text_of(config_folder() / version / "settings.ini"));
    std::string line;
    while (std::getline(in, line)) {
      const auto equals = line.find('=');
      if (trimmed(line.substr(0, equals)) != "gtk-enable-animations") continue;
      const std::string value = equals == std::string::npos ? "" : trimmed(line.substr(equals + 1));
      return value != "0" && value != "false";
    }
  }
  return true;
}

void choose(Settings& settings, const Settings& from) {
  settings.theme = from.theme;
  settings.scale_percent = from.scale_percent;
  settings.frames_per_second = from.frames_per_second;
  settings.payload_mb = from.payload_mb;
  settings.save_folder = from.save_folder;
  settings.marks = from.marks;
  settings.flowing_text = from.flowing_text;
  settings.space_dots = from.space_dots;
  settings.text_font = from.text_font;
  settings.motion = from.motion;
  settings.units = from.units;
  settings.layout = from.layout;
  settings.keys = from.keys;
}

Settings chosen_part(const Settings& settings) {
  Settings part;
  choose(part, settings);
  return part;
}

std::string to_text(const Settings& s) {
  std::ostringstream out;
  out << "theme = " << kThemes[static_cast<std::size_t>(s.theme)].word
      << "\nscale_percent = " << s.scale_percent << "\nframes_per_second = " << s.frames_per_second
      << "\npayload_mb = " << s.payload_mb << "\nsave_folder = " << s.save_folder
      << "\nscreen = " << s.screen << "\nmarks = " << (s.marks ? "on" : "off")
      << "\nflowing_text = " << (s.flowing_text ? "on" : "off")
      << "\nspace_dots = " << (s.space_dots ? "on" : "off") << "\ntext_font = " << s.text_font
      << "\nmotion = " << kMotions[static_cast<std::size_t>(s.motion)]
      << "\nunits = " << kUnits[static_cast<std::size_t>(s.units)] << "\nlayout = " << s.layout
      << "\nlast_folder = " << s.last_folder << "\nlast_model = " << s.last_model
      << "\nlast_training = " << s.last_training << "\ntour_done = " << (s.tour_done ? "on" : "off")
      << "\n";
  for (const auto& [name, chord] : s.keys)
    out << "key." << name << " = " << chord_words(chord) << "\n";
  for (const std::string& path : s.recents) out << "recent = " << path << "\n";
  for (const std::string& path : s.recent_models) out << "recent_model = " << path << "\n";
  return out.str();
}

bool from_text(const std::string& text, Settings& settings, std::string& why) {
  std::istringstream in(text);
  std::string line;
  for (int n = 1; std::getline(in, line); ++n) {
    if (trimmed(line).empty() || trimmed(line)[0] == '#') continue;
    const auto equals = line.find('=');
    if (equals != std::string::npos &&
        take(settings, trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1))))
      continue;
    why = "line " + std::to_string(n) + ": " + line.substr(0, 80);
    return false;
  }
  return true;
}

std::string saved_text_font(const std::filesystem::path& folder) {
  Settings settings;
  std::string ignored;
  return from_text(saved_text(folder), settings, ignored) ? settings.text_font : "";
}

Settings load_settings(const std::filesystem::path& folder) {
  Settings settings;
  std::string why;
  if (from_text(saved_text(folder), settings, why)) return settings;
  std::error_code ignored;
  std::filesystem::rename(folder / "settings.txt", folder / "settings.txt.broken", ignored);
  settings = Settings{};
  settings.why_set_aside = why;
  return settings;
}

std::string save_settings(const Settings& settings, const std::filesystem::path& folder) {
  if (folder.empty()) return "";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  try {
    engine::write_whole_file((folder / "settings.txt").string(), to_text(settings));
    return "";
  } catch (const engine::Error& refused) {
    return refused.what();
  }
}

void remember_recent(std::vector<std::string>& recents, const std::string& path) {
  std::erase(recents, path);
  recents.insert(recents.begin(), path);
  if (recents.size() > kMostRecents) recents.resize(kMostRecents);
}

}  // namespace ui
