// Names that every part of the engine uses.
#pragma once

#include <cstdint>

#include "kernels/error.h"

namespace engine {

using TokenId = std::int32_t;  // from 0 to vocab_size - 1

using kernels::ContractError;
using kernels::ensure;
using kernels::Error;
using kernels::ErrorCode;

}  // namespace engine
