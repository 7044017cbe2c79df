// The window: opens, draws what the event queue brings, and pushes what the person asks for onto
// the command queue, until it is closed. Runs on the calling thread; holds no lock.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/event/queue.h"
#include "ui/shell/catalog.h"
#include "ui/prepare/time/responding.h"

namespace ui {

class Shell;

/// What a test or the program may hook into the window's loop.
struct WindowHooks {
  std::function<void(Shell&)> shell_made;  // before the first frame
  std::function<void()> context_made;      // Dear ImGui's context exists, no frame was drawn yet
  std::function<void()> frame_shown;       // after each swap
  std::function<bool()> wants_to_close;    // asked once a frame, and now and then while idle
  /// Likewise, while nothing is drawn: whether what the window shows has changed, the catalog by
  /// the hook itself.
  std::function<bool()> has_news;
  std::function<void()> before_teardown;  // the context still exists; after an exception too
  bool draw_always = false;               // no idling: scripts need frames
};

struct WindowOptions {
  std::string open;           // a .pdrun, or a training's folder or log, to open first
  std::string screen;         // welcome, live, compare, training; empty: as last time, welcome at
                              // first
  std::string theme;          // dark, light, monochrome; empty: as set
  std::string config_dir;     // empty: $XDG_CONFIG_HOME/decoscope; "-": keep nothing
  std::string model, scale;   // set up at first; empty: as the form has them
  std::string dtype, device;  // likewise
  int context = 0;            // likewise
  std::string draft;          // likewise
  std::vector<std::string> heads;  // likewise, names or directories that the catalog lists
  bool race_first = false;         // start the race of the form at once
  std::string screenshot;          // write a PNG of the window there, then close
  std::string panel;           // of the screen: the picture is of it alone; empty: of the window
  int step = -1;               // selected at first, of the run shown; -1: none
  int screenshot_frames = 30;  // drawn before it is taken, and after the race has ended
  int width = 1600, height = 1000;
  StepDeadlines deadlines;  // of a GPU's steps
  WindowHooks hooks;
};

/// @throws Error(BadInput, Resources)  for what is neither a recording nor a training
void check_opens(const std::string& path);

/// Shows the window until it is closed. Pushes StopRun{0} when it closes; the caller closes the
/// command queue.
/// @return 5 where a GPU was at work when it closed, which may be the one that hangs: the process's
///         exit code, where that has not answered in the time the caller gives it
/// @throws Error(Device)    no display can be opened, or OpenGL 3.0 is lacking
/// @throws Error(BadInput)  options.open cannot be read, or the first race cannot start;
///                          Error(Resources) if the screenshot cannot be written; whatever failed
///                          the race a screenshot waits for
int run_window(engine::EventQueue& events,
               engine::CommandQueue& commands,
               const Catalog& catalog,
               const WindowOptions& options);

}  // namespace ui
