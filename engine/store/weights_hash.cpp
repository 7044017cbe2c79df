#include "engine/store/weights_hash.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

namespace engine {
namespace {

/// Multiply-and-fold hash, eight bytes at a time. The product's upper half depends on all lower
/// bits; it is folded into the lower half before the next word.
class Hash {
 public:
  void add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9E37'79B9'7F4A'7C15;
    state_ ^= state_ >> 32;
  }
  void add(std::string_view bytes) {
    add(bytes.size());
    std::uint64_t word = 0;
    for (; bytes.size() >= sizeof(word); bytes.remove_prefix(sizeof(word))) {
      std::memcpy(&word, bytes.data(), sizeof(word));
      add(word);
    }
    word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    add(word);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xCBF2'9CE4'8422'2325;
};

}  // namespace

std::string weights_hash(const ModelFiles& files) {
  return weights_hash(*files.tensors, tensors_of(files.config));
}

std::string weights_hash(const TensorSource& tensors, const std::vector<TensorSpec>& specs) {
  Hash hash;
  for (const TensorSpec& spec : specs) {
    const StoredTensor tensor = tensors.stored(spec.name);
    hash.add(std::string_view(spec.name));
    hash.add(tensor.type);
    for (const std::int64_t n : tensor.shape) hash.add(static_cast<std::uint64_t>(n));
    hash.add(tensor.bytes);
  }
  tensors.check();
  return fmt::format("{:016x}", hash.value());
}

}  // namespace engine
