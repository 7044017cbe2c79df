// Reads the JSON files beside a tokenizer.model, by the rules of transformers 5.24:
// tokenizer_config.json, added_tokens.json and special_tokens_map.json. Each file may be absent.
// Tokens keep the ids that a file gives them, as in transformers 4.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/sentencepiece_scan.h"

namespace engine {

/// A token in one of these files.
struct ListedToken {
  std::optional<std::int64_t> id;  // from the file, not validated
  AddedToken token;                // without its id
  std::string file, field;         // for messages
};

/// The settings in these files.
struct TokenizerSettings {
  std::string file;             // path of tokenizer_config.json, even if it does not exist
  std::string tokenizer_class;  // class name without the suffix "Fast"; empty: none
  // the default is that of transformers 4; transformers 5 adds no bos by default
  bool add_bos = true;
  bool add_eos = false;
  bool gives_add_bos = false, gives_add_eos = false;  // tokenizer_config.json has these fields
  bool split_special = false;  // names of control symbols in a text are plain text
  std::optional<bool> add_prefix_space, legacy;
  std::optional<std::string> bos, eos;  // names; nullopt: not set; "": none
  std::vector<ListedToken> tokens;      // tokens with ids come first, in ascending order
  /// True: control symbols that only tokenizer.model lists are matched in texts, too. As in
  /// transformers 5, they are not if tokenizer_config.json lists additional special tokens.
  bool matches_unnamed_controls = true;
};

/// Reads the files of a directory.
/// @param notices  receives a notice for each file with fields that are not applied
/// @throws Error(BadInput)  "file: field: found X, expected Y"
TokenizerSettings read_tokenizer_settings(const std::string& directory,
                                          const FileLimits& limits,
                                          std::vector<std::string>& notices);

/// The added tokens with their ids. A token without an id gets the id of the piece with its text,
/// else the first free id after all others.
/// @param with_user_defined  true: user-defined pieces of the model are matched like added tokens
/// @param vocab_size  of the model; if no id below it is free for a token without an id, the token
///                    is left out with a notice. 0: no bound
/// @throws Error(BadInput)  if two tokens share an id or a text, or if a text has a different id in
///                          the model
std::vector<AddedToken> placed_tokens(const TokenizerSettings& settings,
                                      const ScannedModel& model,
                                      bool with_user_defined,
                                      int vocab_size,
                                      const FileLimits& limits,
                                      std::vector<std::string>& notices);

}  // namespace engine
