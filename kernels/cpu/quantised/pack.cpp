#include "kernels/cpu/quantised/pack.h"

#include <cmath>
#include <cstring>

#include "kernels/cpu/kernel_table.h"
#include "kernels/error.h"

namespace kernels::cpu {
namespace {

const QuantisedType& type_of(DType dtype) {
  return kQuantisedTypes[static_cast<int>(dtype) - kFirstQuantised];
}

int line_bytes(const QuantisedType& type) {  // of a block
  return type.nibbles ? 256 : 512;
}
int value_bytes(const QuantisedType& type) {  // of a scale or minimum
  return type.halves ? 2 : 4;
}
int group_bytes(const QuantisedType& type) {  // the scales and minima of a group
  return kPanel * value_bytes(type) * (type.minimum ? 2 : 1);
}

int block_bytes(const QuantisedType& type) {
  return line_bytes(type) + type.groups * group_bytes(type);
}

const char* group_in(const char* panel, const QuantisedType& type, int group) {
  return panel + std::int64_t{group / type.groups} * block_bytes(type) + line_bytes(type) +
         group % type.groups * group_bytes(type);
}

// The byte of input j of a lane, and by how many bits its q is shifted.
struct Place {
  std::int64_t byte;
  int shift;
};
Place place_of(const QuantisedType& type, int lane, int j) {
  const int in_block = j % kBlock;
  const int in_lines = type.nibbles ? in_block % 16 : in_block;
  const std::int64_t block = std::int64_t{j / kBlock} * block_bytes(type);
  return {block + in_lines / 4 * 64 + lane * 4 + in_lines % 4,
          type.nibbles && in_block >= 16 ? 4 : 0};
}

float value_at(const char* data, const QuantisedType& type, int i) {
  if (type.halves) {
    std::uint16_t half;
    std::memcpy(&half, data + 2 * i, 2);
    return f32_from_f16(half);
  }
  float value;
  std::memcpy(&value, data + 4 * i, 4);
  return value;
}

// Returns false if the value is not stored exactly. NaN counts as exact.
bool put_value(char* data, const QuantisedType& type, int i, float value) {
  if (!type.halves) {
    std::memcpy(data + 4 * i, &value, 4);
    return true;
  }
  const std::uint16_t half = f16_from_f32(value);
  std::memcpy(data + 2 * i, &half, 2);
  return f32_from_f16(half) == value || std::isnan(value);
}

bool pack_q(const std::int8_t* q, int k, const QuantisedType& type, int lane, char* packed) {
  const int most = type.nibbles ? 15 : 255;
  bool fits = true;
  for (int j = 0; j < k; j++) {
    const int stored = q[j] + type.offset;
    fits = fits && stored >= 0 && stored <= most;
    const Place place = place_of(type, lane, j);
    packed[place.byte] = static_cast<char>(packed[place.byte] | (stored & most) << place.shift);
  }
  return fits;
}

// `to` has groups of 32 / type.groups, the weights may have larger ones. Without minima of the weights, the packed
// minima are -0, which changes no sum.
bool pack_scales(
    const QuantisedRows& w, int row, int k, const QuantisedType& type, int lane, char* packed) {
  const int size = kBlock / type.groups;
  bool exact = true;
  for (int group = 0; group < k / size; group++) {
    const std::int64_t from = std::int64_t{row} * (k / w.group) + group * size / w.group;
    char* to = const_cast<char*>(group_in(packed, type, group));
    exact &= put_value(to, type, lane, w.scale[from]);
    if (type.minimum)
      exact &= put_value(to, type, kPanel + lane, w.minimum ? w.minimum[from] : -0.0f);
  }
  return exact;
}

}  // namespace

std::int64_t quantised_panel_bytes(DType dtype, int k) {
  const QuantisedType& type = type_of(dtype);
  return (std::int64_t{k / kBlock} * block_bytes(type) + 63) / 64 * 64;
}

void check_quantised_rows(const QuantisedRows& w, int n, int k, DType to) {
  ensure(is_quantised(to), "pack_quantised: the type is not quantised");
  ensure(n > 0 && k > 0 && k % kBlock == 0, "pack_quantised: k must be a multiple of 32");
  const QuantisedType& type = type_of(to);
  ensure(w.group == kBlock || w.group * type.groups == kBlock,
         "pack_quantised: the type does not have this group");
  ensure(type.minimum || !w.minimum, "pack_quantised: the type has no minima");
}

bool pack_quantised_panel(const QuantisedRows& w, int n, int k, DType to, int panel, char* packed) {
  const QuantisedType& type = type_of(to);
  std::memset(packed, 0, static_cast<std::size_t>(quantised_panel_bytes(to, k)));
  bool exact = true;
  for (int lane = 0; lane < kPanel && panel * kPanel + lane < n; lane++) {
    const int row = panel * kPanel + lane;
    exact &= pack_q(w.q + std::int64_t{row} * k, k, type, lane, packed);
    exact &= pack_scales(w, row, k, type, lane, packed);
  }
  return exact;
}

void dequantise_output(const char* panel, DType dtype, int k, int lane, float* to) {
  const QuantisedType& type = type_of(dtype);
  const int size = kBlock / type.groups, most = type.nibbles ? 15 : 255;
  for (int j = 0; j < k; j++) {
    const Place place = place_of(type, lane, j);
    const auto byte = static_cast<std::uint8_t>(panel[place.byte]);
    const auto q = static_cast<float>((byte >> place.shift & most) - type.offset);
    const char* group = group_in(panel, type, j / size);
    to[j] = value_at(group, type, lane) * q;
    if (type.minimum) to[j] += value_at(group, type, kPanel + lane);
  }
}

}  // namespace kernels::cpu
