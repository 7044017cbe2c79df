// Long passes over a model's weights (writing, hashing, looking for what is not finite) that can be
// ended: each reads tensor by tensor, so between two of them is the place to ask.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// The same tensors; before each read `stop` is asked.
/// @param left  what a pass that ends there leaves, for the message: "nothing was written"
/// read() then @throws Error(Cancelled)  once it says true
std::shared_ptr<const TensorSource> stoppable(std::shared_ptr<const TensorSource> tensors,
                                              std::function<bool()> stop,
                                              std::string left);

}  // namespace engine
