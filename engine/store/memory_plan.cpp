#include "engine/store/memory_plan.h"

#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "engine/base/types.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/opened_model.h"
#include "engine/decode/step/prefill_blocks.h"
#include "engine/model/encode/first_layer.h"
#include "kernels/device.h"

namespace engine {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
constexpr int kPrefillRows = 256;
// Rows of the largest step that the plan covers. A GPU's matrix product computes this many rows at
// a time, so a larger step needs no more scratch memory for it.
constexpr int kStepRows = 128;
constexpr int kFirstPages = 8;  // number of cache pages that a GPU allocates at once when it starts
constexpr double kChunk = kernels::kPageSize;
// Constants of a GPU. kPackSlab: bytes of raw rows in memory while a matrix is packed.
// kMostPartials: the largest size of attention's partial results. kWideOutputs: a matrix product
// with at least this many outputs does not use split-K.
constexpr double kPackSlab = 16 << 20, kMostPartials = 64 << 20, kWideOutputs = 12'288;
constexpr double kUnpackSlab = 64 << 20;  // bytes of a matrix unpacked for cuBLAS

/// The largest forward of a prefill: a prompt has at most one position less than the context.
PrefillChunk largest_chunk(const ModelConfig& config, int prompt_block) {
  return next_prefill_chunk(0, std::max(1, config.max_seq_len - 1), kPrefillRows, prompt_block);
}

/// The number after `key`, in a file with lines of the form "key number ...".
std::optional<std::int64_t> number_after(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    std::int64_t value = 0;
    if (word == key && file >> value) return value;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

/// The number in a limit file of a control group; nullopt for "max".
std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

/// Available bytes according to /proc/meminfo.
std::int64_t left_of_system() {
  const auto kib = number_after("/proc/meminfo", "MemAvailable:");
  return kib ? *kib * 1024 : kUnlimited;
}

/// Bytes left under the control group's limit. Inactive file pages count as free, because the
/// system drops them when memory is short.
std::int64_t left_of_control_group() {
  const std::string group = "/sys/fs/cgroup/";
  const auto limit = number_in(group + "memory.max");
  if (!limit) return kUnlimited;
  const std::int64_t used = number_in(group + "memory.current").value_or(0);
  const std::int64_t droppable = number_after(group + "memory.stat", "inactive_file").value_or(0);
  return std::max<std::int64_t>(0, *limit - used + droppable);
}

/// Bytes left under the address space limit (ulimit -v).
std::int64_t left_of_address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const std::int64_t used = number_in("/proc/self/statm").value_or(0) * sysconf(_SC_PAGESIZE);
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(limit.rlim_cur) - used);
}

/// A growing scratch buffer on a GPU. It grows at least by a factor of two, and the old buffer is
/// freed only after the new one is allocated.
struct Scratch {
  double bytes = 0, peak = 0;
  void reserve(double wanted) {
    if (wanted <= bytes) return;
    const double larger = std::max(wanted, 2 * bytes);
    peak = std::max(peak, bytes + larger);
    bytes = larger;
  }
};

/// Bytes of all scratch buffers, reserved in the order of a load, a prefill and a step.
/// @param prompt  the largest forward of a prefill
double scratch_bytes(const ModelConfig& config, kernels::DType dtype, const PrefillChunk& prompt) {
  const auto [prompt_rows, in_blocks] = prompt;
  const double dim = config.dim, hidden = config.hidden_dim, vocab = config.vocab_size;
  const double q = static_cast<double>(config.n_heads) * config.head_dim;
  const double qkv = q + 2.0 * config.n_kv_heads * config.head_dim;
  struct Product {
    double n, k;
  };
  const Product all[] = {{qkv, dim}, {dim, q}, {2 * hidden, dim}, {dim, hidden}, {vocab, dim}};
  Scratch rows, partials, unpacked;
  rows.reserve(std::min(kPackSlab, sizeof(float) * vocab * dim));
  for (const auto& [n, k] : all) rows.reserve(std::min(kPackSlab, sizeof(float) * n * k));
  const double a_chunk = sizeof(float) * config.n_heads * (2.0 + config.head_dim);
  const auto attend = [&](double n_chunks) {
    partials.reserve(std::min(kMostPartials, n_chunks * a_chunk));
  };
  const bool halves = dtype != kernels::DType::F32;
  const double prompt_chunks = prompt_rows / kChunk;
  for (std::size_t i = 0; in_blocks && i + 1 < std::size(all); i++) {  // all but the output matrix
    const auto& [n, k] = all[i];
    if (halves) rows.reserve(2.0 * prompt_rows * (k + 63));
    unpacked.reserve(std::min(kUnpackSlab, kernels::bytes_of(dtype) * (n + 63) * (k + 63)));
    if (i == 0) attend(kChunk * prompt_chunks * (prompt_chunks + 1) / 2);
  }
  for (std::size_t i = 0; i < std::size(all); i++) {
    const auto& [n, k] = all[i];
    if (halves) rows.reserve(2 * kStepRows * (k + 63));
    if (halves && n < kWideOutputs) partials.reserve(16 * kStepRows * (n + 127));
    if (i == 0) attend(kChunk * prompt_chunks * (prompt_chunks + 1) / 2);
  }
  attend(kStepRows * double{kFirstPages});
  const double n_listed = std::max(prompt_rows, kStepRows);
  const double lists = sizeof(int) * n_listed * (n_listed + 16.0) / 2;
  return rows.bytes + unpacked.peak + partials.peak + (config.sliding_window > 0 ? 2 : 1) * lists;
}

}  // namespace

double cache_bytes_per_token(const ModelConfig& config, kernels::DType type) {
  return 2.0 * config.n_layers * config.n_kv_heads *
         static_cast<double>(kernels::cache_bytes(type, config.head_dim));
}

MemoryPlan memory_plan(const ModelConfig& config, kernels::DType dtype) {
  const double size = kernels::bytes_of(dtype);
  // All layers have the same size; the total may exceed 2^63, so it is computed in doubles.
  ModelConfig shape = config;
  shape.n_layers = 0;
  const auto without_layers = static_cast<double>(shape.n_params());
  shape.n_layers = 1;
  const double layer = static_cast<double>(shape.n_params()) - without_layers;

  const double dim = config.dim, hidden = config.hidden_dim;
  const double kv = static_cast<double>(config.n_kv_heads) * config.head_dim;
  const double q = static_cast<double>(config.n_heads) * config.head_dim;
  const double largest = std::max({dim * (q + 2 * kv), 2 * hidden * dim, config.vocab_size * dim});
  // number of values per row in all buffers
  const double row = 2 * dim + (q + 2 * kv) + q + 3 * hidden;
  const int n_rows = std::max(largest_chunk(config, 0).n_rows, kStepRows);
  return {.weights = size * (without_layers + layer * config.n_layers),
          .workspace = size * largest + sizeof(float) * n_rows * row,
          .cache_per_token = cache_bytes_per_token(config, dtype),
          .is_f32 = dtype == kernels::DType::F32};
}

MemoryPlan memory_plan_as_stored(const ModelFiles& files, const kernels::Ops& ops) {
  MemoryPlan plan = memory_plan(files.config, kernels::DType::F16);
  for (const TensorSpec& spec : tensors_of(files.config)) {
    const auto format = files.tensors->quantised_format(spec.name);
    if (!format) continue;
    const double as_f16 = static_cast<double>(kernels::bytes_of(kernels::DType::F16)) *
                          static_cast<double>(spec.shape[0]) * static_cast<double>(spec.shape[1]);
    plan.weights += static_cast<double>(ops.packed_bytes(*format, static_cast<int>(spec.shape[0]),
                                                         static_cast<int>(spec.shape[1]))) -
                    as_f16;
  }
  return plan;
}

MemoryPlan default_memory_plan(const ModelFiles& files) {
  return files.quantised ? memory_plan_as_stored(files, kernels::cpu_ops())
                         : memory_plan(files.config, files.stored_dtype);
}

MemoryPlan gpu_memory_plan(const ModelConfig& config,
                           kernels::DType dtype,
                           const kernels::Ops& ops,
                           int prompt_block) {
  const double size = kernels::bytes_of(dtype), n_layers = config.n_layers;
  const double dim = config.dim, hidden = config.hidden_dim, vocab = config.vocab_size;
  const double kv = static_cast<double>(config.n_kv_heads) * config.head_dim;
  const double q = static_cast<double>(config.n_heads) * config.head_dim;
  const double qkv = q + 2 * kv;
  const auto packed = [&](double n, double k) {
    constexpr double kInt = std::numeric_limits<int>::max();
    if (n > kInt || k > kInt || n * k > 1e17) return size * n * k;
    return static_cast<double>(ops.packed_bytes(dtype, static_cast<int>(n), static_cast<int>(k)));
  };
  const double layer =
      packed(qkv, dim) + packed(dim, q) + packed(2 * hidden, dim) + packed(dim, hidden);
  // Norms and biases are f32: all parameters that are not in matrices.
  ModelConfig shape = config;
  shape.n_layers = 0;
  const double n_outputs = config.tied_embeddings ? 0 : config.n_outputs();  // of an own matrix
  const auto outside = static_cast<double>(shape.n_params());
  shape.n_layers = 1;
  const double of_layer = static_cast<double>(shape.n_params()) - outside;
  const double matrices = qkv * dim + dim * q + 3 * hidden * dim;
  const double vectors = outside - (vocab + n_outputs) * dim + n_layers * (of_layer - matrices);

  const double n_tables_of_rope = config.local_rope ? 2 : 1;
  // number of values in all buffers
  const double row = 2 * dim + qkv + q + 3 * hidden + n_tables_of_rope;
  const PrefillChunk prompt = largest_chunk(config, prompt_block);
  const int n_rows = std::max(prompt.n_rows, kStepRows);
  const int first_pages = std::max(kFirstPages, prompt.n_rows / kernels::kPageSize);
  const double workspace =
      sizeof(float) * n_rows * row + sizeof(float) * kStepRows * vocab +
      2 * size * n_rows * kv * n_layers + scratch_bytes(config, dtype, prompt) +
      sizeof(float) * n_tables_of_rope * first_pages * kChunk * config.head_dim;
  const double page =
      static_cast<double>(ops.page_bytes(dtype, config.n_kv_heads, config.head_dim));
  const double tables = packed(vocab, dim) + (n_outputs > 0 ? packed(n_outputs, dim) : 0);
  return {.weights = tables + n_layers * layer + sizeof(float) * vectors,
          .workspace = workspace + first_pages * 2 * page * n_layers,
          .cache_per_token = 2 * size * kv * n_layers,
          .is_f32 = dtype == kernels::DType::F32};
}

MemoryPlan memory_plan(const HeadsConfig& config, kernels::DType dtype, bool with_table) {
  const bool chimera = config.kind == HeadsKind::Chimera;
  const double size = kernels::bytes_of(dtype);
  const double dim = config.dim, embedding = config.vocab_size * dim;
  const double output = config.n_outputs() * dim;
  auto n = static_cast<double>(config.n_params());
  if (chimera && !config.own_embedding && !config.by_first_layer) n += embedding;
  if (config.target_output) n += output;
  const double read = config.target_output ? embedding : output;  // the largest matrix read at once
  const double largest = chimera && config.residual && !config.target_output ? 2 * read : read;
  const double rows = config.sees_committed_grams ? 2 : 1;  // of the cache per position
  const double table = with_table ? static_cast<double>(gram_table_bytes(config)) : 0;
  return {.weights = size * n,
          .workspace = size * largest + table,
          .cache_per_token = chimera ? 2 * size * dim * rows : 0};
}

MemoryPlan memory_plan(const HeadsConfig& config,
                       const ModelConfig& target,
                       kernels::DType dtype,
                       kernels::Device& device) {
  const bool on_cpu = kernels::is_cpu(device.name());
  const MemoryPlan heads = memory_plan(config, dtype, /*with_table=*/on_cpu);
  if (!config.by_first_layer) return heads;
  const ModelConfig layer = first_layer_of(target);
  return heads + (on_cpu ? memory_plan(layer, dtype)
                         : gpu_memory_plan(layer, dtype, device.ops(), device.prompt_block()));
}

std::int64_t available_memory_bytes() {
  return std::min({left_of_system(), left_of_control_group(), left_of_address_space()});
}

std::string size_words(double bytes) {
  if (bytes >= 1e12) return fmt::format("{:.2f} TB", bytes * 1e-12);
  if (bytes >= 1e9) return fmt::format("{:.1f} GB", bytes * 1e-9);
  return fmt::format("{:.1f} MB", bytes * 1e-6);
}

void check_memory(const std::string& name,
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
                  is_scaled     ? "a smaller --scale, like 4x2"
                  : plan.is_f32 ? "a smaller model, or --dtype bf16"
                                : "a smaller model",
                  gpu.empty() ? "" : ", or --device cpu"));
}

}  // namespace engine
