// Reads the fields of a recipe's JSON object, checks their ranges and refuses unknown fields. For .cpp
// files only, since it includes nlohmann/json.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/closest_name.h"
#include "engine/base/types.h"
#include "engine/train/run/outputs_plan.h"

namespace engine {

/// Reads fields of a JSON object and can refuse the fields that were not read.
class RecipeFields {
 public:
  /// @param where  for messages
  /// @throws Error(BadInput)  unless it is an object
  RecipeFields(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) {
      throw Error(ErrorCode::BadInput,
                  where_ + ": found " + object.type_name() + ", expected an object of settings");
    }
  }

  /// Reads a field if the object has it. @throws Error(BadInput)  if it is not a string
  void read(const char* name, std::string& value) {
    if (const nlohmann::json* field = find(name)) {
      if (!field->is_string()) refuse(name, *field, "a text");
      value = field->get<std::string>();
    }
  }
  /// Reads a field if the object has it. @throws Error(BadInput)  if it is not a boolean
  void read(const char* name, bool& value) {
    if (const nlohmann::json* field = find(name)) {
      if (!field->is_boolean()) refuse(name, *field, "true or false");
      value = field->get<bool>();
    }
  }
  /// Reads a string. @throws Error(BadInput)  unless it is one of the choices
  void read(const char* name, std::string& value, const std::vector<std::string>& choices) {
    read(name, value);
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
    std::string list;
    for (const std::string& choice : choices)
      list += (list.empty() ? "" : choice == choices.back() ? " or " : ", ") + choice;
    refuse(name, value, list);
  }
  /// Reads a number. @throws Error(BadInput)  unless it is between least and most
  template <typename Number>
  void read(const char* name, Number& value, double least, double most) {
    const nlohmann::json* field = find(name);
    if (!field) return;
    const std::string range =
        "a number from " + nlohmann::json(least).dump() + " to " + nlohmann::json(most).dump();
    if (!field->is_number()) refuse(name, *field, range);
    const double found = field->get<double>();
    // The range is checked before the cast, which is undefined for numbers out of range.
    if (!(found >= least && found <= most)) refuse(name, *field, range);
    if (std::is_integral_v<Number> && found != std::trunc(found))
      refuse(name, *field, "a whole number");
    value = static_cast<Number>(found);
  }
  /// A field, or null.
  const nlohmann::json* find(const char* name) {
    known_.insert(name);
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  /// @throws Error(BadInput)  if the object has a field that was not read
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
  [[noreturn]] void refuse(const char* name,
                           const nlohmann::json& found,
                           const std::string& expected) const {
    throw Error(ErrorCode::BadInput,
                where_ + ": " + name + ": found " + found.dump() + ", expected " + expected);
  }
  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> known_;
};

/// Reads the fields, common to all recipes, that the updates of the weights depend on.
template <typename Recipe>
void read_optimisation(RecipeFields& fields, Recipe& r) {
  fields.read("peak_lr", r.peak_lr, 0, 1);
  fields.read("final_lr", r.final_lr, 0, 1);
  fields.read("warmup_steps", r.warmup_steps, 0, 1e6);
  fields.read("beta1", r.beta1, 0, 0.9999);
  fields.read("beta2", r.beta2, 0, 0.99999);
  fields.read("weight_decay", r.weight_decay, 0, 10);
  fields.read("clip", r.clip, 1e-6, 1e6);
  fields.read("checkpoint_minutes", r.checkpoint_minutes, 0, 1e4);
  fields.read("seed", r.seed, 0, 9e15);
  fields.read("compute", r.compute, {"auto", "f32", "bf16-amx", "bf16-onednn"});
  fields.read("shards", r.shards, 0, 256);
}

/// Reads the fields about measurements during a run.
template <typename Recipe>
void read_probing(RecipeFields& fields, Recipe& r) {
  fields.read("probe_minutes", r.probe_minutes, 0, 1e4);
  fields.read("probe_problems", r.probe_problems, 1, 1e5);
}

/// Writes the fields of read_optimisation().
/// @param how_long  fields for the length of the run, written after them; may be empty
/// @param measures  fields for measurements, written after checkpoint_minutes; may be empty
template <typename Recipe>
void write_optimisation(nlohmann::ordered_json& object,
                        const Recipe& r,
                        const nlohmann::ordered_json& how_long,
                        const nlohmann::ordered_json& measures) {
  object.update({{"peak_lr", r.peak_lr},
                 {"final_lr", r.final_lr},
                 {"warmup_steps", r.warmup_steps},
                 {"beta1", r.beta1},
                 {"beta2", r.beta2},
                 {"weight_decay", r.weight_decay},
                 {"clip", r.clip}});
  object.update(how_long);
  object["checkpoint_minutes"] = r.checkpoint_minutes;
  object.update(measures);
  object.update({{"seed", r.seed}, {"compute", r.compute}, {"shards", r.shards}});
}

/// The contents of a recipe's file.
/// @throws Error(BadInput)  if it does not exist or is a directory
std::string recipe_text(const std::string& path);
/// Parses JSON.
/// @param path  for messages
/// @throws Error(BadInput)  if the text is not JSON, or nested too deeply
nlohmann::json parsed_recipe(const std::string& text, const std::string& path);

/// Reads the object "own_outputs" of a recipe.
/// @param where  for messages
/// @throws Error(BadInput)
void read_outputs_plan(const nlohmann::json& object, const std::string& where, OutputsPlan& plan);
/// The plan as JSON.
nlohmann::ordered_json json_of(const OutputsPlan& plan);

}  // namespace engine
