// Limits of untrusted files. Every published model is far below them; --limit raises one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace engine {

/// The limits, in the units of their names.
struct FileLimits {
  std::int64_t safetensors_header_bytes = 100'000'000;
  std::int64_t json_bytes = 16 << 20;  // every JSON file except tokenizer.json
  std::int64_t json_depth = 64;        // nesting depth
  std::int64_t n_tensors = 1'000'000;
  std::int64_t tensor_name_bytes = 512;
  std::int64_t tensor_rank = 8;
  std::int64_t tokenizer_bytes = 256 << 20;
  std::int64_t n_pieces = 4'000'000;
  /// The sentencepiece library recurses over the bytes of a piece.
  std::int64_t piece_bytes = 4096;
  std::int64_t vocab_size = 4'000'000;
  std::int64_t n_layers = 4096;
  std::int64_t n_heads = 4096;
  std::int64_t max_seq_len = 16'777'216;
  std::int64_t dim = 1 << 20;
  std::int64_t hidden_dim = 1 << 22;
  std::int64_t prompt_bytes = 64'000'000;  // a prompt, and a line of a prompt file

  bool operator==(const FileLimits&) const = default;
};

/// One limit by its name.
struct FileLimit {
  const char* name;
  std::int64_t FileLimits::*value;
  std::int64_t highest;  // bound by types and stack
};
/// All limits.
std::span<const FileLimit> file_limits();

/// Raises one limit.
/// @param name_and_value  "json_depth=100": from the default to `highest`
/// @throws Error(Usage)  for an unknown name (the message lists all), or a value out of range
void raise_limit(FileLimits& limits, const std::string& name_and_value);

}  // namespace engine
