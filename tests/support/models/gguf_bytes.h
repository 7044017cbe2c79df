// GGUF files made by hand, value by value, so that a test can damage any of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace engine::test {

/// The bytes of a number, little-endian.
template <typename T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

/// A string as GGUF stores it: length and bytes.
inline std::string gguf_string(std::string_view text) {
  return raw<std::uint64_t>(text.size()) + std::string(text);
}

/// An array as GGUF stores it: element type, number of elements, elements.
inline std::string gguf_array(std::uint32_t element, std::uint64_t n, std::string_view bytes) {
  return raw(element) + raw(n) + std::string(bytes);
}

/// Collects metadata and tensors; bytes() gives the file.
class GgufBytes {
 public:
  /// Adds a pair whose value is given as stored.
  GgufBytes& pair(std::string_view key, std::uint32_t type, std::string_view value) {
    pairs_ += gguf_string(key) + raw(type) + std::string(value);
    n_pairs_++;
    return *this;
  }
  GgufBytes& u32(std::string_view key, std::uint32_t value) { return pair(key, 4, raw(value)); }
  GgufBytes& f32(std::string_view key, float value) { return pair(key, 6, raw(value)); }
  GgufBytes& boolean(std::string_view key, bool value) {
    return pair(key, 7, value ? std::string(1, '\1') : std::string(1, '\0'));
  }
  GgufBytes& text(std::string_view key, std::string_view value) {
    return pair(key, 8, gguf_string(value));
  }
  GgufBytes& texts(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes;
    for (const std::string& value : values) bytes += gguf_string(value);
    return pair(key, 9, gguf_array(8, values.size(), bytes));
  }
  GgufBytes& f32s(std::string_view key, const std::vector<float>& values) {
    std::string bytes;
    for (const float value : values) bytes += raw(value);
    return pair(key, 9, gguf_array(6, values.size(), bytes));
  }
  GgufBytes& i32s(std::string_view key, const std::vector<std::int32_t>& values) {
    std::string bytes;
    for (const std::int32_t value : values) bytes += raw(value);
    return pair(key, 9, gguf_array(5, values.size(), bytes));
  }
  /// Adds a tensor after those before it.
  /// @param dims  innermost first, as in the file
  GgufBytes& tensor(std::string_view name,
                    const std::vector<std::uint64_t>& dims,
                    std::uint32_t type,
                    std::string_view data) {
    tensor_at(name, dims, type, data_.size());
    data_ += data;
    data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_);
    return *this;
  }
  /// Adds the description of a tensor without data.
  GgufBytes& tensor_at(std::string_view name,
                       const std::vector<std::uint64_t>& dims,
                       std::uint32_t type,
                       std::uint64_t offset) {
    infos_ += gguf_string(name) + raw(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) infos_ += raw(dim);
    infos_ += raw(type) + raw(offset);
    n_tensors_++;
    return *this;
  }
  /// Sets the alignment of the data, but adds no pair general.alignment.
  GgufBytes& align(std::size_t alignment) {
    alignment_ = alignment;
    return *this;
  }
  /// Replaces the numbers of the header.
  GgufBytes& counts(std::uint64_t n_tensors, std::uint64_t n_pairs) {
    n_tensors_ = n_tensors;
    n_pairs_ = n_pairs;
    return *this;
  }
  /// The whole file.
  std::string bytes(std::uint32_t version = 3) const {
    std::string out = "GGUF" + raw(version) + raw(n_tensors_) + raw(n_pairs_) + pairs_ + infos_;
    if (!data_.empty()) out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_);
    return out + data_;
  }

 private:
  std::string pairs_, infos_, data_;
  std::uint64_t n_pairs_ = 0, n_tensors_ = 0;
  std::size_t alignment_ = 32;
};

}  // namespace engine::test
