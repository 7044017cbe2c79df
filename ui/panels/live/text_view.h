// Draws the tokens of a run as cells, for the panels Text and Lanes.
#pragma once

#include "ui/shell/panel_state.h"

namespace engine {
struct RunRecord;
}

namespace ui {

struct Context;

/// The quantity that the colour of a committed cell shows.
enum class Lens { TokenStatus, Probability, Age, Cost, Agreement, Origin };
inline constexpr int kLenses = 6;

/// Height of a line of cells, px at 100 %.
inline constexpr float kTokenLine = 29;

/// The lens that the user chose. Key L changes it too.
struct TextView : PanelState {
  Lens lens = Lens::TokenStatus;
};

/// Draws the visible lines of a run's tokens in the current window and handles hovers and clicks. While the playhead follows, the window
/// scrolls to the end.
/// @param flowing      true: running text without padding and marks
/// @param with_prompt  true: the tokens of the prompt come first
void draw_token_text(Context& context,
                     const engine::RunRecord& run,
                     bool flowing,
                     bool with_prompt);

}  // namespace ui
