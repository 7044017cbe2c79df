// Writes GGUF files, version 3.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/gguf/gguf_file.h"

namespace engine {

/// Builds the part of a GGUF file before the tensors' data. The data must follow in the order of
/// the calls of tensor(), each tensor padded to kGgufAlignment bytes.
class GgufHeader {
 public:
  /// Adds a metadata pair; no key may be added twice.
  void text(std::string_view key, std::string_view value);
  void u32(std::string_view key, std::int64_t value);
  void f32(std::string_view key, double value);
  void boolean(std::string_view key, bool value);
  void texts(std::string_view key, std::span<const std::string> values);
  void f32s(std::string_view key, std::span<const float> values);
  void i32s(std::string_view key, std::span<const std::int32_t> values);
  void booleans(std::string_view key, const std::vector<bool>& values);
  /// Adds a metadata pair that was read from another file.
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
/// The number of padding bytes after n bytes of data.
std::size_t gguf_padding(std::size_t n);

}  // namespace engine
