// Every key and what it does, in one table: the shortcuts, the ? sheet and the command palette.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ui {

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
  Deselect,
  Hindsight,
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
  Jump1,  // to the first bookmark; Jump1 + 8 to the ninth
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
};

struct KeyAction {
  Action action;
  const char* name;  // in the settings: "next-step"
  int chord;         // ImGuiKeyChord, until the person chooses another
  const char* keys;  // as shown; empty: told with another line
  const char* does;
  bool in_text;  // works while a text field has the keyboard
};

std::span<const KeyAction> key_actions();

/// "Ctrl+Shift+T" of a chord, and back; nothing where a word is no key.
std::string chord_words(int chord);
std::optional<int> chord_of(const std::string& text);

/// A line of the table with the chord that does it now.
struct BoundKey {
  const KeyAction* of;
  int chord;
  std::string keys;  // as shown; empty: told with another line
  bool changed;      // the person chose it
};
/// Chords of a person's own, by name; what is not there keeps the table's.
using KeyChoices = std::map<std::string, int>;
std::vector<BoundKey> bound_keys(const KeyChoices& choices);
/// What else a chord does, whose key comes first in the table; nullptr: nothing.
const KeyAction* taken_by(std::span<const BoundKey> keys, const BoundKey& key);

}  // namespace ui
