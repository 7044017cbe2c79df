// Few-shot prompts of chain of thought, in Active-Prompt's form: question, rationale, trigger, answer and
// an empty line for each example; then the question itself.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace engine {

/// The trigger: appended to a rationale, it makes the model write the answer (FastCoT, algorithm 1).
inline constexpr const char* kTrigger = " So the answer is";

/// A few-shot example. assets/prompts/cot/ has examples written for this project.
struct Exemplar {
  std::string question;   // ends in "\nA:"
  std::string rationale;  // sentences
  std::string answer;     // "(B)", "yes"
};

/// Reads examples. @param path  JSON lines {"question", "rationale", "answer"}
/// @throws Error(BadInput)  "file:line: field: .." for a malformed line
std::vector<Exemplar> read_exemplars(const std::string& path);

/// The bundled examples of a task. Generated tasks have none, because the bundled models were trained on
/// their form.
/// @throws Error(BadInput)  as read_exemplars
std::vector<Exemplar> exemplars_of(const std::string& assets_dir, const std::string& task);

/// The examples as text: "question rationale So the answer is answer.\n\n" for each.
std::string few_shot_text(std::span<const Exemplar> exemplars);

/// The part of a text before the first trigger; the whole text without one.
std::string rationale_of(const std::string& text);

}  // namespace engine
