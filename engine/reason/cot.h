// Chain of thought: a rationale by any decoder, then the answer behind a trigger by plain decoding.
// FastCoT's rationale may end early; the approximate tokens of its window then stand for the rest.
//   paper     Zhang et al. 2023 (arXiv:2311.08263), algorithm 1; baselines Vanilla CoT and
//             Truncated-CoT(t) are the same with decoder ar, whole and cut after t tokens
//   lossless  the rationale's exact tokens; an answer that rests on approximate ones is not
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/reason/cot_prompts.h"
#include "engine/reason/cot_task.h"
#include "engine/run/scheduler.h"

namespace engine {

struct CotSettings {
  std::string decoder = "fastcot";
  OptionValues options;
  Sampling sampling;
  int max_tokens = 200;          // of a rationale; Truncated-CoT's t
  bool keep_approximate = true;  // in the prompt that asks for the answer
  int n_shots = -1;              // worked examples before each question; -1: as many as fit
  bool no_special = false;       // names of control symbols in a prompt are text
  std::vector<Exemplar> exemplars;
};

/// One question, answered.
struct CotItem {
  std::string id;
  std::string question;  // as it was asked
  std::string expected;  // the answer that is right
  std::string answer;    // what the model wrote behind the trigger
  bool correct = false;
  std::string exact;        // the rationale's verified text
  std::string approximate;  // what followed unverified, as far as it was used
  std::string text;         // all that was generated, in order: exact, approximate, trigger, answer
  int n_steps = 0;          // forwards of rationale and answer
  int n_tokens = 0;         // exact tokens of both
  int n_approximate = 0;
  double seconds = 0;                          // own compute of both, prompts included
  std::string stop_reason;                     // of the rationale
  std::map<std::string, std::int64_t> counts;  // of the rationale's run
};

struct CotReport {
  std::vector<CotItem> items;
  int n_shots = 0;
  bool complete = true;  // false: stopped early, items are those that were done
  int n_correct() const;
  double seconds() const;
  double accuracy() const { return items.empty() ? 0 : 1.0 * n_correct() / std::ssize(items); }
};

/// Most worked examples that leave every question room for its rationale and answer.
int shots_that_fit(const Model& model,
                   const CotSettings& settings,
                   std::span<const Question> questions);

/// Answers all questions, rationales first.
/// @throws Error(Usage)     if the decoder or its options cannot be
/// @throws Error(BadInput)  if a question does not fit the model's context
CotReport answer(Scheduler& scheduler,
                 const Model& model,
                 std::span<const Question> questions,
                 const CotSettings& settings,
                 const SchedulerWatch& watch = {});

/// What a bound on FastCoT's iterations costs.
struct BoundTrial {
  int bound = 0;  // 0: none
  double accuracy = 0;
  double seconds = 0;
};
struct BoundSearch {
  std::vector<BoundTrial> trials;  // as they were made, the first without a bound
  int bound = 0;                   // the smallest tried within the tolerance; 0: none is
};
/// The paper's iteration bound: on a sample, the smallest whose accuracy is at most `tolerance`
/// below that of whole rationales. A list of bounds, from 2 to 160 ever further apart, is tried up
/// to the first that keeps it, then what lies between that and the one before it, by halves. The
/// bound one smaller does not keep it; of still smaller ones some may, for accuracy need not rise
/// from each bound to the next.
/// @param settings  of decoder fastcot; stop and bound are set here
/// @param tell      called after each trial; false ends the search there
BoundSearch find_bound(Scheduler& scheduler,
                       const Model& model,
                       std::span<const Question> questions,
                       CotSettings settings,
                       double tolerance,
                       const std::function<bool(const BoundTrial&)>& tell,
                       const SchedulerWatch& watch = {});

}  // namespace engine
