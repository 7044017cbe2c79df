#include "ui/keys.h"

#include <imgui.h>

#include <array>

namespace ui {

std::span<const KeyAction> key_actions() {
  constexpr int kCtrl = ImGuiMod_Ctrl, kShift = ImGuiMod_Shift, kAlt = ImGuiMod_Alt;
  // clang-format off
  static constexpr auto kTable = std::to_array<KeyAction>({
      {Action::Run,             kCtrl | ImGuiKey_Enter,          "Ctrl+Enter",       "run, or run the race", true},
      {Action::Stop,            kCtrl | ImGuiKey_Period,         "Ctrl+.",           "stop", true},
      {Action::HoldEngine,      kShift | ImGuiKey_Space,         "Shift+Space",      "hold or resume the engine", false},
      {Action::StepEngine,      ImGuiKey_N,                      "N",                "one step of the engine, while held", false},
      {Action::PlayView,        ImGuiKey_Space,                  "Space",            "play or pause the view", false},
      {Action::NextStep,        ImGuiKey_RightArrow,             "Right",            "next step", false},
      {Action::PreviousStep,    ImGuiKey_LeftArrow,              "Left",             "previous step", false},
      {Action::NextNotable,     kCtrl | ImGuiKey_RightArrow,     "Ctrl+Right",       "next step that matters: rejection, pool hit, 3+ tokens", false},
      {Action::PreviousNotable, kCtrl | ImGuiKey_LeftArrow,      "Ctrl+Left",        "previous step that matters", false},
      {Action::NextIteration,     kShift | ImGuiKey_RightArrow,   "Shift+Right",      "next end of a block of iterations", false},
      {Action::PreviousIteration, kShift | ImGuiKey_LeftArrow,    "Shift+Left",       "previous end of a block of iterations", false},
      {Action::ToStart,         ImGuiKey_Home,                   "Home",             "to the start", false},
      {Action::ToEnd,           ImGuiKey_End,                    "End",              "to the end, and follow", false},
      {Action::FitSelection,    ImGuiKey_F,                      "F",                "centre the selection or range; again: zoom to it", false},
      {Action::FitAll,          ImGuiKey_0,                      "0",                "fit all", false},
      {Action::NextInLane,        ImGuiKey_Period,                ".",                "next slice in the lane", false},
      {Action::PreviousInLane,    ImGuiKey_Comma,                 ",",                "previous slice in the lane", false},
      {Action::NextInFlow,        ImGuiKey_RightBracket,          "]",                "onwards along the token's flow", false},
      {Action::PreviousInFlow,    ImGuiKey_LeftBracket,           "[",                "back along the token's flow", false},
      {Action::Mark,              ImGuiKey_M,                     "M",                "mark the selected step, or the playhead", false},
      {Action::KeepMark,          kShift | ImGuiKey_M,            "Shift+M",          "keep the mark", false},
      {Action::SelectionToRange,  ImGuiKey_R,                     "R",                "the selected step becomes the range", false},
      {Action::RangeIn,         ImGuiKey_I,                      "I",                "range begins at the playhead", false},
      {Action::RangeOut,        ImGuiKey_O,                      "O",                "range ends at the playhead", false},
      {Action::Bookmark,          kCtrl | ImGuiKey_B,             "Ctrl+B",           "bookmark the selected step, or the playhead", true},
      {Action::Jump1,             kCtrl | ImGuiKey_1,             "Ctrl+1..9",        "jump to a bookmark", true},
      {Action::Jump2,             kCtrl | ImGuiKey_2,             "",                 "jump to bookmark 2", true},
      {Action::Jump3,             kCtrl | ImGuiKey_3,             "",                 "jump to bookmark 3", true},
      {Action::Jump4,             kCtrl | ImGuiKey_4,             "",                 "jump to bookmark 4", true},
      {Action::Jump5,             kCtrl | ImGuiKey_5,             "",                 "jump to bookmark 5", true},
      {Action::Jump6,             kCtrl | ImGuiKey_6,             "",                 "jump to bookmark 6", true},
      {Action::Jump7,             kCtrl | ImGuiKey_7,             "",                 "jump to bookmark 7", true},
      {Action::Jump8,             kCtrl | ImGuiKey_8,             "",                 "jump to bookmark 8", true},
      {Action::Jump9,             kCtrl | ImGuiKey_9,             "",                 "jump to bookmark 9", true},
      {Action::Find,            ImGuiKey_Slash,                  "/",                "find a step or a token", false},
      {Action::Find,            kCtrl | ImGuiKey_F,              "Ctrl+F",           "find a step or a token", true},
      {Action::NextLens,        ImGuiKey_L,                      "L",                "next lens of the Text panel", false},
      {Action::ToggleMarks,     ImGuiKey_T,                      "T",                "marks on token cells on or off", false},
      {Action::ToggleFlow,      ImGuiKey_G,                      "G",                "cells or flowing text", false},
      {Action::Hindsight,       ImGuiKey_H,                      "H",                "relabel in hindsight on or off", false},
      {Action::Describe,        ImGuiKey_V,                      "V",                "describe the selection in one sentence", false},
      {Action::Check,           ImGuiKey_C,                      "C",                "check agreement with plain decoding", false},
      {Action::CopyText,        kCtrl | ImGuiKey_C,              "Ctrl+C",           "copy the answer", false},
      {Action::CopyTable,       kCtrl | kShift | ImGuiKey_C,     "Ctrl+Shift+C",     "copy the numbers as a table", false},
      {Action::Open,            kCtrl | ImGuiKey_O,              "Ctrl+O",           "open a recording", true},
      {Action::Save,            kCtrl | ImGuiKey_S,              "Ctrl+S",           "save the session as a recording", true},
      {Action::Export,          kCtrl | ImGuiKey_E,              "Ctrl+E",           "export a trace and tables", true},
      {Action::Palette,         kCtrl | kShift | ImGuiKey_P,     "Ctrl+Shift+P",     "command palette", true},
      {Action::Palette,         ImGuiKey_F1,                     "F1",               "command palette", true},
      {Action::Help,            kShift | ImGuiKey_Slash,         "?",                "this sheet", false},
      {Action::Welcome,         kAlt | ImGuiKey_0,               "Alt+0",            "screen Welcome", true},
      {Action::Live,            kAlt | ImGuiKey_1,               "Alt+1",            "screen Live", true},
      {Action::Compare,         kAlt | ImGuiKey_2,               "Alt+2",            "screen Compare", true},
      {Action::ResetLayout,     kCtrl | kAlt | ImGuiKey_0,       "Ctrl+Alt+0",       "reset the layout", true},
      {Action::ScaleUp,         kCtrl | ImGuiKey_Equal,          "Ctrl+=",           "larger", true},
      {Action::ScaleDown,       kCtrl | ImGuiKey_Minus,          "Ctrl+-",           "smaller", true},
      {Action::ScaleReset,      kCtrl | ImGuiKey_0,              "Ctrl+0",           "100 %", true},
      {Action::NextTheme,       kCtrl | kShift | ImGuiKey_T,     "Ctrl+Shift+T",     "dark, light, monochrome", true},
      {Action::NextPanel,         ImGuiKey_F6,                    "F6",               "next panel", true},
      {Action::PreviousPanel,     kShift | ImGuiKey_F6,           "Shift+F6",         "previous panel", true},
      {Action::Present,           ImGuiKey_F11,                   "F11",              "presentation: the whole screen, larger type", true},
      {Action::Deselect,        ImGuiKey_Escape,                 "Esc",              "close, stop reading, or deselect", false},
  });
  // clang-format on
  return kTable;
}

}  // namespace ui
