// A number with its noun: "1 step", "2 steps".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace engine {

/// @param many  the noun of several; empty: with an s behind it
std::string counted(std::int64_t n, std::string_view one, std::string_view many = {});

}  // namespace engine
