// The orders in which the n-gram pool can be listed.
#pragma once

namespace ui {

/// Newest first, most hits first, most tries first, or by the first token.
enum class PoolOrder { Newest, Hits, Tries, First };

}  // namespace ui
