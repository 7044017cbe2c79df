#include "engine/model/file_kind.h"

#include <fmt/format.h>

namespace engine {

std::string recognised_as(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("version https://git-lfs")) {
    return fmt::format("a Git LFS pointer, {} bytes (fetch the real file with git lfs pull)",
                       bytes.size());
  }
  if (bytes.starts_with("GGUF")) return "a GGUF file";
  if (bytes.starts_with("PK\x03\x04")) return "a zip archive (perhaps a PyTorch checkpoint)";
  if (bytes.starts_with("\x1f\x8b")) return "a gzip archive";
  if (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5) {
    const bool is_header_length = bytes.size() >= 8 && bytes.substr(4, 4) == "\0\0\0\0"sv;
    if (!is_header_length) return "a Python pickle";
  }
  if (bytes.starts_with("<!DOCTYPE") || bytes.starts_with("<html")) return "a web page";
  return "";
}

}  // namespace engine
