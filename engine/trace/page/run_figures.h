// The results of a run as text, as the page and the report show them.
#pragma once

#include <string>

#include "engine/base/measure/spread.h"
#include "engine/event/timeline/timeline.h"

namespace engine {

/// Each is "-" if it is not known.
struct RunFigures {
  std::string model;              // name, dtype, scale and device; empty if unknown
  std::string end;                // the reason why the run ended, "failed" or "not finished"
  std::string tokens_per_step;    // "1.62"
  std::string tokens_per_second;  // "214.3"
  std::string speedup;            // "1.41x", or kOtherLoad
  std::string accepted;           // share of the proposals, "64 %"
  std::string identical;          // to plain decoding: "yes" or "no"
};

/// The results of a run.
RunFigures figures_of(const Timeline& timeline, const RunRecord& run);
/// Median and quartiles, "1.41x (1.38x to 1.44x)"; "-" without values.
/// @param format  of a value, for fmt
std::string spread_text(const Spread& spread, const char* format);

}  // namespace engine
