// The table of keyboard shortcuts, for the keys themselves, the sheet "?" and the command palette.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ui {

/// The actions of keys, buttons and the palette.
enum class Action {
  PlayView,
  HoldEngine,
  NextStep,
  PreviousStep,
  NextNotable,
  PreviousNotable,
  StepEngine,
  ToStart,
  ToEnd,
  FitAll,
  FitSelection,
  Find,
  NextLens,
  ToggleMarks,
  ToggleFlow,
  Describe,
  Check,
  CopyText,
  CopyTable,
  Run,
  Stop,
  Open,
  Save,
  Export,
  Palette,
  Help,
  ScaleUp,
  ScaleDown,
  ScaleReset,
  NextTheme,
  Welcome,
  Live,
  Compare,
  ResetLayout,
  Settings,
  Undo,
  Redo,
  Deselect,
  Hindsight,
  AlignLanes,
  RangeIn,
  RangeOut,
  NextIteration,
  PreviousIteration,
  NextInLane,
  PreviousInLane,
  NextInFlow,
  PreviousInFlow,
  Mark,
  KeepMark,
  SelectionToRange,
  Bookmark,
  Jump1,  // Jump1 to Jump9 jump to bookmarks 1 to 9
  Jump2,
  Jump3,
  Jump4,
  Jump5,
  Jump6,
  Jump7,
  Jump8,
  Jump9,
  NextPanel,
  PreviousPanel,
  Present,
  PinPlace,
  LaneUp,
  LaneDown,
  Training,
  Lessons,
  Laboratory,
  LessonNext,
  LessonBack,
  LessonTry,
  LessonList,
  LessonRestart,
};

/// A line of the table.
struct KeyAction {
  Action action;
  const char* name;  // the name in the settings: "next-step"
  int chord;         // the default ImGuiKeyChord
  const char* keys;  // the keys as shown; empty if another line shows them
  const char* does;  // the description
  bool in_text;      // true: also works while a text field has the keyboard
};

/// Returns the table.
std::span<const KeyAction> key_actions();

/// Returns a chord in words: "Ctrl+Shift+T".
std::string chord_words(int chord);
/// Returns the chord of such words; nullopt if a word is not a key.
std::optional<int> chord_of(const std::string& text);

/// A line of the table with its current chord.
struct BoundKey {
  const KeyAction* of;
  int chord;
  std::string keys;  // the keys as shown; empty if another line shows them
  bool changed;      // the user has changed the chord
};
/// The user's chords by name; other lines keep their default.
using KeyChoices = std::map<std::string, int>;
/// Returns the table with the user's chords.
std::vector<BoundKey> bound_keys(const KeyChoices& choices);
/// Returns the action that takes precedence over `key` because it has the same chord and comes first in the table; nullptr if there is none.
const KeyAction* taken_by(std::span<const BoundKey> keys, const BoundKey& key);

}  // namespace ui
