// The figures of a repeated race (engine/event/timeline/repeats.h) in words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/event/timeline/repeats.h"
#include "ui/prepare/figure.h"

namespace ui {

using engine::RepeatFigures;

/// Returns the number of runs that have ended; only then do the figures of repeats change.
std::size_t n_ended(const engine::Timeline& timeline);
/// Returns "median of 10 (q1 to q3)"; while repeats are missing "median of 3, 10 requested (q1 to q3)".
std::string repeat_words(const RepeatFigures& figures);
/// Returns "87.1 (85.0 to 88.2)"; "-" without values.
std::string spread_words(const engine::Spread& spread);
/// Returns "0.2 %": the stolen share of processor time; "-" if it is unknown.
std::string stolen_words(const RepeatFigures& figures);
/// Returns "1.4": the load average; "-" if it is unknown.
std::string load_words(const RepeatFigures& figures);
/// Returns the four spreads as figures with their formulas, and the load.
std::vector<Figure> figures_of(const RepeatFigures& figures);

}  // namespace ui
