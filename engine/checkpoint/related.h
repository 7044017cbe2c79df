// What a model's directory says of other models, beside the draft that ModelFiles names.
#pragma once

#include <string>

#include "engine/base/limits.h"

namespace engine {

/// The model it was before consistency training, as its decoscope.json says; empty: it was none.
/// @throws Error(BadInput)  "file: field: found X, expected Y"
std::string name_before_training(const std::string& directory, const FileLimits& limits = {});

}  // namespace engine
