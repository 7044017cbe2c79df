// Chain of thought: any decoder writes a rationale, then plain decoding writes the answer after a trigger.
// FastCoT may end the rationale early; the approximate tokens of its window then replace the rest.
//   paper     Zhang et al. 2023 (arXiv:2311.08263), algorithm 1. The baselines Vanilla CoT and
//             Truncated-CoT(t) use decoder ar, with whole rationales or with at most t tokens
//   lossless  the exact tokens of rationales; not answers after approximate tokens
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/reason/cot_prompts.h"
#include "engine/reason/cot_task.h"
#include "engine/run/prompt_text.h"
#include "engine/run/scheduler.h"

namespace engine {

/// The settings of answer().
struct CotSettings {
  std::string decoder = "fastcot";
  OptionValues options;
  Sampling sampling;
  int max_tokens = 200;           // limit of a rationale; t of Truncated-CoT
  bool keep_approximate = true;   // true: the answer's prompt contains the approximate tokens
  int n_shots = -1;               // few-shot examples before each question; -1: as many as fit
  bool no_special = false;        // reads names of control symbols in a prompt as text
  ChatMode chat = ChatMode::Raw;  // how examples and question are read; not Auto
  std::string system = {};        // the system message of ChatMode::Chat; empty: none
  std::vector<Exemplar> exemplars;
};

/// An answered question.
struct CotItem {
  std::string id;
  std::string question;  // the prompt without examples
  std::string expected;  // the right answer
  std::string answer;    // the model's text after the trigger
  bool correct = false;
  std::string exact;           // the exact text of the rationale
  std::string approximate;     // the approximate text that the answer's prompt contains after it
  std::string text;            // all generated text in order: exact, approximate, trigger, answer
  int n_steps = 0;             // target steps of rationale and answer
  int n_tokens = 0;            // exact tokens of rationale and answer
  int n_approximate = 0;       // tokens of `approximate`
  double seconds = 0;          // compute time of both runs, including prefill
  double prefill_seconds = 0;  // the prefills of both runs
  StepTimes times;             // the parts of the rest of `seconds`
  std::string stop_reason;     // of the rationale
  std::map<std::string, std::int64_t> counts;  // of the rationale's run
};

/// The result of answer().
struct CotReport {
  std::vector<CotItem> items;
  int n_shots = 0;                 // few-shot examples before each question
  bool complete = true;            // false: stopped early; `items` has the finished questions
  int n_correct() const;           ///< right answers
  double seconds() const;          ///< compute time of all items
  double prefill_seconds() const;  ///< prefills of all items
  StepTimes times() const;         ///< parts of the other compute time
  /// Right answers over items; 0 without items.
  double accuracy() const {
    return items.empty() ? 0 : static_cast<double>(n_correct()) / static_cast<double>(items.size());
  }
};

/// The largest number of few-shot examples with which every question, its rationale and its answer fit the
/// context.
int shots_that_fit(const Model& model,
                   const CotSettings& settings,
                   std::span<const Question> questions);

/// Answers all questions: first all rationales, then all answers.
/// @throws Error(Usage)     for an unknown decoder, or options that it refuses
/// @throws Error(BadInput)  if a question does not fit the model's context
CotReport answer(Scheduler& scheduler,
                 const Model& model,
                 std::span<const Question> questions,
                 const CotSettings& settings,
                 const SchedulerWatch& watch = {});

/// The result of one bound on FastCoT's iterations.
struct BoundTrial {
  int bound = 0;  // 0: no bound
  double accuracy = 0;
  double seconds = 0;  // compute time of all questions
};
/// The result of find_bound().
struct BoundSearch {
  std::vector<BoundTrial> trials;  // in the order in which they ran; the first has no bound
  int bound = 0;                   // the smallest accepted bound; 0: none
};
/// Finds the paper's iteration bound: the smallest one whose accuracy on a sample is at most
/// `tolerance` below that of whole rationales. Tries a list of bounds from 2 to 160 up to the first
/// accepted one, then bisects between it and the bound before it. The result is accepted, and the
/// bound smaller by one was tried and rejected. Still smaller bounds may be untried, and one of
/// them could be accepted, because accuracy need not increase with the bound.
/// @param settings  of decoder fastcot; the search sets stop and bound
/// @param on_trial  called after each trial; false ends the search
BoundSearch find_bound(Scheduler& scheduler,
                       const Model& model,
                       std::span<const Question> questions,
                       CotSettings settings,
                       double tolerance,
                       const std::function<bool(const BoundTrial&)>& on_trial,
                       const SchedulerWatch& watch = {});

}  // namespace engine
