#include "engine/checkpoint/gguf/gguf_shards.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "engine/base/refuse.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxParts = 9999;
constexpr const char* kNumber = "split.no";
constexpr const char* kCount = "split.count";
constexpr const char* kTensors = "split.tensors.count";

bool ends_in_gguf(const std::string& path) {
  std::string end = path.substr(path.size() - std::min<std::size_t>(path.size(), 5));
  std::ranges::transform(end, end.begin(), [](unsigned char c) { return std::tolower(c); });
  return end == ".gguf";
}

// "dir/m-00002-of-00003.gguf" for the prefix "dir/m", number 2 and count 3.
std::string path_of_part(const std::string& prefix, std::int64_t number, std::int64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number, count);
}

// The name before "-00001-of-00003.gguf"; nullopt for a file that is named otherwise.
std::optional<std::string> prefix_of_part(const std::string& path) {
  constexpr std::string_view kPattern = "-00000-of-00000.gguf";
  if (path.size() <= kPattern.size()) return std::nullopt;
  const std::string_view end = std::string_view(path).substr(path.size() - kPattern.size());
  const bool fits = std::ranges::equal(end, kPattern, [](char c, char pattern) {
    return pattern == '0' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : c == pattern;
  });
  if (!fits) return std::nullopt;
  return path.substr(0, path.size() - kPattern.size());
}

std::int64_t number_of(const GgufFile& file, const char* key, std::int64_t low, std::int64_t high) {
  const std::optional<std::int64_t> value = file.integer(key);
  if (!value) file.refuse_value(key, "none", "a number");
  if (*value < low || *value > high)
    file.refuse_value(key, std::to_string(*value), fmt::format("{} to {}", low, high));
  return *value;
}

void check_number(const GgufFile& file, std::int64_t number, std::int64_t count) {
  const std::int64_t found_count = number_of(file, kCount, 1, kMaxParts);
  if (found_count != count)
    file.refuse_value(kCount, std::to_string(found_count),
                      fmt::format("{}, as in the first part", count));
  const std::int64_t found = number_of(file, kNumber, 0, count - 1);
  if (found != number)
    file.refuse_value(kNumber, std::to_string(found),
                      fmt::format("{}, as its name says (it counts from 0)", number));
}

}  // namespace

bool is_gguf_path(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  if (ends_in_gguf(path)) return true;
  std::string start(4, '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), 4);
  return start == "GGUF";
}

std::string gguf_model_name(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  if (const auto prefix = prefix_of_part(name)) return *prefix;
  if (ends_in_gguf(name)) name.resize(name.size() - 5);
  return name;
}

std::vector<std::string> gguf_part_paths(const std::string& path) {
  constexpr std::size_t kEnd = std::string_view("00003.gguf").size(), kDigits = 5;
  const std::optional<std::string> prefix = prefix_of_part(path);
  if (!prefix) return {path};
  const int count = std::stoi(path.substr(path.size() - kEnd, kDigits));
  if (count < 1 || path != path_of_part(*prefix, 1, count)) return {path};
  std::vector<std::string> paths;
  for (int number = 1; number <= count; number++)
    paths.push_back(path_of_part(*prefix, number, count));
  return paths;
}

std::vector<std::shared_ptr<const GgufFile>> open_gguf_files(const std::string& path,
                                                             const FileLimits& limits) {
  std::vector<std::shared_ptr<const GgufFile>> files = {GgufFile::open(path, limits)};
  const GgufFile& first = *files[0];
  if (!first.has(kCount)) return files;
  const std::int64_t count = number_of(first, kCount, 1, kMaxParts);
  const std::int64_t number = number_of(first, kNumber, 0, count - 1);
  if (count == 1) return files;
  const std::optional<std::string> prefix = prefix_of_part(path);
  if (!prefix)
    refuse(path, "file name", in_quotes(fs::path(path).filename().string()),
           fmt::format("the name NAME-00001-of-{:05}.gguf, as the file is the first of {} parts",
                       count, count));
  if (number != 0)
    refuse(path, "file", fmt::format("part {} of {}", number + 1, count),
           "the first part; name " + escaped(path_of_part(*prefix, 1, count)));
  for (std::int64_t i = 1; i < count; i++) {
    const std::string part = path_of_part(*prefix, i + 1, count);
    std::error_code error;
    if (!fs::exists(part, error))
      refuse(part, "file", "nothing at this path",
             fmt::format("part {} of the {} of this model, beside the first", i + 1, count));
    files.push_back(GgufFile::open(part, limits));
    check_number(*files.back(), i, count);
  }
  std::int64_t n = 0;
  for (const auto& file : files) n += static_cast<std::int64_t>(file->tensors().size());
  const std::int64_t stated = first.integer(kTensors).value_or(n);
  if (n != stated)
    refuse(path, kTensors, fmt::format("{} tensors in all parts", n),
           fmt::format("{}; are the parts of one model?", stated));
  return files;
}

}  // namespace engine
