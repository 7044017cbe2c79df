// Decides which of the starting runs the window shows. It shows every single run and every race. During a chain or tree of thoughts, and
// in a set of races, it shows the first run or race and, whenever that has ended, the next one to start, unless the user has selected
// another one.
#pragma once

#include <cstdint>

#include "engine/event/event.h"

namespace ui {

/// Follows the events of the live session.
class Following {
 public:
  /// The run to show after an event.
  enum class Look {
    Stay,     ///< keep the run shown
    NewRun,   ///< show this run and clear the selection
    NextRun,  ///< show this run if the window still shows the run followed so far
  };
  /// Takes every event of the live session in order.
  /// @return the run to show after a RunStarted; Stay after other events
  Look observe(const engine::Event& event);
  /// Returns the run that observe() returned last.
  engine::RunId followed() const { return followed_; }
  /// Returns the race of that run; 0: none.
  std::uint32_t race() const { return race_; }
  /// Returns true if a chain or tree of thoughts is running.
  bool reasons() const { return reasons_; }

 private:
  Look begun(const engine::RunStarted& started);

  engine::RunId followed_ = 0;
  std::uint32_t race_ = 0, set_ = 0;  // of the followed run
  bool over_ = true;                  // the followed run has ended
  bool reasons_ = false;
  bool first_ = false;  // the next run is the first of a chain or tree
};

}  // namespace ui
