// Members of config.json and generation_config.json that this program ignores: finds those that may
// change the output, so that a notice can name them.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json.h"

namespace engine {

/// Ignored members of config.json that may change the output, in file order. Members that are null,
/// false or empty have no effect and are left out.
/// @param read  the members that this program uses
std::vector<std::string> members_without_effect(const Json& config,
                                                const std::vector<std::string>& read);

/// Ignored members of generation_config.json that may change the output, with their values:
/// "num_beams 4". Members at transformers' default value are left out.
std::vector<std::string> generation_members_not_applied(const Json& generation);

}  // namespace engine
