// The 16-bit activations of bf16 training: storage only, arithmetic happens in f32.
#pragma once

#include <cstdint>

namespace engine {

/// One bf16 number as its bits. A type of its own, so that overloads tell it from integers.
struct Bf16 {
  std::uint16_t bits;
};

}  // namespace engine
