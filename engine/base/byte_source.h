// Random access to the bytes of a file. Tests replace it to return few bytes, late bytes or errors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace engine {

/// Bytes that can be read at any offset.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Number of bytes.
  virtual std::uint64_t size() const = 0;
  /// Reads bytes from `offset` into the front of `out`.
  /// @return  their number; may be less than out.size(); 0 at the end
  /// @throws Error(Resources)  naming file, offset and the system's reason
  virtual std::size_t read_at(std::uint64_t offset, std::span<char> out) = 0;
  /// The name for messages.
  virtual const std::string& name() const = 0;
};

/// Opens a regular file. Never blocks on a pipe or device.
/// @throws Error(BadInput)  not a regular file
/// @throws Error(Resources)  the system's reason
std::unique_ptr<ByteSource> open_file(const std::string& path);

/// Bytes in memory.
std::unique_ptr<ByteSource> in_memory(std::string bytes, std::string name = "memory");

}  // namespace engine
