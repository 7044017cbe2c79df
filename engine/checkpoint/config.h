// The shape of a LLaMA-family model, whatever file it came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/types.h"

namespace engine {

/// Rotary position embedding and its long-context variants, as transformers names them.
struct RopeConfig {
  enum class Type { Default, Linear, Dynamic, Yarn, Llama3, Longrope };
  Type type = Type::Default;
  double theta = 10000;
  double factor = 1;
  int original_max_seq_len = 0;
  double attention_factor = 0;            // yarn, longrope; 0: derived from factor
  double beta_fast = 32, beta_slow = 1;   // yarn
  double mscale = 0, mscale_all_dim = 0;  // yarn, 0: absent
  bool truncate = true;                   // yarn: round the correction range to whole dimensions
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  /// longrope: the divisor of each pair's frequency, [head_dim / 2], in sequences of at most
  /// original_max_seq_len tokens and in longer ones.
  std::vector<double> short_factor = {}, long_factor = {};

  /// Sequences whose prompts have the same key rotate the same positions by the same angles; the
  /// key of a prompt of at most original_max_seq_len tokens is 0. Only dynamic and longrope have
  /// other keys: their frequencies depend on the sequence's length (engine/model/rope.h).
  int rotation_key(int n_prompt) const;
};
/// "default", "linear", ...: as config.json names it.
const char* name_of(RopeConfig::Type type);

struct ModelConfig {
  std::string model_type = "llama";  // llama, mistral, qwen2
  int dim = 0;
  int hidden_dim = 0;
  int n_layers = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;   // rows of the embedding; may exceed the tokenizer's (padding)
  int max_seq_len = 0;  // the context: positions a sequence may fill
  /// The length that config.json states, before rope scaling extends it; 0: max_seq_len.
  int max_position_embeddings = 0;
  float norm_eps = 1e-5f;
  RopeConfig rope;
  bool tied_embeddings = false;
  bool qkv_bias = false;  // Qwen2
  bool attn_out_bias = false;
  bool mlp_bias = false;
  int sliding_window = 0;  // 0: full attention
  int n_full_layers = 0;   // Qwen2's max_window_layers: that many first layers see everything
  std::optional<TokenId> bos_id;
  std::vector<TokenId>
      eos_ids;  // config.json's, replaced by generation_config.json's where there is one
  std::optional<TokenId> pad_id;

  /// Number of weights, embeddings counted once when tied.
  std::int64_t n_params() const;
};

/// A tensor that a model reads, by its full name.
struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;
};
/// The tensors that a model of this shape reads, in a fixed order.
std::vector<TensorSpec> tensors_of(const ModelConfig& config);

/// "4x2": every width times 4, every layer count times 2.
struct ModelScale {
  int width = 1;  // 1, 4, 16, ...: a power of four, so that sqrt(width) is a power of two
  int depth = 1;
  bool operator==(const ModelScale&) const = default;
};
/// "1x1", "4x2".
std::string name_of(const ModelScale& scale);
/// @throws Error(Usage)  if text is not WxD with W a power of four and D >= 1
ModelScale scale_from(const std::string& text);

}  // namespace engine
