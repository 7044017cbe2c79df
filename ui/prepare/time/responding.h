// Whether a GPU still answers. A kernel that hangs can be stopped by nobody, so a step that takes
// too long is told, and in the end a way out is offered that does not wait for it.
#pragma once

#include <optional>
#include <string>

#include "engine/event/timeline/timeline.h"

namespace ui {

/// Whether a device of this name ("cpu", "cuda:0", "auto") is a GPU.
bool is_gpu(const std::string& device);

/// How long a GPU may take for a step, or for a piece of the prompt.
struct StepDeadlines {
  double told_s = 10;     // then the window says so
  double way_out_s = 60;  // then it offers to end without the GPU
  bool emulated = false;  // "cuda:emulated" is held to them too: its steps are slow by nature
};

/// A GPU that has not answered in time.
struct Unanswered {
  std::string device;
  std::string what;      // "step 41", "prompt"
  double late_s = 0;     // seconds without an answer so far
  bool way_out = false;  // late enough to be offered one
};

/// @param since_event  seconds since the live engine told how far it is; those in which it rests,
///                     held, count for nobody
/// @return nothing while no GPU is at work, or none is late
std::optional<Unanswered> unanswered(const engine::Timeline& live,
                                     double since_event,
                                     const StepDeadlines& deadlines);
/// "GPU not responding, step 41, 12 s"
std::string words_of(const Unanswered& late);

}  // namespace ui
