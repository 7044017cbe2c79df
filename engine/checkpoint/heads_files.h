// Draft heads on disk: a directory with config.json and model.safetensors, validated against the
// target model they were trained for. docs/decoders/medusa.md and chimera.md describe the format.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/opened_model.h"
#include "kernels/device.h"

namespace engine {

class ChimeraHeads;
class MedusaHeads;

/// The kinds of draft heads, each used by the decoder of that name.
enum class HeadsKind { Medusa, Chimera };
/// The name in config.json: "medusa", "chimera".
const char* name_of(HeadsKind kind);

/// The hyperparameters of draft heads.
struct HeadsConfig {
  HeadsKind kind = HeadsKind::Medusa;
  std::string base;  // the target model named by config.json; may be empty
  int n_heads = 0;
  int dim = 0;
  int vocab_size = 0;  // the target's
  // the heads end in the target's output matrix; false: each has an output matrix of its own
  bool target_output = false;
  // the tokens that heads with the target's output matrix rank, ascending; empty: all
  std::vector<TokenId> output_tokens;
  int n_layers = 1;  // Medusa: residual layers of each head
  // Chimera
  int gram = 3;  // tokens encoded together, 1 to 5
  // the target's first layer, frozen, encodes tokens in the place of k-grams; gram is then 1
  bool by_first_layer = false;
  bool residual = true;  // heads read the target's hidden state beside the encoding
  // the heads have their own embedding; false: they use the target's
  bool own_embedding = false;
  // attends to hidden states and k-grams of committed tokens; false: only to their hidden states
  bool sees_committed_grams = true;
  int hidden_dim = 0;
  int n_attention_heads = 0;
  int head_hidden_dim = 0;  // with target_output: width of the hidden layer of each head
  float norm_eps = 1e-5f;
  double rope_theta = 10000;

  /// Rows of an output matrix: the number of tokens that the heads rank.
  int n_outputs() const {
    return output_tokens.empty() ? vocab_size : static_cast<int>(output_tokens.size());
  }

  /// The size of an attention head of Chimera's encoder.
  int head_dim() const { return dim / n_attention_heads; }
  /// Number of weights, without matrices of the target.
  std::int64_t n_params() const;
};

/// Chimera's encoder, one transformer block, as a model of one layer.
ModelConfig encoder_of(const HeadsConfig& config);

/// The name of a head's own output matrix.
std::string own_output_name(const HeadsConfig& config, int head);
/// The weights of draft heads with their shapes, in a fixed order, without matrices of the target.
std::vector<TensorSpec> tensors_of(const HeadsConfig& config);
/// All tensors that loading reads: those of tensors_of() and the target's output matrix, if shared.
std::vector<TensorSpec> loaded_tensors_of(const HeadsConfig& config);
/// The tensors that distinguish heads with the same name: those of tensors_of() and the tokens that
/// they rank.
std::vector<TensorSpec> hashed_tensors_of(const HeadsConfig& config);

/// Draft heads opened from a directory.
struct HeadsFiles {
  std::string path, name;  // the directory and its last component
  HeadsConfig config;
  /// With config.target_output also that matrix, if the heads were opened with a target.
  std::shared_ptr<const TensorSource> tensors;
  kernels::DType stored_dtype = kernels::DType::F32;
  std::vector<std::string> notices;
};

/// The kind of draft heads that a directory's config.json declares; nullopt if it declares none.
std::optional<HeadsKind> heads_kind(const std::string& directory, const FileLimits& limits = {});
/// Opens draft heads and checks their shapes.
/// @param target  the model whose hidden size and vocabulary they must have; null: any
/// @throws Error(BadInput)  "file: field: found X, expected Y"
HeadsFiles open_heads(const std::string& directory,
                      const ModelFiles* target,
                      const FileLimits& limits = {});
/// The draft heads of this kind that a model's card (decoscope.json) names; empty if it names none.
/// @throws Error(BadInput)
std::string heads_of_card(const std::string& model_directory,
                          HeadsKind kind,
                          const FileLimits& limits = {});

/// Random heads: weights drawn from N(0, 0.02), norms 1.
std::shared_ptr<const TensorSource> random_heads(const HeadsConfig& config, std::uint64_t seed);
/// Writes a directory that open_heads() can read.
void write_heads(const std::string& directory,
                 const HeadsConfig& config,
                 const TensorSource& tensors,
                 kernels::DType dtype);

/// The configuration of heads for a target that is enlarged by `scale`. Only scale.width matters
/// (scale.cpp).
HeadsConfig scaled(const HeadsConfig& config, const ModelScale& scale);
/// The tensors of such heads. Each is computed when it is read.
std::shared_ptr<const TensorSource> scaled(std::shared_ptr<const TensorSource> tensors,
                                           const HeadsConfig& config,
                                           const ModelScale& scale);

/// The default limit of Chimera's table of products.
inline constexpr std::int64_t kMaxTableBytes = 64 << 20;
/// Host bytes of the table that replaces the first matrix of Chimera's k-gram encoder. The table
/// holds the products of this matrix with every token's embedding at every position of the k-gram.
/// 0: no table is used, because it would exceed `most` or because the heads are Medusa's.
std::int64_t gram_table_bytes(const HeadsConfig& config, std::int64_t most = kMaxTableBytes);

/// Options for loading draft heads, the same as their target's.
struct HeadsOptions {
  kernels::DType dtype = kernels::DType::BF16;
  /// The type of the matrices that make logits and, of Medusa, of all matrices; unset: dtype. Q8_0 and Q4_0 only on the CPU.
  std::optional<kernels::DType> guess_type;
  ModelScale scale;
  int vocab_size = 0;   // number of tokens that may be proposed, at most config.vocab_size
  int max_seq_len = 0;  // positions a sequence may have
  /// Limit of the table of gram_table_bytes(). Results are bit-identical with and without the
  /// table.
  std::int64_t max_table_bytes = kMaxTableBytes;
};
/// Loads Medusa heads for a device, which must outlive them.
std::unique_ptr<MedusaHeads> load_medusa(kernels::Device& device,
                                         const HeadsFiles& files,
                                         const HeadsOptions& options);
/// Loads Chimera heads for a device, which must outlive them.
/// @param target  provides the embedding for heads without their own
std::unique_ptr<ChimeraHeads> load_chimera(kernels::Device& device,
                                           const HeadsFiles& files,
                                           const ModelFiles& target,
                                           const HeadsOptions& options);

}  // namespace engine
