#include "app/commands/lane_schedule.h"

namespace app {

std::vector<Turn> lane_turns(std::size_t first_prompt,
                             std::size_t n_texts,
                             int repeat,
                             const std::vector<bool>& at_once) {
  const auto n_repeats_before = static_cast<std::size_t>(repeat);
  const std::size_t text_of_all = (first_prompt / n_texts + n_repeats_before) % n_texts;
  std::vector<Turn> turns;
  for (std::size_t text = 0; text < n_texts; text++) {
    for (std::size_t i = 0; i < at_once.size(); i++) {
      const std::size_t lane = (i + first_prompt + text + n_repeats_before) % at_once.size();
      if (!at_once[lane]) {
        turns.push_back({lane, text, 1});
      } else if (text == text_of_all) {
        turns.push_back({lane, 0, n_texts});
      }
    }
  }
  return turns;
}

double decode_wall_ms(const std::map<std::string, double>& figures, std::size_t n_at_once) {
  const double beside = n_at_once > 1 ? figures.at("draft_prefill_ms") : 0;
  return figures.at("wall_ms") - figures.at("prefill_ms") + beside;
}

}  // namespace app
