// Compares names of models.
#pragma once

#include <string_view>

namespace engine {

/// True if two names are those of one model, perhaps in different number types: compares their last
/// components without a final ".TYPE" or "-TYPE" ("Q4_1", "bf16"), ignoring the case of ASCII
/// letters.
bool is_same_model(std::string_view a, std::string_view b);

}  // namespace engine
