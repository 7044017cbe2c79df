// A random transformer with a few thousand weights, large enough that its output depends on its
// input.
#pragma once

#include <memory>

#include "engine/model/model.h"
#include "kernels/device.h"

namespace engine::test {

/// The shape: grouped-query attention, untied embeddings, 24 tokens, 2 layers.
ModelConfig tiny_config();
std::unique_ptr<Model> tiny_transformer(kernels::Device& device,
                                        kernels::DType dtype,
                                        std::uint64_t seed,
                                        const ModelConfig& config = tiny_config(),
                                        const ModelScale& scale = {});

/// A draft model: the target's embedding and first layer, so that both sometimes agree.
std::unique_ptr<Model> tiny_draft(kernels::Device& device,
                                  kernels::DType dtype,
                                  std::uint64_t seed);

}  // namespace engine::test
