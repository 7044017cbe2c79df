// One pass over the protocol buffer of a SentencePiece model, before any library sees it.
//   format  sentencepiece_model.proto of the SentencePiece project: ModelProto
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/limits.h"

namespace engine {

struct ScannedPiece {
  enum Type { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };
  std::string text;
  int type = Normal;
  std::size_t message_begin = 0, message_end = 0;  // bytes of its field in the file, tag included
};

struct ScannedModel {
  enum Type { Unigram = 1, Bpe = 2 };
  int type = Unigram;
  std::vector<ScannedPiece> pieces;  // the index is the token id
  bool byte_fallback = false;
  int unk_id = 0, bos_id = 1, eos_id = 2;  // bos and eos may be -1
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

/// The byte that a piece "<0x41>" stands for, -1 for other texts.
int byte_of_piece(std::string_view text);

}  // namespace engine
