// Medusa's kind of pass; others use make_heads_pass().
#pragma once

#include <memory>

#include "engine/train/heads/pass.h"

namespace engine {

template <typename T>
std::unique_ptr<HeadsPass<T>> make_medusa_pass(const HeadsConfig& config,
                                               std::unique_ptr<LinearMath<T>> math,
                                               const TrainTable& table);

}  // namespace engine
