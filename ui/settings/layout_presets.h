// The layout presets of the screens Live and Compare, as data.
#pragma once

#include <span>
#include <string_view>

#include "ui/shell/layout.h"

namespace ui {

/// Returns all presets; the first is the default layout.
std::span<const LayoutPreset> layout_presets();
/// Returns the preset with this word; the default layout if none has it, because a newer program may have saved the word.
const LayoutPreset& preset_named(std::string_view word);

}  // namespace ui
