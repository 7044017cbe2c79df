#include "engine/schedule/model_store.h"

#include <sys/sysinfo.h>

#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include "engine/event/clock.h"
#include "engine/model/weights_hash.h"
#include "engine/schedule/memory_plan.h"

namespace engine {
namespace {

kernels::DType dtype_of(const std::string& name, kernels::DType stored) {
  if (name.empty()) return stored;
  const auto dtype = kernels::dtype_named(name);
  if (!dtype)
    throw Error(ErrorCode::Usage, fmt::format("--dtype {}: expected f32, bf16 or f16", name));
  return *dtype;
}

}  // namespace

void ModelStore::make_room(const ModelFiles& files, const LoadOptions& options) {
  const MemoryPlan plan = memory_plan(scaled(files.config, options.scale), options.dtype);
  const auto free = [] { return available_memory_bytes(); };
  // What is held could go first; nothing goes for a model that would not fit even so.
  std::int64_t held = 0;
  for (const auto& model : models_) held += model->model->weight_bytes();
  const std::int64_t available = free();
  const bool is_known = available < std::numeric_limits<std::int64_t>::max() - held;
  refuse_what_does_not_fit(files.name, options.scale, plan, available + (is_known ? held : 0));
  while (!models_.empty() && plan.needed() > static_cast<double>(free()))
    models_.erase(models_.begin());
}

kernels::Device& ModelStore::device(const std::string& name) {
  if (name == "auto" || name == "cpu") {
    if (!cpu_) cpu_ = kernels::open_cpu(n_threads_);
    return *cpu_;
  }
  for (const DeviceInfo& info : list_devices()) {
    if (info.name == name && !info.available) {
      throw Error(ErrorCode::Device,
                  fmt::format("device {}: {}; try --device cpu", name, info.reason));
    }
  }
  if (name.starts_with("cuda:")) {
    throw Error(
        ErrorCode::Device,
        fmt::format("device {}: not on this machine; `decoscope devices` lists what is", name));
  }
  throw Error(ErrorCode::Usage, fmt::format("--device {}: expected auto, cpu or cuda:N", name));
}

LoadedModel& ModelStore::get(const ModelRequest& request, const LoadProgress& progress) {
  const auto found = std::find_if(models_.begin(), models_.end(),
                                  [&](const auto& m) { return m->request == request; });
  if (found != models_.end()) {
    std::rotate(found, found + 1, models_.end());
    return *models_.back();
  }
  const Nanoseconds start = now_ns();
  kernels::Device& on = device(request.device);
  auto loaded = std::make_unique<LoadedModel>();
  loaded->request = request;
  loaded->files = open_model(find_model(request.model, assets_dir_),
                             {.allow_external_shards = request.allow_external_shards,
                              .needs_tokenizer = request.needs_tokenizer,
                              .limits = request.limits});
  LoadOptions options;
  options.dtype = dtype_of(request.dtype, loaded->files.stored_dtype);
  options.scale = request.scale == "auto"
                      ? auto_scale(loaded->files.config, options.dtype, last_level_cache_bytes())
                      : scale_from(request.scale);
  make_room(loaded->files, options);
  options.progress = progress;
  // Before there are weights in memory: the pages that hashing reads would come on top of them.
  loaded->weights_hash = weights_hash(loaded->files);
  loaded->model = Model::load(on, loaded->files, options);
  loaded->id = ++n_loaded_;
  loaded->load_ms = static_cast<double>(now_ns() - start) * 1e-6;
  if (models_.size() >= kMaxModels) models_.erase(models_.begin());
  models_.push_back(std::move(loaded));
  return *models_.back();
}

ModelLoaded describe(const LoadedModel& loaded) {
  const Model& model = *loaded.model;
  ModelLoaded event;
  event.t = now_ns();
  event.model = loaded.id;
  event.name = model.name();
  event.dtype = kernels::name_of(model.dtype());
  event.device = model.device().name();
  event.ops = model.device().ops().name;
  event.scale = name_of(model.scale());
  event.n_params = model.config().n_params();
  event.weight_bytes = model.weight_bytes();
  event.n_layers = model.config().n_layers;
  event.dim = model.config().dim;
  event.vocab_size = model.vocab_size();
  event.max_seq_len = model.max_seq_len();
  event.n_threads = model.device().n_threads();
  event.eos_ids = model.config().eos_ids;
  event.weights_hash = loaded.weights_hash;
  const ModelConfig& shape = model.config();
  event.kv_bytes_per_token = std::int64_t{2} * shape.n_layers * shape.n_kv_heads * shape.head_dim *
                             kernels::bytes_of(model.dtype());
  if (const Tokenizer* tokenizer = model.tokenizer()) {
    for (TokenId id = 0; id < tokenizer->vocab_size(); id++) {
      const bool special = tokenizer->is_special(id);
      event.pieces.push_back(special ? std::string() : tokenizer->piece(id));
      if (!special) continue;
      event.special_ids.push_back(id);
      event.special_names.push_back(tokenizer->piece(id));
    }
  }
  return event;
}

std::vector<DeviceInfo> list_devices() {
  DeviceInfo cpu{.name = "cpu", .kind = "cpu", .available = true, .ops = kernels::cpu_ops().name};
  struct sysinfo memory {};
  if (sysinfo(&memory) == 0)
    cpu.memory_bytes = static_cast<std::int64_t>(memory.totalram) * memory.mem_unit;
  DeviceInfo cuda{.name = "cuda:0", .kind = "cuda", .reason = "there are no CUDA kernels yet"};
  return {cpu, cuda};
}

}  // namespace engine
