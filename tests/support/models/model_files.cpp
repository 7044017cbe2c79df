#include "tests/support/models/model_files.h"

#include <bit>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace engine::test {
namespace {

std::string little_endian(std::uint64_t value, int n_bytes) {
  std::string out;
  for (int i = 0; i < n_bytes; i++) out += static_cast<char>(value >> (8 * i));
  return out;
}

}  // namespace

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "no " << from << " in " << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string safetensors(std::string_view header, std::string_view data) {
  return little_endian(header.size(), 8) + std::string(header) + std::string(data);
}

std::string small_safetensors() {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                             R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}})";
  std::string data;
  for (int i = 0; i < 6; i++)
    data += little_endian(std::bit_cast<std::uint32_t>(0.5f * static_cast<float>(i)), 4);
  for (int i = 0; i < 4; i++)
    data += little_endian(kernels::bf16_from_f32(1.0f + static_cast<float>(i)), 2);
  return safetensors(header, data);
}

ModelConfig small_config() {
  ModelConfig config;
  config.dim = 64;
  config.hidden_dim = 96;
  config.n_layers = 2;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 16;
  config.vocab_size = 300;
  config.max_seq_len = 256;
  config.bos_id = 1;
  config.eos_ids = {2};
  return config;
}

void write_small_model(const Folder& dir, const ModelConfig& config) {
  const Folder tokenizer;
  write_file(tokenizer / "tokenizer.model", small_sentencepiece());
  write_file(tokenizer / "tokenizer_config.json",
             R"({"add_bos_token": true, "add_eos_token": false,)"
             R"( "bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  write_model(dir.path(), config, *random_tensors(config, 7), kernels::DType::BF16,
              tokenizer.path());
}

void write_small_model(const Folder& dir) {
  write_small_model(dir, small_config());
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

std::string proto_bytes(int field, std::string_view bytes) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(bytes.size()) +
         std::string(bytes);
}

std::string proto_varint(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(value);
}

std::string piece_message(const Piece& piece) {
  return proto_bytes(1, piece.text) + varint(2 << 3 | 5) +
         little_endian(std::bit_cast<std::uint32_t>(piece.score), 4) +
         proto_varint(3, static_cast<std::uint64_t>(piece.type));
}

std::vector<Piece> small_pieces() {
  std::vector<Piece> pieces = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}};
  for (int byte = 0; byte < 256; byte++) pieces.push_back({fmt::format("<0x{:02X}>", byte), 0, 6});
  pieces.push_back({"\n", 0, 4});
  float score = 0;
  for (const char* merge : {"\xE2\x96\x81t", "he", "\xE2\x96\x81the", "ca", "cat"}) {
    pieces.push_back({merge, score--, 1});
  }
  for (const char* letter : {"\xE2\x96\x81", "t", "h", "e", "c", "a", "s", "\xC3\xA9"}) {
    pieces.push_back({letter, score--, 1});
  }
  return pieces;
}

std::string trainer_spec(bool byte_fallback, int model_type) {
  return proto_varint(3, static_cast<std::uint64_t>(model_type)) +
         proto_varint(35, byte_fallback ? 1 : 0);
}

std::string normalizer_spec(bool dummy_prefix, bool remove_spaces, std::string_view charsmap) {
  return proto_bytes(1, "identity") + (charsmap.empty() ? "" : proto_bytes(2, charsmap)) +
         proto_varint(3, dummy_prefix) + proto_varint(4, remove_spaces) + proto_varint(5, 1);
}

std::string sentencepiece_model(const std::vector<Piece>& pieces,
                                const std::string& trainer,
                                const std::string& normalizer) {
  std::string out;
  for (const Piece& piece : pieces) out += proto_bytes(1, piece_message(piece));
  return out + proto_bytes(2, trainer) + proto_bytes(3, normalizer);
}

std::string small_sentencepiece() {
  return sentencepiece_model(small_pieces(), trainer_spec(), normalizer_spec(false, false));
}

}  // namespace engine::test
