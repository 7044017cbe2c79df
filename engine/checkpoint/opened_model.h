// A model whose files are open: the result of open_model() and its options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/checkpoint/config.h"
#include "engine/checkpoint/generation_file.h"
#include "engine/checkpoint/tensor_source.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {

class GgufFile;

/// An opened model; its weights are not loaded yet.
struct ModelFiles {
  std::string path;  // the directory, or the GGUF file
  std::string name;  // the last component of path, without ".gguf"; of a store: "hf:ORG/NAME"
  ModelConfig config;
  std::shared_ptr<const TensorSource> tensors;
  std::shared_ptr<const Tokenizer> tokenizer;  // null for a random model
  /// The type of most weights; BF16 for quantised ones, which are computed in it where a device cannot compute them as
  /// stored.
  kernels::DType stored_dtype = kernels::DType::F32;
  std::string stored_type;  // the type of most weights as in the file: "bf16", "Q4_1"
  std::string file_type;    // the mixture of types that a GGUF file states: "Q4_K_M"; empty: none
  bool quantised = false;   // true: most weights are quantised
  kernels::DType packed_type =
      kernels::DType::F32;               // of quantised weights: the format that has their values
  std::shared_ptr<const GgufFile> gguf;  // the file, or the first part of it; null for a directory
  /// The path of the target whose embedding a draft shares; empty: it shares none.
  std::string target_path;
  /// The tokens that such a draft can propose, ascending; empty: all.
  std::vector<TokenId> output_tokens;
  std::string draft_name;  // the draft model named by its card, or empty
  GenerationDefaults generation;
  std::string chat_template;  // Jinja (engine/chat); empty: the model has none
  // notices about unusual input that was accepted, and about settings that were not applied
  std::vector<std::string> notices;
};

/// The number of tokens that a model may choose: those of its tokenizer that have a row.
int n_tokens_of(const ModelFiles& files);

/// The type of most weights, for people: "bf16", "Q4_1".
inline std::string stored_type_name(const ModelFiles& files) {
  return files.quantised ? files.stored_type : kernels::name_of(files.stored_dtype);
}

/// How the weights are stored, for people: "bf16", "Q4_1", "Q4_K_M (mostly Q8_0)".
inline std::string storage_words(const ModelFiles& files) {
  const std::string most = stored_type_name(files);
  if (!files.quantised || files.file_type.empty() || files.file_type == most) return most;
  return files.file_type + " (mostly " + most + ")";
}

/// Options of open_model().
struct OpenOptions {
  bool allow_external_shards = false;  // accept links to files outside the directory
  bool needs_tokenizer = true;
  GenerationUse generation = GenerationUse::NotApplied;
  int context = 0;  // maximum sequence length; 0: that of config.json
  FileLimits limits;
  /// The model whose embedding a draft may share; null: such a draft is refused. Outlives the call.
  const ModelFiles* target = nullptr;
};

}  // namespace engine
