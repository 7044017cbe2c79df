// The value of a state in a tree of thoughts: read from the text of the state evaluator, or from the model's
// probabilities.
//   paper    Wang et al. 2024 (SEED, arXiv:2406.18200): the written score. Hao et al. 2023 (RAP,
//            arXiv:2305.14992), section 3.2: the likelihood of an action as reward
//   differs  the likelihood is a mean over the tokens, so that long thoughts are not worse than short ones
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/decode/step/sequence.h"
#include "engine/reason/tot_prompts.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {

/// How a state is valued.
enum class ValueSource : std::uint8_t {
  Written,  ///< the score in the text of the evaluation, 0 to 10
  Expected,  ///< the mean of the scores 1 to 10, weighted by their probabilities at the place of the score
  Likelihood,  ///< 10 times the geometric mean of the probabilities of the thought's tokens
};
/// "written", "expected", "likelihood"
const char* name_of(ValueSource source);
/// The source of that name. @throws Error(Usage)  for an unknown name, with the list of names
ValueSource value_source(const std::string& name);
/// The names of all sources.
std::vector<std::string> value_source_names();

/// The prompt of an evaluation, and the bytes of it that are the thought to be valued.
struct EvaluationPrompt {
  std::string text;
  std::size_t thought_begin = 0,
              thought_end = 0;  // equal: the template does not contain the thought
  ScorePlace score = {};        // as TotPrompt::score
};

/// Fills the template of an evaluation. The thought is the last slot of the template that names a part of it.
/// @param slots    those of the task and of the thought
/// @throws Error(BadInput)  as fill_template()
EvaluationPrompt evaluation_prompt(const TotPrompt& prompt,
                                   const Slots& slots,
                                   const Slots& thought);

/// A written evaluation.
struct StateEvaluation {
  const EvaluationPrompt& prompt;
  const Sequence& end;       // prompt and evaluation, with their keys and values
  std::string text;          // the evaluation
  TextReading reading = {};  // by which the prompt was encoded
};

/// The value of the evaluated state, 0 to 10. Expected and Likelihood take one forward of `model`, which reuses
/// the keys and values of evaluation.end.
/// @return  nothing if the evaluation contains no score, or for Likelihood if the prompt contains no thought
/// @throws Error(Resources)  as LanguageModel::forward()
std::optional<double> state_value(ValueSource source,
                                  LanguageModel& model,
                                  const Tokenizer& tokenizer,
                                  const StateEvaluation& evaluation);

}  // namespace engine
