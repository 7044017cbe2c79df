#include "engine/checkpoint/families/rope_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/json.h"
#include "engine/base/refuse.h"

namespace engine {
namespace {

using RopeType = RopeConfig::Type;

constexpr double kMaxRopeTheta = 1e12;
constexpr double kMaxFactor = 1e6;
constexpr const char* kOriginal = "original_max_position_embeddings";

RopeType type_of(const Fields& rope) {
  std::optional<std::string> name = rope.string("rope_type");
  const char* field = name ? "rope_type" : "type";
  if (!name) name = rope.string("type");
  if (!name) return RopeType::Default;
  if (*name == "su") return RopeType::Longrope;  // the early name in Phi-3
  for (const RopeType type : {RopeType::Default, RopeType::Linear, RopeType::Dynamic,
                              RopeType::Yarn, RopeType::Llama3, RopeType::Longrope})
    if (*name == name_of(type)) return type;
  rope.fail(field, in_quotes(*name), "default, linear, dynamic, yarn, llama3 or longrope");
}

/// The members that this type of scaling uses, without its name and rope_theta.
std::vector<std::string_view> members_of(RopeType type) {
  switch (type) {
    case RopeType::Default:
      return {};
    case RopeType::Linear:
    case RopeType::Dynamic:
      return {"factor"};
    case RopeType::Yarn:
      return {"factor",    kOriginal, "attention_factor", "beta_fast",
              "beta_slow", "mscale",  "mscale_all_dim",   "truncate"};
    case RopeType::Llama3:
      return {"factor", kOriginal, "low_freq_factor", "high_freq_factor"};
    case RopeType::Longrope:
      return {"factor", kOriginal, "attention_factor", "short_factor", "long_factor"};
  }
  return {};
}

/// Adds a notice that names the members which this type of scaling does not use.
void note_unused(const Json& object,
                 const char* name,
                 RopeType type,
                 const std::string& path,
                 std::vector<std::string>& notices) {
  const std::vector<std::string_view> used = members_of(type);
  std::vector<std::string> unused;
  for (const auto& [key, value] : object.members) {
    if (value.is(JsonReader::Kind::Null) || key == "rope_type" || key == "type" ||
        key == "rope_theta" || key == "partial_rotary_factor")
      continue;
    if (std::ranges::find(used, key) == used.end()) unused.push_back(in_quotes(key));
  }
  if (unused.empty()) return;
  notices.push_back(fmt::format("{}: {}: {} not used by {}, as in transformers: ignored",
                                escaped(path), name, fmt::join(unused, ", "), name_of(type)));
}

void read_yarn(const Fields& rope, const ModelConfig& config, RopeConfig& out) {
  // As in transformers, a factor of null means the extended length divided by the original one.
  const double implied = double{1} * config.max_position_embeddings / out.original_max_seq_len;
  out.factor = rope.real("factor", 0, kMaxFactor, std::max(implied, 1.0));
  out.attention_factor = rope.real("attention_factor", 0, kMaxFactor, 0.0);
  out.beta_fast = rope.real("beta_fast", 0, kMaxFactor, 32.0);
  out.beta_slow = rope.real("beta_slow", 0, kMaxFactor, 1.0);
  if (out.beta_fast < out.beta_slow) {
    rope.fail("beta_fast", fmt::format("{}", out.beta_fast),
              fmt::format("at least beta_slow ({})", out.beta_slow));
  }
  // Some files write 0 for "absent".
  const auto magnitude = [&](const char* name) {
    const Json* value = rope.find(name);
    const bool is_zero =
        value && value->is(JsonReader::Kind::Number) && value->number().real() == 0;
    return is_zero ? 0.0 : rope.real(name, 0, kMaxFactor, 0.0);
  };
  out.mscale = magnitude("mscale");
  out.mscale_all_dim = magnitude("mscale_all_dim");
  out.truncate = rope.boolean("truncate", true);
}

void read_llama3(const Fields& rope, RopeConfig& out) {
  out.factor = rope.real("factor", 0, kMaxFactor);
  out.low_freq_factor = rope.real("low_freq_factor", 0, kMaxFactor);
  out.high_freq_factor = rope.real("high_freq_factor", 0, kMaxFactor);
  if (out.high_freq_factor <= out.low_freq_factor) {
    rope.fail("high_freq_factor", fmt::format("{}", out.high_freq_factor),
              fmt::format("more than low_freq_factor ({})", out.low_freq_factor));
  }
}

/// Reads a list with one factor per rotary pair.
std::vector<double> factors(const Fields& rope, const char* name, int n_pairs) {
  const std::string expected =
      fmt::format("{} numbers above 0, one for every rotary pair", n_pairs);
  const Json* list = rope.find(name);
  if (!list) rope.fail(name, "none", expected);
  if (!list->is(JsonReader::Kind::Array)) rope.fail(name, list->shown(), expected);
  if (list->items.size() != static_cast<std::size_t>(n_pairs))
    rope.fail(name, fmt::format("{} entries", list->items.size()), expected);
  std::vector<double> out;
  for (const Json& item : list->items) {
    const double factor = item.is(JsonReader::Kind::Number) ? item.number().real() : std::nan("");
    if (!(factor > 0 && factor <= kMaxFactor)) rope.fail(name, item.shown(), expected);
    out.push_back(factor);
  }
  return out;
}

void read_longrope(const Fields& rope, const ModelConfig& config, RopeConfig& out) {
  const double implied = double{1} * config.max_position_embeddings / out.original_max_seq_len;
  out.factor = rope.real("factor", 0, kMaxFactor, implied);
  out.attention_factor = rope.real("attention_factor", 0, kMaxFactor, 0.0);
  const int n_pairs = (out.rotary_dim > 0 ? out.rotary_dim : config.head_dim) / 2;
  out.short_factor = factors(rope, "short_factor", n_pairs);
  out.long_factor = factors(rope, "long_factor", n_pairs);
}

/// @param fields  the top level of config.json. Some files, such as Phi-3's, have the original
///                length there
void read_scaling(const Fields& fields,
                  const Fields& rope,
                  const FileLimits& limits,
                  const ModelConfig& config,
                  RopeConfig& out) {
  const auto original = [&] {
    const Fields& from = fields.find(kOriginal) ? fields : rope;
    return static_cast<int>(from.integer(kOriginal, 1, limits.max_seq_len, config.max_seq_len));
  };
  switch (out.type) {
    case RopeType::Default:
      return;
    case RopeType::Linear:
    case RopeType::Dynamic:
      // As in transformers, dynamic scaling is relative to max_position_embeddings, not to the
      // original length.
      if (out.type == RopeType::Dynamic) out.original_max_seq_len = config.max_seq_len;
      out.factor = rope.real("factor", 0, kMaxFactor);
      return;
    case RopeType::Yarn:
      out.original_max_seq_len = original();
      return read_yarn(rope, config, out);
    case RopeType::Llama3:
      out.original_max_seq_len = original();
      return read_llama3(rope, out);
    case RopeType::Longrope:
      out.original_max_seq_len = original();
      return read_longrope(rope, config, out);
  }
}

/// Refuses parameters that are given per layer type, as transformers writes them for other families.
void refuse_per_layer(const Json& object, const Fields& rope) {
  for (const auto& [key, value] : object.members) {
    if (!value.is(JsonReader::Kind::Object)) continue;
    rope.fail(key.c_str(), "an object", "one set of rope parameters for all layers");
  }
}

void extend_context(const FileLimits& limits,
                    const std::string& path,
                    ModelConfig& config,
                    std::vector<std::string>& notices) {
  const double extended = std::floor(extended_context(config.rope, config.max_seq_len));
  const auto most = static_cast<double>(limits.max_seq_len);
  if (extended > most)
    notices.push_back(fmt::format(
        "{}: rope scaling ({}, factor {}) extends the context to {:.0f} positions: {} are used, "
        "the limit max_seq_len (--limit max_seq_len=N raises it)",
        escaped(path), name_of(config.rope.type), config.rope.factor, extended,
        limits.max_seq_len));
  config.max_seq_len = static_cast<int>(std::min(extended, most));
}

/// RoPE parameters as a text ("linear, factor 4"), to compare two sets of parameters.
std::string summary_of(const Json& object) {
  const auto shown = [&](const char* name) {
    const Json* value = object.find(name);
    return value ? value->shown() : std::string("none");
  };
  const std::string type = shown(object.find("rope_type") ? "rope_type" : "type");
  return fmt::format("{}, factor {}", type, shown("factor"));
}

/// Adds a notice if rope_parameters differs from rope_scaling, which takes precedence.
/// @param used  rope_scaling
void note_second_object(const Fields& fields, const Json& used, std::vector<std::string>& notices) {
  const Json* other = fields.find("rope_parameters");
  if (!other || !other->is(JsonReader::Kind::Object) || other->members.empty()) return;
  const std::string first = summary_of(used), second = summary_of(*other);
  if (first == second) return;
  notices.push_back(fmt::format(
      "{}: rope_scaling has {}, rope_parameters has {}: using rope_scaling, as transformers does",
      escaped(fields.file()), first, second));
}

/// Reads how many dimensions of a head are rotated. Only Phi-3 may leave some out.
void read_partial(const Fields& fields, const ModelConfig& config, RopeConfig& out) {
  constexpr const char* kName = "partial_rotary_factor";
  const double factor = fields.real(kName, 0, 1, 1.0);
  if (factor == 1) return;
  if (config.model_type != "phi3")
    fields.fail(kName, "less than 1", "1 (all dimensions are rotated)");
  constexpr double kRounding = 1e-6;  // error of a stored quotient of two integers
  out.rotary_dim = static_cast<int>(config.head_dim * factor + kRounding);
  if (out.rotary_dim < 2 || out.rotary_dim % 2 != 0)
    fields.fail(kName, fmt::format("{} of {} dimensions", out.rotary_dim, config.head_dim),
                "a factor that gives an even number (rotary pairs)");
}

/// Reads one object of parameters.
/// @param name  the object's name in the file, for notices
void read_parameters(const Fields& fields,
                     const Json& object,
                     const std::string& name,
                     const FileLimits& limits,
                     const ModelConfig& config,
                     RopeConfig& out,
                     std::vector<std::string>& notices) {
  const Fields rope(object, fields.file(), name + ".");
  out.theta = rope.real("rope_theta", 0, kMaxRopeTheta, out.theta);
  refuse_per_layer(object, rope);
  out.type = type_of(rope);
  read_partial(rope, config, out);
  read_scaling(fields, rope, limits, config, out);
  note_unused(object, name.c_str(), out.type, fields.file(), notices);
}

/// Reads Gemma 3's two sets of parameters, one for global and one for local layers. The file's
/// context length already includes the scaling.
void read_two_sets(const Fields& fields,
                   const FileLimits& limits,
                   ModelConfig& config,
                   std::vector<std::string>& notices) {
  constexpr double kLocalTheta = 10000;
  RopeConfig& local = config.local_rope.emplace();
  local.theta = fields.real("rope_local_base_freq", 0, kMaxRopeTheta, kLocalTheta);
  const auto read = [&](const Json* object, const std::string& name, RopeConfig& out) {
    if (object && object->is(JsonReader::Kind::Object))
      read_parameters(fields, *object, name, limits, config, out, notices);
  };
  if (const Json* sets = fields.find("rope_parameters")) {
    read(sets->find("full_attention"), "rope_parameters.full_attention", config.rope);
    read(sets->find("sliding_attention"), "rope_parameters.sliding_attention", local);
  }
  read(fields.find("rope_scaling"), "rope_scaling", config.rope);
  if (local.type != RopeType::Default)
    fields.fail("rope_parameters.sliding_attention.rope_type", in_quotes(name_of(local.type)),
                "\"default\"");
}

}  // namespace

double extended_context(const RopeConfig& rope, int max_position_embeddings) {
  const double stated = max_position_embeddings;
  switch (rope.type) {
    case RopeType::Default:
      return stated;
    case RopeType::Linear:
    case RopeType::Dynamic:
      return std::max(stated, stated * rope.factor);
    case RopeType::Yarn:
    case RopeType::Llama3:
    case RopeType::Longrope:
      return std::max(stated, rope.original_max_seq_len * rope.factor);
  }
  return stated;
}

void read_rope(const Fields& fields,
               const FileLimits& limits,
               double default_theta,
               ModelConfig& config,
               std::vector<std::string>& notices) {
  config.max_position_embeddings = config.max_seq_len;
  config.rope.theta = fields.real("rope_theta", 0, kMaxRopeTheta, default_theta);
  read_partial(fields, config, config.rope);
  if (config.model_type == "gemma3_text") return read_two_sets(fields, limits, config, notices);
  const auto holds_some = [](const Json* value) {
    return value && !(value->is(JsonReader::Kind::Object) && value->members.empty());
  };
  const bool is_old = holds_some(fields.find("rope_scaling"));
  const char* name = is_old ? "rope_scaling" : "rope_parameters";
  const Json* scaling = fields.find(name);
  if (!scaling) return;
  if (is_old) note_second_object(fields, *scaling, notices);
  read_parameters(fields, *scaling, name, limits, config, config.rope, notices);
  extend_context(limits, fields.file(), config, notices);
}

}  // namespace engine
