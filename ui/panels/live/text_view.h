// Draws the tokens of a run as cells, for the panels Text and Lanes.
#pragma once

#include <span>

#include "ui/prepare/tokens/lens.h"
#include "ui/shell/panel_state.h"

namespace engine {
struct RunRecord;
}

namespace ui {

struct Context;

/// Height of a line of cells, px at 100 %.
inline constexpr float kTokenLine = 29;

/// The lens that the user chose. Key L changes it too.
struct TextView : PanelState {
  Lens lens = Lens::TokenStatus;
};

/// The lanes with which a run's text is laid out, so that tokens with the same index have the same place.
struct AlignedWith {
  std::span<const engine::RunRecord* const> lanes;  // the run is among them
  // The run whose tokens are compared, and the index of the first generated token that differs, which gets a mark; -1: none
  const engine::RunRecord* reference = nullptr;
  int first_difference = -1;
};

/// Draws the visible lines of a run's tokens in the current window and handles hovers and clicks. Unless the playhead is paused, the window
/// scrolls to the end.
/// @param flowing      true: running text without padding and marks
/// @param with_prompt  true: the tokens of the prompt come first; not of aligned lanes
/// @param aligned      without lanes, the run is laid out alone
void draw_token_text(Context& context,
                     const engine::RunRecord& run,
                     bool flowing,
                     bool with_prompt,
                     const AlignedWith& aligned = {});

}  // namespace ui
