// Settings of low-rank updates (low_rank.h).
#pragma once

#include <string>
#include <vector>

namespace engine {

/// The projections of a layer that may be updated: "q_proj", .., "down_proj".
std::vector<std::string> low_rank_targets();

/// The updates of a training.
struct LowRank {
  int rank = 0;                                           // 0: all weights are trained, no updates
  std::vector<std::string> targets = low_rank_targets();  // the projections that are updated
  std::string base;  // the base model's name in adapter_config.json; empty: the target's
};

}  // namespace engine
