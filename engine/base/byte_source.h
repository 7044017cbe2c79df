// Bytes of a file at an offset: what readers of recordings read from. A test puts its own in place
// to answer short, late or with an error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace engine {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  /// Fills the front of `out` from `offset`; fewer bytes than asked are no end unless it is 0.
  /// @throws Error(Resources)  naming file, offset and the system's reason
  virtual std::size_t read_at(std::uint64_t offset, std::span<char> out) = 0;
  virtual const std::string& name() const = 0;
};

/// A regular file; anything else (directory, pipe, device) is refused without waiting for it.
/// @throws Error(BadInput)  not a regular file
/// @throws Error(Resources)  the system's reason
std::unique_ptr<ByteSource> open_file(const std::string& path);

/// Bytes in memory, by the name given.
std::unique_ptr<ByteSource> in_memory(std::string bytes, std::string name = "memory");

}  // namespace engine
