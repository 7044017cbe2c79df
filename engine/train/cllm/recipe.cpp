#include "engine/train/cllm/recipe.h"

#include <algorithm>
#include <initializer_list>

#include "engine/data/text.h"
#include "engine/train/run/recipe_fields.h"

namespace engine {
namespace {

using nlohmann::json;
using Towards = ConsistencyLoss::Towards;
using By = ConsistencyLoss::By;

const char* name_of(Towards towards) {
  return towards == Towards::FixedPoint ? "global" : "local";
}

const char* name_of(By by) {
  switch (by) {
    case By::ForwardKl:
      return "forward";
    case By::ReverseKl:
      return "reverse";
    case By::JensenShannon:
      return "js";
    case By::HardLabels:
      break;
  }
  return "hard";
}

void read_loss(RecipeFields& fields, CllmRecipe& r) {
  std::string towards = name_of(r.loss.towards), by = name_of(r.loss.by);
  std::string labels = "own", teacher = "student";
  fields.read("consistency", towards, {"global", "local"});
  fields.read("divergence", by, {"forward", "reverse", "js", "hard"});
  fields.read("ar_labels", labels, {"own", "truth"});
  fields.read("teacher", teacher, {"student", "frozen"});
  r.loss.towards = towards == "global" ? Towards::FixedPoint : Towards::NextPoint;
  for (const By one : {By::ForwardKl, By::ReverseKl, By::JensenShannon, By::HardLabels})
    if (by == name_of(one)) r.loss.by = one;
  r.loss.own_labels = labels == "own";
  r.frozen_teacher = teacher == "frozen";
  fields.read("smoothing", r.loss.smoothing, 0, 0.9);
  fields.read("chain_decay", r.loss.chain_decay, 0.01, 1);
  fields.read("prompt_weight", r.loss.prompt_weight, 0, 1);
  fields.read("ar_weight", r.ar_weight, 0, 1000);
  fields.read("consistency_weight", r.consistency_weight, 0, 1000);
  fields.read("final_consistency_weight", r.final_consistency_weight, -1, 1000);
  fields.read("replay_weight", r.replay_weight, 0, 1000);
}

void read_lora(const json& object, const std::string& path, LowRank& lora) {
  RecipeFields fields(object, path + ": lora");
  fields.read("rank", lora.rank, 1, 4096);
  fields.read("base", lora.base);
  if (const json* targets = fields.find("targets")) {
    const std::vector<std::string> known = low_rank_targets();
    const bool fit =
        targets->is_array() && !targets->empty() &&
        std::ranges::all_of(*targets, [&](const json& target) {
          return target.is_string() && std::ranges::count(known, target.get<std::string>()) > 0;
        });
    if (!fit)
      throw Error(ErrorCode::BadInput, path + ": lora: targets: found " + targets->dump() +
                                           ", expected a list of " + joined(known, ", "));
    lora.targets = targets->get<std::vector<std::string>>();
  }
  fields.refuse_others();
  if (lora.rank == 0)
    throw Error(ErrorCode::BadInput, path + ": lora: rank: found none, expected a whole number");
}

nlohmann::ordered_json json_of(const LowRank& lora) {
  return {{"rank", lora.rank}, {"targets", lora.targets}, {"base", lora.base}};
}

void check_chat(const CllmRecipe& r, const std::string& path) {
  const auto refuse = [&](const char* field, const std::string& found, const char* expected) {
    throw Error(ErrorCode::BadInput, path + ": " + field + ": found " + found + ", expected " +
                                         expected + ": requests have no true answers");
  };
  if (r.replay_texts > 0 && r.replay_weight > 0 && r.replay_mixture.empty())
    refuse("replay_texts", std::to_string(r.replay_texts), "0, or a replay_mixture");
  if (!r.loss.own_labels) refuse("ar_labels", "\"truth\"", "\"own\"");
}

void check_whole(const CllmRecipe& r, const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::BadInput, path + ": " + what);
  };
  if (r.mixture.empty()) refuse("mixture: missing");
  if (r.epochs == 0 && r.minutes == 0) refuse("epochs, minutes: one of them must be above 0");
  if (r.context % 32) refuse("context: expected a multiple of 32");
  if (r.loss.by == By::HardLabels && r.loss.towards == Towards::NextPoint)
    refuse("divergence: hard labels are the fixed point's tokens, so consistency must be global");
  const bool learns =
      r.ar_weight > 0 || r.consistency_weight > 0 || (r.replay_weight > 0 && r.replay_texts > 0);
  if (r.points == 0 && r.fresh_points == 0 && r.consistency_weight > 0)
    refuse("points, fresh_points: both are 0, and consistency_weight is not");
  if (!learns) refuse("ar_weight, consistency_weight, replay_weight: all are 0");
  if (r.chat) check_chat(r, path);
}

}  // namespace

CllmRecipe cllm_recipe_from(const std::string& text, const std::string& path) {
  const json object = parsed_recipe(text, path);
  CllmRecipe r;
  RecipeFields fields(object, path);
  fields.read("name", r.name);
  fields.find("about");
  fields.read("target", r.target);
  if (const json* mixture = fields.find("mixture")) r.mixture = mixture->dump();
  if (const json* replay = fields.find("replay_mixture")) r.replay_mixture = replay->dump();
  fields.read("chat", r.chat);
  fields.read("block", r.block, 1, 256);
  fields.read("prompts", r.prompts, 1, 1e8);
  fields.read("max_new_tokens", r.max_new_tokens, 1, 1e5);
  fields.read("lanes", r.lanes, 1, 1024);
  fields.read("drop_wrong", r.drop_wrong);
  fields.read("token_run", r.token_run, 0, 1e5);
  fields.read("sentence_run", r.sentence_run, 0, 1e5);
  fields.read("augment", r.augment);
  read_loss(fields, r);
  fields.read("points", r.points, 0, 1000);
  fields.read("fresh_points", r.fresh_points, 0, 1000);
  fields.read("fresh_block", r.fresh_block, 0, 256);
  fields.read("fresh_iterations", r.fresh_iterations, 0, 255);
  fields.read("batch_texts", r.batch_texts, 1, 1e4);
  fields.read("replay_texts", r.replay_texts, 0, 1e4);
  fields.read("context", r.context, 32, 8192);
  fields.read("epochs", r.epochs, 0, 1e4);
  fields.read("minutes", r.minutes, 0, 1e6);
  if (const json* lora = fields.find("lora")) read_lora(*lora, path, r.lora);
  read_probing(fields, r);
  fields.read("score_problems", r.score_problems, 1, 1e5);
  read_optimisation(fields, r);
  fields.refuse_others();
  check_whole(r, path);
  return r;
}

CllmRecipe read_cllm_recipe(const std::string& path) {
  return cllm_recipe_from(recipe_text(path), path);
}

std::string to_json(const CllmRecipe& r) {
  nlohmann::ordered_json object = {{"name", r.name},
                                   {"target", r.target},
                                   {"mixture", nlohmann::ordered_json::parse(r.mixture)},
                                   {"block", r.block},
                                   {"prompts", r.prompts},
                                   {"max_new_tokens", r.max_new_tokens},
                                   {"lanes", r.lanes},
                                   {"drop_wrong", r.drop_wrong},
                                   {"token_run", r.token_run},
                                   {"sentence_run", r.sentence_run},
                                   {"augment", r.augment},
                                   {"consistency", name_of(r.loss.towards)},
                                   {"divergence", name_of(r.loss.by)},
                                   {"smoothing", r.loss.smoothing},
                                   {"chain_decay", r.loss.chain_decay},
                                   {"ar_labels", r.loss.own_labels ? "own" : "truth"},
                                   {"prompt_weight", r.loss.prompt_weight},
                                   {"teacher", r.frozen_teacher ? "frozen" : "student"},
                                   {"ar_weight", r.ar_weight},
                                   {"consistency_weight", r.consistency_weight},
                                   {"final_consistency_weight", r.final_consistency_weight},
                                   {"replay_weight", r.replay_weight},
                                   {"points", r.points},
                                   {"fresh_points", r.fresh_points},
                                   {"fresh_block", r.fresh_block},
                                   {"fresh_iterations", r.fresh_iterations},
                                   {"batch_texts", r.batch_texts},
                                   {"replay_texts", r.replay_texts},
                                   {"context", r.context},
                                   {"epochs", r.epochs},
                                   {"minutes", r.minutes}};
  write_optimisation(object, r, nlohmann::ordered_json::object(),
                     {{"probe_minutes", r.probe_minutes},
                      {"probe_problems", r.probe_problems},
                      {"score_problems", r.score_problems}});
  if (!r.replay_mixture.empty())
    object["replay_mixture"] = nlohmann::ordered_json::parse(r.replay_mixture);
  if (r.chat) object["chat"] = true;
  if (r.lora.rank > 0) object["lora"] = json_of(r.lora);
  return object.dump(2);
}

namespace {

json without(const CllmRecipe& recipe, std::initializer_list<const char*> fields) {
  json object = json::parse(to_json(recipe));
  for (const char* field : fields) object.erase(field);
  return object;
}

}  // namespace

std::string collecting_part(const CllmRecipe& recipe) {
  const json all = json::parse(to_json(recipe));
  json part;
  for (const char* field : {"mixture", "block", "max_new_tokens", "drop_wrong", "token_run",
                            "sentence_run", "context", "seed"})
    part[field] = all[field];
  if (recipe.points == 0) part["points"] = false;
  if (recipe.chat) part["chat"] = true;
  return part.dump();
}

std::string training_part(const CllmRecipe& recipe) {
  // Removes the fields about the length, the measurements, the processor and the target's name.
  return without(recipe, {"lanes", "epochs", "minutes", "checkpoint_minutes", "probe_minutes",
                          "probe_problems", "score_problems", "compute", "shards", "target"})
      .dump();
}

}  // namespace engine
