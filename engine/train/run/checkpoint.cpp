// The file: 8 bytes of magic, the header's length (u64), the header (JSON), packer bytes, the three
// arrays, and a CRC-32 of all of it.
#include "engine/train/run/checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include <zlib.h>
#include <nlohmann/json.hpp>

#include "engine/base/output_file.h"
#include "engine/base/types.h"

namespace engine {
namespace {

constexpr char kMagic[8] = {'D', 'S', 'T', 'R', 'A', 'I', 'N', '1'};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::uint32_t crc_of(std::uint32_t crc, const void* data, std::size_t size) {
  const auto* at = static_cast<const Bytef*>(data);
  while (size > 0) {
    const auto n = static_cast<uInt>(std::min<std::size_t>(size, 1u << 30));
    crc = static_cast<std::uint32_t>(crc32(crc, at, n));
    at += n;
    size -= n;
  }
  return crc;
}

[[noreturn]] void refuse_disk(const std::string& path, const char* what) {
  throw Error(ErrorCode::Resources, path + ": " + what + ": " + std::strerror(errno));
}

// The file's bytes, with their CRC-32 at the end.
class Writer {
 public:
  explicit Writer(const std::string& path) : file_(path) {}
  void write(const void* data, std::size_t size) {
    crc_ = crc_of(crc_, data, size);
    // Writes in pieces, because the stream copies the data into its buffer.
    constexpr std::size_t kPiece = 256 << 10;
    std::string_view left(static_cast<const char*>(data), size);
    for (; !left.empty(); left.remove_prefix(std::min(kPiece, left.size())))
      file_.write(left.substr(0, kPiece));
  }
  void finish() {
    const std::uint32_t crc = crc_;
    write(&crc, sizeof crc);
    file_.finish();
  }

 private:
  OutputFile file_;
  std::uint32_t crc_ = 0;
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {
    if (!file_) refuse_disk(path, "cannot be opened");
    left_ = std::filesystem::file_size(path);
  }
  void read(void* data, std::size_t size) {
    if (size > left_ || (size && std::fread(data, 1, size, file_.get()) != size)) {
      refuse("ends early");
    }
    left_ -= size;
    crc_ = crc_of(crc_, data, size);
  }
  template <typename T>
  void read_all(T& values, std::uint64_t n) {
    if (n > left_ / sizeof(values[0])) refuse("ends early");
    values.resize(static_cast<std::size_t>(n));
    read(values.data(), static_cast<std::size_t>(n) * sizeof(values[0]));
  }
  void finish() {
    const std::uint32_t expected = crc_;
    std::uint32_t found = 0;
    read(&found, sizeof found);
    if (found != expected) refuse("checksum differs");
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::BadInput,
                path_ + ": " + what + "; not a whole checkpoint, start again without --resume");
  }

 private:
  std::string path_;
  File file_;
  std::uint64_t left_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& c) {
  const nlohmann::json header = {{"recipe", c.recipe},
                                 {"compute", c.compute},
                                 {"shards", c.shards},
                                 {"step", c.step},
                                 {"tokens", c.tokens},
                                 {"next_text", c.next_text},
                                 {"seconds", c.seconds},
                                 {"packer_bytes", c.packer.size()},
                                 {"n_parameters", c.parameters.size()}};
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  Writer writer(path);
  writer.write(kMagic, sizeof kMagic);
  writer.write(&size, sizeof size);
  writer.write(text.data(), text.size());
  writer.write(c.packer.data(), c.packer.size());
  for (const auto* values : {&c.parameters, &c.mean, &c.square}) {
    writer.write(values->data(), values->size() * sizeof(float));
  }
  writer.finish();
}

Checkpoint read_checkpoint(const std::string& path) {
  Reader reader(path);
  char magic[8];
  reader.read(magic, sizeof magic);
  if (std::memcmp(magic, kMagic, sizeof magic) != 0) reader.refuse("begins with other bytes");
  std::uint64_t size = 0;
  reader.read(&size, sizeof size);
  std::string text;
  reader.read_all(text, size);
  Checkpoint c;
  std::uint64_t packer_bytes = 0, n_parameters = 0;
  try {
    const auto header = nlohmann::json::parse(text);
    c.recipe = header.at("recipe").get<std::string>();
    c.compute = header.at("compute").get<std::string>();
    c.shards = header.at("shards").get<int>();
    c.step = header.at("step").get<std::int64_t>();
    c.tokens = header.at("tokens").get<std::int64_t>();
    c.next_text = header.at("next_text").get<std::int64_t>();
    c.seconds = header.at("seconds").get<double>();
    packer_bytes = header.at("packer_bytes").get<std::uint64_t>();
    n_parameters = header.at("n_parameters").get<std::uint64_t>();
  } catch (const nlohmann::json::exception&) {
    reader.refuse("its header is damaged");
  }
  reader.read_all(c.packer, packer_bytes);
  reader.read_all(c.parameters, n_parameters);
  reader.read_all(c.mean, n_parameters);
  reader.read_all(c.square, n_parameters);
  reader.finish();
  return c;
}

bool result_is_written(const std::string& directory) {
  std::error_code none;
  const auto card = std::filesystem::last_write_time(directory + "/README.md", none);
  if (none) return false;
  const auto saved = std::filesystem::last_write_time(directory + "/checkpoint.bin", none);
  return none || card >= saved;
}

}  // namespace engine
