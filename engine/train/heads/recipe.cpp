#include "engine/train/heads/recipe.h"

#include "engine/base/types.h"
#include "engine/train/run/recipe_fields.h"

namespace engine {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

void read_chimera(RecipeFields& fields, HeadsRecipe& r) {
  std::string encoder = "grams";
  fields.read("token_encoder", encoder, {"grams", "first_layer"});
  r.by_first_layer = encoder == "first_layer";
  if (r.by_first_layer)
    r.gram = 1;
  else
    fields.read("gram", r.gram, 1, 5);
  fields.read("residual", r.residual);
  if (!r.by_first_layer) fields.read("finetune_first_layer", r.finetune_first_layer);
  fields.read("sees_committed_grams", r.sees_committed_grams);
  fields.read("hidden_dim", r.hidden_dim, 0, 32768);
  fields.read("attention_heads", r.attention_heads, 0, 128);
  fields.read("feature_weight", r.feature_weight, 0, 1000);
  fields.read("self_fed", r.self_fed);
  fields.read("init_deviation", r.init_deviation, 1e-6, 1);
}

void read_output(RecipeFields& fields, HeadsRecipe& r) {
  std::string output = "own";
  fields.read("output", output, {"own", "target"});
  r.target_output = output == "target";
  if (!r.target_output) return;
  fields.read("output_tokens", r.output_tokens, 0, 1 << 24);
  if (r.kind == HeadsKind::Chimera) fields.read("head_hidden_dim", r.head_hidden_dim, 16, 32768);
}

void read_run(RecipeFields& fields, HeadsRecipe& r) {
  fields.read("batch_texts", r.batch_texts, 1, 4096);
  read_optimisation(fields, r);
  fields.read("epochs", r.epochs, 0, 1e6);
  fields.read("minutes", r.minutes, 0, 1e6);
  fields.read("probe_steps", r.probe_steps, 0, 1e9);
  fields.read("hidden_megabytes", r.hidden_megabytes, 0, 1e7);
}

}  // namespace

HeadsRecipe heads_recipe_from(const std::string& text, HeadsKind kind, const std::string& path) {
  const json object = parsed_recipe(text, path);
  RecipeFields fields(object, path);
  HeadsRecipe r;
  std::string said;
  fields.read("heads_of", said);
  if (said != name_of(kind)) {
    throw Error(ErrorCode::BadInput, path + ": heads_of: found \"" + said + "\", expected \"" +
                                         name_of(kind) + "\"; is it another training's recipe?");
  }
  r.kind = kind;
  fields.find("about");
  fields.read("name", r.name);
  fields.read("target", r.target);
  if (const json* outputs = fields.find("own_outputs"))
    read_outputs_plan(*outputs, path + ": own_outputs", r.outputs);
  else
    throw Error(ErrorCode::BadInput,
                path + ": own_outputs: missing; heads are trained on these texts");
  fields.read("probe_texts", r.probe_texts, 1, 1e6);
  fields.read("heads", r.heads, 1, 64);
  fields.read("head_decay", r.head_decay, 0, 1);
  if (kind == HeadsKind::Medusa)
    fields.read("layers", r.layers, 1, 16);
  else
    read_chimera(fields, r);
  read_output(fields, r);
  read_run(fields, r);
  fields.refuse_others();
  if (r.output_tokens % 16 != 0)
    throw Error(ErrorCode::BadInput, path + ": output_tokens: found " +
                                         std::to_string(r.output_tokens) +
                                         ", expected a multiple of 16");
  if (r.epochs == 0 && r.minutes == 0)
    throw Error(ErrorCode::BadInput, path + ": epochs, minutes: one of them must be above 0");
  return r;
}

HeadsRecipe read_heads_recipe(const std::string& path, HeadsKind kind) {
  return heads_recipe_from(recipe_text(path), kind, path);
}

std::string to_json(const HeadsRecipe& r) {
  ordered_json object = {{"name", r.name},
                         {"heads_of", name_of(r.kind)},
                         {"target", r.target},
                         {"own_outputs", json_of(r.outputs)},
                         {"probe_texts", r.probe_texts},
                         {"heads", r.heads},
                         {"head_decay", r.head_decay}};
  if (r.kind == HeadsKind::Medusa) {
    object["layers"] = r.layers;
  } else {
    if (r.by_first_layer)
      object["token_encoder"] = "first_layer";
    else
      object["gram"] = r.gram;
    object["residual"] = r.residual;
    if (!r.by_first_layer) object["finetune_first_layer"] = r.finetune_first_layer;
    object.update({{"sees_committed_grams", r.sees_committed_grams},
                   {"hidden_dim", r.hidden_dim},
                   {"attention_heads", r.attention_heads},
                   {"feature_weight", r.feature_weight},
                   {"self_fed", r.self_fed},
                   {"init_deviation", r.init_deviation}});
  }
  if (r.target_output) {
    object.update({{"output", "target"}, {"output_tokens", r.output_tokens}});
    if (r.kind == HeadsKind::Chimera) object["head_hidden_dim"] = r.head_hidden_dim;
  }
  object["batch_texts"] = r.batch_texts;
  write_optimisation(object, r, {{"epochs", r.epochs}, {"minutes", r.minutes}},
                     {{"probe_steps", r.probe_steps}, {"hidden_megabytes", r.hidden_megabytes}});
  return object.dump(2);
}

OutputsRecipe read_outputs_recipe(const std::string& path) {
  const json object = parsed_recipe(recipe_text(path), path);
  // Other fields are ignored, so this reads recipes of every kind.
  RecipeFields fields(object, path);
  OutputsRecipe recipe;
  recipe.target = "demo-target";
  fields.read("name", recipe.name);
  fields.read("target", recipe.target);
  const json* outputs = fields.find("own_outputs");
  if (!outputs)
    throw Error(ErrorCode::BadInput,
                path + ": own_outputs: missing; this recipe does not train on a target's texts");
  read_outputs_plan(*outputs, path + ": own_outputs", recipe.plan);
  return recipe;
}

HeadsConfig heads_config(const HeadsRecipe& r, const ModelConfig& target) {
  HeadsConfig c;
  c.kind = r.kind;
  c.base = r.target;
  c.n_heads = r.heads;
  c.dim = target.dim;
  c.vocab_size = target.vocab_size;
  c.target_output = r.target_output;
  c.n_layers = r.layers;
  c.gram = r.gram;
  c.by_first_layer = r.by_first_layer;
  c.residual = r.residual;
  c.own_embedding = r.finetune_first_layer;
  c.sees_committed_grams = r.sees_committed_grams;
  c.hidden_dim = r.hidden_dim > 0 ? r.hidden_dim : target.hidden_dim;
  c.n_attention_heads = r.attention_heads > 0 ? r.attention_heads : target.n_heads;
  if (r.target_output && r.kind == HeadsKind::Chimera) c.head_hidden_dim = r.head_hidden_dim;
  c.norm_eps = target.norm_eps;
  c.rope_theta = target.rope.theta;
  return c;
}

}  // namespace engine
