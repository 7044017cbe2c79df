// The shape of a LLaMA-family model, independent of the file format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/types.h"
#include "kernels/gate.h"

namespace engine {

/// Rotary position embedding and its long-context variants, as transformers names them.
struct RopeConfig {
  /// The variants of scaling.
  enum class Type { Default, Linear, Dynamic, Yarn, Llama3, Longrope };
  Type type = Type::Default;
  double theta = 10000;
  /// Leading dimensions of a head that are rotated; 0: all (Phi-4-mini: three quarters).
  int rotary_dim = 0;
  double factor = 1;
  int original_max_seq_len = 0;
  double attention_factor = 0;            // yarn, longrope; 0: derived from factor
  double beta_fast = 32, beta_slow = 1;   // yarn
  double mscale = 0, mscale_all_dim = 0;  // yarn, 0: absent
  bool truncate = true;                   // yarn: round the correction range to whole dimensions
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  /// longrope: [head_dim / 2] the divisor of each pair's frequency. short_factor is for sequences
  /// of at most original_max_seq_len tokens, long_factor for longer ones.
  std::vector<double> short_factor = {}, long_factor = {};

  /// A key of the rotation angles that a prompt of this length leads to. Prompts with equal keys
  /// have equal angles at every position. The key is 0 for at most original_max_seq_len tokens.
  /// Other keys exist only for dynamic and longrope, whose frequencies depend on the length of the
  /// sequence (engine/model/rope.h).
  int rotation_key(int n_prompt) const;
};
/// The name that config.json uses: "default", "linear".
const char* name_of(RopeConfig::Type type);

/// What distinguishes a layer's attention from that of other layers.
struct LayerKind {
  /// Sees sliding_window positions only, and rotates by local_rope if the model has it.
  bool local = true;
  bool rotated = true;  // false: no position embedding (NoPE)
  bool operator==(const LayerKind&) const = default;
};

/// The hyperparameters of a decoder-only transformer of the LLaMA family. The defaults describe LLaMA; the members say how
/// an architecture differs (engine/checkpoint/families/architectures.h lists those that are read).
struct ModelConfig {
  std::string model_type = "llama";  // of config.json
  int dim = 0;
  int hidden_dim = 0;
  int n_layers = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;   // rows of the embedding; may exceed the tokenizer's size (padding)
  int max_seq_len = 0;  // the context length: most positions of a sequence
  /// The length in config.json, before rope scaling extends it; 0: max_seq_len.
  int max_position_embeddings = 0;
  float norm_eps = 1e-5f;
  RopeConfig rope;
  bool tied_embeddings = false;
  bool qkv_bias = false;  // Qwen2
  bool attn_out_bias = false;
  bool mlp_bias = false;
  int sliding_window = 0;  // positions that a local layer sees; 0: all
  /// The kinds of the layers from the first on, repeated if there are more layers. Empty: all layers are local and rotated.
  std::vector<LayerKind> layer_kinds;
  std::optional<RopeConfig> local_rope;  // of local layers (Gemma 3); nullopt: rope
  kernels::Gate gate = kernels::Gate::Silu;
  /// Gemma 2 and 3: norms of the results of attention and feed-forward, before they are added to the residual stream.
  bool post_norms = false;
  bool qk_norm = false;  // Qwen3, Gemma 3: a norm of each head of queries and keys, before RoPE
  float head_norm_eps = 1e-5f;  // of that norm
  /// Added to the stored weights of the norms over dim, and of those over head_dim (Gemma: 1).
  float norm_offset = 0, head_norm_offset = 0;
  float embedding_multiplier = 1;  // Gemma: sqrt(dim); Granite
  float residual_multiplier = 1;   // of the results of attention and feed-forward (Granite)
  double attention_scale = 0;      // factor of q . k; 0: 1 / sqrt(head_dim)
  float attention_softcap = 0;     // c: scores s become c tanh(s / c); 0: none (Gemma 2)
  float logits_scaling = 1;        // logits are divided by it (Granite)
  float logit_softcap = 0;         // as attention_softcap, of logits
  bool fused_projections = false;  // Phi-3: tensors qkv_proj and gate_up_proj
  /// Of a draft: the model whose embedding and output matrix it reads (draft/sharing_draft.h); empty: it has its own.
  std::string shares_embedding_of;
  /// Number of tokens that the model can propose, the rows of its output matrix; 0: vocab_size.
  int n_output_tokens = 0;
  std::optional<TokenId> bos_id;
  /// The end tokens of config.json; those of generation_config.json replace them if that file has
  /// any.
  std::vector<TokenId> eos_ids;
  std::optional<TokenId> pad_id;

  /// Number of weights. Tied embeddings are counted once.
  std::int64_t n_params() const;
  /// Rows of the output matrix.
  int n_outputs() const { return n_output_tokens > 0 ? n_output_tokens : vocab_size; }
  /// The kind of a layer.
  LayerKind kind_of(int layer) const;
  /// The window of a layer; 0: it sees all positions.
  int window_of(int layer) const { return kind_of(layer).local ? sliding_window : 0; }
  /// The rotation of a layer.
  const RopeConfig& rope_of(int layer) const {
    return local_rope && kind_of(layer).local ? *local_rope : rope;
  }
};

/// A tensor that a model reads, by its full name.
struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;
};
/// True if every layer is LLaMA's: its norms, gate and matrices, RoPE in every layer, no multiplier and no softcap. Biases
/// and a window are allowed.
bool is_plain(const ModelConfig& config);
/// The kinds of a model whose first n_full layers are global and whose others are local.
std::vector<LayerKind> global_then_local(int n_full, int n_layers);
/// The tensors that a model of this shape reads, in a fixed order.
std::vector<TensorSpec> tensors_of(const ModelConfig& config);
/// Those in the model's own files: without embedding and output matrix if it shares another model's.
std::vector<TensorSpec> own_tensors_of(const ModelConfig& config);

/// Factors that enlarge a model: all widths times `width`, the number of layers times `depth`.
struct ModelScale {
  int width = 1;  // a power of four, so that sqrt(width) is a power of two
  int depth = 1;
  bool operator==(const ModelScale&) const = default;
};
/// WIDTHxDEPTH: "4x2".
std::string name_of(const ModelScale& scale);
/// Parses WIDTHxDEPTH.
/// @throws Error(Usage)  unless the width is a power of four and the depth at least 1
ModelScale scale_from(const std::string& text);

}  // namespace engine
