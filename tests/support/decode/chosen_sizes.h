// Sizes on "auto" in tests: a control with known costs, and whether the choices of enumerated runs vary.
#pragma once

#include <algorithm>
#include <map>
#include <set>

#include "engine/decode/control/step_control.h"
#include "tests/support/decode/run_decoder.h"

namespace engine::test {

/// A control without statistics, on a machine where each further row costs this share of a plain step.
inline StepControl control_of(double row_share) {
  return StepControl(
      CostModel([row_share](int rows) { return 10 * (1 + row_share * (rows - 1)); }));
}

/// A machine on which rows are free up to a number, and then cost half a plain step each.
inline StepControl free_rows(int n_free) {
  return StepControl(
      CostModel([n_free](int rows) { return 10 + 5.0 * std::max(0, rows - n_free); }));
}

/// The sizes that runs of one prompt with one cost per row chose, by the number of tokens written
/// before the step.
class ChosenSizes {
 public:
  void add(const Outcome& outcome) {
    std::size_t n_written = 0;
    for (const Event& event : outcome.events) {
      if (const auto* drafted = std::get_if<Drafted>(&event)) {
        if (drafted->decision.is_chosen()) sizes_[n_written].insert(drafted->decision.size);
      } else if (const auto* committed = std::get_if<Committed>(&event)) {
        n_written += committed->tokens.size();
      }
    }
  }
  /// True if a size depends on how the steps before it ended.
  bool vary() const {
    return std::ranges::any_of(sizes_, [](const auto& at) { return at.second.size() > 1; });
  }

 private:
  std::map<std::size_t, std::set<int>> sizes_;
};

}  // namespace engine::test
