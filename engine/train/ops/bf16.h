// The storage type of bf16 activations. Arithmetic converts them to f32.
#pragma once

#include <cstdint>

namespace engine {

/// The bits of a bf16 number. A struct, so that overloads distinguish it from integers.
struct Bf16 {
  std::uint16_t bits;
};

}  // namespace engine
