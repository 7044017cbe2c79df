// Deadlines for the response of a GPU.
#pragma once

namespace ui {

/// Time limits for a GPU that computes a step or a part of the prompt.
struct StepDeadlines {
  double report_s = 10;   // after this time the window reports it
  double way_out_s = 60;  // after this time it offers to close without waiting for the GPU
  bool emulated = false;  // also applies to "cuda:emulated", whose steps are slow
};

}  // namespace ui
