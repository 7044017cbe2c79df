#include "engine/tokenizer/bpe/split_pattern.h"

#include <algorithm>
#include <chrono>
#include <limits>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "engine/base/refuse.h"
#include "engine/base/types.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/bpe/pattern_classes.h"

namespace engine {
namespace {

constexpr std::size_t kMaxPatternBytes = 64 << 10;
// A limit that well-behaved patterns do not reach: a match backtracks at most once over the text
// that it has read.
constexpr std::uint64_t kStepsOfMatch = 20'000, kStepsPerByte = 64;
constexpr std::size_t kJitStackBytes = 1 << 20;
constexpr std::uint32_t kHeapKiB = 1 << 18;
constexpr std::size_t kMaxReplacedBytes = 1 << 29;  // the model's offsets have 32 bits

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

/// PCRE2's buffers for a match. Each thread keeps one, because creating them takes longer than a
/// match.
struct Scratch {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);  // the offsets of the whole match
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, kJitStackBytes, nullptr);

  Scratch() {
    if (!data || !context) throw std::bad_alloc();
    pcre2_set_heap_limit(context, kHeapKiB);
    if (stack) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Scratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

Scratch& scratch() {
  thread_local Scratch own;
  return own;
}

/// Time limit for one text. Exceeded by a pattern that looks ahead to the end of the text at every
/// position, although each match has few steps.
class Deadline {
 public:
  explicit Deadline(std::size_t n_bytes)
      : end_(Clock::now() + std::chrono::seconds(20) + std::chrono::microseconds(20 * n_bytes)) {}
  bool is_over() const { return Clock::now() > end_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

}  // namespace

SplitPattern::SplitPattern(std::string_view pattern, std::uint32_t options, Origin origin)
    : origin_(std::make_shared<const Origin>(std::move(origin))) {
  int error = 0;
  PCRE2_SIZE at = 0;
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_code* const code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | options, &error, &at, context.get());
  if (!code) {
    refuse(origin_->file, origin_->field, "the pattern " + in_quotes(pattern),
           fmt::format("one that PCRE2 accepts ({} at byte {})", message_of(error), at));
  }
  code_.reset(code, [](const pcre2_code* c) { pcre2_code_free(const_cast<pcre2_code*>(c)); });
  pcre2_jit_compile(code,
                    PCRE2_JIT_COMPLETE);  // may fail; then pcre2_match() interprets the pattern
}

SplitPattern SplitPattern::regex(std::string_view pattern, Origin origin) {
  if (pattern.size() > kMaxPatternBytes)
    refuse(origin.file, origin.field, fmt::format("a pattern of {} bytes", pattern.size()),
           fmt::format("at most {}", kMaxPatternBytes));
  const std::optional<std::string> translated = pcre_pattern(pattern);
  if (!translated)
    refuse(origin.file, origin.field, "the pattern " + in_quotes(pattern),
           "one without a class in a class ([a[b]]) and without an intersection ([a&&b])");
  return {*translated, PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, std::move(origin)};
}

SplitPattern SplitPattern::literal(std::string_view text, Origin origin) {
  if (text.empty() || text.size() > kMaxPatternBytes)
    refuse(origin.file, origin.field, fmt::format("a text of {} bytes", text.size()),
           fmt::format("1 to {}", kMaxPatternBytes));
  return {text, PCRE2_LITERAL, std::move(origin)};
}

void SplitPattern::fail(const std::string& reason) const {
  refuse(origin_->file, origin_->field, "a pattern that this text cannot be split by: " + reason,
         "one that needs a number of steps proportional to the text");
}

// An empty match counts only if it does not touch the match before it, as in Oniguruma.
bool SplitPattern::match_from(std::string_view text, std::size_t from, Span& match) const {
  Scratch& own = scratch();
  const std::uint64_t steps = kStepsOfMatch + kStepsPerByte * text.size();
  pcre2_set_match_limit(own.context, static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                         steps, std::numeric_limits<std::uint32_t>::max())));
  const auto run = [&](std::uint32_t options) {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK | options, own.data, own.context);
  };
  int result = run(0);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = run(PCRE2_NO_JIT);
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0) fail(message_of(result));
  const PCRE2_SIZE* const offsets = pcre2_get_ovector_pointer(own.data);
  match = {offsets[0], std::max(offsets[0], offsets[1]), true};  // \K can move the start
  return true;
}

std::vector<SplitPattern::Span> SplitPattern::spans(std::string_view text) const {
  std::vector<Span> found;
  const Deadline deadline(text.size());
  std::size_t end = 0;  // of the last span
  Span match{0, 0, false};
  for (std::size_t from = 0; from <= text.size() && match_from(text, from, match);) {
    if (deadline.is_over()) fail("time limit exceeded");
    const bool is_empty = match.end == match.begin;
    from = match.end;
    if (is_empty)
      from += from < text.size() ? static_cast<std::size_t>(utf8_at(text, from).length) : 1;
    if (match.begin < end || (is_empty && match.begin == end && end > 0)) continue;
    if (match.begin > end) found.push_back({end, match.begin, false});
    found.push_back(match);
    end = match.end;
  }
  if (end < text.size()) found.push_back({end, text.size(), false});
  return found;
}

void SplitPattern::split(std::string_view text,
                         SplitBehaviour behaviour,
                         bool inverts,
                         std::vector<std::string_view>& pieces) const {
  std::vector<Span> found = spans(text);
  for (Span& span : found) span.is_match ^= inverts;
  const auto joins = [&](const Span& before, const Span& after) {
    switch (behaviour) {
      case SplitBehaviour::MergedWithPrevious:
        return after.is_match && !before.is_match;
      case SplitBehaviour::MergedWithNext:
        return before.is_match && !after.is_match;
      case SplitBehaviour::Contiguous:
        return before.is_match == after.is_match;
      default:
        return false;
    }
  };
  for (std::size_t i = 0; i < found.size();) {
    std::size_t last = i;
    while (last + 1 < found.size() && joins(found[last], found[last + 1])) last++;
    const std::string_view piece = text.substr(found[i].begin, found[last].end - found[i].begin);
    const bool is_kept = behaviour != SplitBehaviour::Removed || !found[i].is_match;
    if (is_kept && !piece.empty()) pieces.push_back(piece);
    i = last + 1;
  }
}

std::string SplitPattern::replaced(std::string_view text, std::string_view replacement) const {
  std::string out;
  for (const Span& span : spans(text)) {
    out += span.is_match ? replacement : text.substr(span.begin, span.end - span.begin);
    if (out.size() > kMaxReplacedBytes) fail("the replacements exceed 512 MB");
  }
  return out;
}

}  // namespace engine
