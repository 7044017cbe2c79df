// How each proposal of a step was judged: both models' probabilities, the number drawn, in words.
#pragma once

#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "ui/shell/catalog.h"
#include "ui/widgets/theme.h"

namespace ui {

struct Verdict {
  int row = 0;    // of the step's tree
  int place = 1;  // of its token behind the text, from 1
  Mean mean = Mean::Draft;
  float q = -1, p = -1;           // -1: not told
  float keep = -1, uniform = -1;  // -1: nothing was drawn for it
  std::string words;              // "0.312 < 0.900: kept"
};

/// Of all proposals, in the order of the rows.
std::vector<Verdict> verdicts_of(const engine::Timeline& timeline,
                                 const engine::RunRecord& run,
                                 const engine::StepRecord& step);
/// Whether the run judges by numbers drawn; else it compares tokens.
bool draws_numbers(const engine::RunStarted& started);
/// Why a run's text need not have the distribution of plain decoding; empty: it has it.
/// @param decoder  the run's, or null where the catalog has none of its name
std::string why_not_lossless(const engine::RunStarted& started, const CatalogDecoder* decoder);
/// Why p of this step's proposals is not there; empty: it is, of one at least.
std::string why_no_p(const engine::RunStarted& started, const engine::StepRecord& step);

}  // namespace ui
