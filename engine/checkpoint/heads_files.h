// Draft heads on disk: a directory with config.json and model.safetensors, opened and checked
// against the target they were trained for. docs/decoders/medusa.md and chimera.md say the format.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/draft_heads.h"
#include "engine/checkpoint/model_files.h"
#include "kernels/device.h"

namespace engine {

enum class HeadsKind { Medusa, Chimera };
/// "medusa", "chimera": of config.json, and of the decoder that asks them.
const char* name_of(HeadsKind kind);

struct HeadsConfig {
  HeadsKind kind = HeadsKind::Medusa;
  std::string base;  // the model they belong to, as config.json says it; may be empty
  int n_heads = 0;
  int dim = 0;
  int vocab_size = 0;  // rows of the output matrices, the target's
  int n_layers = 1;    // Medusa: residual layers of each head
  // Chimera
  int gram = 3;                      // tokens encoded together, 1 to 5
  bool residual = true;              // the heads read the hidden state beside what the encoder says
  bool own_embedding = false;        // a fine-tuned first layer; else the target's
  bool sees_committed_grams = true;  // rows see the k-grams of the text, not its states alone
  int hidden_dim = 0;
  int n_attention_heads = 0;
  float norm_eps = 1e-5f;
  double rope_theta = 10000;

  int head_dim() const { return dim / n_attention_heads; }
  std::int64_t n_params() const;
};

/// Chimera's encoder as the shape of one block.
ModelConfig encoder_of(const HeadsConfig& config);

/// The tensors of such heads with their shapes, in a fixed order.
std::vector<TensorSpec> tensors_of(const HeadsConfig& config);

struct HeadsFiles {
  std::string path, name;  // the directory, its last component
  HeadsConfig config;
  std::shared_ptr<const TensorSource> tensors;
  kernels::DType stored_dtype = kernels::DType::F32;
  std::vector<std::string> notices;
};

/// Whose heads a directory's config.json says it holds; nullopt where it says something else.
std::optional<HeadsKind> heads_kind(const std::string& directory, const FileLimits& limits = {});
/// @param target  whose hidden size and vocabulary they must have; null: any
/// @throws Error(BadInput)  "file: field: found X, expected Y"
HeadsFiles open_heads(const std::string& directory,
                      const ModelFiles* target,
                      const FileLimits& limits = {});
/// The heads of a kind that a model's card (decoscope.json) names, or empty.
/// @throws Error(BadInput)
std::string heads_of_card(const std::string& model_directory,
                          HeadsKind kind,
                          const FileLimits& limits = {});

/// Weights drawn from N(0, 0.02), norms 1; what is encoded is the target's business.
std::shared_ptr<const TensorSource> random_heads(const HeadsConfig& config, std::uint64_t seed);
/// Writes a directory that open_heads() reads.
void write_heads(const std::string& directory,
                 const HeadsConfig& config,
                 const TensorSource& tensors,
                 kernels::DType dtype);

/// The heads of the target enlarged by `scale`: its width counts, heads grow no deeper (scale.cpp).
HeadsConfig scaled(const HeadsConfig& config, const ModelScale& scale);
std::shared_ptr<const TensorSource> scaled(std::shared_ptr<const TensorSource> tensors,
                                           const HeadsConfig& config,
                                           const ModelScale& scale);

inline constexpr std::int64_t kMaxTableBytes = 64 << 20;
/// Bytes, on the host, of the products of the first matrix of Chimera's k-grams with every token at
/// every place; 0: they would take more than `most`, or the heads are Medusa's, and there is none.
std::int64_t gram_table_bytes(const HeadsConfig& config, std::int64_t most = kMaxTableBytes);

/// How heads run: as their target does.
struct HeadsOptions {
  kernels::DType dtype = kernels::DType::BF16;
  ModelScale scale;
  int vocab_size = 0;   // tokens that may be proposed, at most config.vocab_size
  int max_seq_len = 0;  // positions there can be
  /// The first matrix of Chimera's k-grams is kept as its products with every token at every place
  /// where these take no more: rows that are added, in place of a matrix that is read for every
  /// k-gram. No bit depends on it.
  std::int64_t max_table_bytes = kMaxTableBytes;
};
/// Packs them for the device, which outlives them.
/// @param embedding  the target's tensors, read by Chimera's heads without an
///                   embedding of their own
std::unique_ptr<MedusaHeads> load_medusa(kernels::Device& device,
                                         const HeadsFiles& files,
                                         const HeadsOptions& options);
std::unique_ptr<ChimeraHeads> load_chimera(kernels::Device& device,
                                           const HeadsFiles& files,
                                           const ModelFiles& target,
                                           const HeadsOptions& options);

}  // namespace engine
