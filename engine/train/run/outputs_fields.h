// Reads and writes the object "own_outputs" of recipes. For .cpp files only, since it includes JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "engine/train/run/outputs_plan.h"

namespace engine {

/// Reads the fields of a plan.
/// @param where  for messages
/// @throws Error(BadInput)
void read_outputs_plan(const nlohmann::json& object, const std::string& where, OutputsPlan& plan);
/// The plan as JSON.
nlohmann::ordered_json json_of(const OutputsPlan& plan);

}  // namespace engine
