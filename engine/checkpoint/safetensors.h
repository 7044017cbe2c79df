// The safetensors format: 8 bytes of header length, a JSON header, then the tensors' data.
// The header is validated against the file's length before any tensor is read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/base/mapped_file.h"
#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// A tensor's entry in the header.
struct TensorEntry {
  std::string name;
  std::string dtype;  // as in the file: "BF16"
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // byte offsets from the end of the header

  /// The element type; nullopt for unsupported types (integers, F64, F8).
  std::optional<kernels::DType> element() const;
};

/// A safetensors file mapped into memory.
class SafetensorsFile : public TensorSource {
 public:
  /// Maps the file and validates the header: lengths, names, dtypes, shapes, and that the tensors
  /// cover the data exactly once.
  /// @throws Error(BadInput)
  static std::shared_ptr<const SafetensorsFile> open(const std::string& path,
                                                     const FileLimits& limits = {});

  /// The entry of a tensor; null if there is none of that name.
  const TensorEntry* find(const std::string& name) const;
  /// All entries, sorted by name.
  const std::vector<TensorEntry>& entries() const { return entries_; }

  bool has(const std::string& name) const override { return find(name) != nullptr; }
  /// Returns the tensor as a view of the mapping, without a copy. Its pages are released with the
  /// last `hold`.
  Tensor read(const std::string& name) const override;
  std::vector<std::string> names() const override;
  std::string path() const override { return file_->path(); }
  void check() const override { file_->check(); }
  /// The bytes of a tensor of any dtype, within the mapping. Little-endian, perhaps misaligned.
  std::string_view bytes_of(const TensorEntry& entry) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::size_t data_begin_ = 0;  // offset of the first tensor in the file
  std::vector<TensorEntry> entries_;
};

/// "[4096, 11008]".
std::string shown_shape(const std::vector<std::int64_t>& shape);

}  // namespace engine
