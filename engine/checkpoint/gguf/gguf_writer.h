// Writes GGUF files, version 3.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/gguf/gguf_file.h"

namespace engine {

/// The part of a GGUF file before its data. Tensors follow each other in the order of tensor(), each
/// padded to kGgufAlignment bytes.
class GgufHeader {
 public:
  /// Adds a pair of the metadata. Keys must differ.
  void text(std::string_view key, std::string_view value);
  void u32(std::string_view key, std::int64_t value);
  void f32(std::string_view key, double value);
  void boolean(std::string_view key, bool value);
  void texts(std::string_view key, std::span<const std::string> values);
  void f32s(std::string_view key, std::span<const float> values);
  void i32s(std::string_view key, std::span<const std::int32_t> values);
  void booleans(std::string_view key, const std::vector<bool>& values);
  /// Adds a pair of another file.
  void copy(const GgufEntry& entry);
  /// Adds a tensor.
  /// @param shape  row-major
  void tensor(std::string_view name, const std::vector<std::int64_t>& shape, std::uint32_t type);

  /// The bytes of the header, padded.
  std::string bytes() const;

 private:
  void pair(std::string_view key, GgufType type, std::string_view value);
  void array(std::string_view key, GgufType element, std::size_t n, std::string_view elements);

  std::string pairs_, tensors_;
  std::uint64_t n_pairs_ = 0, n_tensors_ = 0, offset_ = 0;
};

inline constexpr std::size_t kGgufAlignment = 32;
/// The bytes of padding after n bytes.
std::size_t gguf_padding(std::size_t n);

}  // namespace engine
