// Reading a recipe: the fields of one JSON object, each within its range, and none that is unknown.
// Of the .cpp files that read recipes alone; it brings nlohmann in.
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

namespace engine {

// Reads fields of one object and, at the end, refuses those nobody asked for.
class RecipeFields {
 public:
  RecipeFields(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) {
      throw Error(ErrorCode::BadInput,
                  where_ + ": found " + object.type_name() + ", expected an object of settings");
    }
  }

  void read(const char* name, std::string& value) {
    if (const nlohmann::json* field = find(name)) {
      if (!field->is_string()) refuse(name, *field, "a text");
      value = field->get<std::string>();
    }
  }
  void read(const char* name, bool& value) {
    if (const nlohmann::json* field = find(name)) {
      if (!field->is_boolean()) refuse(name, *field, "true or false");
      value = field->get<bool>();
    }
  }
  /// A text that is one of a few.
  void read(const char* name, std::string& value, const std::vector<std::string>& choices) {
    read(name, value);
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
    std::string list;
    for (const std::string& choice : choices)
      list += (list.empty() ? "" : choice == choices.back() ? " or " : ", ") + choice;
    refuse(name, value, list);
  }
  template <typename Number>
  void read(const char* name, Number& value, double least, double most) {
    const nlohmann::json* field = find(name);
    if (!field) return;
    const std::string range =
        "a number from " + nlohmann::json(least).dump() + " to " + nlohmann::json(most).dump();
    if (!field->is_number()) refuse(name, *field, range);
    const double found = field->get<double>();
    // Before any cast: what an integer cannot hold must not be cast to one.
    if (!(found >= least && found <= most)) refuse(name, *field, range);
    if (std::is_integral_v<Number> && found != std::trunc(found))
      refuse(name, *field, "a whole number");
    value = static_cast<Number>(found);
  }
  const nlohmann::json* find(const char* name) {
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

/// What every recipe says of its updates.
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

/// What recipes say of measures on unseen problems while they run.
template <typename Recipe>
void read_probing(RecipeFields& fields, Recipe& r) {
  fields.read("probe_minutes", r.probe_minutes, 0, 1e4);
  fields.read("probe_problems", r.probe_problems, 1, 1e5);
}

/// The same as read_optimisation, as a recipe is written. `how_long` and `measures`, which are the
/// recipe's own, stand where readers look for them: behind what decides an update, and behind how
/// often it is saved.
/// @param how_long, measures  objects, perhaps empty
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

/// The text of a recipe's file.
/// @throws Error(BadInput)  if there is none, or `path` is a directory
std::string recipe_text(const std::string& path);
/// @param path  for messages
/// @throws Error(BadInput)  if the text is not JSON, or nested too deep
nlohmann::json parsed_recipe(const std::string& text, const std::string& path);

}  // namespace engine
