// Finds text that is written from right to left. The window draws tokens in their order, from left to right.
#pragma once

#include <cstddef>
#include <string_view>

#include "engine/event/event.h"

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

/// Returns true if a UTF-8 text has a character of a script that is written from right to left (Hebrew, Arabic, Syriac, Thaana, N'Ko, ...).
bool has_right_to_left(std::string_view text);

/// Searches the prompt and the answer of a run for such characters; update() reads only new tokens.
struct RightToLeft {
  engine::RunId run = 0;
  std::size_t n_read = 0;  // generated tokens
  bool found = false;
  /// @return  found
  bool update(const engine::Timeline& timeline, const engine::RunRecord& of);
};

}  // namespace ui
