#include "ui/prepare/sets/repeats.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"

namespace ui {

std::size_t n_ended(const engine::Timeline& timeline) {
  return static_cast<std::size_t>(std::ranges::count_if(timeline.runs(), &engine::RunRecord::over));
}

std::string repeat_words(const RepeatFigures& figures) {
  return figures.n_done == figures.n_all
             ? fmt::format("median of {} (q1 to q3)", figures.n_all)
             : fmt::format("median of {}, {} requested (q1 to q3)", figures.n_done, figures.n_all);
}

std::string spread_words(const engine::Spread& spread) {
  if (spread.n == 0) return "-";
  return fmt::format("{} ({} to {})", short_number(spread.median), short_number(spread.q1),
                     short_number(spread.q3));
}

std::string stolen_words(const RepeatFigures& figures) {
  return figures.stolen_percent >= 0 ? fmt::format("{:.1f} %", figures.stolen_percent) : "-";
}

std::string load_words(const RepeatFigures& figures) {
  return figures.load_average >= 0 ? fmt::format("{:.1f}", figures.load_average) : "-";
}

std::vector<Figure> figures_of(const RepeatFigures& figures) {
  const auto figure = [&](const char* label, const engine::Spread& spread, const char* formula) {
    return Figure{label, spread_words(spread),
                  std::string(formula) + ", of each repeat; quartiles interpolate linearly",
                  fmt::format("{} of {} repeats", spread.n, figures.n_all), Truth::Derived};
  };
  return {figure("tokens / s", figures.tokens_per_second,
                 "committed tokens / own compute of the steps"),
          figure("ms / step", figures.step_ms, "own compute of the steps / steps"),
          figure("tokens / step", figures.tokens_per_step, "committed tokens / steps"),
          figure("speed-up", figures.speedup,
                 "own compute of plain decoding in the same repeat / own compute"),
          {"machine", fmt::format("stolen {}, load {}", stolen_words(figures), load_words(figures)),
           "share of processor time that the hypervisor gave to other machines, and load average "
           "over a minute; means over the repeats",
           "samples of the machine during the repeats", Truth::Measured}};
}

}  // namespace ui
