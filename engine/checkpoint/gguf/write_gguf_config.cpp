// Writes the hyperparameters of a model as metadata, as llama.cpp's converters do.
#include <cmath>

#include <fmt/format.h>

#include "engine/base/refuse.h"
#include "engine/checkpoint/families/architectures.h"
#include "engine/checkpoint/gguf/gguf_config.h"
#include "engine/checkpoint/gguf/gguf_implied.h"
#include "engine/checkpoint/gguf/gguf_writer.h"

namespace engine {
namespace {

class Writer {
 public:
  Writer(const ModelConfig& config, const std::string& path, GgufHeader& header)
      : c_(config), path_(path), header_(header) {
    const Architecture* architecture = architecture_of_type(config.model_type);
    if (!architecture) refuse_member("model_type", config.model_type, architecture_list());
    gguf_ = architecture->gguf;
  }

  std::vector<GgufFactors> write() {
    header_.text("general.architecture", gguf_);
    header_.text("general.type", "model");
    write_shape();
    write_rope();
    write_family();
    write_window();
    return std::move(factors_);
  }

 private:
  std::string key(const char* name) const { return gguf_ + "." + name; }
  [[noreturn]] void refuse_member(const char* name,
                                  const std::string& found,
                                  const std::string& expected) const {
    refuse(path_, name, found, expected);
  }

  void write_shape() {
    const int positions =
        c_.max_position_embeddings > 0 ? c_.max_position_embeddings : c_.max_seq_len;
    header_.u32(key("context_length"), positions);
    header_.u32(key("embedding_length"), c_.dim);
    header_.u32(key("block_count"), c_.n_layers);
    header_.u32(key("feed_forward_length"), c_.hidden_dim);
    header_.u32(key("attention.head_count"), c_.n_heads);
    header_.u32(key("attention.head_count_kv"), c_.n_kv_heads);
    header_.f32(key("attention.layer_norm_rms_epsilon"), c_.norm_eps);
    header_.u32(key("vocab_size"), c_.vocab_size);
    header_.u32(key("rope.dimension_count"),
                c_.rope.rotary_dim > 0 ? c_.rope.rotary_dim : c_.head_dim);
    header_.u32(key("attention.key_length"), c_.head_dim);
    header_.u32(key("attention.value_length"), c_.head_dim);
  }

  // ---- rotary position embedding

  void write_rope() {
    const RopeConfig& rope = c_.rope;
    header_.f32(key("rope.freq_base"), rope.theta);
    if (c_.local_rope) header_.f32(key("rope.freq_base_swa"), c_.local_rope->theta);
    switch (rope.type) {
      case RopeConfig::Type::Default:
        if (c_.model_type == "phi3") write_original(c_.max_seq_len);
        return;
      case RopeConfig::Type::Linear:
        header_.text(key("rope.scaling.type"), "linear");
        header_.f32(key("rope.scaling.factor"), rope.factor);
        return;
      case RopeConfig::Type::Dynamic:
        refuse_member("rope_scaling", "dynamic",
                      "a scaling that GGUF files can have: linear, yarn, llama3, longrope");
      case RopeConfig::Type::Yarn:
        return write_yarn();
      case RopeConfig::Type::Llama3:
        return add_llama3();
      case RopeConfig::Type::Longrope:
        return add_longrope();
    }
  }

  void write_original(int n) { header_.u32(key("rope.scaling.original_context_length"), n); }

  void write_yarn() {
    const RopeConfig& rope = c_.rope;
    if (!rope.truncate) refuse_member("rope_scaling.truncate", "false", "true, for a GGUF file");
    header_.text(key("rope.scaling.type"), "yarn");
    header_.f32(key("rope.scaling.factor"), rope.factor);
    write_original(rope.original_max_seq_len);
    if (rope.beta_fast != 32) header_.f32(key("rope.scaling.yarn_beta_fast"), rope.beta_fast);
    if (rope.beta_slow != 1) header_.f32(key("rope.scaling.yarn_beta_slow"), rope.beta_slow);
    const auto magnitude = [&](double scale) { return yarn_attention_factor(rope.factor, scale); };
    double factor = rope.attention_factor;
    if (factor == 0 && rope.mscale > 0 && rope.mscale_all_dim > 0)
      factor = magnitude(rope.mscale) / magnitude(rope.mscale_all_dim);
    if (factor > 0) header_.f32(key("rope.scaling.attn_factor"), factor / magnitude(1));
  }

  void add_llama3() { add_factors("rope_freqs.weight", llama3_divisors(c_.rope, c_.head_dim)); }

  void add_longrope() {
    const RopeConfig& rope = c_.rope;
    header_.text(key("rope.scaling.type"), "longrope");
    write_original(rope.original_max_seq_len);
    const double derived = longrope_attention_factor(rope.factor, rope.original_max_seq_len);
    header_.f32(key("rope.scaling.attn_factor"),
                rope.attention_factor > 0 ? rope.attention_factor : derived);
    add_factors("rope_factors_long.weight", rope.long_factor);
    add_factors("rope_factors_short.weight", rope.short_factor);
  }

  void add_factors(const char* name, const std::vector<double>& values) {
    GgufFactors& factors = factors_.emplace_back(GgufFactors{name, {}});
    for (const double value : values) factors.values.push_back(static_cast<float>(value));
  }

  // ---- what differs between architectures

  void write_family() {
    if (c_.model_type == "granite") {
      header_.f32(key("attention.scale"), c_.attention_scale);
      header_.f32(key("embedding_scale"), c_.embedding_multiplier);
      header_.f32(key("residual_scale"), c_.residual_multiplier);
      header_.f32(key("logit_scale"), c_.logits_scaling);
    }
    if (is_gemma(c_.model_type)) {
      if (c_.attention_softcap > 0)
        header_.f32(key("attn_logit_softcapping"), c_.attention_softcap);
      if (c_.logit_softcap > 0) header_.f32(key("final_logit_softcapping"), c_.logit_softcap);
      check_gemma_scale();
    }
    if (c_.model_type == "smollm3") check_rotated_layers();
  }

  // llama.cpp derives the scale from the shape.
  void check_gemma_scale() const {
    const auto derived = static_cast<double>(
        gemma_query_scalar(c_.model_type, c_.n_layers, c_.dim, c_.n_heads, c_.head_dim));
    const double found = 1 / (c_.attention_scale * c_.attention_scale);
    if (std::abs(found - derived) > 1e-3 * derived)
      refuse_member("query_pre_attn_scalar", fmt::format("{:.6g}", found),
                    fmt::format("{}, as GGUF files imply for {} layers", derived, c_.n_layers));
  }

  void check_rotated_layers() const {
    for (int layer = 0; layer < c_.n_layers; layer++)
      if (c_.kind_of(layer).rotated != ((layer + 1) % 4 != 0))
        refuse_member("no_rope_layers", fmt::format("another value for layer {}", layer),
                      "every fourth layer without RoPE, as GGUF files imply");
  }

  void write_window() {
    if (c_.sliding_window == 0) {
      if (c_.model_type == "phi3") header_.u32(key("attention.sliding_window"), 0);
      return;
    }
    header_.u32(key("attention.sliding_window"), c_.sliding_window);
    std::vector<bool> local;
    for (int layer = 0; layer < c_.n_layers; layer++) local.push_back(c_.kind_of(layer).local);
    if (!has_usual_pattern(local)) header_.booleans(key("attention.sliding_window_pattern"), local);
  }

  // True if llama.cpp, without a pattern in the file, treats exactly these layers as local.
  bool has_usual_pattern(const std::vector<bool>& local) const {
    const auto period = static_cast<std::size_t>(usual_window_period(c_.model_type));
    for (std::size_t i = 0; i < local.size(); i++)
      if (local[i] != (period == 0 || (i + 1) % period != 0)) return false;
    return true;
  }

  const ModelConfig& c_;
  const std::string& path_;
  GgufHeader& header_;
  std::string gguf_;
  std::vector<GgufFactors> factors_;
};

}  // namespace

std::vector<GgufFactors> write_gguf_config(const ModelConfig& config,
                                           const std::string& path,
                                           GgufHeader& header) {
  return Writer(config, path, header).write();
}

}  // namespace engine
