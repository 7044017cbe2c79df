// GGUF, the file format of llama.cpp, versions 2 and 3: metadata (key and value), descriptions of
// tensors, then the tensors' data. open() checks every length against the file before it uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/limits.h"
#include "engine/base/mapped_file.h"
#include "engine/checkpoint/gguf/ggml_types.h"

namespace engine {

/// The type of a metadata value; the numbers are those in the file.
enum class GgufType : std::uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64,
};
/// "u32", "string", ...
const char* name_of(GgufType type);

/// One pair of the metadata. Views are borrowed from the mapping.
struct GgufEntry {
  std::string_view key;
  GgufType type = GgufType::U8;
  GgufType element = GgufType::U8;  // of an array
  std::int64_t count = 1;           // elements of an array
  std::string_view bytes;           // the value as stored; of an array its elements
  std::uint64_t offset = 0;         // of the pair in the file
};

/// A tensor's description. Views are borrowed from the mapping.
struct GgufTensor {
  std::string name;                 // "blk.0.attn_q.weight"
  std::vector<std::int64_t> shape;  // row-major: the reverse of the file's order
  const GgmlTypeInfo* type = nullptr;
  std::string_view bytes;  // the data as stored

  /// The product of the shape's dimensions.
  std::int64_t n_elements() const;
};

/// A GGUF file mapped into memory. A file without tensors (a vocabulary) is valid.
///
/// The readers of values return nothing, or an empty vector, if the key is absent. They throw
/// Error(BadInput) with key, found type and expected type if the value has another type.
class GgufFile {
 public:
  /// Maps a file and validates it: lengths, types, duplicate keys and names, alignment, and that
  /// the tensors follow each other without gaps. Takes time linear in the file's header.
  /// @throws Error(BadInput)
  static std::shared_ptr<const GgufFile> open(const std::string& path,
                                              const FileLimits& limits = {});

  /// The path given to open().
  const std::string& path() const { return file_->path(); }
  /// The member general.architecture: "llama".
  /// @throws Error(BadInput)  if it is absent or not a name
  std::string architecture() const;

  /// True if the metadata has this key.
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// The pair with this key; null if absent.
  const GgufEntry* find(std::string_view key) const;
  /// All pairs, sorted by key.
  const std::vector<GgufEntry>& entries() const { return entries_; }

  /// A string.
  std::optional<std::string> string(std::string_view key) const;
  /// An integer of any width.
  std::optional<std::int64_t> integer(std::string_view key) const;
  /// A floating-point number.
  std::optional<double> number(std::string_view key) const;
  /// A truth value.
  std::optional<bool> boolean(std::string_view key) const;
  /// An array of strings, borrowed from the mapping.
  std::vector<std::string_view> strings(std::string_view key) const;
  /// An array of floating-point numbers.
  std::vector<double> numbers(std::string_view key) const;
  /// An array of integers of any width, or a single integer as one element.
  std::vector<std::int64_t> integers(std::string_view key) const;
  /// An array of truth values, or a single one.
  std::vector<bool> booleans(std::string_view key) const;
  /// Throws Error(BadInput) for a value: "file: key: found X, expected Y".
  [[noreturn]] void refuse_value(std::string_view key,
                                 const std::string& found,
                                 const std::string& expected) const;

  /// All tensors, in the file's order.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  /// Checks that the file was not changed since open().
  /// @throws Error(BadInput)
  void check() const { file_->check(); }
  /// Releases the memory of a tensor's pages; a later read loads them again.
  void release(const GgufTensor& tensor) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<GgufEntry> entries_;
  std::vector<GgufTensor> tensors_;
};

}  // namespace engine
