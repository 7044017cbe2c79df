// Block quantisation of ggml. A block holds 32 or 256 elements as small integers with scales that
// are themselves stored as f16. Layouts: ggml-common.h of llama.cpp; arithmetic: in f32, in the
// order of ggml-quants.c without contraction, so that both directions give llama.cpp's bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/gguf/ggml_types.h"
#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// Decodes whole blocks of a readable type.
/// @param blocks  data of the type, any alignment
/// @param out     receives as many elements as the blocks hold
void dequantise(GgmlType type, std::string_view blocks, float* out);

/// The format of packed weights that has the values of a quantised type.
kernels::DType packed_format(GgmlType type);
/// Unpacks whole blocks of a quantised type. Values are those of dequantise().
/// @param shape  of the matrix that the blocks hold
QuantisedTensor unpack(GgmlType type, std::string_view blocks, std::vector<std::int64_t> shape);

/// The types that quantise() writes: F32, F16, BF16, Q8_0, Q4_0, Q4_1.
std::span<const GgmlType> writable_ggml_types();
/// The writable type with this name, in any case: "q8_0"; nullopt for any other text.
std::optional<GgmlType> writable_ggml_type(std::string_view name);

/// A matrix rounded as quantise() does it.
/// @param format  Q8_0, Q4_0 or Q4_1; rows of `matrix` are whole blocks
QuantisedTensor rounded(const Tensor& matrix, kernels::DType format);

/// Encodes elements. In a quantised type a NaN is stored as integer 0, which may decode to any
/// value in the block's range.
/// @param values  a whole number of blocks
/// @param out     receives the blocks at its end
void quantise(GgmlType type, std::span<const float> values, std::string& out);

}  // namespace engine
