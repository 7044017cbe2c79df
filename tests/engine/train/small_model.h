// The shape of a transformer small enough to train within a test.
#pragma once

#include "engine/checkpoint/config.h"

namespace engine::test {

/// @param n_kv_heads  1 or 2; with 1 both heads read the same keys and values
inline ModelConfig small_model(int n_kv_heads = 1) {
  ModelConfig c;
  c.dim = 32;
  c.hidden_dim = 64;
  c.n_layers = 2;
  c.n_heads = 2;
  c.n_kv_heads = n_kv_heads;
  c.head_dim = 16;
  c.vocab_size = 64;
  c.max_seq_len = 64;
  c.tied_embeddings = true;
  return c;
}

}  // namespace engine::test
