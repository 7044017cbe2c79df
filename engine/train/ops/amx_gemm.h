// Matrix products of bf16 operands with f32 sums, on the processor's AMX tiles. An operand is
// packed once and used many times. Every dimension is a multiple of 32.
//   tile order  a packed operand is a grid of 1 KB tiles: 16 rows of 32 bf16. For the right operand
//               a row holds two consecutive k of 16 columns, interleaved (VNNI).
#pragma once

#include <cstdint>

#include "engine/train/ops/bf16.h"

namespace engine {

/// Requests the use of bf16 tiles. True if the processor has them and the system permits it.
bool amx_usable();

/// Packs W f32 [n, k] row-major as right operand B [k, n] = W transposed, for y = x W^T.
void amx_pack_transposed(const float* w, int n, int k, Bf16* packed);
/// Packs W f32 [k, n] row-major as right operand B [k, n], for dx = dy W.
void amx_pack_plain(const float* w, int k, int n, Bf16* packed);
/// Packs X bf16 [k, n] row-major as right operand B [k, n].
void amx_pack_plain(const Bf16* x, int k, int n, Bf16* packed);
/// Packs X bf16 [k, m] row-major as left operand A [m, k] = X transposed, in tile order.
void amx_pack_left_transposed(const Bf16* x, int k, int m, Bf16* packed);

/// How a product is stored.
enum class AmxOut { StoreF32, AddF32, StoreBf16 };

/// c = a b, or c += a b.  a [m, k] bf16 row-major;  b packed [k, n];  c [m, n] row-major
void amx_gemm(const Bf16* a, const Bf16* b_packed, void* c, int m, int k, int n, AmxOut out);
/// c [m, n] f32 += a b with both operands packed.
void amx_gemm_packed(
    const Bf16* a_packed, const Bf16* b_packed, float* c, int m, int k, int n, AmxOut out);

}  // namespace engine
