// What an opened recording says of how its runs were set up.
#pragma once

#include <string>
#include <vector>

#include "engine/event/timeline.h"
#include "ui/catalog.h"
#include "ui/prepare/describe_place.h"

namespace ui {

struct RecordedSetup {
  std::string prompt;      // of the first run
  std::vector<Fact> rows;  // decoders and their options, sampling, model
};

/// Of one run, or of the lanes of a race.
/// @param runs  at least one
RecordedSetup recorded_setup(const engine::Timeline& timeline,
                             const std::vector<const engine::RunRecord*>& runs,
                             const Catalog& catalog);

}  // namespace ui
