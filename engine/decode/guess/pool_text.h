// Reads the file of text that decoders may copy from (--pool).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "engine/decode/guess/earlier_texts.h"

namespace engine {

class Model;

/// Reads and tokenizes the file, of at most 64 MB.
/// @throws Error(Usage, BadInput)  if the model has no tokenizer, or as read_text_input()
std::shared_ptr<const PoolFile> read_pool_text(const std::string& path, const Model& model);

/// The files that a session has read, by model. A file that has changed is read again; one that is no longer named is
/// dropped.
class PoolTexts {
 public:
  /// The file's text in the model's tokens; null without a path.
  /// @throws  as read_pool_text()
  /// @param id  of the loaded model
  std::shared_ptr<const PoolFile> of(const std::string& path, const Model& model, std::uint32_t id);

 private:
  struct Read {
    std::string path;
    std::filesystem::file_time_type time;
    std::shared_ptr<const PoolFile> file;
  };
  std::map<std::uint32_t, Read> read_;  // by the model's id
};

}  // namespace engine
