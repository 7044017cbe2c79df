#include "engine/decode/control/likely_tree.h"

namespace engine {

LikelyKnowledge::LikelyKnowledge(std::span<const double> priors) {
  for (const double prior : priors) rates_.emplace_back(prior);
}

/// @param right  of the nodes, descending
SizeDecision LikelyKnowledge::choose_size(std::span<const double> right, ControlUse& control) {
  std::vector<SizePlan> plans{{1, 1, control->ms(1)}};
  for (const double p : right) {
    const double tokens = plans.back().tokens + p;
    plans.push_back({tokens, tokens, control->ms(static_cast<int>(plans.size()) + 1)});
  }
  SizeChoice choice = chooser_.choose(plans);
  choice.index = control.decide_if_repeatable(choice.index, plans.size());
  return decision_of(choice, plans, static_cast<int>(choice.index));
}

void LikelyKnowledge::came(int n_tokens, const SizeDecision& decision) {
  for (Rate& rate : rates_) rate.fade();
  chooser_.came(n_tokens, decision.ms / decision.plain_ms);
}

}  // namespace engine
