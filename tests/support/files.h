// Temporary folders and whole files.
#pragma once

#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace engine::test {

/// A temporary folder that is removed with its content.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "decoscope_test.XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw std::runtime_error(name + ": cannot create a temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A path in shared memory, if the system has it, for files that a test writes a thousand times.
inline std::string file_in_memory(const Folder& folder, const std::string& name) {
  const std::string shared = "/dev/shm";
  if (::access(shared.c_str(), W_OK) != 0) return folder / name;
  return shared + "/decoscope-" + std::to_string(::getpid()) + "-" + name;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace engine::test
