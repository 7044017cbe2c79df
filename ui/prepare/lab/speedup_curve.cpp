#include "ui/prepare/lab/speedup_curve.h"

#include <fmt/format.h>

namespace ui {

Curve speedup_over(const engine::RecordedShape& shape,
                   engine::Knob knob,
                   const engine::WhatIfSizes& sizes,
                   engine::RowCost cost) {
  Curve curve{engine::name_of(cost), {}, engine::speedups_over(shape, knob, sizes, cost)};
  for (std::size_t i = 0; i < curve.y.size(); ++i)
    curve.x.push_back(engine::smallest(knob) + static_cast<double>(i));
  return curve;
}

std::string below_one_words(const Curve& curve) {
  const auto from = engine::below_one_from(curve.y);
  if (from == 0) return "below 1 everywhere";
  if (from) return fmt::format("below 1 from {:.0f} on", curve.x[*from]);
  for (std::size_t i = 0; i < curve.y.size(); ++i)
    if (curve.y[i] < 1 && curve.x[i] > 0) return fmt::format("below 1 at {:.0f}", curve.x[i]);
  return "at least 1 everywhere";
}

}  // namespace ui
