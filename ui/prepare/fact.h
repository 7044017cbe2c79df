// A labelled value.
#pragma once

#include <string>

#include "ui/prepare/figure.h"

namespace ui {

/// A row of a list of facts.
struct Fact {
  std::string label, value;
  Truth truth = Truth::Measured;
};

}  // namespace ui
