// How much a model directory may ask for before it is refused. Generous for every published model;
// OpenOptions lets a caller raise them.
#pragma once

#include <cstdint>

namespace engine {

struct FileLimits {
  std::int64_t safetensors_header_bytes = 100'000'000;
  std::int64_t json_bytes = 16 << 20;  // every JSON file except tokenizer.json
  std::int64_t n_tensors = 1'000'000;
  std::int64_t tensor_name_bytes = 512;
  std::int64_t tokenizer_bytes = 256 << 20;
  std::int64_t n_pieces = 4'000'000;
  /// The sentencepiece library builds its tries recursively over the bytes of a piece.
  std::int64_t piece_bytes = 4096;
  std::int64_t vocab_size = 4'000'000;
  std::int64_t n_layers = 4096;
  std::int64_t n_heads = 4096;
  std::int64_t max_seq_len = 16'777'216;
  std::int64_t dim = 1 << 20;
  std::int64_t hidden_dim = 1 << 22;
};

inline constexpr int kMaxJsonDepth = 64;
inline constexpr int kMaxTensorRank = 8;
inline constexpr std::int64_t kMaxPromptBytes = 64 << 20;

}  // namespace engine
