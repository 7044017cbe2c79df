// The few names every room of the engine uses.
#pragma once

#include <cstdint>

#include "kernels/error.h"

namespace engine {

using TokenId = std::int32_t;

using kernels::ContractError;
using kernels::ensure;
using kernels::Error;
using kernels::ErrorCode;

}  // namespace engine
