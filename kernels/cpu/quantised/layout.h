// The packed layout of quantised weights, shared by packing and by the loops of every instruction set.
//   panel   16 outputs: blocks of 32 k, each with its lines and then its scales; padded to 64 bytes
//   lines   8 bits: line g (64 bytes) of a block holds q of k = 4g + j in byte 4 lane + j, 8 lines. 4 bits: 4 lines; the
//           low nibble of that byte is k = 4g + j, the high nibble k = 16 + 4g + j
//   q       is stored unsigned, as q + offset
//   scales  of a block, for each of its groups: 16 scales, then 16 minima if the type has them
#pragma once

#include <cstdint>

namespace kernels::cpu {

/// Inputs of a block: one scale of the activations, whole groups of the weights.
inline constexpr int kBlock = 32;
/// The number of the first quantised type (kernels::DType).
inline constexpr int kFirstQuantised = 3;

/// How a type stores its blocks.
struct QuantisedType {
  bool nibbles;  // 4 bits for each q, else 8
  bool halves;   // scales and minima are f16, else f32
  bool minimum;
  int groups;  // in a block
  int offset;  // what the stored q is larger by
};
/// Indexed by type number - kFirstQuantised.
inline constexpr QuantisedType kQuantisedTypes[] = {{true, true, false, 1, 8},      // Q4_0
                                                    {true, true, true, 1, 0},       // Q4_1
                                                    {true, false, true, 1, 0},      // Q4_K
                                                    {false, true, false, 1, 128},   // Q8_0
                                                    {false, false, true, 2, 128}};  // Q8_G
inline constexpr int kQuantisedCount = 5;

}  // namespace kernels::cpu
