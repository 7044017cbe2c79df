// Detects a GPU that does not respond. A hanging kernel cannot be stopped, so the window reports a step that takes too long, and finally
// offers to close without waiting for it.
#pragma once

#include <optional>
#include <string>

#include "ui/prepare/time/deadlines.h"

namespace engine {
class Timeline;
}

namespace ui {

/// Returns true if a device of this name ("cpu", "cuda:0", "auto") is a GPU.
bool is_gpu(const std::string& device);

/// A GPU that exceeded its deadline.
struct Unanswered {
  std::string device;
  std::string what;      // the part that is late: "step 41", "prompt"
  double late_s = 0;     // seconds without a response so far
  bool way_out = false;  // so late that the window offers to close without it
};

/// Checks the GPUs of the live runs.
/// @param since_event  seconds since the engine reported progress; time in which the engine is paused does not count
/// @return nullopt if no GPU is computing or none is late
std::optional<Unanswered> unanswered(const engine::Timeline& live,
                                     double since_event,
                                     const StepDeadlines& deadlines);
/// Returns the report: "GPU not responding, step 41, 12 s".
std::string words_of(const Unanswered& late);

}  // namespace ui
