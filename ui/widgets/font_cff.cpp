#include "ui/widgets/font_cff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace ui {
namespace {

// The most operators and numbers of a glyph, and of all glyphs. Chinese fonts have some 10 million.
constexpr std::int64_t kMostOfGlyph = 200'000, kMostOfAll = 100'000'000;

/// Reads bytes as the reader does: after the last one follow zeros.
class CffBytes {
 public:
  explicit CffBytes(std::string_view bytes = {}) : left_(bytes) {}
  bool done() const { return left_.empty(); }
  int peek() const { return done() ? 0 : static_cast<unsigned char>(left_[0]); }
  int next() {
    const int value = peek();
    if (!done()) left_.remove_prefix(1);
    return value;
  }
  std::int64_t number(int n_bytes) {
    std::int64_t value = 0;
    for (int i = 0; i < n_bytes; ++i) value = value << 8 | next();
    return value;
  }
  /// @return false if fewer bytes are left
  bool skip(std::size_t n) {
    const bool has_all = n <= left_.size();
    left_.remove_prefix(std::min(n, left_.size()));
    return has_all;
  }
  /// Reads the rest of a number that begins with the byte `first`, at least 32 and not 255.
  int short_number(int first) {
    if (first <= 246) return first - 139;
    if (first <= 250) return (first - 247) * 256 + next() + 108;
    return -(first - 251) * 256 - next() - 108;
  }

 private:
  std::string_view left_;
};

using CffItems = std::vector<std::string_view>;

/// A list of byte strings, an INDEX, and where the next one begins.
struct CffIndex {
  CffItems items;
  std::size_t end = 0;
};

// Returns the list at a place; nullopt if it is not inside the table.
std::optional<CffIndex> index_at(std::string_view cff, std::size_t at) {
  if (at + 2 > cff.size()) return std::nullopt;
  CffBytes bytes(cff.substr(at));
  const auto n = static_cast<std::size_t>(bytes.number(2));
  CffIndex index{{}, at + 2};
  if (n == 0) return index;
  const int wide = bytes.next();
  if (wide < 1 || wide > 4) return std::nullopt;
  // Offsets count from 1.
  const std::size_t before = at + 2 + (n + 1) * static_cast<std::size_t>(wide);
  std::size_t last = 1;
  for (std::size_t i = 0; i <= n; ++i) {
    const auto offset = static_cast<std::size_t>(bytes.number(wide));
    if (offset < last || before + offset > cff.size()) return std::nullopt;
    if (i > 0) index.items.push_back(cff.substr(before + last, offset - last));
    last = offset;
  }
  index.end = before + last;
  return index;
}

using CffNumbers = std::vector<std::int32_t>;

// Returns the numbers before an operator of a dictionary, none if it lacks the operator; nullopt if they cannot be read.
std::optional<CffNumbers> operands_of(std::string_view dictionary, int wanted) {
  constexpr int kReal = 30, kShort = 28, kLong = 29, kEscape = 12;
  CffBytes bytes(dictionary);
  while (!bytes.done()) {
    CffNumbers numbers;
    bool are_whole = true;
    while (bytes.peek() >= kShort) {
      const int first = bytes.next();
      if (first == 31 || first == 255) return std::nullopt;
      if (first == kReal) {
        are_whole = false;
        for (int pair = 0; !bytes.done() && (pair & 0xF) != 0xF && pair >> 4 != 0xF;)
          pair = bytes.next();
      } else {
        numbers.push_back(first == kShort  ? static_cast<std::int32_t>(bytes.number(2))
                          : first == kLong ? static_cast<std::int32_t>(bytes.number(4))
                                           : bytes.short_number(first));
      }
    }
    int found = bytes.next();
    if (found == kEscape) found = bytes.next() | 0x100;
    if (found == wanted) return are_whole ? std::optional(numbers) : std::nullopt;
  }
  return CffNumbers{};
}

// Returns the first number before an operator, `missing` if there is none; nullopt if it cannot be read.
std::optional<std::int32_t> operand_of(std::string_view dictionary,
                                       int wanted,
                                       std::int32_t missing) {
  const auto numbers = operands_of(dictionary, wanted);
  if (!numbers) return std::nullopt;
  return numbers->empty() ? missing : numbers->front();
}

/// Runs the programs of glyphs like the reader, and follows the points that they draw.
class CffOutlines {
 public:
  explicit CffOutlines(int most) : most_(static_cast<float>(most)) {}

  /// Reads the lists of the table. @return false if the reader would leave the table
  bool load(std::string_view cff, std::uint32_t n_glyphs) {
    constexpr int kCharStrings = 17, kType = 0x106, kFontDicts = 0x124, kSelect = 0x125;
    if (cff.size() < 4) return false;
    const auto names = index_at(cff, static_cast<unsigned char>(cff[2]));
    const auto fonts = names ? index_at(cff, names->end) : std::nullopt;
    const auto texts = fonts ? index_at(cff, fonts->end) : std::nullopt;
    auto common = texts ? index_at(cff, texts->end) : std::nullopt;
    if (!common || fonts->items.empty()) return false;
    common_ = std::move(common->items);
    const std::string_view top = fonts->items[0];
    const auto type = operand_of(top, kType, 2), place = operand_of(top, kCharStrings, 0),
               dicts = operand_of(top, kFontDicts, 0), select = operand_of(top, kSelect, 0);
    if (type != 2 || !place || *place <= 0 || !dicts || *dicts < 0 || !select || *select < 0)
      return false;
    auto glyphs = index_at(cff, static_cast<std::size_t>(*place));
    if (!glyphs || glyphs->items.size() < n_glyphs) return false;
    glyphs_ = std::move(glyphs->items);
    own_.resize(1);
    if (!take_subroutines(cff, top, own_[0])) return false;
    if (*dicts == 0) return true;
    const auto list = index_at(cff, static_cast<std::size_t>(*dicts));
    if (!list || *select == 0 || static_cast<std::size_t>(*select) >= cff.size()) return false;
    own_.assign(list->items.size(), {});
    for (std::size_t i = 0; i < own_.size(); ++i)
      if (!take_subroutines(cff, list->items[i], own_[i])) return false;
    return take_selection(cff.substr(static_cast<std::size_t>(*select)), n_glyphs);
  }

  /// Returns true if drawing the glyph ends, and it is blank or not too large.
  bool is_safe(std::size_t glyph) {
    own_of_glyph_ = &own_[selected_.empty() ? 0 : selected_[glyph]];
    x_ = y_ = 0;
    low_x_ = low_y_ = std::numeric_limits<float>::max();
    high_x_ = high_y_ = std::numeric_limits<float>::lowest();
    is_inside_ = true;
    n_left_ = std::min(kMostOfGlyph, kMostOfAll - n_run_);
    const std::int64_t n_given = n_left_;
    const bool is_drawn = run(glyphs_[glyph]);
    n_run_ += n_given - n_left_;
    if (n_left_ <= 0 || !is_inside_) return false;
    if (!is_drawn) return true;
    const float wide = high_x_ - low_x_, high = high_y_ - low_y_;
    if (wide > most_ || high > most_) return false;
    // Drawn glyphs share one texture, which has room for few that are this large.
    if (std::max(wide, high) > most_ / 8) large_area_ += double{wide} * high;
    return large_area_ <= 16.0 * most_ * most_;
  }

 private:
  // Reads the subroutines that a dictionary of a font names.
  static bool take_subroutines(std::string_view cff, std::string_view dictionary, CffItems& to) {
    constexpr int kPrivate = 18, kSubroutines = 19;
    const auto place = operands_of(dictionary, kPrivate);
    if (!place) return false;
    if (place->size() < 2 || (*place)[0] == 0 || (*place)[1] == 0) return true;
    if ((*place)[0] < 0 || (*place)[1] < 0) return false;
    const auto n_bytes = static_cast<std::size_t>((*place)[0]),
               at = static_cast<std::size_t>((*place)[1]);
    if (at + n_bytes > cff.size()) return false;
    const auto offset = operand_of(cff.substr(at, n_bytes), kSubroutines, 0);
    if (!offset || *offset < 0) return false;
    if (*offset == 0) return true;
    auto index = index_at(cff, at + static_cast<std::size_t>(*offset));
    if (index) to = std::move(index->items);
    return index.has_value();
  }

  // Reads which of the dictionaries each glyph uses.
  bool take_selection(std::string_view selection, std::uint32_t n_glyphs) {
    CffBytes bytes(selection);
    const int format = bytes.next();
    if (format == 0 && selection.size() > n_glyphs) {
      for (std::uint32_t i = 0; i < n_glyphs; ++i)
        selected_.push_back(static_cast<std::size_t>(bytes.next()));
    } else if (format == 3) {
      const auto n_ranges = static_cast<std::size_t>(bytes.number(2));
      std::int64_t first = bytes.number(2);
      if (first != 0 || selection.size() < 5 + 3 * n_ranges) return false;
      for (std::size_t i = 0; i < n_ranges; ++i) {
        const auto dictionary = static_cast<std::size_t>(bytes.next());
        const std::int64_t end = bytes.number(2);
        if (end <= first) return false;
        selected_.insert(selected_.end(), static_cast<std::size_t>(end - first), dictionary);
        first = end;
      }
    }
    return selected_.size() >= n_glyphs &&
           std::ranges::all_of(selected_, [&](std::size_t one) { return one < own_.size(); });
  }

  void by(float dx, float dy) {
    x_ += dx;
    y_ += dy;
    constexpr float kMost = 32767;  // the reader keeps points in 16 bits
    is_inside_ = is_inside_ && std::abs(x_) <= kMost && std::abs(y_) <= kMost;
    low_x_ = std::min(low_x_, x_), high_x_ = std::max(high_x_, x_);
    low_y_ = std::min(low_y_, y_), high_y_ = std::max(high_y_, y_);
  }
  void curve(float dx1, float dy1, float dx2, float dy2, float dx3, float dy3) {
    by(dx1, dy1);
    by(dx2, dy2);
    by(dx3, dy3);
  }

  // Draws the numbers on the stack by an operator of lines or curves. @return false if there are too few
  bool draw(int op) {
    const float* s = stack_.data();
    const int n = n_stack_;
    int i = 0;
    switch (op) {
      case 0x15:  // rmoveto
        if (n < 2) return false;
        by(s[n - 2], s[n - 1]);
        return true;
      case 0x04:  // vmoveto
        if (n < 1) return false;
        by(0, s[n - 1]);
        return true;
      case 0x16:  // hmoveto
        if (n < 1) return false;
        by(s[n - 1], 0);
        return true;
      case 0x05:  // rlineto
        if (n < 2) return false;
        for (; i + 1 < n; i += 2) by(s[i], s[i + 1]);
        return true;
      case 0x06:  // hlineto
      case 0x07:  // vlineto
        if (n < 1) return false;
        for (bool across = op == 0x06; i < n; ++i, across = !across)
          by(across ? s[i] : 0, across ? 0 : s[i]);
        return true;
      case 0x1E:  // vhcurveto
      case 0x1F:  // hvcurveto
        if (n < 4) return false;
        for (bool across = op == 0x1F; i + 3 < n; i += 4, across = !across) {
          const float last = n - i == 5 ? s[i + 4] : 0;
          if (across)
            curve(s[i], 0, s[i + 1], s[i + 2], last, s[i + 3]);
          else
            curve(0, s[i], s[i + 1], s[i + 2], s[i + 3], last);
        }
        return true;
      case 0x08:  // rrcurveto
      case 0x18:  // rcurveline
        if (n < (op == 0x08 ? 6 : 8)) return false;
        for (const int end = op == 0x08 ? n : n - 2; i + 5 < end; i += 6)
          curve(s[i], s[i + 1], s[i + 2], s[i + 3], s[i + 4], s[i + 5]);
        if (op == 0x08) return true;
        if (i + 1 >= n) return false;
        by(s[i], s[i + 1]);
        return true;
      case 0x19:  // rlinecurve
        if (n < 8) return false;
        for (; i + 1 < n - 6; i += 2) by(s[i], s[i + 1]);
        if (i + 5 >= n) return false;
        curve(s[i], s[i + 1], s[i + 2], s[i + 3], s[i + 4], s[i + 5]);
        return true;
      case 0x1A:    // vvcurveto
      case 0x1B: {  // hhcurveto
        if (n < 4) return false;
        float f = n & 1 ? s[i++] : 0;
        for (; i + 3 < n; i += 4, f = 0) {
          if (op == 0x1B)
            curve(s[i], f, s[i + 1], s[i + 2], s[i + 3], 0);
          else
            curve(f, s[i], s[i + 1], s[i + 2], 0, s[i + 3]);
        }
        return true;
      }
      default:
        return false;
    }
  }

  // Draws two curves by an operator of two bytes. @return false if the operator is unknown or there are too few numbers
  bool draw_flex(int op) {
    const float* s = stack_.data();
    const int n = n_stack_;
    switch (op) {
      case 0x22:  // hflex
        if (n < 7) return false;
        curve(s[0], 0, s[1], s[2], s[3], 0);
        curve(s[4], 0, s[5], -s[2], s[6], 0);
        return true;
      case 0x23:  // flex
        if (n < 13) return false;
        curve(s[0], s[1], s[2], s[3], s[4], s[5]);
        curve(s[6], s[7], s[8], s[9], s[10], s[11]);
        return true;
      case 0x24:  // hflex1
        if (n < 9) return false;
        curve(s[0], s[1], s[2], s[3], s[4], 0);
        curve(s[5], 0, s[6], s[7], s[8], -(s[1] + s[3] + s[7]));
        return true;
      case 0x25: {  // flex1
        if (n < 11) return false;
        const float dx = s[0] + s[2] + s[4] + s[6] + s[8], dy = s[1] + s[3] + s[5] + s[7] + s[9];
        const bool is_wide = std::abs(dx) > std::abs(dy);
        curve(s[0], s[1], s[2], s[3], s[4], s[5]);
        curve(s[6], s[7], s[8], s[9], is_wide ? s[10] : -dx, is_wide ? -dy : s[10]);
        return true;
      }
      default:
        return false;
    }
  }

  // Returns the subroutine with a number; empty if there is none.
  static std::string_view subroutine(const CffItems& items, float number) {
    const auto n = static_cast<std::int64_t>(items.size());
    const std::int64_t bias = n >= 33'900 ? 32'768 : n >= 1'240 ? 1'131 : 107;
    const std::int64_t at = static_cast<std::int64_t>(number) + bias;
    return at < 0 || at >= n ? std::string_view() : items[static_cast<std::size_t>(at)];
  }

  // Runs the program of a glyph. @return false if the reader gives up, so that the glyph is blank
  bool run(std::string_view program) {
    constexpr int kCall = 0x0A, kReturn = 0x0B, kEscape = 0x0C, kEnd = 0x0E, kHintMask = 0x13,
                  kCounterMask = 0x14, kShort = 0x1C, kCallCommon = 0x1D, kFixed = 0xFF;
    constexpr std::size_t kMostCalls = 10;
    std::vector<CffBytes> callers;
    CffBytes bytes(program);
    bool in_header = true;
    std::size_t n_mask_bits = 0;
    n_stack_ = 0;
    while (!bytes.done() && is_inside_ && --n_left_ > 0) {
      const int op = bytes.next();
      if (op >= 32 || op == kShort) {
        if (n_stack_ == static_cast<int>(stack_.size())) return false;
        stack_[static_cast<std::size_t>(n_stack_++)] =
            op == kFixed ? static_cast<float>(static_cast<std::int32_t>(bytes.number(4))) / 0x10000
            : op == kShort ? static_cast<float>(static_cast<std::int16_t>(bytes.number(2)))
                           : static_cast<float>(bytes.short_number(op));
        continue;
      }
      switch (op) {
        case kHintMask:
        case kCounterMask:
          if (in_header) n_mask_bits += static_cast<std::size_t>(n_stack_ / 2);
          in_header = false;
          is_inside_ = bytes.skip((n_mask_bits + 7) / 8);
          break;
        case 0x01:  // hstem, vstem, hstemhm, vstemhm
        case 0x03:
        case 0x12:
        case 0x17:
          n_mask_bits += static_cast<std::size_t>(n_stack_ / 2);
          break;
        case kCall:
        case kCallCommon: {
          if (n_stack_ < 1 || callers.size() == kMostCalls) return false;
          callers.push_back(bytes);
          const float number = stack_[static_cast<std::size_t>(--n_stack_)];
          const std::string_view called =
              subroutine(op == kCall ? *own_of_glyph_ : common_, number);
          if (called.empty()) return false;
          bytes = CffBytes(called);
          continue;
        }
        case kReturn:
          if (callers.empty()) return false;
          bytes = callers.back();
          callers.pop_back();
          continue;
        case kEnd:
          return true;
        case kEscape:
          if (!draw_flex(bytes.next())) return false;
          break;
        default:
          if (op == 0x15 || op == 0x04 || op == 0x16) in_header = false;
          if (!draw(op)) return false;
      }
      n_stack_ = 0;
    }
    return false;
  }

  float most_;             // the most that a glyph may extend
  double large_area_ = 0;  // of large glyphs so far
  CffItems common_, glyphs_;
  std::vector<CffItems> own_;          // the subroutines of each dictionary
  std::vector<std::size_t> selected_;  // the dictionary of each glyph; empty: the first one
  const CffItems* own_of_glyph_ = nullptr;
  std::array<float, 48> stack_{};
  int n_stack_ = 0;
  float x_ = 0, y_ = 0, low_x_ = 0, low_y_ = 0, high_x_ = 0, high_y_ = 0;
  bool is_inside_ = true;                // every point and byte so far
  std::int64_t n_left_ = 0, n_run_ = 0;  // operators and numbers
};

}  // namespace

bool are_cff_outlines_safe(std::string_view cff, std::uint32_t n_glyphs, int most) {
  CffOutlines outlines(most);
  if (!outlines.load(cff, n_glyphs)) return false;
  for (std::uint32_t glyph = 0; glyph < n_glyphs; ++glyph)
    if (!outlines.is_safe(glyph)) return false;
  return true;
}

}  // namespace ui
