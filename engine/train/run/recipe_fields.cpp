#include "engine/train/run/recipe_fields.h"

#include <filesystem>

#include "engine/base/input_file.h"
#include "engine/base/json.h"

namespace engine {

nlohmann::json parsed_recipe(const std::string& text, const std::string& path) {
  // Checks the depth first, since printing a deep value in a message would overflow the stack.
  JsonReader reader(text, path);
  reader.skip();
  reader.end();
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::BadInput, path + ": not JSON: " + error.what());
  }
}

std::string recipe_text(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorCode::BadInput,
                path + ": found a directory, expected a recipe file like assets/recipes/tiny.json");
  return read_text_input(path, Pipes::Refuse);
}

void read_outputs_plan(const nlohmann::json& object, const std::string& where, OutputsPlan& plan) {
  RecipeFields fields(object, where);
  if (const nlohmann::json* mixture = fields.find("mixture")) plan.mixture = mixture->dump();
  fields.read("count", plan.count, 1, 1e9);
  fields.read("max_tokens", plan.max_tokens, 1, 65536);
  fields.read("seed", plan.seed, 0, 9e15);
  fields.read("check", plan.check);
  fields.read("drop_wrong", plan.drop_wrong);
  fields.read("lanes", plan.lanes, 1, 4096);
  fields.read("chat", plan.chat);
  fields.read("max_prompt_tokens", plan.max_prompt_tokens, 0, 1e6);
  fields.refuse_others();
  if (plan.mixture.empty() || plan.count == 0)
    throw Error(ErrorCode::BadInput, where + ": mixture and count must both be given");
  if (plan.drop_wrong) plan.check = true;
  if (plan.chat && plan.check)
    throw Error(
        ErrorCode::BadInput,
        where + ": chat: found true with check or drop_wrong; chat answers have no checker");
}

nlohmann::ordered_json json_of(const OutputsPlan& plan) {
  nlohmann::ordered_json object = {{"mixture", nlohmann::ordered_json::parse(plan.mixture)},
                                   {"count", plan.count},
                                   {"max_tokens", plan.max_tokens},
                                   {"seed", plan.seed},
                                   {"check", plan.check},
                                   {"drop_wrong", plan.drop_wrong},
                                   {"lanes", plan.lanes}};
  // Only if set, because checkpoints hold their recipe in this form.
  if (plan.chat) object["chat"] = true;
  if (plan.max_prompt_tokens > 0) object["max_prompt_tokens"] = plan.max_prompt_tokens;
  return object;
}

}  // namespace engine
