// Every key and what it does, in one table: the shortcuts, the ? sheet and the command palette.
#pragma once

#include <span>

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
};

struct KeyAction {
  Action action;
  int chord;         // ImGuiKeyChord
  const char* keys;  // as shown; empty: told with another line
  const char* does;
  bool in_text;  // works while a text field has the keyboard
};

std::span<const KeyAction> key_actions();

}  // namespace ui
