// The derived speed-up of a recorded run (engine/lab/what_if.h) as a curve over one of its sizes.
#pragma once

#include <string>

#include "engine/lab/what_if.h"
#include "ui/prepare/time/curves.h"

namespace ui {

/// Returns the speed-up over the values of a size, 0 or 1 to its largest value; the other sizes are those given.
Curve speedup_over(const engine::RecordedShape& shape,
                   engine::Knob knob,
                   const engine::WhatIfSizes& sizes,
                   engine::RowCost cost);
/// Returns in words where a curve is below 1: "below 1 from 7 on", "at least 1 everywhere".
std::string below_one_words(const Curve& curve);

}  // namespace ui
