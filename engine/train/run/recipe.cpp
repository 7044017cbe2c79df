#include "engine/train/run/recipe.h"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "engine/train/run/recipe_fields.h"

namespace engine {
namespace {

using nlohmann::json;
using Fields = RecipeFields;

void read_model(const json& object, const std::string& where, ModelConfig& model) {
  Fields fields(object, where);
  model.model_type = "llama";
  model.tied_embeddings = true;
  fields.read("layers", model.n_layers, 1, 128);
  fields.read("dim", model.dim, 16, 8192);
  fields.read("hidden_dim", model.hidden_dim, 16, 32768);
  fields.read("heads", model.n_heads, 1, 128);
  model.n_kv_heads = model.n_heads;
  fields.read("kv_heads", model.n_kv_heads, 1, 128);
  if (model.n_heads > 0) model.head_dim = model.dim / model.n_heads;
  fields.read("head_dim", model.head_dim, 16, 256);
  fields.read("max_seq_len", model.max_seq_len, 16, 131072);
  fields.read("rope_theta", model.rope.theta, 1, 1e9);
  fields.read("norm_eps", model.norm_eps, 1e-12, 1e-2);
  fields.refuse_others();
  if (!model.n_layers || !model.dim || !model.hidden_dim || !model.n_heads || !model.max_seq_len) {
    throw Error(ErrorCode::BadInput,
                where + ": layers, dim, hidden_dim, heads and max_seq_len must all be given");
  }
}

/// Reads the settings of a draft that shares its target's embedding.
void read_sharing(Fields& fields, const std::string& path, TrainRecipe& r) {
  fields.read("shares_embedding", r.shares_embedding);
  const json* layers = fields.find("from_layers");
  const json* tokens = fields.find("output_tokens");
  if (!r.shares_embedding) {
    if (layers || tokens)
      throw Error(ErrorCode::BadInput,
                  path + ": from_layers, output_tokens: only with \"shares_embedding\": true");
    return;
  }
  const auto are_ids = [](const json& list) {
    return list.is_array() && !list.empty() && std::ranges::all_of(list, [](const json& id) {
             return id.is_number_unsigned() && id.get<std::uint64_t>() <= 0x7fffffff;
           });
  };
  if (!layers || !are_ids(*layers))
    throw Error(ErrorCode::BadInput, path + ": from_layers: found " +
                                         (layers ? layers->dump() : "none") +
                                         ", expected a list of the target's layers, from 0");
  r.from_layers = layers->get<std::vector<int>>();
  r.model.n_layers = static_cast<int>(r.from_layers.size());
  if (tokens && tokens->is_array()) {
    if (are_ids(*tokens)) r.output_tokens = tokens->get<std::vector<TokenId>>();
    // strictly ascending
    if (r.output_tokens.empty() || !std::ranges::is_sorted(r.output_tokens, std::less_equal()))
      throw Error(ErrorCode::BadInput,
                  path + ": output_tokens: expected a number, or ascending token ids");
    return;
  }
  fields.read("output_tokens", r.n_output_tokens, 32, 1e6);
  if (r.n_output_tokens % 32)
    throw Error(ErrorCode::BadInput, path + ": output_tokens: expected a multiple of 32");
}

void check_whole(const TrainRecipe& r, const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::BadInput, path + ": " + what);
  };
  if (r.context % 32) refuse("context: expected a multiple of 32");
  if (r.batch_tokens % r.context) refuse("batch_tokens: expected a multiple of context");
  if (!r.shares_embedding && r.context > r.model.max_seq_len)
    refuse("context: longer than model.max_seq_len");
  if (r.own_outputs.count > 0 && !r.mixture.empty() && r.mixture != "{}")
    refuse("mixture, own_outputs: give exactly one of them");
  if (r.shares_embedding && r.own_outputs.count == 0)
    refuse("shares_embedding: needs own_outputs, the texts of the target");
  if (r.shares_embedding && r.probe_minutes > 0)
    refuse("probe_minutes: found a draft without an embedding, expected 0");
  if (r.tokens == 0 && r.minutes == 0) refuse("tokens, minutes: one of them must be above 0");
}

}  // namespace

TrainRecipe train_recipe_from(const std::string& text, const std::string& path) {
  const json object = parsed_recipe(text, path);
  TrainRecipe r;
  Fields fields(object, path);
  fields.read("name", r.name);
  if (const json* mixture = fields.find("mixture")) r.mixture = mixture->dump();
  if (const json* outputs = fields.find("own_outputs"))
    read_outputs_plan(*outputs, path + ": own_outputs", r.own_outputs);
  fields.read("target", r.target);
  fields.find("about");
  read_sharing(fields, path, r);
  if (r.own_outputs.chat && !r.shares_embedding)
    throw Error(ErrorCode::BadInput, path +
                                         ": own_outputs: chat: found true, expected false; only a "
                                         "draft with shares_embedding trains on chats");
  const json* model = fields.find("model");
  if (model && r.shares_embedding)
    throw Error(ErrorCode::BadInput,
                path + ": model: leave it out with shares_embedding, the shape is the target's");
  if (model) read_model(*model, path + ": model", r.model);
  fields.read("context", r.context, 32, 8192);
  fields.read("batch_tokens", r.batch_tokens, 32, 1 << 22);
  fields.read("open_rows", r.open_rows, 1, 4096);
  read_optimisation(fields, r);
  fields.read("prompt_weight", r.prompt_weight, 0, 1);
  fields.read("answer_weight", r.answer_weight, 0, 1000);
  fields.read("init_deviation", r.init_deviation, 1e-6, 1);
  fields.read("tokens", r.tokens, 0, 1e13);
  fields.read("minutes", r.minutes, 0, 1e6);
  read_probing(fields, r);
  fields.refuse_others();
  if (r.model.dim == 0 && !r.shares_embedding)
    throw Error(ErrorCode::BadInput, path + ": model: missing");
  check_whole(r, path);
  return r;
}

TokenizerRecipe tokenizer_recipe_from(const std::string& text, const std::string& path) {
  const json object = parsed_recipe(text, path);
  TokenizerRecipe r;
  Fields fields(object, path);
  fields.read("name", r.name);
  fields.find("about");
  if (const json* mixture = fields.find("mixture")) r.mixture = mixture->dump();
  fields.read("vocab_size", r.vocab_size, 300, 65536);
  fields.read("sample_bytes", r.sample_bytes, 1000, 1e10);
  fields.read("seed", r.seed, 0, 9e15);
  fields.refuse_others();
  if (r.vocab_size % 32)
    throw Error(ErrorCode::BadInput, path + ": vocab_size: expected a multiple of 32");
  return r;
}

TrainRecipe read_train_recipe(const std::string& path) {
  return train_recipe_from(recipe_text(path), path);
}

TokenizerRecipe read_tokenizer_recipe(const std::string& path) {
  return tokenizer_recipe_from(recipe_text(path), path);
}

std::string to_json(const TrainRecipe& r) {
  nlohmann::ordered_json model = {
      {"layers", r.model.n_layers},         {"dim", r.model.dim},
      {"hidden_dim", r.model.hidden_dim},   {"heads", r.model.n_heads},
      {"kv_heads", r.model.n_kv_heads},     {"head_dim", r.model.head_dim},
      {"max_seq_len", r.model.max_seq_len}, {"rope_theta", r.model.rope.theta},
      {"norm_eps", r.model.norm_eps}};
  nlohmann::ordered_json object = {
      {"name", r.name},
      {"mixture", r.mixture.empty() ? nlohmann::ordered_json::object()
                                    : nlohmann::ordered_json::parse(r.mixture)},
      {"model", model},
      {"context", r.context},
      {"batch_tokens", r.batch_tokens},
      {"open_rows", r.open_rows}};
  write_optimisation(object, r,
                     {{"prompt_weight", r.prompt_weight},
                      {"answer_weight", r.answer_weight},
                      {"init_deviation", r.init_deviation},
                      {"tokens", r.tokens},
                      {"minutes", r.minutes}},
                     {{"probe_minutes", r.probe_minutes}, {"probe_problems", r.probe_problems}});
  if (r.shares_embedding) {
    object.erase("model");
    object["shares_embedding"] = true;
    object["from_layers"] = r.from_layers;
    if (!r.output_tokens.empty())
      object["output_tokens"] = r.output_tokens;
    else if (r.n_output_tokens > 0)
      object["output_tokens"] = r.n_output_tokens;
  }
  if (r.own_outputs.count > 0) {
    object["target"] = r.target;
    object["own_outputs"] = json_of(r.own_outputs);
  }
  return object.dump(2);
}

}  // namespace engine
