// The members of config.json in which the architectures differ: defaults, multipliers, norms, windows and layers without
// RoPE. Defaults are those of transformers' configuration classes.
#pragma once

#include <string>
#include <vector>

#include "engine/base/fields.h"
#include "engine/checkpoint/config.h"

namespace engine {

/// Values that transformers uses for absent members.
struct FamilyDefaults {
  const char* model_type;
  int n_kv_heads;  // 0: n_heads
  int positions;   // max_position_embeddings
  int head_dim;    // 0: dim / n_heads
  double norm_eps;
  bool tied_embeddings;
  double rope_theta;
};
/// The defaults of a known model_type.
const FamilyDefaults& defaults_of(const std::string& model_type);

/// Reads norms, biases, gate, multipliers and softcaps.
/// @param config  model_type and shape must be set
/// @throws Error(BadInput)
void read_blocks(const Fields& fields, ModelConfig& config);

/// Reads the sliding window, the layers that use it, and the layers that use RoPE.
/// @param config  n_layers and max_seq_len must be set
/// @throws Error(BadInput)
void read_layers(const Fields& fields, ModelConfig& config, std::vector<std::string>& notices);

/// The members of config.json that this family uses and some others do not.
std::vector<std::string> members_of_family(const std::string& model_type);

}  // namespace engine
