#include "engine/base/file_kind.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace engine {

namespace {

/// True if text begins with `word` in any case, after a byte order mark and white space.
bool begins_with_word(std::string_view bytes, std::string_view word) {
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return bytes.size() >= word.size() && std::equal(word.begin(), word.end(), bytes.begin(),
                                                   [&](char b, char a) { return same(a, b); });
}

std::string archive(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("PK\x03\x04")) return "a zip archive (perhaps a PyTorch checkpoint)";
  if (bytes.starts_with("\x1f\x8b")) return "a gzip archive";
  if (bytes.starts_with("BZh")) return "a bzip2 archive";
  if (bytes.starts_with("\xfd"
                        "7zXZ\0"sv))
    return "an xz archive";
  if (bytes.starts_with("\x28\xb5\x2f\xfd")) return "a zstd archive";
  if (bytes.starts_with("7z\xbc\xaf")) return "a 7z archive";
  if (bytes.size() >= 262 && bytes.substr(257, 5) == "ustar") return "a tar archive";
  return "";
}

}  // namespace

std::string recognised_as(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("version https://git-lfs")) {
    return fmt::format("a Git LFS pointer, {} bytes (fetch the real file with git lfs pull)",
                       bytes.size());
  }
  if (bytes.starts_with("GGUF")) return "a GGUF file";
  if (std::string kind = archive(bytes); !kind.empty()) return kind;
  if (bytes.starts_with("\x89HDF\r\n")) return "an HDF5 file (perhaps of TensorFlow)";
  if (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5) {
    const bool is_header_length = bytes.size() >= 8 && bytes.substr(4, 4) == "\0\0\0\0"sv;
    if (!is_header_length) return "a Python pickle";
  }
  if (begins_with_word(bytes, "<!doctype") || begins_with_word(bytes, "<html"))
    return "a web page (saved in place of the file? download it again, logged in)";
  for (const char* word : {"entry not found", "repository not found", "access to model",
                           "invalid username", "invalid credentials"}) {
    if (begins_with_word(bytes, word))
      return "a model hub's refusal (saved in place of the file; download it again, logged in)";
  }
  return "";
}

}  // namespace engine
