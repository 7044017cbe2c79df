// Reads the JSON files beside a tokenizer.model: tokenizer_config.json, added_tokens.json and
// special_tokens_map.json, each of which may be absent.
//   as     transformers 5.24 reads them; ids that a file gives are kept, as transformers 4 does
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/tokenizer/added_tokens.h"
#include "engine/base/limits.h"
#include "engine/tokenizer/sentencepiece_scan.h"

namespace engine {

/// A token as a file names it.
struct ListedToken {
  std::optional<std::int64_t> id;  // as the file gives it; unchecked
  AddedToken token;                // its id is not set
  std::string file, field;         // that name it, for messages
};

struct TokenizerSettings {
  std::string file;             // tokenizer_config.json, whether or not it is there
  std::string tokenizer_class;  // without "Fast"; empty: not said
  bool add_bos = true;  // transformers 4; transformers 5 adds none where the field is absent
  bool add_eos = false;
  bool split_special = false;  // names of control symbols in a text are text
  std::optional<bool> add_prefix_space, legacy;
  std::optional<std::string> bos, eos;  // names; nullopt: not said; empty: there is none
  std::vector<ListedToken> tokens;      // those with ids first, ascending
  /// Control symbols of tokenizer.model that no file names are matched in texts. transformers 5
  /// does not match them where tokenizer_config.json has a list of further special tokens.
  bool matches_unnamed_controls = true;
};

/// @param notices  receives one for each file that has fields which are not applied
/// @throws Error(BadInput)  "file: field: found X, expected Y"
TokenizerSettings read_tokenizer_settings(const std::string& directory,
                                          const FileLimits& limits,
                                          std::vector<std::string>& notices);

/// The added tokens with their ids. A token without one is a piece of that text, or takes the first
/// free id after all others.
/// @param vocab_size  of the model; a token that no file gives an id and that finds none below this
///                    is left out, with a notice. 0: no bound
/// @throws Error(BadInput)  if two tokens share an id or a text, or a text is another piece's
std::vector<AddedToken> placed_tokens(const TokenizerSettings& settings,
                                      const ScannedModel& model,
                                      bool with_user_defined,
                                      int vocab_size,
                                      const FileLimits& limits,
                                      std::vector<std::string>& notices);

}  // namespace engine
