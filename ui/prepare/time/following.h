// Which of the runs that start is looked at. A run alone or a race: always. Of a chain or tree of
// thoughts, which are many runs, the first; and then the next whenever the one shown is over, as
// long as nobody has chosen another.
#pragma once

#include "engine/event/event.h"

namespace ui {

class Following {
 public:
  enum class Look {
    Stay,  ///< at what is shown
    Anew,  ///< at this run, and let go of what was chosen of others
    On,    ///< at this run, if the one shown is the one followed so far
  };
  /// Hears all events of the live session in order. @return what a RunStarted asks for, else Stay
  Look hear(const engine::Event& event);
  /// The run that hear() asked to look at last.
  engine::RunId followed() const { return followed_; }
  /// A chain or tree is under way.
  bool reasons() const { return reasons_; }

 private:
  Look begun(const engine::RunStarted& started);

  engine::RunId followed_ = 0;
  bool over_ = true;  // the run followed
  bool reasons_ = false;
  bool first_ = false;  // a chain or tree has begun, and none of its runs has
};

}  // namespace ui
