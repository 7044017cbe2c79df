#include "engine/model/charsmap.h"

#include <cstdint>
#include <vector>

#include <fmt/format.h>

namespace engine {
namespace {

constexpr int kMaxSharedPrefixes = 32;
constexpr std::uint32_t kLeafBit = 1u << 31;

std::uint32_t u32_at(std::string_view bytes, std::size_t i) {
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < 4; k++) {
    value |= std::uint32_t{static_cast<unsigned char>(bytes[i + k])} << (8 * k);
  }
  return value;
}

// One unit of the array: bits 0-7 label, 8 has a value, 9 and 10-30 offset to the children; a unit
// with bit 31 is a value.
struct Unit {
  std::uint32_t bits;
  bool has_leaf() const { return (bits >> 8) & 1; }
  std::uint32_t label() const { return bits & (kLeafBit | 0xff); }
  std::uint32_t offset() const { return (bits >> 10) << ((bits & (1u << 9)) >> 6); }
};

class Walk {
 public:
  Walk(std::string_view trie, std::string_view texts)
      : trie_(trie), texts_(texts), n_units_(trie.size() / 4), seen_(n_units_) {}

  std::string fault() {
    // A node is the place its children are found from: child c stands at base ^ c.
    if (std::string why = visit(0, 0); !why.empty()) return why;
    while (!stack_.empty()) {
      const Node node = stack_.back();
      stack_.pop_back();
      for (std::uint32_t c = 0; c < 256; c++) {
        const std::size_t child = node.base ^ c;
        if (unit(child).label() != c) continue;
        if (std::string why = visit(child, node.n_matches); !why.empty()) return why;
      }
    }
    return "";
  }

 private:
  struct Node {
    std::size_t base;
    int n_matches;  // values on the path so far
  };

  Unit unit(std::size_t i) const { return {u32_at(trie_, 4 * i)}; }

  std::string visit(std::size_t at, int n_matches) {
    if (seen_[at]) return fmt::format("unit {} of the trie is reached twice", at);
    seen_[at] = true;
    const std::size_t base = at ^ unit(at).offset();
    if ((base | 0xff) >= n_units_) {
      return fmt::format("unit {} of the trie leads to {}, of {}", at, base | 0xff, n_units_);
    }
    if (unit(at).has_leaf()) {
      const std::uint32_t value = unit(base).bits & ~kLeafBit;
      if (value >= texts_.size()) {
        return fmt::format("a replacement at {} in a text of {} bytes", value, texts_.size());
      }
      if (++n_matches > kMaxSharedPrefixes) {
        return fmt::format("more than {} keys that begin each other", kMaxSharedPrefixes);
      }
    }
    stack_.push_back({base, n_matches});
    return "";
  }

  std::string_view trie_, texts_;
  std::size_t n_units_;
  std::vector<bool> seen_;
  std::vector<Node> stack_;
};

}  // namespace

std::string charsmap_fault(std::string_view charsmap) {
  if (charsmap.empty()) return "";
  if (charsmap.size() < 4) return fmt::format("{} bytes, the trie's size needs 4", charsmap.size());
  const std::size_t n_bytes = u32_at(charsmap, 0);
  const std::size_t n_left = charsmap.size() - 4;
  if (n_bytes == 0 || n_bytes % 4 != 0 || n_bytes >= n_left) {
    return fmt::format("a trie of {} bytes in the {} that are left", n_bytes, n_left);
  }
  const std::string_view texts = charsmap.substr(4 + n_bytes);
  if (texts.back() != '\0') return "replacements without a final NUL";
  return Walk(charsmap.substr(4, n_bytes), texts).fault();
}

}  // namespace engine
