#include "engine/tokenizer/charsmap.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "engine/base/utf8.h"

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

// One unit of the array. Bit 31 set: the unit is a value. Otherwise bits 0-7 are the label, bit 8
// says that the node has a value, and bits 9 and 10-30 give the offset of the children.
struct Unit {
  std::uint32_t bits;
  bool has_leaf() const { return (bits >> 8) & 1; }
  std::uint32_t label() const { return bits & (kLeafBit | 0xff); }
  std::uint32_t offset() const { return (bits >> 10) << ((bits & (1u << 9)) >> 6); }
};

// Depth-first search of the units. Builders share equal subtrees, so a unit may have two parents,
// but no unit may be its own ancestor.
class TrieCheck {
 public:
  TrieCheck(std::string_view trie, std::string_view texts)
      : trie_(trie), texts_(texts), n_units_(trie.size() / 4), state_(n_units_, kUnseen) {}

  std::string fault() {
    std::string why = enter(0);
    while (why.empty() && !path_.empty()) {
      Visit& visit = path_.back();
      if (visit.next_child == 256) {
        leave();
        continue;
      }
      // The child of a unit for byte c is the unit with the index base ^ c.
      const std::uint32_t c = visit.next_child++;
      const std::size_t child = visit.base ^ c;
      if (unit(child).label() != c) continue;
      if (state_[child] == kOpen) {
        why = fmt::format("unit {} of the trie is its own descendant", child);
      } else if (state_[child] == kUnseen) {
        why = enter(child);
      } else {
        count_below(visit, state_[child]);
      }
    }
    return why;
  }

  /// The largest number of keys on one path of the trie. Valid only if fault() found none.
  int most_matches() const { return state_[0]; }

 private:
  // For each unit: kOpen while it is on the current path; afterwards the largest number of keys on
  // a path from it.
  static constexpr int kUnseen = -2, kOpen = -1;
  struct Visit {
    std::size_t at, base;
    std::uint32_t next_child = 0;
    int n_below = 0;
  };

  Unit unit(std::size_t i) const { return {u32_at(trie_, 4 * i)}; }
  static void count_below(Visit& visit, int n) { visit.n_below = std::max(visit.n_below, n); }

  std::string enter(std::size_t at) {
    const std::size_t base = at ^ unit(at).offset();
    if ((base | 0xff) >= n_units_) {
      return fmt::format("unit {} of the trie refers to unit {}, but there are {} units", at,
                         base | 0xff, n_units_);
    }
    if (unit(at).has_leaf()) {
      const std::uint32_t value = unit(base).bits & ~kLeafBit;
      if (value >= texts_.size()) {
        return fmt::format("a replacement at {} in a text of {} bytes", value, texts_.size());
      }
    }
    state_[at] = kOpen;
    path_.push_back({at, base});
    return "";
  }

  void leave() {
    const Visit done = path_.back();
    path_.pop_back();
    state_[done.at] = done.n_below + (unit(done.at).has_leaf() ? 1 : 0);
    if (!path_.empty()) count_below(path_.back(), state_[done.at]);
  }

  std::string_view trie_, texts_;
  std::size_t n_units_;
  std::vector<int> state_;
  std::vector<Visit> path_;
};

/// The longest key of the trie at the start of `text`.
struct KeyMatch {
  std::size_t n_bytes = 0;  // 0: no key begins the text
  std::uint32_t value = 0;  // offset of its replacement
};

KeyMatch longest_key(std::string_view trie, std::string_view text) {
  const auto unit = [&](std::size_t i) { return Unit{u32_at(trie, 4 * i)}; };
  KeyMatch match;
  std::size_t at = unit(0).offset();
  for (std::size_t i = 0; i < text.size(); i++) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    const Unit child = unit(at);
    if (child.label() != byte) break;
    at ^= child.offset();
    if (child.has_leaf()) match = {i + 1, unit(at).bits & ~kLeafBit};
  }
  return match;
}

}  // namespace

std::string normalized_by(std::string_view charsmap, std::string_view text) {
  if (charsmap.empty()) return std::string(text);
  const std::size_t n_bytes = u32_at(charsmap, 0);
  const std::string_view trie = charsmap.substr(4, n_bytes);
  const std::string_view replacements = charsmap.substr(4 + n_bytes);
  std::string out;
  while (!text.empty()) {
    const KeyMatch match = longest_key(trie, text);
    const std::size_t n =
        match.n_bytes > 0 ? match.n_bytes : static_cast<std::size_t>(utf8_at(text, 0).length);
    const std::string_view replacement = replacements.substr(match.value);
    out += match.n_bytes > 0 ? replacement.substr(0, replacement.find('\0')) : text.substr(0, n);
    text.remove_prefix(n);
  }
  return out;
}

std::string charsmap_fault(std::string_view charsmap) {
  if (charsmap.empty()) return "";
  if (charsmap.size() < 4) return fmt::format("{} bytes, the trie's size needs 4", charsmap.size());
  const std::size_t n_bytes = u32_at(charsmap, 0);
  const std::size_t n_left = charsmap.size() - 4;
  if (n_bytes == 0 || n_bytes % 4 != 0 || n_bytes >= n_left) {
    return fmt::format("a trie of {} bytes, but {} bytes are left", n_bytes, n_left);
  }
  const std::string_view texts = charsmap.substr(4 + n_bytes);
  if (texts.back() != '\0') return "replacements without a final NUL";
  TrieCheck check(charsmap.substr(4, n_bytes), texts);
  if (std::string fault = check.fault(); !fault.empty()) return fault;
  if (check.most_matches() > kMaxSharedPrefixes) {
    return fmt::format("a chain of {} keys, each a prefix of the next, more than {}",
                       check.most_matches(), kMaxSharedPrefixes);
  }
  return "";
}

}  // namespace engine
