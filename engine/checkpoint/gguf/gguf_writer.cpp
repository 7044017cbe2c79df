#include "engine/checkpoint/gguf/gguf_writer.h"

#include <bit>
#include <cstring>

#include "engine/base/types.h"

namespace engine {
namespace {

template <typename T>
void append(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_text(std::string& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  out += text;
}

template <typename T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

template <typename T>
std::string bytes_of(T value) {
  std::string out;
  append(out, value);
  return out;
}

}  // namespace

std::size_t gguf_padding(std::size_t n) {
  return (kGgufAlignment - n % kGgufAlignment) % kGgufAlignment;
}

void GgufHeader::pair(std::string_view key, GgufType type, std::string_view value) {
  append_text(pairs_, key);
  append(pairs_, static_cast<std::uint32_t>(type));
  pairs_ += value;
  n_pairs_++;
}

void GgufHeader::array(std::string_view key,
                       GgufType element,
                       std::size_t n,
                       std::string_view elements) {
  std::string value = bytes_of(static_cast<std::uint32_t>(element)) + bytes_of(std::uint64_t{n});
  value += elements;
  pair(key, GgufType::Array, value);
}

void GgufHeader::text(std::string_view key, std::string_view value) {
  std::string bytes;
  append_text(bytes, value);
  pair(key, GgufType::String, bytes);
}

void GgufHeader::u32(std::string_view key, std::int64_t value) {
  ensure(value >= 0 && value <= 0xFFFF'FFFF, "a number of 32 bits");
  pair(key, GgufType::U32, bytes_of(static_cast<std::uint32_t>(value)));
}

void GgufHeader::f32(std::string_view key, double value) {
  pair(key, GgufType::F32, bytes_of(static_cast<float>(value)));
}

void GgufHeader::boolean(std::string_view key, bool value) {
  pair(key, GgufType::Bool, bytes_of(static_cast<std::uint8_t>(value)));
}

void GgufHeader::texts(std::string_view key, std::span<const std::string> values) {
  std::string bytes;
  for (const std::string& value : values) append_text(bytes, value);
  array(key, GgufType::String, values.size(), bytes);
}

void GgufHeader::f32s(std::string_view key, std::span<const float> values) {
  array(key, GgufType::F32, values.size(), bytes_of(values));
}

void GgufHeader::i32s(std::string_view key, std::span<const std::int32_t> values) {
  array(key, GgufType::I32, values.size(), bytes_of(values));
}

void GgufHeader::booleans(std::string_view key, const std::vector<bool>& values) {
  std::string bytes;
  for (const bool value : values) bytes += static_cast<char>(value);
  array(key, GgufType::Bool, values.size(), bytes);
}

void GgufHeader::copy(const GgufEntry& entry) {
  if (entry.type == GgufType::Array)
    array(entry.key, entry.element, static_cast<std::size_t>(entry.count), entry.bytes);
  else
    pair(entry.key, entry.type, entry.bytes);
}

void GgufHeader::tensor(std::string_view name,
                        const std::vector<std::int64_t>& shape,
                        std::uint32_t type) {
  const GgmlTypeInfo* info = ggml_type_info(type);
  ensure(info != nullptr, "a type of ggml");
  append_text(tensors_, name);
  append(tensors_, static_cast<std::uint32_t>(shape.size()));
  std::int64_t n = 1;
  for (auto dim = shape.rbegin(); dim != shape.rend(); ++dim) {
    append(tensors_, static_cast<std::uint64_t>(*dim));
    n *= *dim;
  }
  append(tensors_, type);
  append(tensors_, offset_);
  offset_ += static_cast<std::uint64_t>(n / info->block_size * info->block_bytes);
  offset_ += gguf_padding(offset_);
  n_tensors_++;
}

std::string GgufHeader::bytes() const {
  constexpr std::uint32_t kVersion = 3;
  std::string out = "GGUF";
  append(out, kVersion);
  append(out, n_tensors_);
  append(out, n_pairs_);
  out += pairs_;
  out += tensors_;
  out.append(gguf_padding(out.size()), '\0');
  return out;
}

}  // namespace engine
