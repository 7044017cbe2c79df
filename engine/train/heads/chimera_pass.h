// Chimera's kind of pass; others use make_heads_pass().
#pragma once

#include <memory>
#include <vector>

#include "engine/train/heads/pass.h"

namespace engine {

template <typename T>
std::unique_ptr<HeadsPass<T>> make_chimera_pass(const HeadsConfig& config,
                                                const std::vector<float>& embedding,
                                                std::unique_ptr<LinearMath<T>> math,
                                                const TrainTable& table,
                                                int max_rows);

}  // namespace engine
