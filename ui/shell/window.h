// The window: draws the events of the event queue and pushes the user's commands until it is closed. Runs on the calling thread without
// locks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ui/prepare/time/animation_frames.h"
#include "ui/prepare/time/deadlines.h"

namespace engine {
class CommandQueue;
class EventQueue;
}  // namespace engine

namespace ui {

struct Catalog;
struct SetupForm;
class Shell;

/// Functions that a test or the program adds to the window's loop.
struct WindowHooks {
  std::function<void(Shell&)> shell_made;           // called before the first frame
  std::function<void(const SetupForm&)> form_made;  // called before the first frame
  std::function<void()>
      context_made;  // called after Dear ImGui's context was created, before the first frame
  std::function<void()> frame_shown;  // called after each swap
  /// Called with the path of the animation and words about its frames and size.
  std::function<void(const std::string&, const std::string&)> animation_written;
  std::function<bool()> wants_to_close;  // called once per frame, and at intervals while idle
  /// Updates the catalog and returns true if it has changed. Called like wants_to_close, also while no frames are drawn.
  std::function<bool()> has_news;
  std::function<void()>
      before_teardown;       // called before the context is destroyed, also after an exception
  bool draw_always = false;  // draw frames without pause, for scripts
};

/// The options of `decoscope window`.
struct WindowOptions {
  std::string open;    // a recording, a lesson or a training run to open first
  std::string screen;  // welcome, live, compare, lesson, lab, training; empty: the last one shown
  std::string theme;   // a word of kThemes; empty: as in the settings
  std::string config_dir;    // settings; empty: $XDG_CONFIG_HOME/decoscope; "-": none saved
  std::string model, scale;  // initial values of Setup; empty: its defaults
  std::string dtype, cache_type, device;  // initial values of Setup
  int context = 0;                        // initial value of Setup
  std::string draft, draft_scale;         // initial values of Setup
  std::vector<std::string> heads;  // initial heads of Setup: names in the catalog, or directories
  bool race_first = false;         // start the race immediately
  std::string screenshot;          // write a PNG of the window to this path and close
  std::string animation;         // write an animation (.gif, .png) of `open` to this path and close
  AnimationPlan animation_plan;  // its pace; the part is that of the steps
  int first_step = 0, last_step = 0x7FFF'FFFF;  // of the animation
  int run = 0;                                  // the run that is selected; 0: none
  bool wall_clock = false;     // the timeline of the animation has wall time, not own compute
  std::string panel;           // the panel that the picture shows; empty: the window
  int step = -1;               // the step that is selected; -1: none
  int screenshot_frames = 30;  // frames before the picture; with a race, after its end
  int width = 1600, height = 1000;
  int ui_scale = 0;         // percent; 0: as in the settings
  StepDeadlines deadlines;  // after which a GPU is reported as late
  WindowHooks hooks;
};

/// Checks that a path is a recording, a lesson or a training run.
/// @throws Error(BadInput, Resources)  if it is none of them
void check_opens(const std::string& path);

/// Shows the window until it is closed, then pushes StopRun{0}. The caller closes the command queue.
/// @return 5 (the exit code for device errors) if a GPU was computing when the window closed, because it may hang: the caller uses it as
///         the exit code if the GPU does not respond in time; else 0
/// @throws Error(Device)     no display can be opened, or OpenGL 3.0 is missing
/// @throws Error(BadInput)   options.open cannot be read, or the first race cannot start
/// @throws Error(Resources)  the screenshot cannot be written
/// @throws the error of the race that a screenshot waits for
int run_window(engine::EventQueue& events,
               engine::CommandQueue& commands,
               const Catalog& catalog,
               const WindowOptions& options);

}  // namespace ui
