// A recording as a report in Markdown: for each race or run the prompt, the settings, a table of
// the lanes, and the text of the first one. The repeats of a race are one part, with medians.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "engine/event/timeline/timeline.h"

namespace engine {

/// Options of the report.
struct ReportOptions {
  bool prompt_text = false;            // include the prompts
  std::map<RunId, std::string> notes;  // the user's notes, shown with their runs
};

/// @param before_each  called before each race or run; may throw to cancel. May be empty
std::string markdown_report(const Timeline& timeline,
                            const ReportOptions& options = {},
                            const std::function<void()>& before_each = {});

}  // namespace engine
