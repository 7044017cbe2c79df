// Deadlines for the response of a GPU.
#pragma once

namespace ui {

/// How long a GPU may take for a step or a part of the prompt.
struct StepDeadlines {
  double report_s = 10;   // after this time the window reports it
  double way_out_s = 60;  // after this time it offers to close without waiting for the GPU
  bool emulated = false;  // also applies to "cuda:emulated", whose steps are slow
};

}  // namespace ui
