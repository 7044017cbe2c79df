// What the tests of model files are made of: folders that vanish, good files built by hand, and
// ways to spoil them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "engine/checkpoint/config.h"
#include "engine/checkpoint/model_files.h"

namespace engine::test {

/// An empty directory that is removed with all it holds.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void write_bytes(const std::string& path, std::string_view bytes);
std::string read_bytes(const std::string& path);
/// The text with the first `from` (which must be there) replaced.
std::string replaced(std::string text, const std::string& from, const std::string& to);

/// The message of the Error(BadInput) that `action` must throw; fails the test otherwise.
std::string refusal(const std::function<void()>& action);

/// Length, header, data.
std::string safetensors(std::string_view header, std::string_view data);
/// Four kB of one f32 tensor "a" of shape [2, 3] and one bf16 tensor "b" of [4].
std::string small_safetensors();

/// LLaMA with 2 layers, 64 wide, grouped heads; `vocab_size` 300.
ModelConfig small_config();
/// A directory with random weights of `config` and a tokenizer, as write_model makes it.
void write_small_model(const TempDir& dir, const ModelConfig& config);
void write_small_model(const TempDir& dir);

/// SentencePiece models field by field.
struct Piece {
  std::string text;
  float score = 0;
  int type = 1;
};
std::string varint(std::uint64_t value);
std::string proto_bytes(int field, std::string_view bytes);
std::string proto_varint(int field, std::uint64_t value);
std::string piece_message(const Piece& piece);
/// unk, <s>, </s>, 256 byte pieces, the letters and some merges: a BPE that encodes everything.
std::vector<Piece> small_pieces();
std::string trainer_spec(bool byte_fallback = true, int model_type = 2);
std::string normalizer_spec(bool dummy_prefix, bool remove_spaces, std::string_view charsmap = "");
std::string sentencepiece_model(const std::vector<Piece>& pieces,
                                const std::string& trainer,
                                const std::string& normalizer);
/// small_pieces, byte fallback, no dummy prefix, spaces kept.
std::string small_sentencepiece();

}  // namespace engine::test
