// A shell drawn without a display, and the text of its frames.
#pragma once

#include <string>

#include "engine/event/queue.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/streams.h"
#include "ui/shell/shell.h"

struct DrawnWindow {
  headless::Headless gui;
  engine::CommandQueue commands;
  ui::Catalog catalog = streams::catalog();
  ui::Shell shell{catalog, commands, ""};

  /// Returns the text on the screen after a few frames, when panels that depend on the events are docked.
  std::string said() {
    for (int i = 0; i < 4; ++i) gui.frame(shell);
    return gui.said(shell);
  }
};
