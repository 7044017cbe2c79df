#include "ui/shell/keys.h"

#include <array>

#include <imgui.h>

namespace ui {

std::span<const KeyAction> key_actions() {
  constexpr int kCtrl = ImGuiMod_Ctrl, kShift = ImGuiMod_Shift, kAlt = ImGuiMod_Alt;
  // clang-format off
  static constexpr auto kTable = std::to_array<KeyAction>({
      {Action::Run,               "run",                kCtrl | ImGuiKey_Enter,       "Ctrl+Enter",   "start the run or the race", true},
      {Action::Stop,              "stop",               kCtrl | ImGuiKey_Period,      "Ctrl+.",       "stop", true},
      {Action::HoldEngine,        "hold-engine",        kShift | ImGuiKey_Space,      "Shift+Space",  "pause or resume the engine", false},
      {Action::StepEngine,        "step-engine",        ImGuiKey_N,                   "N",            "compute one step while the engine is paused", false},
      {Action::PlayView,          "play-view",          ImGuiKey_Space,               "Space",        "play or pause the view", false},
      {Action::NextStep,          "next-step",          ImGuiKey_RightArrow,          "Right",        "next step", false},
      {Action::PreviousStep,      "previous-step",      ImGuiKey_LeftArrow,           "Left",         "previous step", false},
      {Action::NextNotable,       "next-notable",       kCtrl | ImGuiKey_RightArrow,  "Ctrl+Right",   "next step with a rejection, pool hit or 3+ tokens", false},
      {Action::PreviousNotable,   "previous-notable",   kCtrl | ImGuiKey_LeftArrow,   "Ctrl+Left",    "previous step with a rejection, pool hit or 3+ tokens", false},
      {Action::NextIteration,     "next-iteration",     kShift | ImGuiKey_RightArrow, "Shift+Right",  "next end of a block of iterations", false},
      {Action::PreviousIteration, "previous-iteration", kShift | ImGuiKey_LeftArrow,  "Shift+Left",   "previous end of a block of iterations", false},
      {Action::ToStart,           "to-start",           ImGuiKey_Home,                "Home",         "to the start", false},
      {Action::ToEnd,             "to-end",             ImGuiKey_End,                 "End",          "to the end and follow", false},
      {Action::FitSelection,      "fit-selection",      ImGuiKey_F,                   "F",            "centre the selection or range; again: zoom", false},
      {Action::FitAll,            "fit-all",            ImGuiKey_0,                   "0",            "fit all", false},
      {Action::NextInLane,        "next-in-lane",       ImGuiKey_Period,              ".",            "next slice in the lane", false},
      {Action::PreviousInLane,    "previous-in-lane",   ImGuiKey_Comma,               ",",            "previous slice in the lane", false},
      {Action::NextInFlow,        "next-in-flow",       ImGuiKey_RightBracket,        "]",            "next step of the selected token", false},
      {Action::PreviousInFlow,    "previous-in-flow",   ImGuiKey_LeftBracket,         "[",            "previous step of the selected token", false},
      {Action::Mark,              "mark",               ImGuiKey_M,                   "M",            "mark the selected step or the playhead", false},
      {Action::KeepMark,          "keep-mark",          kShift | ImGuiKey_M,          "Shift+M",      "keep the mark", false},
      {Action::SelectionToRange,  "selection-to-range", ImGuiKey_R,                   "R",            "make the selected step the measured range", false},
      {Action::RangeIn,           "range-in",           ImGuiKey_I,                   "I",            "begin the range at the playhead", false},
      {Action::RangeOut,          "range-out",          ImGuiKey_O,                   "O",            "end the range at the playhead", false},
      {Action::Bookmark,          "bookmark",           kCtrl | ImGuiKey_B,           "Ctrl+B",       "bookmark the selected step or the playhead", true},
      {Action::Jump1,             "jump-1",             kCtrl | ImGuiKey_1,           "Ctrl+1..9",    "jump to a bookmark", true},
      {Action::Jump2,             "jump-2",             kCtrl | ImGuiKey_2,           "",             "jump to bookmark 2", true},
      {Action::Jump3,             "jump-3",             kCtrl | ImGuiKey_3,           "",             "jump to bookmark 3", true},
      {Action::Jump4,             "jump-4",             kCtrl | ImGuiKey_4,           "",             "jump to bookmark 4", true},
      {Action::Jump5,             "jump-5",             kCtrl | ImGuiKey_5,           "",             "jump to bookmark 5", true},
      {Action::Jump6,             "jump-6",             kCtrl | ImGuiKey_6,           "",             "jump to bookmark 6", true},
      {Action::Jump7,             "jump-7",             kCtrl | ImGuiKey_7,           "",             "jump to bookmark 7", true},
      {Action::Jump8,             "jump-8",             kCtrl | ImGuiKey_8,           "",             "jump to bookmark 8", true},
      {Action::Jump9,             "jump-9",             kCtrl | ImGuiKey_9,           "",             "jump to bookmark 9", true},
      {Action::Find,              "find",               ImGuiKey_Slash,               "/",            "find a step or text", false},
      {Action::Find,              "find-2",             kCtrl | ImGuiKey_F,           "Ctrl+F",       "find a step or text", true},
      {Action::NextLens,          "next-lens",          ImGuiKey_L,                   "L",            "next lens of the Text panel", false},
      {Action::ToggleMarks,       "toggle-marks",       ImGuiKey_T,                   "T",            "show or hide the marks of token cells", false},
      {Action::ToggleFlow,        "toggle-flow",        ImGuiKey_G,                   "G",            "cells or running text", false},
      {Action::Hindsight,         "hindsight",          ImGuiKey_H,                   "H",            "show or hide hindsight", false},
      {Action::AlignLanes,        "align-lanes",        ImGuiKey_Y,                   "Y",            "align the lanes by token: with plain decoding, with the selected lane, off", false},
      {Action::Describe,          "describe",           ImGuiKey_V,                   "V",            "describe the selection in one sentence", false},
      {Action::Check,             "check",              ImGuiKey_C,                   "C",            "check agreement with plain decoding", false},
      {Action::CopyText,          "copy-text",          kCtrl | ImGuiKey_C,           "Ctrl+C",       "copy the answer", false},
      {Action::CopyTable,         "copy-table",         kCtrl | kShift | ImGuiKey_C,  "Ctrl+Shift+C", "copy the numbers as a table", false},
      {Action::Open,              "open",               kCtrl | ImGuiKey_O,           "Ctrl+O",       "open a recording, a training run or a model", true},
      {Action::Save,              "save",               kCtrl | ImGuiKey_S,           "Ctrl+S",       "save the session as a recording", true},
      {Action::Export,            "export",             kCtrl | ImGuiKey_E,           "Ctrl+E",       "export a trace, tables or a picture", true},
      {Action::Palette,           "palette",            kCtrl | kShift | ImGuiKey_P,  "Ctrl+Shift+P", "command palette", true},
      {Action::Palette,           "palette-2",          ImGuiKey_F1,                  "F1",           "command palette", true},
      {Action::Help,              "help",               kShift | ImGuiKey_Slash,      "?",            "keyboard shortcuts", false},
      {Action::Welcome,           "welcome",            kAlt | ImGuiKey_0,            "Alt+0",        "screen Welcome", true},
      {Action::Live,              "live",               kAlt | ImGuiKey_1,            "Alt+1",        "screen Live", true},
      {Action::Compare,           "compare",            kAlt | ImGuiKey_2,            "Alt+2",        "screen Compare", true},
      {Action::Training,          "training",           kAlt | ImGuiKey_5,            "Alt+5",        "screen Training", true},
      {Action::Lessons,           "lessons",            kAlt | ImGuiKey_3,            "Alt+3",        "screen Lessons", true},
      {Action::Laboratory,        "laboratory",         kAlt | ImGuiKey_4,            "Alt+4",        "screen Lab", true},
      {Action::LessonNext,        "lesson-next",        ImGuiKey_Enter,               "Enter",        "lesson: show the answer, continue", false},
      {Action::LessonBack,        "lesson-back",        ImGuiKey_Backspace,           "Backspace",    "lesson: back", false},
      {Action::LessonTry,         "lesson-try",         kCtrl | ImGuiKey_T,           "Ctrl+T",       "lesson: fill in Setup with the settings of this run", false},
      {Action::LessonList,        "lesson-list",        kCtrl | ImGuiKey_Backspace,   "Ctrl+Backspace", "lesson: back to the list; there 1 to 9 open a lesson", false},
      {Action::LessonRestart,     "lesson-restart",     kShift | ImGuiKey_Backspace,  "Shift+Backspace", "lesson: start over", false},
      {Action::ResetLayout,       "reset-layout",       kCtrl | kAlt | ImGuiKey_0,    "Ctrl+Alt+0",   "reset the layout", true},
      {Action::Settings,          "settings",           kCtrl | ImGuiKey_Comma,      "Ctrl+,",       "settings", true},
      {Action::Undo,              "undo",               kCtrl | ImGuiKey_Z,          "Ctrl+Z",       "undo the last change of settings, notes or layout", false},
      {Action::Redo,              "redo",               kCtrl | kShift | ImGuiKey_Z, "Ctrl+Shift+Z", "redo what was undone", false},
      {Action::ScaleUp,           "scale-up",           kCtrl | ImGuiKey_Equal,       "Ctrl+=",       "larger", true},
      {Action::ScaleDown,         "scale-down",         kCtrl | ImGuiKey_Minus,       "Ctrl+-",       "smaller", true},
      {Action::ScaleReset,        "scale-reset",        kCtrl | ImGuiKey_0,           "Ctrl+0",       "scale 100 %", true},
      {Action::NextTheme,         "next-theme",         kCtrl | kShift | ImGuiKey_T,  "Ctrl+Shift+T", "next theme: dark, light, monochrome, high contrast", true},
      {Action::NextPanel,         "next-panel",         ImGuiKey_F6,                  "F6",           "next panel", true},
      {Action::PreviousPanel,     "previous-panel",     kShift | ImGuiKey_F6,         "Shift+F6",     "previous panel", true},
      {Action::Present,           "present",            ImGuiKey_F11,                 "F11",          "presentation mode: full screen, larger text, laser spot; a lesson alone", true},
      {Action::PinPlace,          "pin-place",          ImGuiKey_K,                   "K",            "pin or unpin the place in the Inspector", false},
      {Action::LaneUp,            "lane-up",            ImGuiKey_U,                   "U",            "move the lane clicked last up", false},
      {Action::LaneDown,          "lane-down",          ImGuiKey_J,                   "J",            "move the lane clicked last down", false},
      {Action::Deselect,          "deselect",           ImGuiKey_Escape,              "Esc",          "close, cancel, deselect or end presentation mode", false},
  });
  // clang-format on
  return kTable;
}

namespace {

struct KeyWord {
  int key;
  const char* word;
};
// Keys whose Dear ImGui name differs from their label.
constexpr KeyWord kWords[] = {
    {ImGuiKey_LeftArrow, "Left"}, {ImGuiKey_RightArrow, "Right"}, {ImGuiKey_UpArrow, "Up"},
    {ImGuiKey_DownArrow, "Down"}, {ImGuiKey_Period, "."},         {ImGuiKey_Comma, ","},
    {ImGuiKey_Slash, "/"},        {ImGuiKey_LeftBracket, "["},    {ImGuiKey_RightBracket, "]"},
    {ImGuiKey_Equal, "="},        {ImGuiKey_Minus, "-"},          {ImGuiKey_Escape, "Esc"},
    {ImGuiKey_Semicolon, ";"},    {ImGuiKey_Apostrophe, "'"},     {ImGuiKey_Backslash, "\\"},
    {ImGuiKey_GraveAccent, "`"},
};
constexpr KeyWord kModifiers[] = {
    {ImGuiMod_Ctrl, "Ctrl"}, {ImGuiMod_Alt, "Alt"}, {ImGuiMod_Shift, "Shift"}};

std::string word_of(ImGuiKey key) {
  for (const KeyWord& known : kWords)
    if (known.key == key) return known.word;
  return ImGui::GetKeyName(key);
}

}  // namespace

std::string chord_words(int chord) {
  std::string text;
  for (const KeyWord& modifier : kModifiers)
    if (chord & modifier.key) text += std::string(modifier.word) + "+";
  return text + word_of(static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_));
}

std::optional<int> chord_of(const std::string& text) {
  int chord = 0;
  std::string left = text;
  for (bool found = true; found;) {
    found = false;
    for (const KeyWord& modifier : kModifiers) {
      const std::string word = std::string(modifier.word) + "+";
      if (!left.starts_with(word)) continue;
      chord |= modifier.key;
      left.erase(0, word.size());
      found = true;
    }
  }
  for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_GamepadStart; ++key)
    if (word_of(static_cast<ImGuiKey>(key)) == left) return chord | key;
  return std::nullopt;
}

std::vector<BoundKey> bound_keys(const KeyChoices& choices) {
  std::vector<BoundKey> keys;
  for (const KeyAction& key : key_actions()) {
    const auto own = choices.find(key.name);
    if (own == choices.end())
      keys.push_back({&key, key.chord, key.keys, false});
    else
      keys.push_back({&key, own->second, chord_words(own->second), true});
  }
  return keys;
}

const KeyAction* taken_by(std::span<const BoundKey> keys, const BoundKey& key) {
  for (const BoundKey& other : keys)
    if (other.chord == key.chord) return other.of == key.of ? nullptr : other.of;
  return nullptr;
}

}  // namespace ui
