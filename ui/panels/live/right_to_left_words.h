// The notice that a text has letters which are written from right to left, for all panels that show texts of runs.
#pragma once

namespace engine {
struct RunRecord;
}

namespace ui {

struct Context;

/// Returns true if the prompt or the answer of the run has such letters. Reads only tokens that are new since the last call.
bool reads_right_to_left(Context& context, const engine::RunRecord& run);
/// Draws the notice; its tooltip says that tokens are shown in their order.
void right_to_left_words();

}  // namespace ui
