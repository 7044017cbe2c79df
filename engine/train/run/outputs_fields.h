// The object "own_outputs" of recipes. Of the .cpp files that read recipes alone.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "engine/train/run/outputs_plan.h"

namespace engine {

/// @throws Error(BadInput)
void read_outputs_plan(const nlohmann::json& object, const std::string& where, OutputsPlan& plan);
nlohmann::ordered_json json_of(const OutputsPlan& plan);

}  // namespace engine
