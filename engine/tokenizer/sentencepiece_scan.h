// Checks the protocol buffer of a SentencePiece model in one pass, before the library reads it.
//   format  ModelProto of sentencepiece_model.proto, SentencePiece project
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/limits.h"

namespace engine {

/// One piece of the vocabulary.
struct ScannedPiece {
  /// The enumeration SentencePiece.Type of the format.
  enum Type { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };
  std::string text;
  int type = Normal;
  float score = 0;  // merging prefers the pair whose piece has the highest score
  // offsets of the piece's field in the file, including the tag
  std::size_t message_begin = 0, message_end = 0;
};

/// The parts of a model that this program uses.
struct ScannedModel {
  /// Supported values of TrainerSpec.ModelType.
  enum Type { Unigram = 1, Bpe = 2 };
  int type = Unigram;
  std::vector<ScannedPiece> pieces;  // the index is the token id
  bool byte_fallback = false;
  int unk_id = 0, bos_id = 1, eos_id = 2;  // bos_id, eos_id: -1 for none
  std::string unk_surface = " \xE2\x81\x87 ";
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  std::string charsmap;  // the table that replaces characters (charsmap.h); empty: none
};

/// Checks everything: wire format, pieces, ids, scores, the normaliser's double-array trie.
/// @throws Error(BadInput)  "path: byte N: ..." or naming the piece or field
ScannedModel scan_sentencepiece(std::string_view bytes,
                                const std::string& path,
                                const FileLimits& limits);

/// The byte of a byte piece "<0x41>"; -1 for other texts.
int byte_of_piece(std::string_view text);

}  // namespace engine
