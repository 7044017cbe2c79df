// Turns the metadata into the members of a config.json, which config_file.cpp validates by the same rules as a file. The
// values of keys are checked here first, because messages must name the key.
#include "engine/checkpoint/gguf/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/checkpoint/families/architectures.h"
#include "engine/checkpoint/families/write_family.h"
#include "engine/checkpoint/gguf/gguf_implied.h"
#include "engine/checkpoint/safetensors.h"

namespace engine {
namespace {

constexpr double kMaxFactor = 1e6;

constexpr const char* kTokenIds[] = {"bos_token_id", "eos_token_id", "padding_token_id"};

std::string gguf_architectures() {
  std::vector<std::string> names;
  for (const Architecture& one : architectures())
    if (std::ranges::find(names, one.gguf) == names.end()) names.emplace_back(one.gguf);
  return fmt::format("{}", fmt::join(names, ", "));
}

class Reader {
 public:
  Reader(const GgufFile& file,
         const std::vector<std::shared_ptr<const GgufFile>>& parts,
         const FileLimits& limits)
      : file_(file), parts_(parts), limits_(limits), gguf_(file.architecture()) {
    const Architecture* architecture = architecture_of_gguf(gguf_);
    if (!architecture)
      file_.refuse_value("general.architecture", in_quotes(gguf_),
                         "an architecture that is read: " + gguf_architectures());
    type_ = architecture->model_type;
    // Mistral's files have the architecture "llama"; llama.cpp ignores a window there.
    if (type_ == "llama" && file_.has(key("attention.sliding_window"))) type_ = "mistral";
  }

  ConfigFile read(int context) {
    check_kind();
    read_shape();
    read_rope();
    read_family();
    read_tokens();
    const std::string text = out_.lines();
    ConfigFile config =
        parse_config(parse_json(text, file_.path()), file_.path(), false, limits_, context);
    set_biases_and_scale(config.config);
    return config;
  }

 private:
  std::string key(const std::string& name) const { return gguf_ + "." + name; }

  const GgufTensor* tensor(const std::string& name) const {
    for (const auto& part : parts_) {
      const auto at = std::ranges::find(part->tensors(), name, &GgufTensor::name);
      if (at != part->tensors().end()) return &*at;
    }
    return nullptr;
  }

  // An integer in a range; nullopt if absent. An array of one value per layer is accepted if all are
  // equal.
  std::optional<std::int64_t> integer(const std::string& name,
                                      std::int64_t low,
                                      std::int64_t high) {
    const std::string full = key(name);
    if (!file_.has(full)) return std::nullopt;
    const std::vector<std::int64_t> values = file_.integers(full);
    const bool is_array = file_.find(full)->type == GgufType::Array;
    if (values.empty())
      file_.refuse_value(full, "an empty array", fmt::format("{} to {}", low, high));
    if (is_array && values.size() != static_cast<std::size_t>(n_layers_))
      file_.refuse_value(full, fmt::format("{} values", values.size()),
                         fmt::format("one value, or {}, one for each layer", n_layers_));
    if (is_array && std::ranges::adjacent_find(values, std::not_equal_to<>()) != values.end())
      file_.refuse_value(full, "values that differ from layer to layer",
                         "one value for all layers");
    if (values[0] < low || values[0] > high)
      file_.refuse_value(full, std::to_string(values[0]), fmt::format("{} to {}", low, high));
    return values[0];
  }

  std::int64_t required(const std::string& name, std::int64_t low, std::int64_t high) {
    const std::optional<std::int64_t> value = integer(name, low, high);
    if (!value) file_.refuse_value(key(name), "none", fmt::format("{} to {}", low, high));
    return *value;
  }

  // A number above `low`; nullopt if absent.
  std::optional<double> real(const std::string& name, double low, double high) {
    const std::string full = key(name);
    const std::optional<double> value = file_.number(full);
    if (value && !(*value > low && *value <= high))
      file_.refuse_value(full, fmt::format("{}", *value),
                         fmt::format("more than {}, at most {}", low, high));
    return value;
  }

  // Adds a number that the file stores as f32.
  void put(const char* member, double value) { out_.real(member, static_cast<float>(value)); }
  void put_if(const char* member, const std::optional<double>& value) {
    if (value) put(member, *value);
  }

  void check_kind() {
    if (const auto kind = file_.string("general.type"); kind && *kind != "model")
      file_.refuse_value("general.type", in_quotes(*kind), "\"model\", a language model");
    const bool has_tensors =
        std::ranges::any_of(parts_, [](const auto& part) { return !part->tensors().empty(); });
    if (!has_tensors)
      refuse(file_.path(), "tensors", "none: a vocabulary without weights",
             "a model; `decoscope model tokenize` reads this file");
    if (integer("expert_count", 0, 1 << 20).value_or(0) > 0)
      file_.refuse_value(key("expert_count"), "a mixture of experts", "a dense model");
    if (file_.has(key("target_layers")))
      file_.refuse_value(key("target_layers"), "a draft that reads layers of its target",
                         "a whole model");
    if (integer("nextn_predict_layers", 0, limits_.n_layers).value_or(0) > 0)
      file_.refuse_value(key("nextn_predict_layers"), "layers that predict further tokens",
                         "a model without them");
  }

  void read_shape() {
    out_.text("model_type", type_);
    n_layers_ = required("block_count", 1, limits_.n_layers);
    const std::int64_t dim = required("embedding_length", 1, limits_.dim);
    const std::int64_t n_heads = required("attention.head_count", 1, limits_.n_heads);
    const std::int64_t n_kv = integer("attention.head_count_kv", 1, n_heads).value_or(n_heads);
    if (n_heads % n_kv != 0)
      file_.refuse_value(key("attention.head_count_kv"), std::to_string(n_kv),
                         fmt::format("a divisor of attention.head_count ({})", n_heads));
    head_dim_ = integer("attention.key_length", 2, limits_.dim).value_or(dim / n_heads);
    if (!file_.has(key("attention.key_length")) && dim % n_heads != 0)
      file_.refuse_value(key("attention.head_count"), std::to_string(n_heads),
                         fmt::format("a divisor of embedding_length ({}), or a key_length", dim));
    if (head_dim_ < 2)
      file_.refuse_value(key("attention.head_count"), std::to_string(n_heads),
                         fmt::format("at most half of embedding_length ({})", dim));
    check_equal("attention.value_length", head_dim_);
    read_rotary_dim();
    out_.integer("hidden_size", dim);
    out_.integer("num_hidden_layers", n_layers_);
    out_.integer("num_attention_heads", n_heads);
    out_.integer("num_key_value_heads", n_kv);
    out_.integer("head_dim", head_dim_);
    out_.integer("intermediate_size", required("feed_forward_length", 1, limits_.hidden_dim));
    context_ = required("context_length", 1, limits_.max_seq_len);
    out_.integer("max_position_embeddings", context_);
    const std::optional<double> eps = real("attention.layer_norm_rms_epsilon", 1e-20, 0.1);
    if (!eps) file_.refuse_value(key("attention.layer_norm_rms_epsilon"), "none", "a number");
    put("rms_norm_eps", *eps);
    dim_ = dim;
    n_heads_ = n_heads;
    read_vocabulary();
  }

  // Only Phi-3 may leave dimensions of a head unrotated.
  void read_rotary_dim() {
    rotary_dim_ = head_dim_;
    if (type_ != "phi3") return check_equal("rope.dimension_count", head_dim_);
    rotary_dim_ = integer("rope.dimension_count", 2, head_dim_).value_or(head_dim_);
    if (rotary_dim_ < head_dim_)
      put("partial_rotary_factor",
          static_cast<double>(rotary_dim_) / static_cast<double>(head_dim_));
  }

  void check_equal(const char* name, std::int64_t expected) {
    const std::optional<std::int64_t> found = integer(name, 0, 1 << 24);
    if (found && *found != expected)
      file_.refuse_value(key(name), std::to_string(*found),
                         fmt::format("{}, the size of a head", expected));
  }

  void read_vocabulary() {
    const GgufTensor* embedding = tensor("token_embd.weight");
    if (!embedding) refuse(file_.path(), "tensor \"token_embd.weight\"", "none", "the embedding");
    if (embedding->shape.size() != 2 || embedding->shape[0] < 1 ||
        embedding->shape[0] > limits_.vocab_size)
      refuse(file_.path(), "tensor \"token_embd.weight\"", shown_shape(embedding->shape),
             fmt::format("[vocabulary of 1 to {}, {}]", limits_.vocab_size, dim_));
    vocab_size_ = embedding->shape[0];
    const GgufEntry* tokens = file_.find("tokenizer.ggml.tokens");
    if (tokens && tokens->count > vocab_size_)
      file_.refuse_value("tokenizer.ggml.tokens", fmt::format("{} tokens", tokens->count),
                         fmt::format("at most {}, the rows of token_embd.weight", vocab_size_));
    out_.integer("vocab_size", vocab_size_);
    out_.boolean("tie_word_embeddings", tensor("output.weight") == nullptr);
  }

  // ---- rotary position embedding

  void read_rope() {
    const double theta = real("rope.freq_base", 0, 1e12).value_or(10000);
    put("rope_theta", theta);
    if (type_ == "gemma3_text")
      put("rope_local_base_freq", real("rope.freq_base_swa", 0, 1e12).value_or(10000));
    const std::string type = rope_type();
    if (type == "none") return;
    ObjectText scaling;
    scaling.text("rope_type", type);
    const double factor = rope_factor(type);
    if (type == "linear") {
      if (factor == 1) return;
      scaling.raw("factor", fmt::format("{}", factor));
    }
    if (type == "yarn") put_yarn(factor, scaling);
    if (type == "llama3" || type == "longrope") put_factors(type, scaling);
    out_.raw("rope_scaling", scaling.one_line());
  }

  std::string rope_type() {
    const std::string full = key("rope.scaling.type");
    const std::optional<std::string> stated = file_.string(full);
    if (tensor("rope_freqs.weight")) return "llama3";
    if (tensor("rope_factors_long.weight")) return "longrope";
    if (stated && *stated != "none" && *stated != "linear" && *stated != "yarn")
      file_.refuse_value(full, in_quotes(*stated),
                         "none, linear or yarn, or longrope with the tensors rope_factors_*");
    return stated.value_or(
        file_.has(key("rope.scaling.factor")) || file_.has(key("rope.scale_linear")) ? "linear"
                                                                                     : "none");
  }

  double rope_factor(const std::string& type) {
    std::optional<double> factor = real("rope.scaling.factor", 0, kMaxFactor);
    if (!factor) factor = real("rope.scale_linear", 0, kMaxFactor);
    if (!factor && type == "yarn")
      file_.refuse_value(key("rope.scaling.factor"), "none", "the factor of yarn");
    return factor.value_or(1);
  }

  void put_original(ObjectText& scaling) {
    if (const auto n = integer("rope.scaling.original_context_length", 1, limits_.max_seq_len))
      scaling.integer("original_max_position_embeddings", *n);
  }

  void put_yarn(double factor, ObjectText& scaling) {
    scaling.raw("factor", fmt::format("{}", factor));
    put_original(scaling);
    if (const auto own = real("rope.scaling.attn_factor", 0, kMaxFactor); own && *own != 1)
      scaling.real("attention_factor", *own * yarn_attention_factor(factor));
    for (const auto& [name, member] : {std::pair("rope.scaling.yarn_beta_fast", "beta_fast"),
                                       std::pair("rope.scaling.yarn_beta_slow", "beta_slow")})
      if (const auto beta = real(name, 0, kMaxFactor))
        scaling.raw(member, fmt::format("{}", *beta));
  }

  std::vector<float> factors_in(const std::string& name) {
    const GgufTensor* found = tensor(name);
    const std::string field = "tensor " + in_quotes(name);
    const std::int64_t n = rotary_dim_ / 2;
    if (!found || found->type->number != static_cast<std::uint32_t>(GgmlType::F32) ||
        found->n_elements() != n)
      refuse(file_.path(), field,
             found ? fmt::format("{} {}", shown_shape(found->shape), found->type->name) : "none",
             fmt::format("{} F32, one for every rotary pair", n));
    std::vector<float> factors(static_cast<std::size_t>(n));
    if (n > 0) std::memcpy(factors.data(), found->bytes.data(), found->bytes.size());
    for (const float factor : factors)
      if (!(factor > 0 && factor <= kMaxFactor))
        refuse(file_.path(), field, fmt::format("{}", factor), "numbers above 0, at most 1e6");
    return factors;
  }

  // Adds the divisors of the rotary frequencies: two lists for longrope (short and long sequences),
  // else one for all lengths.
  void put_factors(const std::string& type, ObjectText& scaling) {
    if (type == "longrope") {
      put_original(scaling);
      put_longrope_factor(scaling);
      scaling.raw("short_factor", list_of(factors_in("rope_factors_short.weight")));
      scaling.raw("long_factor", list_of(factors_in("rope_factors_long.weight")));
      return;
    }
    const std::vector<float> factors = factors_in("rope_freqs.weight");
    scaling = ObjectText();
    if (put_llama3(factors, scaling)) return;
    scaling.text("rope_type", "longrope");
    scaling.integer("original_max_position_embeddings", context_);
    scaling.real("factor", 1.0);
    scaling.real("attention_factor", 1.0);
    scaling.raw("short_factor", list_of(factors));
    scaling.raw("long_factor", list_of(factors));
  }

  // Adds longrope's attention factor unless it equals the one that follows from the context
  // lengths.
  void put_longrope_factor(ObjectText& scaling) {
    const auto own = real("rope.scaling.attn_factor", 0, kMaxFactor);
    if (!own) return;
    const double original = static_cast<double>(
        integer("rope.scaling.original_context_length", 1, limits_.max_seq_len).value_or(context_));
    const double implied =
        longrope_attention_factor(static_cast<double>(context_) / original, original);
    if (static_cast<float>(implied) != static_cast<float>(*own))
      scaling.real("attention_factor", *own);
  }

  static std::string list_of(const std::vector<float>& values) {
    return fmt::format("[{}]", fmt::join(values, ", "));
  }

  // Adds the parameters of Llama 3's scaling if they give these divisors; otherwise returns false.
  // All published models have the same frequency factors and original length, so only the factor is
  // unknown: it is the largest divisor.
  bool put_llama3(const std::vector<float>& divisors, ObjectText& scaling) {
    RopeConfig rope;
    rope.theta = real("rope.freq_base", 0, 1e12).value_or(10000);
    rope.factor = *std::ranges::max_element(divisors);
    rope.original_max_seq_len = 8192;
    const auto is_close = [](float found, double expected) {
      return std::abs(found - expected) <= 1e-5 * expected;
    };
    if (!std::ranges::equal(divisors, llama3_divisors(rope, head_dim_), is_close)) return false;
    scaling.text("rope_type", "llama3");
    scaling.real("factor", rope.factor);
    scaling.real("low_freq_factor", rope.low_freq_factor);
    scaling.real("high_freq_factor", rope.high_freq_factor);
    scaling.integer("original_max_position_embeddings", rope.original_max_seq_len);
    return true;
  }

  // ---- what differs between architectures

  void read_family() {
    if (type_ == "granite") {
      put_if("embedding_multiplier", real("embedding_scale", 0, kMaxFactor));
      put_if("residual_multiplier", real("residual_scale", 0, kMaxFactor));
      put_if("attention_multiplier", real("attention.scale", 0, kMaxFactor));
      put_if("logits_scaling", real("logit_scale", 0, kMaxFactor));
    }
    if (is_gemma(type_)) read_gemma();
    if (type_ == "phi3" || type_ == "mistral") put_window();
    if ((type_ == "qwen2" || type_ == "qwen3") && put_window()) {
      out_.boolean("use_sliding_window", true);
      out_.raw("layer_types", layer_types(1 << 20));
    }
    if (type_ == "smollm3") out_.integer("no_rope_layer_interval", 4);
  }

  void read_gemma() {
    out_.integer("query_pre_attn_scalar",
                 gemma_query_scalar(type_, n_layers_, dim_, n_heads_, head_dim_));
    for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"})
      put_if(cap, real(cap, 0, kMaxFactor));
    const bool has_window = put_window() || type_ == "gemma2";
    out_.raw("layer_types", layer_types(has_window ? usual_window_period(type_) : 1));
  }

  bool put_window() {
    const std::int64_t window =
        integer("attention.sliding_window", 0, std::int64_t{1} << 40).value_or(0);
    if (window > 0) out_.integer("sliding_window", window);
    return window > 0;
  }

  // Returns the JSON list of layer types. Without an array in the file every n-th layer is global
  // and the others are local.
  std::string layer_types(std::int64_t default_period) {
    constexpr const char* kPattern = "attention.sliding_window_pattern";
    const GgufEntry* entry = file_.find(key(kPattern));
    std::vector<bool> local(static_cast<std::size_t>(n_layers_));
    if (entry && entry->type == GgufType::Array) {
      local = file_.booleans(key(kPattern));
      if (local.size() != static_cast<std::size_t>(n_layers_))
        file_.refuse_value(key(kPattern), fmt::format("{} values", local.size()),
                           fmt::format("{}, one for each layer", n_layers_));
    } else {
      const std::int64_t period = integer(kPattern, 1, 1 << 20).value_or(default_period);
      for (std::size_t i = 0; i < local.size(); i++)
        local[i] = (static_cast<std::int64_t>(i) + 1) % period != 0;
    }
    std::vector<std::string> types;
    for (const bool is_local : local)
      types.emplace_back(is_local ? "\"sliding_attention\"" : "\"full_attention\"");
    return fmt::format("[{}]", fmt::join(types, ", "));
  }

  // ---- tokens and tensors

  void read_tokens() {
    for (const char* name : kTokenIds) {
      const std::string full = std::string("tokenizer.ggml.") + name;
      const std::optional<std::int64_t> id = file_.integer(full);
      if (!id) continue;
      if (*id < 0 || *id >= vocab_size_)
        file_.refuse_value(full, std::to_string(*id),
                           fmt::format("a token id below {}", vocab_size_));
      out_.integer(std::string_view(name) == "padding_token_id" ? "pad_token_id" : name, *id);
    }
  }

  // GGUF has no key for biases: the model has a bias if the file has its tensor.
  void set_biases_and_scale(ModelConfig& config) const {
    const auto has_bias = [this](const char* name) {
      return tensor(fmt::format("blk.0.{}.bias", name)) != nullptr;
    };
    config.qkv_bias = has_bias(config.fused_projections ? "attn_qkv" : "attn_q");
    config.attn_out_bias = has_bias("attn_output");
    config.mlp_bias = has_bias("ffn_down");
    if (const auto scale = file_.number(key("attention.scale")); scale && *scale > 0)
      config.attention_scale = *scale;
  }

  const GgufFile& file_;
  const std::vector<std::shared_ptr<const GgufFile>>& parts_;
  const FileLimits& limits_;
  std::string gguf_, type_;  // names of the architecture in GGUF and in config.json
  ObjectText out_;
  std::int64_t n_layers_ = 0, dim_ = 0, n_heads_ = 0, head_dim_ = 0, rotary_dim_ = 0,
               vocab_size_ = 0, context_ = 0;
};

}  // namespace

ConfigFile read_gguf_config(const GgufFile& file,
                            const std::vector<std::shared_ptr<const GgufFile>>& parts,
                            const FileLimits& limits,
                            int context) {
  return Reader(file, parts, limits).read(context);
}

}  // namespace engine
