// A panel of the window: a pair of files in ui/panels/ and one line in the list of panels.cpp. A panel draws recorded events and pushes
// commands; its state, its legend and its help belong to the pair.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

struct ImGuiWindow;

namespace ui {

struct Context;
struct MarkNote;
enum class Sketch : std::uint8_t;

/// The part of a screen in which a panel is docked at first. Panels of one part share it as tabs.
enum class Dock {
  None,  ///< the screen does not have the panel
  Left,
  LeftFoot,
  Top,
  Centre,
  Foot,
  FootRight,
  Right,
  RightMiddle,
  RightFoot,
};

/// The description of a panel. A pointer to a function may be null unless its comment says otherwise.
struct Panel {
  const char* id = "";     // "text"; used in window names and by --panel
  const char* title = "";  // "Text"
  /// Returns why the panel has nothing to show, as a sentence with a remedy; if it is empty, draw() is called. Never null.
  std::string (*empty)(const Context& context) = nullptr;
  /// Draws the panel's content. Never null.
  void (*draw)(Context& context) = nullptr;
  /// Draws the controls at the right end of the panel's head.
  void (*head)(Context& context) = nullptr;
  /// Returns true if the run's decoder produces what the panel draws; null if every decoder does.
  bool (*fits)(const engine::RunRecord& run) = nullptr;
  /// Returns the id of the panel that can show a run that does not fit. Not null if `fits` is not null.
  const char* (*instead)(const engine::RunRecord& run) = nullptr;
  /// Returns true if the document contains anything for the panel; otherwise the panel has no tab. Null if it always has a tab.
  bool (*offered)(const engine::Timeline& timeline) = nullptr;
  const char* help = "";                 // one sentence on what the panel shows, for its legend
  std::span<const MarkNote> marks = {};  // the marks that the legend explains
  Sketch sketch{};                       // drawn while the panel is empty; every panel has one
  bool wide = false;                     // the panel scrolls sideways
  bool bare = false;                     // the panel draws its own cards instead of one frame
  bool main = false;       // while empty, shows the progress of loading, or buttons to run or open
  bool names_run = false;  // except side by side, its head names the selected run
  bool offers_training = false;    // offers to open a training run if none is open
  const char* compare_title = "";  // the title on the screen Compare; empty: `title`
  Dock live = Dock::None, compare = Dock::None, training = Dock::None, lab = Dock::None;
};

/// Returns all panels. On every screen they are docked and reached by F6 in this order.
std::span<const Panel> panels();
/// Returns the panel with this id, or nullptr.
const Panel* panel_named(const char* id);

/// Draws the "?" in a panel's head. Its tooltip shows the panel's help, its marks and `also`, a further sentence.
void panel_legend(const Panel& panel, const char* also = "");

/// Draws the head of a docked panel in its place's host window: the name of the run that it shows, if the session has several, and its controls.
/// Call after the panel's window.
void draw_head(Context& context, const Panel& panel, ImGuiWindow* window);
/// Draws, as the first line of the panel's window, the parts of its head that have no room beside the tabs.
void draw_head_inside(Context& context, const Panel& panel);
/// Draws the name of the run in the title bar of a panel that is not docked, as in a head.
void name_run_in_title(const Context& context, const Panel& panel);
/// Returns true if the tabs of the panel's place need more room than it has. A button before them then lists their names.
/// @param window  of the panel; nullptr: it has not been drawn yet
bool lists_tabs(const ImGuiWindow* window);
/// Returns true if only a part of the panel's tab has room. Such a tab is not drawn; the list of tabs has its name.
/// @param window  of the panel; nullptr: it has not been drawn yet
bool has_cut_tab(const ImGuiWindow* window);

/// Returns the sentence that most panels show while no run is selected; empty if one is.
std::string no_run_yet(const Context& context);
/// Returns the name of a run's decoder for the start of a sentence: "Prompt lookup", "Plain decoding"; its id if the catalog does not list it.
std::string method_of(const Context& context, const engine::RunRecord& run);
/// Returns the start of a sentence about a run without proposals: "Jacobi has proposed no tokens so far", or "Jacobi proposed no tokens" if the run
/// has ended.
/// @param of_kind  follows the tokens: " with a probability"
std::string proposed_nothing(const Context& context,
                             const engine::RunRecord& run,
                             const char* of_kind = "");

}  // namespace ui
