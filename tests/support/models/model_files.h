// Model files for tests: good files made by hand, and ways to damage them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "engine/checkpoint/config.h"
#include "engine/checkpoint/model_files.h"
#include "tests/support/files.h"
#include "tests/support/refusal.h"

namespace engine::test {

/// Replaces the first `from`, which must occur.
std::string replaced(std::string text, const std::string& from, const std::string& to);

/// A safetensors file: header length, header, data.
std::string safetensors(std::string_view header, std::string_view data);
/// A file with one f32 tensor "a" [2, 3] and one bf16 tensor "b" [4].
std::string small_safetensors();

/// A LLaMA config: 2 layers, 64 wide, grouped-query attention, vocabulary 300.
ModelConfig small_config();
/// Writes a model directory with random weights and a tokenizer.
void write_small_model(const Folder& dir, const ModelConfig& config);
void write_small_model(const Folder& dir);

/// A piece of a SentencePiece model. The functions below write such models field by field.
struct Piece {
  std::string text;
  float score = 0;
  int type = 1;
};
std::string varint(std::uint64_t value);
std::string proto_bytes(int field, std::string_view bytes);
std::string proto_varint(int field, std::uint64_t value);
std::string piece_message(const Piece& piece);
/// <unk>, <s>, </s>, 256 byte pieces, letters and some merges: a BPE vocabulary that encodes every
/// text.
std::vector<Piece> small_pieces();
std::string trainer_spec(bool byte_fallback = true, int model_type = 2);
std::string normalizer_spec(bool dummy_prefix, bool remove_spaces, std::string_view charsmap = "");
std::string sentencepiece_model(const std::vector<Piece>& pieces,
                                const std::string& trainer,
                                const std::string& normalizer);
/// small_pieces() with byte fallback, without dummy prefix; spaces are kept.
std::string small_sentencepiece();

}  // namespace engine::test
