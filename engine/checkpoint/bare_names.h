// Base models (LlamaModel) are stored without the "model." that LlamaForCausalLM puts in front of
// its tensors' names. Here every tensor goes by the full name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// "layers.0.x" and "model.layers.0.x" give "model.layers.0.x"; names that never had the prefix
/// ("lm_head.weight") stay.
std::string full_name(const std::string& name);

/// The source under full names. A tensor that stands there under both is read from the full one.
/// @param notices  one line where bare names were found, naming one and how many were there twice
/// @return  `tensors` itself where no name is bare
std::shared_ptr<const TensorSource> with_full_names(std::shared_ptr<const TensorSource> tensors,
                                                    std::vector<std::string>& notices);

}  // namespace engine
