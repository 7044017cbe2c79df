// Tells lanes of the same decoder apart by their models.
#pragma once

#include <span>
#include <string>

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

/// Returns what distinguishes the model of a run from those of the other runs with its decoder: the end of the name that differs ("cllm" of
/// "demo-cllm" beside "demo-target"), else scale and dtype. Empty if no other run has this decoder with another model.
std::string model_apart(const engine::Timeline& timeline,
                        std::span<const engine::RunRecord* const> runs,
                        const engine::RunRecord& run);

}  // namespace ui
