#include "engine/train/recipe.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/closest_name.h"
#include "engine/model/json.h"
#include "engine/types.h"

namespace engine {
namespace {

using nlohmann::json;

// Reads fields of one object and, at the end, refuses those nobody asked for.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) {
      throw Error(ErrorCode::BadInput,
                  where_ + ": found " + object.type_name() + ", expected an object of settings");
    }
  }

  void read(const char* name, std::string& value) {
    if (const json* field = find(name)) {
      if (!field->is_string()) refuse(name, *field, "a text");
      value = field->get<std::string>();
    }
  }
  template <typename Number>
  void read(const char* name, Number& value, double least, double most) {
    const json* field = find(name);
    if (!field) return;
    const std::string range = "a number from " + json(least).dump() + " to " + json(most).dump();
    if (!field->is_number()) refuse(name, *field, range);
    const double found = field->get<double>();
    // Before any cast: what an integer cannot hold must not be cast to one.
    if (!(found >= least && found <= most)) refuse(name, *field, range);
    if (std::is_integral_v<Number> && found != std::trunc(found))
      refuse(name, *field, "a whole number");
    value = static_cast<Number>(found);
  }
  const json* find(const char* name) {
    known_.insert(name);
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  void refuse_others() const {
    for (const auto& [name, value] : object_.items()) {
      if (!known_.count(name)) {
        const std::vector<std::string> known(known_.begin(), known_.end());
        throw Error(ErrorCode::BadInput,
                    where_ + ": " + name + ": no such setting" + did_you_mean(name, known));
      }
    }
  }

 private:
  [[noreturn]] void refuse(const char* name, const json& found, const std::string& expected) const {
    throw Error(ErrorCode::BadInput,
                where_ + ": " + name + ": found " + found.dump() + ", expected " + expected);
  }
  const json& object_;
  std::string where_;
  std::set<std::string> known_;
};

json parsed(const std::string& text, const std::string& path) {
  // Depth first: a message that shows a value would turn its depth into depth of our stack.
  JsonReader reader(text, path);
  reader.skip();
  reader.end();
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    throw Error(ErrorCode::BadInput, path + ": not JSON: " + error.what());
  }
}

std::string contents(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorCode::BadInput,
                path + ": found a directory, expected a recipe file like assets/recipes/tiny.json");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(ErrorCode::BadInput, path + ": cannot be opened; is there such a recipe file?");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

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

void check_whole(const TrainRecipe& r, const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::BadInput, path + ": " + what);
  };
  if (r.context % 32) refuse("context: expected a multiple of 32");
  if (r.batch_tokens % r.context) refuse("batch_tokens: expected a multiple of context");
  if (r.context > r.model.max_seq_len) refuse("context: longer than model.max_seq_len");
  if (r.tokens == 0 && r.minutes == 0) refuse("tokens, minutes: one of them must say how long");
  const std::set<std::string> computes = {"auto", "f32", "bf16-amx", "bf16-onednn"};
  if (!computes.count(r.compute)) {
    refuse("compute: found \"" + r.compute + "\", expected auto, f32, bf16-amx or bf16-onednn");
  }
}

}  // namespace

TrainRecipe train_recipe_from(const std::string& text, const std::string& path) {
  const json object = parsed(text, path);
  TrainRecipe r;
  Fields fields(object, path);
  fields.read("name", r.name);
  if (const json* mixture = fields.find("mixture")) r.mixture = mixture->dump();
  fields.find("about");
  if (const json* model = fields.find("model")) read_model(*model, path + ": model", r.model);
  fields.read("context", r.context, 32, 8192);
  fields.read("batch_tokens", r.batch_tokens, 32, 1 << 22);
  fields.read("open_rows", r.open_rows, 1, 4096);
  fields.read("peak_lr", r.peak_lr, 0, 1);
  fields.read("final_lr", r.final_lr, 0, 1);
  fields.read("warmup_steps", r.warmup_steps, 0, 1e6);
  fields.read("beta1", r.beta1, 0, 0.9999);
  fields.read("beta2", r.beta2, 0, 0.99999);
  fields.read("weight_decay", r.weight_decay, 0, 10);
  fields.read("clip", r.clip, 1e-6, 1e6);
  fields.read("prompt_weight", r.prompt_weight, 0, 1);
  fields.read("answer_weight", r.answer_weight, 0, 1000);
  fields.read("init_deviation", r.init_deviation, 1e-6, 1);
  fields.read("tokens", r.tokens, 0, 1e13);
  fields.read("minutes", r.minutes, 0, 1e6);
  fields.read("checkpoint_minutes", r.checkpoint_minutes, 0, 1e4);
  fields.read("seed", r.seed, 0, 9e15);
  fields.read("compute", r.compute);
  fields.read("shards", r.shards, 0, 256);
  fields.refuse_others();
  if (r.model.dim == 0) throw Error(ErrorCode::BadInput, path + ": model: missing");
  check_whole(r, path);
  return r;
}

TokenizerRecipe tokenizer_recipe_from(const std::string& text, const std::string& path) {
  const json object = parsed(text, path);
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
  return train_recipe_from(contents(path), path);
}

TokenizerRecipe read_tokenizer_recipe(const std::string& path) {
  return tokenizer_recipe_from(contents(path), path);
}

std::string to_json(const TrainRecipe& r) {
  nlohmann::ordered_json model = {
      {"layers", r.model.n_layers},         {"dim", r.model.dim},
      {"hidden_dim", r.model.hidden_dim},   {"heads", r.model.n_heads},
      {"kv_heads", r.model.n_kv_heads},     {"head_dim", r.model.head_dim},
      {"max_seq_len", r.model.max_seq_len}, {"rope_theta", r.model.rope.theta},
      {"norm_eps", r.model.norm_eps}};
  const nlohmann::ordered_json object = {
      {"name", r.name},
      {"mixture", r.mixture.empty() ? nlohmann::ordered_json::object()
                                    : nlohmann::ordered_json::parse(r.mixture)},
      {"model", model},
      {"context", r.context},
      {"batch_tokens", r.batch_tokens},
      {"open_rows", r.open_rows},
      {"peak_lr", r.peak_lr},
      {"final_lr", r.final_lr},
      {"warmup_steps", r.warmup_steps},
      {"beta1", r.beta1},
      {"beta2", r.beta2},
      {"weight_decay", r.weight_decay},
      {"clip", r.clip},
      {"prompt_weight", r.prompt_weight},
      {"answer_weight", r.answer_weight},
      {"init_deviation", r.init_deviation},
      {"tokens", r.tokens},
      {"minutes", r.minutes},
      {"checkpoint_minutes", r.checkpoint_minutes},
      {"seed", r.seed},
      {"compute", r.compute},
      {"shards", r.shards}};
  return object.dump(2);
}

}  // namespace engine
