// The activation of a gated feed-forward block (GLU; Shazeer 2020, arXiv:2002.05202).
#pragma once

#include <cstdint>

namespace kernels {

/// The function of the gate.
enum class Gate : std::uint8_t {
  Silu,      // SwiGLU: x / (1 + exp(-x))
  GeluTanh,  // GeGLU with the approximation x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
};

}  // namespace kernels
