// The stage in which a target writes the texts that others learn from, for trainings that need it.
#pragma once

#include <cstdint>
#include <string>

#include "app/cli/commands.h"

namespace engine {
enum class Existing : std::uint8_t;
struct TrainRequest;
}  // namespace engine

namespace app {

struct OwnTexts {
  bool wanted = false;    // by the recipe
  bool complete = false;  // false: stopped
  std::string path;
  std::string target;  // directory of the model whose texts they are; empty: it is not here
};

/// Of a recipe for a target or a draft: completes the texts it learns from, or takes --texts.
OwnTexts own_texts_of(const TrainOptions& options, const engine::TrainRequest& request);

/// The folder of the target whose texts a target or a draft learns from; empty if its recipe
/// uses none, or if the target is not on this machine.
std::string target_that_writes(const TrainOptions& options);

/// Contents that the output folder of a training may have.
engine::Existing may_hold(const TrainOptions& options);

}  // namespace app
