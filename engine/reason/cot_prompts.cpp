#include "engine/reason/cot_prompts.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "engine/data/real_set.h"

namespace engine {

std::vector<Exemplar> read_exemplars(const std::string& path) {
  std::vector<Exemplar> exemplars;
  for_each_json_line(path, [&](const nlohmann::json& line) {
    exemplars.push_back({line.at("question").get<std::string>(),
                         line.at("rationale").get<std::string>(),
                         line.at("answer").get<std::string>()});
  });
  return exemplars;
}

std::vector<Exemplar> exemplars_of(const std::string& assets_dir, const std::string& task) {
  const std::string path = assets_dir + "/prompts/cot/" + task + ".jsonl";
  return std::filesystem::exists(path) ? read_exemplars(path) : std::vector<Exemplar>{};
}

std::string few_shot_text(std::span<const Exemplar> exemplars) {
  std::string text;
  for (const Exemplar& one : exemplars)
    text += one.question + " " + one.rationale + kTrigger + " " + one.answer + ".\n\n";
  return text;
}

std::string rationale_of(const std::string& text) {
  return text.substr(0, text.find(kTrigger));
}

}  // namespace engine
