// Finds the scale at which a model exceeds the last-level cache, so that memory bandwidth limits a
// step.
#include <filesystem>
#include <fstream>
#include <limits>

#include "engine/checkpoint/model_files.h"
#include "engine/model/model.h"

namespace engine {
namespace {

constexpr int kMaxDepth = 16;
constexpr int kWidths[] = {4, 16, 64};

std::int64_t weight_bytes(const ModelConfig& config, kernels::DType dtype) {
  return config.n_params() * kernels::bytes_of(dtype);
}

std::string first_word(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "32768K", "266240K", "1M"; 0 for anything else.
std::int64_t bytes_from(const std::string& text) {
  std::size_t n = 0;
  std::int64_t bytes = 0;
  while (n < text.size() && n < 12 && text[n] >= '0' && text[n] <= '9')
    bytes = 10 * bytes + (text[n++] - '0');
  if (n == text.size()) return bytes;
  if (text[n] == 'K') return bytes << 10;
  if (text[n] == 'M') return bytes << 20;
  return text[n] == 'G' ? bytes << 30 : 0;
}

}  // namespace

ModelScale auto_scale(const ModelConfig& config, kernels::DType dtype, std::int64_t cache_bytes) {
  const std::int64_t wanted = 3 * cache_bytes;
  if (weight_bytes(config, dtype) > wanted) return {};
  ModelScale best{.width = kWidths[2], .depth = kMaxDepth};  // if no scale is large enough
  std::int64_t best_bytes = std::numeric_limits<std::int64_t>::max();
  for (const int width : kWidths) {
    for (int depth = 1; depth <= kMaxDepth; depth++) {
      const ModelScale scale{.width = width, .depth = depth};
      const std::int64_t bytes = weight_bytes(scaled(config, scale), dtype);
      if (bytes <= wanted || bytes >= best_bytes) continue;
      best = scale;
      best_bytes = bytes;
    }
  }
  return best;
}

std::int64_t last_level_cache_bytes() {
  const std::filesystem::path root = "/sys/devices/system/cpu/cpu0/cache";
  std::int64_t bytes = 0;
  int highest = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    if (entry.path().filename().string().rfind("index", 0) != 0) continue;
    const std::string level = first_word(entry.path() / "level");
    if (level.size() != 1 || level[0] - '0' <= highest) continue;
    if (first_word(entry.path() / "type") == "Instruction") continue;
    highest = level[0] - '0';
    bytes = bytes_from(first_word(entry.path() / "size"));
  }
  return bytes;
}

}  // namespace engine
