// Exports a recording as one HTML page that plays it: lanes side by side, tokens in the colours of
// their origin, and the steps in words. The page has its data inside and loads nothing from a
// network. Arrow keys go from step to step; a screen reader gets each step as a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/event/timeline/timeline.h"

namespace engine {

/// The default limit on the size of a page, bytes.
inline constexpr std::size_t kMaxPageBytes = 5'000'000;

/// Options of the page.
struct HtmlOptions {
  /// Above this size the proposals of the steps are omitted, which take most of the space, and then
  /// races and single runs that do not fit. 0: no limit.
  std::size_t max_bytes = kMaxPageBytes;
  bool prompt_text = false;  // include the prompts
  /// Tells the user how to get the whole page; appended to messages.
  std::string to_get_all;
};

/// A page.
struct HtmlPage {
  std::string text;
  bool has_proposals = true;    // false: they were omitted
  std::int64_t n_left_out = 0;  // omitted runs
  std::string notice;           // names the omitted parts, then `to_get_all`; empty: none
};

/// @param before_each  called before each run; may throw to cancel. May be empty
/// @throws Error(Usage)  no race fits into options.max_bytes
HtmlPage html_page(const Timeline& timeline,
                   const HtmlOptions& options = {},
                   const std::function<void()>& before_each = {});

}  // namespace engine
