// Few-shot prompts of chain of thought, in Active-Prompt's form: question, rationale, trigger,
// answer, empty line; and the question itself.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace engine {

/// Put behind a rationale, it asks for the answer (FastCoT, algorithm 1).
inline constexpr const char* kTrigger = " So the answer is";

/// One worked example, written for this project (assets/prompts/cot/).
struct Exemplar {
  std::string question;   // ends in "\nA:"
  std::string rationale;  // sentences
  std::string answer;     // "(B)", "yes"
};

/// @param path  JSON lines {"question", "rationale", "answer"}
/// @throws Error(BadInput)  "file:line: field: .." for a malformed line
std::vector<Exemplar> read_exemplars(const std::string& path);

/// Those the program brings for a task; none for the generated ones, in whose own form the bundled
/// models were trained.
/// @throws Error(BadInput)  as read_exemplars
std::vector<Exemplar> exemplars_of(const std::string& assets_dir, const std::string& task);

/// "question rationale So the answer is answer.\n\n" of each.
std::string few_shot_text(std::span<const Exemplar> exemplars);

/// A rationale up to the trigger, if it is there.
std::string up_to_trigger(const std::string& text);

}  // namespace engine
