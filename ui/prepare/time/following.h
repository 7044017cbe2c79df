// Decides which of the starting runs the window shows. It shows every single run or race. Of the many runs of a chain or tree of thoughts
// it shows the first, and after the end of the run shown the next one, unless the user has selected another.
#pragma once

#include "engine/event/event.h"

namespace ui {

/// Follows the events of the live session.
class Following {
 public:
  /// What to show after an event.
  enum class Look {
    Stay,     ///< the run shown
    NewRun,   ///< this run; forget the selection
    NextRun,  ///< this run, if the window shows the run followed so far
  };
  /// Takes every event of the live session in order.
  /// @return what to show after a RunStarted; Stay after other events
  Look observe(const engine::Event& event);
  /// Returns the run that observe() returned last.
  engine::RunId followed() const { return followed_; }
  /// Returns true if a chain or tree of thoughts is running.
  bool reasons() const { return reasons_; }

 private:
  Look begun(const engine::RunStarted& started);

  engine::RunId followed_ = 0;
  bool over_ = true;  // the followed run has ended
  bool reasons_ = false;
  bool first_ = false;  // a chain or tree has begun, but none of its runs
};

}  // namespace ui
