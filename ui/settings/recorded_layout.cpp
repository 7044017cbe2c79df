#include "ui/settings/recorded_layout.h"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "engine/base/text.h"
#include "ui/files/notes.h"
#include "ui/shell/layout.h"

namespace ui {
namespace {

constexpr std::size_t kMaxLine = 240;   // bytes
constexpr std::size_t kMaxNodes = 200;  // Dear ImGui counts the depth of the tree in a char
constexpr const char* kDocking = "[Docking][Data]";

std::string version_line() {
  return fmt::format("version={}", kLayoutVersion);
}

// A place in the tree of a screen or of a floating window.
struct RecordedNode {
  std::string root;
  bool is_space = false, is_split = false;
  int n_children = 0;
};

// A panel's window.
struct RecordedWindow {
  std::string screen, panel;
  std::string node;  // empty: it floats
};

// The id of the place that holds all docked panels of a screen, as its text has it.
std::string space_of(const std::string& screen) {
  return fmt::format("{:08X}", ImHashStr(screen.c_str(), 0, ImHashStr("##ground")));
}

// Returns the panel's window that a line begins; nullopt: it begins no such window.
std::optional<RecordedWindow> recorded_window(const std::string& line) {
  static const std::regex head(R"(\[Window\]\[([a-z]+)\.([a-z_]+)\])");
  std::smatch parts;
  if (!std::regex_match(line, parts, head)) return std::nullopt;
  const Screen screen = screen_named(parts[1]);
  const bool is_panel =
      parts[1] == screen_name(screen) &&
      std::ranges::any_of(panels_of(screen), [&](const char* id) { return parts[2] == id; });
  return is_panel ? std::optional(RecordedWindow{parts[1], parts[2], ""}) : std::nullopt;
}

// Reads the lines of a layout and collects its windows and places.
class LayoutReader {
 public:
  /// @return false if the line is damaged
  bool take(const std::string& line) {
    if (line.size() > kMaxLine) return false;
    if (line == kDocking) return !std::exchange(in_docking_, true);
    if (line.starts_with('[')) {
      auto window = recorded_window(line);
      if (!window || in_docking_) return false;
      windows_.push_back(std::move(*window));
      return true;
    }
    return in_docking_ ? take_node(line) : !windows_.empty() && take_window_line(line);
  }

  /// Checks all lines together. @return empty, or the fault
  std::string trouble() const {
    if (windows_.empty()) return "it has no panels";
    for (const auto& [id, node] : nodes_)
      if (node.n_children != (node.is_split ? 2 : 0))
        return "a part of the tree of places is missing";
    std::set<std::string> screens, seen;
    for (const RecordedWindow& window : windows_) {
      const std::string name = window.screen + "." + window.panel;
      screens.insert(window.screen);
      seen.insert(name);
      if (window.node.empty()) continue;
      const auto node = nodes_.find(window.node);
      if (node == nodes_.end() || node->second.is_split) return name + " is at no place";
      const std::string& root = node->second.root;
      if (nodes_.at(root).is_space && root != space_of(window.screen))
        return name + " is at a place of another screen";
    }
    for (const std::string& screen : screens)
      for (const char* id : panels_of(screen_named(screen)))
        if (!seen.contains(screen + "." + id)) return screen + "." + id + " is missing";
    return "";
  }

 private:
  bool take_window_line(const std::string& line) {
    static const std::regex place(R"((Pos|Size)=-?\d{1,4},-?\d{1,4}|Collapsed=[01])");
    static const std::regex dock(R"(DockId=0x([0-9A-F]{8})(,\d{1,3})?)");
    std::smatch parts;
    if (std::regex_match(line, place)) return true;
    if (!std::regex_match(line, parts, dock)) return false;
    windows_.back().node = parts[1];
    return true;
  }

  // A node follows its parent. Sizes of 0 would divide by 0; an id of 0 means none.
  bool take_node(const std::string& line) {
    static const std::regex form(
        R"( *(DockNode|DockSpace) +ID=0x([0-9A-F]{8}))"
        R"((?: Parent=0x([0-9A-F]{8}) SizeRef=[1-9]\d{0,3},[1-9]\d{0,3}|)"
        R"((?: Window=0x[0-9A-F]{8})? Pos=-?\d{1,4},-?\d{1,4} Size=\d{1,4},\d{1,4}))"
        R"(( Split=[XY])?( NoResize=1)?( CentralNode=1)?( NoTabBar=1)?( HiddenTabBar=1)?)"
        R"(( NoWindowMenuButton=1)?( NoCloseButton=1)?( Selected=0x[0-9A-F]{8})?)");
    std::smatch parts;
    if (nodes_.size() == kMaxNodes || !std::regex_match(line, parts, form)) return false;
    const std::string id = parts[2], parent = parts[3];
    RecordedNode node{
        .root = id, .is_space = parts[1] == "DockSpace", .is_split = parts[4].matched};
    if (id == "00000000" || (is_space_of_screen(id) != node.is_space)) return false;
    if (parts[6].matched && node.is_split) return false;
    if (!parent.empty()) {
      const auto above = nodes_.find(parent);
      if (node.is_space || above == nodes_.end() || !above->second.is_split) return false;
      ++above->second.n_children;
      node.root = above->second.root;
    }
    if (parts[6].matched && !centres_.insert(node.root).second) return false;
    return nodes_.emplace(id, node).second;
  }

  static bool is_space_of_screen(const std::string& id) {
    for (const Screen screen : {Screen::Live, Screen::Compare, Screen::Training, Screen::Lab})
      if (id == space_of(screen_name(screen))) return true;
    return false;
  }

  std::vector<RecordedWindow> windows_;
  std::map<std::string, RecordedNode> nodes_;  // by id
  std::set<std::string> centres_;              // the roots of trees with a central place
  bool in_docking_ = false;
};

}  // namespace

std::string recorded_layout(const std::string& layout) {
  std::string recorded = version_line() + "\n", window;
  const auto end_window = [&] {
    // The place of a docked panel follows from its node.
    static const std::regex own_place("(Pos|Size)=[^\n]*\n");
    const bool is_docked = window.find("\nDockId=") != std::string::npos;
    recorded += is_docked ? std::regex_replace(window, own_place, "") : window;
    window.clear();
  };
  std::istringstream in(layout);
  bool in_docking = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('[')) {
      end_window();
      in_docking = line == kDocking;
      if (in_docking) recorded += line + "\n";
      if (recorded_window(line)) window = line + "\n";
    } else if (!line.empty() && in_docking) {
      recorded += line + "\n";
    } else if (!line.empty() && !window.empty()) {
      window += line + "\n";
    }
  }
  end_window();
  return recorded;
}

std::string why_not_layout(const std::string& recorded) {
  if (recorded.size() > kMaxRecordedLayout)
    return fmt::format("it has more than {} bytes", kMaxRecordedLayout);
  std::istringstream in(recorded);
  std::string line;
  std::getline(in, line);
  if (line != version_line())
    return fmt::format("found {}, expected {}", engine::escaped(line.substr(0, 40)),
                       version_line());
  LayoutReader reader;
  while (std::getline(in, line))
    if (!reader.take(line)) return "a line is damaged: " + engine::escaped(line.substr(0, 60));
  return reader.trouble();
}

}  // namespace ui
