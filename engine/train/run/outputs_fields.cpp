#include "engine/train/run/outputs_fields.h"

#include "engine/train/run/recipe_fields.h"

namespace engine {

void read_outputs_plan(const nlohmann::json& object, const std::string& where, OutputsPlan& plan) {
  RecipeFields fields(object, where);
  if (const nlohmann::json* mixture = fields.find("mixture")) plan.mixture = mixture->dump();
  fields.read("count", plan.count, 1, 1e9);
  fields.read("max_tokens", plan.max_tokens, 1, 65536);
  fields.read("seed", plan.seed, 0, 9e15);
  fields.read("check", plan.check);
  fields.read("drop_wrong", plan.drop_wrong);
  fields.read("lanes", plan.lanes, 1, 4096);
  fields.refuse_others();
  if (plan.mixture.empty() || plan.count == 0)
    throw Error(ErrorCode::BadInput, where + ": mixture and count must both be given");
  if (plan.drop_wrong) plan.check = true;
}

nlohmann::ordered_json json_of(const OutputsPlan& plan) {
  return {{"mixture", nlohmann::ordered_json::parse(plan.mixture)},
          {"count", plan.count},
          {"max_tokens", plan.max_tokens},
          {"seed", plan.seed},
          {"check", plan.check},
          {"drop_wrong", plan.drop_wrong},
          {"lanes", plan.lanes}};
}

}  // namespace engine
