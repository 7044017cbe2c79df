// A panel: one pair in ui/panels/, one line in the list. It reads the timeline and the selection,
// and pushes commands.
#pragma once

#include <span>

#include "ui/shell/context.h"

namespace ui {

struct Panel {
  const char* id;     // "text"; part of window names, never shown
  const char* title;  // "Text"
  /// Why there is nothing to show, as one sentence with what to do; empty: draw.
  std::string (*empty)(const Context& context);
  void (*draw)(Context& context);
  void (*head)(Context& context);  // controls at the right of the panel's head, or nullptr
  /// Whether a run's method has what the panel draws; nullptr: every method has.
  bool (*fits)(const engine::RunRecord& run) = nullptr;
  /// The id of the panel that shows what such a run has instead.
  const char* (*instead)(const engine::RunRecord& run) = nullptr;
  /// Whether there is anything of it in what is shown: else its tab is not there. nullptr: always.
  bool (*offered)(const engine::Timeline& timeline) = nullptr;
  bool wide = false;  // what it draws may be wider than the panel, and scrolls
};

std::span<const Panel> panels();
const Panel* panel_named(const char* id);

/// The sentence most panels show when no run is selected.
std::string no_run_yet(const Context& context);
/// What a run's method is called: "Prompt lookup"; the bare name where the catalog has none.
std::string method_of(const Context& context, const engine::RunRecord& run);

}  // namespace ui
