#include "engine/schedule/memory_plan.h"

#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "engine/model/heads_files.h"
#include "engine/types.h"

namespace engine {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
constexpr int kPrefillRows = 256;

/// The number behind `key` in a file of lines "key number ...".
std::optional<std::int64_t> number_behind(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    std::int64_t value = 0;
    if (word == key && file >> value) return value;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

/// The number a file begins with; none for "max".
std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

std::int64_t left_of_system() {
  const auto kib = number_behind("/proc/meminfo", "MemAvailable:");
  return kib ? *kib * 1024 : kUnlimited;
}

/// Pages of files that nobody uses count as free: the system drops them when it must.
std::int64_t left_of_control_group() {
  const std::string group = "/sys/fs/cgroup/";
  const auto limit = number_in(group + "memory.max");
  if (!limit) return kUnlimited;
  const std::int64_t used = number_in(group + "memory.current").value_or(0);
  const std::int64_t droppable = number_behind(group + "memory.stat", "inactive_file").value_or(0);
  return std::max<std::int64_t>(0, *limit - used + droppable);
}

std::int64_t left_of_address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const std::int64_t used = number_in("/proc/self/statm").value_or(0) * sysconf(_SC_PAGESIZE);
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(limit.rlim_cur) - used);
}

}  // namespace

MemoryPlan memory_plan(const ModelConfig& config, kernels::DType dtype) {
  const double size = kernels::bytes_of(dtype);
  // Layers are alike; a product with their number may pass 2^63.
  ModelConfig shape = config;
  shape.n_layers = 0;
  const auto without_layers = static_cast<double>(shape.n_params());
  shape.n_layers = 1;
  const double layer = static_cast<double>(shape.n_params()) - without_layers;

  const double dim = config.dim, hidden = config.hidden_dim;
  const double kv = static_cast<double>(config.n_kv_heads) * config.head_dim;
  const double q = static_cast<double>(config.n_heads) * config.head_dim;
  const double largest = std::max({dim * (q + 2 * kv), 2 * hidden * dim, config.vocab_size * dim});
  const double row = 2 * dim + (q + 2 * kv) + q + 3 * hidden;  // numbers in all buffers
  return {.weights = size * (without_layers + layer * config.n_layers),
          .workspace = size * largest + sizeof(float) * kPrefillRows * row,
          .cache_per_token = 2 * size * kv * config.n_layers};
}

MemoryPlan memory_plan(const HeadsConfig& config, kernels::DType dtype) {
  const bool chimera = config.kind == HeadsKind::Chimera;
  const double size = kernels::bytes_of(dtype);
  const double dim = config.dim, output = config.vocab_size * dim;
  auto n = static_cast<double>(config.n_params());
  if (chimera && !config.own_embedding) n += output;
  const double largest = chimera && config.residual ? 2 * output : output;
  const double rows = config.sees_committed_grams ? 2 : 1;  // of the cache, a position
  return {.weights = size * n,
          .workspace = size * largest,
          .cache_per_token = chimera ? 2 * size * dim * rows : 0};
}

std::int64_t available_memory_bytes() {
  return std::min({left_of_system(), left_of_control_group(), left_of_address_space()});
}

std::string size_words(double bytes) {
  if (bytes >= 1e12) return fmt::format("{:.2f} TB", bytes * 1e-12);
  if (bytes >= 1e9) return fmt::format("{:.1f} GB", bytes * 1e-9);
  return fmt::format("{:.1f} MB", bytes * 1e-6);
}

void refuse_what_does_not_fit(const std::string& name,
                              const ModelScale& scale,
                              const MemoryPlan& plan,
                              std::int64_t available,
                              const std::string& gpu) {
  if (plan.needed() <= static_cast<double>(available)) return;
  const bool is_scaled = !(scale == ModelScale{});
  throw Error(
      ErrorCode::Resources,
      fmt::format("{}{}{}: {} of memory are needed ({} weights, {} workspace, and {} of cache for "
                  "every token), {} are available; try {}{}",
                  name, gpu.empty() ? "" : " on " + gpu,
                  is_scaled ? " at --scale " + name_of(scale) : "", size_words(plan.needed()),
                  size_words(plan.weights), size_words(plan.workspace),
                  size_words(plan.cache_per_token), size_words(static_cast<double>(available)),
                  is_scaled ? "a smaller --scale, like 4x2" : "a smaller model, or --dtype bf16",
                  gpu.empty() ? "" : ", or --device cpu"));
}

}  // namespace engine
