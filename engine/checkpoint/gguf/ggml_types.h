// The tensor types of GGUF files (ggml's types): numbers, names and block sizes.
#pragma once

#include <cstdint>
#include <string>

namespace engine {

/// The types that this program handles by name; the numbers are those in GGUF files.
enum class GgmlType : std::uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  IQ4_NL = 20,
  IQ4_XS = 23,
  BF16 = 30,
};

/// How a type stores elements: in blocks along the last dimension of the (row-major) shape.
struct GgmlTypeInfo {
  std::uint32_t number;
  const char* name;  // "Q4_K"
  int block_size;    // elements per block
  int block_bytes;   // bytes per block
  bool readable;     // false: the block size is known, but this program cannot decode it
};

/// The entry of a type; null for a number that ggml does not use, or no longer uses.
const GgmlTypeInfo* ggml_type_info(std::uint32_t number);
/// The entry of a type that this program handles.
const GgmlTypeInfo& info_of(GgmlType type);
/// "Q4_K".
const char* name_of(GgmlType type);
/// The name of a mixture of types, by its number in general.file_type: "Q4_K_M"; empty: unknown. source llama.cpp (llama.h, enum llama_ftype)
std::string file_type_name(std::int64_t number);
/// The number for a file whose weights are mostly of a type; 0 if there is none.
std::int64_t file_type_number(GgmlType type);
/// True if elements are stored as small integers in blocks.
bool is_quantised(GgmlType type);
/// The readable types, for messages: "F32, F16, ...".
std::string readable_ggml_types();

}  // namespace engine
