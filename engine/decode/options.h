// Reading completed options inside a decoder: the registry has checked every value already.
#pragma once

#include <string>
#include <vector>

#include "engine/decode/decoder.h"

namespace engine {

/// @throws ContractError  if the option is missing: make_decoder() fills in every one
int int_option(const OptionValues& options, const std::string& name);
double float_option(const OptionValues& options, const std::string& name);
bool bool_option(const OptionValues& options, const std::string& name);
const std::string& text_option(const OptionValues& options, const std::string& name);
/// The value of an option that leaves a size to what the machine shows.
inline constexpr const char* kAuto = "auto";
/// Whether it has that value.
bool is_auto(const OptionValues& options, const std::string& name);
/// "2,2,1" as numbers.
std::vector<int> counts_option(const OptionValues& options, const std::string& name);

}  // namespace engine
