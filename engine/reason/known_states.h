// States of a tree of thoughts that are known to be good or bad, and how well the state evaluator separates them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/reason/questions.h"
#include "engine/reason/tot.h"

namespace engine {

/// A question with a chain of thoughts whose last thought is known to be good or bad.
struct KnownState {
  Record question;
  ThoughtChain chain;
  bool good = false;
};

/// States from the generated records that ask for an evaluation. Good is, for arith: a right step; for blocks: an
/// action that brings the goal nearer; for write: a plan or passage with a coherency score of at least 8.
/// @param task   arith, blocks or write
/// @param range  `count` is the number of states
/// @throws Error(Usage)  for a task without such records
std::vector<KnownState> known_states(const std::string& task, const QuestionRange& range);

/// An evaluated state.
struct EvaluatedState {
  std::string id;
  bool good = false;
  std::string text;                         // the evaluation
  std::optional<double> written, expected;  // as ValueSource; unset: the evaluation has no score
  std::optional<double> likelihood;
};

/// Evaluates states with the state evaluator of a search.
/// @param settings  its decoder, prompts, temperature of evaluations and seed
/// @return  one result per state; fewer if watch.stop ended the runs
/// @throws  as search()
std::vector<EvaluatedState> evaluate_states(Scheduler& scheduler,
                                            Model& model,
                                            std::span<const KnownState> states,
                                            const TotSettings& settings,
                                            const SchedulerWatch& watch = {});

/// The area under the ROC curve: the probability that a good state has a larger value than a bad one; equal values
/// count half. @return  nothing without a good or without a bad value
std::optional<double> area_under_curve(std::span<const double> good, std::span<const double> bad);

}  // namespace engine
