// The scatter of speed-up against acceptance in the panel Prompts: a point for each prompt and lane.
#pragma once

#include <optional>
#include <vector>

#include "ui/prepare/sets/prompt_results.h"

namespace ui {

/// Draws the scatter into the rest of the panel. Each lane has a colour and a marker of its own; the tooltip names the prompt.
/// @param shown  the run that the window shows; its point has a ring
/// @return  the index of the prompt's row that was clicked
std::optional<std::size_t> draw_scatter(const std::vector<PromptResult>& prompts,
                                        engine::RunId shown);

}  // namespace ui
