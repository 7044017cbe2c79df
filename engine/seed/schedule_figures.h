// The quantities of SEED's Figures 5 to 7, computed by the simulator (rounds_simulator.h).
//   paper    Wang et al. 2024 (arXiv:2406.18200): speed-up by acceptance rate (Figure 5), in
//            thoughts and evaluations (Figure 6), speed-up and use of the GPU by the number n of
//            branches (Figure 7)
//   differs  stages have fixed times: they do not compete for cores or memory, and a longer text
//            does not slow them. The use of the GPU is the share of time in which a model works;
//            the paper does not define its measure
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "engine/seed/rounds_simulator.h"

namespace engine {

/// Sequences with known rounds, in levels: a level begins when the previous one has ended, as in a
/// search.
struct ScriptedLevels {
  std::vector<std::vector<ScriptedRequest>> levels;
  std::int64_t n_proposed = 0, n_accepted = 0;  // draft tokens

  /// SEED's alpha for chains; 0 if nothing was proposed.
  double acceptance_rate() const;
};

/// Levels of sequences whose drafts are chains. Each drafted token is right with the same
/// probability if all tokens before it were right.
struct ChainTexts {
  double right = 0.5;  // that probability, 0 to 1
  int depth = 3;       // drafted tokens per round
  int n_tokens = 100;  // of a sequence
  int n_levels = 20;
  std::uint64_t seed = 1;
};
/// Draws the rounds of `n_texts` sequences per level. A sequence depends only on `texts`, its level
/// and its place, so more sequences begin with the same ones.
ScriptedLevels chain_levels(const ChainTexts& texts, int n_texts);

/// Durations of the stages. A draft takes `draft` for all its tokens.
struct FigureStages {
  Nanoseconds draft = 0, verify = 1;
  Nanoseconds step = 1;  // of plain decoding
};

/// One point of the figures.
struct ScheduleFigure {
  std::int64_t n_rounds = 0, n_tokens = 0;
  double speedup = 1;  // over its base: the same rounds, drafted and verified in turn
  double bound = 1;    // of that speed-up, as speedup_bound()
  double speedup_over_plain = 1;
  double target_busy = 0;    // share of the time in which the target works
  double drafters_busy = 0;  // the same of a drafter, mean over the drafters

  double tokens_per_round() const {
    return static_cast<double>(n_tokens) / static_cast<double>(n_rounds);
  }
};
/// Simulates the levels on n branches, first come, first served.
/// @param levels      at least one, none empty
/// @param n_drafters  drafts at the same time; 0, or more than branches: one per branch
/// @throws ContractError  without levels, or if no stage takes time
ScheduleFigure schedule_figure(const ScriptedLevels& levels,
                               const FigureStages& stages,
                               int n_branches,
                               int n_drafters);

/// The rounds of one kind of texts in a recorded search.
struct RecordedStage {
  std::string name;  // "thoughts" or "evaluations"
  ScriptedLevels texts;
  // Means of a draft and of a verification; a verification of several branches counts as one.
  Nanoseconds draft = 0, verify = 0;
};
/// The thoughts, with the states written for selected ones, and the evaluations of all trees of
/// thoughts that SEED decoded. Answers belong to neither.
/// @return  without a kind that has no verified round, or whose verifications took no time
std::vector<RecordedStage> recorded_stages(const Timeline& timeline);

}  // namespace engine
