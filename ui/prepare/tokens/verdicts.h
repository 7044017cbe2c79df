// The verification result of each proposal of a step: both probabilities, the uniform draw, and the result in words.
#pragma once

#include <string>
#include <vector>

#include "ui/widgets/theme.h"

namespace engine {
class Timeline;
struct RunRecord;
struct RunStarted;
struct StepRecord;
struct TokenTree;
}  // namespace engine

namespace ui {

struct CatalogDecoder;

/// A verification result.
struct Verdict {
  int row = 0;    // row of the step's tree
  int place = 1;  // distance from the prefix; 1 is the next position
  Mean mean = Mean::Draft;
  float q = -1, p = -1;           // probabilities under draft and target; -1: not recorded
  float keep = -1, uniform = -1;  // acceptance probability and draw; -1: no draw
  std::string words;              // the result: "0.312 < 0.900: accepted"
};

/// Returns the results of all proposals, in the order of the rows.
std::vector<Verdict> verdicts_of(const engine::Timeline& timeline,
                                 const engine::RunRecord& run,
                                 const engine::StepRecord& step);
/// Returns true if the run verifies by rejection sampling; if not, it compares tokens.
bool uses_rejection(const engine::RunStarted& started);
/// Returns why a run's output may not have the distribution of plain decoding; empty if it has.
/// @param decoder  the run's decoder, or null if the catalog does not list it
std::string why_not_lossless(const engine::RunStarted& started, const CatalogDecoder* decoder);
/// Returns why p is missing for all proposals of a step; empty if at least one has it.
std::string why_no_p(const engine::RunStarted& started, const engine::StepRecord& step);

}  // namespace ui
