// Members of config.json and generation_config.json that this program does not read: those that are
// known to change no token, and those that a notice names.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json.h"

namespace engine {

/// Members of config.json with an effect that is not there or not known, in their order; what is
/// null, false or empty is switched off and not among them.
/// @param read  the members that are read for this model
std::vector<std::string> members_without_effect(const Json& config,
                                                const std::vector<std::string>& read);

/// Members of generation_config.json that would change what is written and cannot be applied, with
/// their values: "num_beams 4". Those at the value that transformers takes without them are left
/// out.
std::vector<std::string> generation_members_not_applied(const Json& generation);

}  // namespace engine
