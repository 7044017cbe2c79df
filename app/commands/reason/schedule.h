// `reason schedule`: the curves of SEED's Figures 5 to 7, from the simulator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace app {

/// Options of `reason schedule`.
struct ScheduleOptions {
  std::string recording;       // of trees of thoughts that SEED decoded; empty: drawn sequences
  double draft_ms = -1;        // of a draft; -1: the default, or the recording's mean
  double verify_ms = -1;       // of a verification; likewise
  double step_ms = -1;         // of a step of plain decoding; -1: as a verification
  std::vector<double> rights;  // probabilities that a drafted token is right; empty: default ones
  std::vector<int> branches = {1, 2, 3, 4, 5, 6};
  int n_drafters = 0;  // 0: one per branch
  int depth = 3, n_tokens = 100, n_levels = 20;
  std::uint64_t seed = 1;
  bool json = false, csv = false;
};

/// Runs the command. @return  the exit code
int reason_schedule(const ScheduleOptions& options);

}  // namespace app
