#include "engine/checkpoint/gguf/ggml_types.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "engine/base/types.h"

namespace engine {
namespace {

// ggml.h and ggml-common.h of llama.cpp.
constexpr GgmlTypeInfo kTypes[] = {
    {0, "F32", 1, 4, true},          {1, "F16", 1, 2, true},
    {2, "Q4_0", 32, 18, true},       {3, "Q4_1", 32, 20, true},
    {6, "Q5_0", 32, 22, true},       {7, "Q5_1", 32, 24, true},
    {8, "Q8_0", 32, 34, true},       {9, "Q8_1", 32, 36, false},
    {10, "Q2_K", 256, 84, true},     {11, "Q3_K", 256, 110, true},
    {12, "Q4_K", 256, 144, true},    {13, "Q5_K", 256, 176, true},
    {14, "Q6_K", 256, 210, true},    {15, "Q8_K", 256, 292, false},
    {16, "IQ2_XXS", 256, 66, false}, {17, "IQ2_XS", 256, 74, false},
    {18, "IQ3_XXS", 256, 98, false}, {19, "IQ1_S", 256, 50, false},
    {20, "IQ4_NL", 32, 18, true},    {21, "IQ3_S", 256, 110, false},
    {22, "IQ2_S", 256, 82, false},   {23, "IQ4_XS", 256, 136, true},
    {24, "I8", 1, 1, false},         {25, "I16", 1, 2, false},
    {26, "I32", 1, 4, false},        {27, "I64", 1, 8, false},
    {28, "F64", 1, 8, false},        {29, "IQ1_M", 256, 56, false},
    {30, "BF16", 1, 2, true},        {34, "TQ1_0", 256, 54, false},
    {35, "TQ2_0", 256, 66, false},   {39, "MXFP4", 32, 17, false},
    {40, "NVFP4", 64, 36, false},    {41, "Q1_0", 128, 18, false},
    {42, "Q2_0", 64, 18, false},
};

}  // namespace

const GgmlTypeInfo* ggml_type_info(std::uint32_t number) {
  const auto* at = std::ranges::find(kTypes, number, &GgmlTypeInfo::number);
  return at == std::end(kTypes) ? nullptr : at;
}

const GgmlTypeInfo& info_of(GgmlType type) {
  const GgmlTypeInfo* info = ggml_type_info(static_cast<std::uint32_t>(type));
  ensure(info != nullptr, "a type of the table");
  return *info;
}

const char* name_of(GgmlType type) {
  return info_of(type).name;
}

bool is_quantised(GgmlType type) {
  return info_of(type).block_size > 1;
}

constexpr std::pair<std::int64_t, std::string_view> kFileTypes[] = {
    {0, "F32"},     {1, "F16"},     {2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},
    {8, "Q5_0"},    {9, "Q5_1"},    {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"},
    {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"},
    {18, "Q6_K"},   {21, "Q2_K_S"}, {25, "IQ4_NL"}, {30, "IQ4_XS"}, {32, "BF16"}};

std::string file_type_name(std::int64_t number) {
  for (const auto& [known, name] : kFileTypes)
    if (known == number) return std::string(name);
  return "";
}

std::int64_t file_type_number(GgmlType type) {
  for (const auto& [number, name] : kFileTypes)
    if (name == name_of(type)) return number;
  return 0;
}

std::string readable_ggml_types() {
  std::string names;
  for (const GgmlTypeInfo& type : kTypes)
    if (type.readable) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

}  // namespace engine
