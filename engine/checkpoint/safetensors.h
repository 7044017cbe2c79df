// The safetensors format: 8 bytes of header length, a JSON header, tensors back to back.
// Everything the header says is checked against the file's real length before anything is read.
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

/// What the header says of one tensor.
struct TensorEntry {
  std::string name;
  std::string dtype;  // as written, "BF16"
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // bytes, from the end of the header

  /// The element type, nullopt for those no model here computes with (integers, F64, F8).
  std::optional<kernels::DType> element() const;
};

class SafetensorsFile : public TensorSource {
 public:
  /// Maps the file and checks the header: lengths, names, dtypes, shapes, that the tensors cover
  /// the data exactly once.
  /// @throws Error(BadInput)
  static std::shared_ptr<const SafetensorsFile> open(const std::string& path,
                                                     const FileLimits& limits = {});

  const TensorEntry* find(const std::string& name) const;
  const std::vector<TensorEntry>& entries() const { return entries_; }  // by name

  bool has(const std::string& name) const override { return find(name) != nullptr; }
  /// The tensor in place; its pages are given back to the system when the last `hold` goes.
  Tensor read(const std::string& name) const override;
  std::vector<std::string> names() const override;
  std::string path() const override { return file_->path(); }
  void check() const override { file_->check(); }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::size_t data_begin_ = 0;  // offset of the first tensor in the file
  std::vector<TensorEntry> entries_;
};

/// "[4096, 11008]".
std::string shown_shape(const std::vector<std::int64_t>& shape);

}  // namespace engine
