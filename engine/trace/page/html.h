// Exports a recording as one HTML page that plays it: lanes side by side, tokens in the colours of
// their origin, and the steps in words. The page has its data inside and loads nothing from a
// network. Arrow keys go from step to step; a screen reader gets each step as a sentence.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "engine/event/timeline/timeline.h"

namespace engine {

/// Options of the page.
struct HtmlOptions {
  /// Above this size the proposals of the steps are omitted: their tokens take most of the space.
  std::size_t max_bytes = 5'000'000;
};

/// A page.
struct HtmlPage {
  std::string text;
  bool has_proposals = true;  // false: they were omitted (HtmlOptions::max_bytes)
};

/// @param before_each  called before each run; may throw to cancel. May be empty
HtmlPage html_page(const Timeline& timeline,
                   const HtmlOptions& options = {},
                   const std::function<void()>& before_each = {});

}  // namespace engine
