// The setup of recorded runs, in words.
#pragma once

#include <string>
#include <vector>

#include "ui/shell/catalog.h"

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

/// A row of a recorded setup.
struct RecordedRow {
  std::string label, value;
  std::string name{};  // of an option: its name in commands and files
  std::string help{};  // a tooltip: the options by these names, one a line
};

/// The setup of one run or of the lanes of a race.
struct RecordedSetup {
  std::string prompt;  // the prompt of the first run
  std::vector<RecordedRow>
      rows;  // decoders and their options, reading of the prompt, sampling, model
};

/// Returns an option's value in words: a negative value may have a special meaning, such as "the target's".
std::string value_words(const CatalogOption& option, const std::string& value);
/// Returns the same for an option by name; the value itself if the catalog does not list the option.
std::string value_words(const Catalog& catalog,
                        const std::string& decoder,
                        const std::string& option,
                        const std::string& value);

/// Describes the setup.
/// @param runs  one run, or the lanes of a race
RecordedSetup recorded_setup(const engine::Timeline& timeline,
                             const std::vector<const engine::RunRecord*>& runs,
                             const Catalog& catalog);

}  // namespace ui
