// The speed-up that a recorded run would have had with other sizes: its acceptances and step costs, with some proposals left out or added.
// Derived, not measured: the proposals stay those of the recording, also where another size would have led to other proposals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/lab/cost.h"

namespace engine {

class Timeline;
struct RunRecord;

/// The sizes that can be varied.
enum class Knob { Depth, Width, Nodes, Window };
inline constexpr int kKnobs = 4;
/// Returns the name: "depth", "width", "nodes", "window".
const char* name_of(Knob knob);
/// Returns a sentence on what the size limits.
const char* help_of(Knob knob);

/// Values of the sizes.
struct WhatIfSizes {
  int depth = 0;   // proposals after one another: gamma, the length of a block or of an n-gram
  int width = 0;   // proposals beside one another: candidates of a node, n-grams
  int nodes = 0;   // proposals of a step, in the order of its rows
  int window = 0;  // columns of Lookahead's window
  bool operator==(const WhatIfSizes&) const = default;
  int& of(Knob knob);
};

/// A recorded run, reduced to the shape of its steps.
struct RecordedShape {
  struct Row {
    std::int16_t depth = 0;
    std::int16_t rank =
        0;  // the largest number of earlier siblings of the row and of its ancestors
    bool accepted = false;
  };
  struct Step {
    int n_fixed = 0;   // rows that are neither proposals nor in the window
    int n_window = 0;  // rows of the window
    std::vector<Row> rows;
  };
  std::string why;  // why there is none; empty otherwise
  std::vector<Step> steps;
  WhatIfSizes recorded;  // the largest of all steps
  double rate = 0;  // passed / reached over all depths: the acceptance beyond the recorded depth
  double plain_ms = 0;       // a plain step
  double plain_forward = 0;  // of it the forward, ms
  double draft_ms = 0;       // a level of a draft model, ms
  double other_ms = 0;       // per step: proposals without a draft model, verification, commit
  RowCurve cost[kRowCosts];
};
/// Reduces a run. Its baseline gives the time of a plain step.
RecordedShape recorded_shape(const Timeline& timeline, const RunRecord& run);

/// Returns the largest value of a size for which a result can be derived: beyond the recorded value for the depth of chains (there the mean
/// acceptance applies) and for the window; 0 if the run does not have the size.
int largest(const RecordedShape& shape, Knob knob);

/// The derived result, means per step.
struct WhatIf {
  double tokens = 0, rows = 0, ms = 0, speedup = 0;
};
/// Derives the result for sizes from 0 to largest().
WhatIf what_if(const RecordedShape& shape, const WhatIfSizes& sizes, RowCost cost);

/// Returns the smallest value of a size: 1 for the width, else 0.
int smallest(Knob knob);
/// Returns the speed-up for each value of a size, from smallest() to largest(); the other sizes are those given.
std::vector<double> speedups_over(const RecordedShape& shape,
                                  Knob knob,
                                  WhatIfSizes sizes,
                                  RowCost cost);
/// Returns the index from which all values are below 1; nullopt if the last one is not.
std::optional<std::size_t> below_one_from(std::span<const double> speedups);

}  // namespace engine
