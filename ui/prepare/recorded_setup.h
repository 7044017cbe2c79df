// What an opened recording says of how its runs were set up.
#pragma once

#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "ui/shell/catalog.h"
#include "ui/prepare/tokens/describe_place.h"

namespace ui {

struct RecordedSetup {
  std::string prompt;      // of the first run
  std::vector<Fact> rows;  // decoders and their options, sampling, model
};

/// An option's value as a person reads it: "the target's" where it is below 0 and means that.
std::string value_words(const CatalogOption& option, const std::string& value);
/// The same of a decoder's option; as it is where the catalog has none of these names.
std::string value_words(const Catalog& catalog,
                        const std::string& decoder,
                        const std::string& option,
                        const std::string& value);

/// Of one run, or of the lanes of a race.
/// @param runs  at least one
RecordedSetup recorded_setup(const engine::Timeline& timeline,
                             const std::vector<const engine::RunRecord*>& runs,
                             const Catalog& catalog);

}  // namespace ui
