// A shell drawn without a display, and what it says after a few frames.
#pragma once

#include <string>

#include "headless.h"
#include "streams.h"
#include "ui/shell/shell.h"

struct DrawnWindow {
  headless::Headless gui;
  engine::CommandQueue commands;
  ui::Catalog catalog = streams::catalog();
  ui::Shell shell{catalog, commands, ""};

  /// The words on the screen once panels that come with what was told are there.
  std::string said() {
    for (int i = 0; i < 4; ++i) gui.frame(shell);
    return gui.said(shell);
  }
};
