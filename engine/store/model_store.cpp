#include "engine/store/model_store.h"

#include <sys/sysinfo.h>
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/text.h"
#include "engine/checkpoint/found/found_heads.h"
#include "engine/decode/control/step_control.h"
#include "engine/decode/guess/successor_table.h"
#include "engine/event/clock.h"
#include "engine/store/memory_plan.h"
#include "engine/store/thread_choice.h"
#include "engine/store/weights_hash.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/monitor/gpu_monitor.h"
#include "kernels/thread_sharing.h"

namespace engine {
namespace {

/// Bytes of the keys and values of one position, of all layers.
std::int64_t kv_bytes_of(const Model& model) {
  return static_cast<std::int64_t>(cache_bytes_per_token(model.config(), model.cache_type()));
}

kernels::DType dtype_of(const std::string& name, kernels::DType stored) {
  if (name.empty()) return stored;
  const auto dtype = kernels::dtype_named(name);
  if (!dtype)
    throw Error(ErrorCode::Usage, fmt::format("--dtype {}: expected f32, bf16 or f16", name));
  return *dtype;
}

/// The type of the KV cache that a request names.
/// @throws Error(Usage)  if the device or the model cannot have it
kernels::DType cache_type_of(const ModelRequest& request, const ModelConfig& config) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::Usage, fmt::format("--cache-type {}: {}", request.cache_type, why));
  };
  if (!kernels::is_cpu(request.device)) refuse("only the CPU has this option");
  if (request.cache_type != kernels::name_of(kernels::DType::Q8_0)) {
    if (const auto dtype = kernels::dtype_named(request.cache_type)) return *dtype;
    refuse("expected f32, bf16, f16 or q8_0");
  }
  if (config.head_dim % kernels::kCacheGroup != 0)
    refuse(fmt::format("needs heads of a multiple of {} values, and {} has {}",
                       kernels::kCacheGroup, request.model, config.head_dim));
  return kernels::DType::Q8_0;
}

/// Sets the types of weights and cache, after the scale. Quantised weights are computed as stored where the device can.
void set_types(const ModelRequest& request, const ModelFiles& files, LoadOptions& options) {
  options.dtype = dtype_of(request.dtype, files.stored_dtype);
  options.as_stored = request.dtype.empty() && files.quantised && options.scale == ModelScale{} &&
                      kernels::is_cpu(request.device);
  if (options.as_stored) options.dtype = kernels::DType::F16;
  if (!request.cache_type.empty()) options.cache = cache_type_of(request, files.config);
}

bool is_on(const LoadedModel& model, const kernels::Device& device) {
  return model.model->device().name() == device.name();
}

MemoryPlan plan_of_type(const ModelFiles& files,
                        const LoadOptions& options,
                        kernels::Device& device) {
  if (options.as_stored) return memory_plan_as_stored(files, device.ops());
  const ModelConfig config = scaled(files.config, options.scale);
  return kernels::is_cpu(device.name())
             ? memory_plan(config, options.dtype)
             : gpu_memory_plan(config, options.dtype, device.ops(), device.prompt_block());
}

MemoryPlan plan_of(const ModelFiles& files, const LoadOptions& options, kernels::Device& device) {
  MemoryPlan plan = plan_of_type(files, options, device);
  if (options.cache)
    plan.cache_per_token =
        cache_bytes_per_token(scaled(files.config, options.scale), *options.cache);
  return plan;
}

/// Checks that draft and target have the same vocabulary, because token ids would otherwise mean
/// different tokens.
/// @throws Error(Usage)  naming both sizes or the first token that differs
void refuse_other_vocabulary(const std::string& decoder,
                             const ModelFiles& target,
                             const ModelFiles& draft) {
  const int n_target = n_tokens_of(target), n_draft = n_tokens_of(draft);
  const std::string names =
      fmt::format("{}: draft model {} for {}", decoder, draft.name, target.name);
  if (n_target != n_draft) {
    throw Error(ErrorCode::Usage,
                fmt::format("{}: found {} tokens in the draft's vocabulary and {} in the target's, "
                            "expected the same vocabulary; name another with --draft",
                            names, n_draft, n_target));
  }
  if (!target.tokenizer || !draft.tokenizer) return;
  for (TokenId id = 0; id < n_target; id++) {
    if (target.tokenizer->piece(id) == draft.tokenizer->piece(id)) continue;
    throw Error(ErrorCode::Usage,
                fmt::format("{}: both vocabularies have {} tokens, but token {} is '{}' to the "
                            "draft and '{}' to the target, expected the same vocabulary; name "
                            "another with --draft",
                            names, n_target, id, printable(draft.tokenizer->piece(id)),
                            printable(target.tokenizer->piece(id))));
  }
}

/// The devices for the ranks of a model on this device, in order.
std::vector<std::string> devices_from(const std::string& device) {
  std::vector<std::string> names;
  const std::vector<kernels::CudaDeviceInfo> all = kernels::list_cuda();
  const auto first = std::ranges::find(all, device, &kernels::CudaDeviceInfo::name);
  for (auto at = first; at != all.end(); ++at) {
    const bool emulated = at->name == "cuda:emulated";
    if (at == first || (at->available && !emulated)) names.push_back(at->name);
  }
  return names.empty() ? std::vector{device} : names;
}

}  // namespace

bool ModelStore::may_unload(const LoadedModel& model, const LoadedModel* kept) const {
  return &model != kept && std::ranges::find(together_, &model) == together_.end();
}

bool ModelStore::unload_oldest(const LoadedModel* kept, const kernels::Device* device) {
  const auto oldest = std::find_if(models_.begin(), models_.end(), [&](const auto& model) {
    return may_unload(*model, kept) && (!device || is_on(*model, *device));
  });
  if (oldest == models_.end()) return false;
  models_.erase(oldest);
  return true;
}

void ModelStore::make_room(const std::string& device_name,
                           const std::string& name,
                           const ModelScale& scale,
                           const MemoryPlan& plan,
                           const LoadedModel* kept) {
  const MemoryPlan all = plan + reserved_;
  kernels::Device& on = device(device_name);
  // Other models may be unloaded to make room, but no model is unloaded if the new one would not
  // fit even after that.
  std::int64_t held = 0;
  for (const auto& model : models_)
    if (may_unload(*model, kept) && is_on(*model, on)) held += model->model->weight_bytes();
  const std::int64_t available = free_bytes(on);
  const bool is_known = available < std::numeric_limits<std::int64_t>::max() - held;
  const std::string gpu = kernels::is_cpu(device_name) ? "" : device_name;
  check_memory(name, scale, all, available + (is_known ? held : 0), gpu);
  while (all.needed() > static_cast<double>(free_bytes(on)) && unload_oldest(kept, &on)) {
  }
}

void ModelStore::require_room(const std::vector<ModelRequest>& requests) {
  MemoryPlan plan;
  std::string names;
  ModelScale scale;
  std::vector<const LoadedModel*> needed;
  for (const ModelRequest& request : requests) {
    const LoadedModel* model = find_loaded(request);
    if (model) {
      needed.push_back(model);
      continue;
    }
    const Wanted wanted = open(request);
    plan = plan + plan_of(wanted.files, wanted.options, device(request.device));
    scale = wanted.options.scale;
    names += (names.empty() ? "" : " with ") + wanted.files.name;
  }
  if (names.empty()) return;
  const auto before = std::exchange(together_, needed);
  try {
    make_room(requests.front().device, names, scale, plan, nullptr);
  } catch (...) {
    together_ = before;
    throw;
  }
  together_ = before;
}

kernels::Device& ModelStore::device(const std::string& name) {
  if (kernels::is_cpu(name)) {
    if (!cpu_) cpu_ = kernels::open_cpu(n_threads_);
    return *cpu_;
  }
  std::unique_ptr<kernels::Device>& gpu = gpus_[name];
  if (!gpu) gpu = open_gpu(name);
  return *gpu;
}

std::unique_ptr<kernels::Device> ModelStore::open_gpu(const std::string& name) {
  try {
    auto gpu = kernels::open_gpu(name);
    failed_.erase(name);
    return gpu;
  } catch (const Error& error) {
    const auto before = failed_.find(name);
    if (before == failed_.end()) throw;
    throw Error(error.code(), fmt::format("{} cannot be opened again since it failed: {}, or start "
                                          "the program again",
                                          name, before->second));
  }
}

void ModelStore::drop_failed_devices() {
  // compares names, because a failure of one device object affects the whole GPU
  std::map<std::string, std::string> failed;
  const auto look = [&](const kernels::Device& device) {
    if (std::string why = device.failure(); !why.empty()) failed.emplace(device.name(), why);
  };
  for (const auto& [name, gpu] : gpus_)
    if (gpu) look(*gpu);
  for (const auto& model : models_) look(model->model->device());
  if (failed.empty()) return;
  const auto is_gone = [&](const kernels::Device& device) {
    return failed.contains(device.name());
  };
  std::erase_if(together_, [&](const auto* model) { return is_gone(model->model->device()); });
  std::erase_if(models_, [&](const auto& model) { return is_gone(model->model->device()); });
  std::erase_if(gpus_, [&](const auto& gpu) { return gpu.second && is_gone(*gpu.second); });
  for (auto& [name, why] : failed) failed_[name] = std::move(why);
}

std::vector<std::string> ModelStore::take_notes() {
  std::vector<std::string> notes;
  const auto take = [&](kernels::Device& device) {
    for (std::string& note : kernels::take_notes_of(device)) notes.push_back(std::move(note));
  };
  for (const auto& [name, gpu] : gpus_)
    if (gpu) take(*gpu);
  for (const auto& model : models_)
    if (model->own_device) take(*model->own_device);
  for (std::string& note : kernels::take_notes_of_closed()) notes.push_back(std::move(note));
  return notes;
}

std::int64_t ModelStore::free_bytes(kernels::Device& device) const {
  const std::optional<std::int64_t> own = device.free_bytes();
  if (!own) return available_memory_bytes();
  // The emulated device uses this process's memory.
  const bool in_process = device.name() == "cuda:emulated";
  return in_process ? std::min(*own, available_memory_bytes()) : *own;
}

namespace {

/// The request without its setting for notices about unused defaults, so that requests that differ
/// only in it share the weights.
ModelRequest without_notices(ModelRequest request) {
  if (request.generation == GenerationUse::Silent) request.generation = GenerationUse::NotApplied;
  return request;
}

}  // namespace

LoadedModel* ModelStore::find_loaded(const ModelRequest& request, const ModelFiles* target) {
  const ModelRequest wanted = without_notices(request);
  const auto found = std::find_if(models_.begin(), models_.end(), [&](const auto& m) {
    const std::string& shares_with = m->files.target_path;
    return without_notices(m->request) == wanted &&
           (shares_with.empty() || (target && shares_with == target->path));
  });
  if (found == models_.end()) return nullptr;
  std::rotate(found, found + 1, models_.end());
  return models_.back().get();
}

ModelStore::Wanted ModelStore::open(const ModelRequest& request, const ModelFiles* target) const {
  Wanted wanted{.begun = now_ns()};
  wanted.files = open_model(find_model(request.model, assets_dir_),
                            {.allow_external_shards = request.allow_external_shards,
                             .needs_tokenizer = request.needs_tokenizer,
                             .generation = request.generation,
                             .context = request.context,
                             .limits = request.limits,
                             .target = target});
  if (std::string notice = ambiguous_name_notice(request.model, assets_dir_); !notice.empty())
    wanted.files.notices.push_back(std::move(notice));
  LoadOptions& options = wanted.options;
  // "auto" scales a model to the processor's cache; on a GPU it means no scaling.
  if (request.scale != "auto")
    options.scale = scale_from(request.scale);
  else if (kernels::is_cpu(request.device))
    options.scale =
        auto_scale(wanted.files.config, dtype_of(request.dtype, wanted.files.stored_dtype),
                   last_level_cache_bytes());
  set_types(request, wanted.files, options);
  return wanted;
}

LoadedModel& ModelStore::load(const ModelRequest& request,
                              Wanted wanted,
                              const LoadProgress& progress,
                              const LoadedModel* kept) {
  wanted.options.progress = progress;
  auto loaded = std::make_unique<LoadedModel>();
  loaded->request = request;
  if (request.own_threads > 0)
    loaded->own_device = kernels::is_cpu(request.device) ? kernels::open_cpu(request.own_threads)
                                                         : open_gpu(request.device);
  kernels::Device& on = loaded->own_device ? *loaded->own_device : device(request.device);
  loaded->files = std::move(wanted.files);
  // Hashes before the weights are loaded. Afterwards the file pages that hashing reads would need
  // memory in addition to the weights.
  loaded->weights_hash = weights_hash(loaded->files);
  loaded->model = Model::load(on, loaded->files, wanted.options);
  loaded->control = std::make_shared<StepControl>();
  loaded->control->costs().set_position_share(static_cast<double>(kv_bytes_of(*loaded->model)) /
                                              static_cast<double>(loaded->model->weight_bytes()));
  loaded->successors = std::make_shared<KeptSuccessors>();
  loaded->id = ++n_loaded_;
  loaded->load_ms = static_cast<double>(now_ns() - wanted.begun) * 1e-6;
  const auto is_on_cpu = [&](const auto& other) { return &other->model->device() == cpu_.get(); };
  if (n_threads_ == 0 && &on == cpu_.get() && std::ranges::none_of(models_, is_on_cpu))
    choose_threads(*loaded->model, loaded->weights_hash);
  if (models_.size() >= kMaxModels) unload_oldest(kept);
  models_.push_back(std::move(loaded));
  return *models_.back();
}

LoadedModel& ModelStore::get(const ModelRequest& request, const LoadProgress& progress) {
  if (LoadedModel* model = find_loaded(request)) return *model;
  kernels::Device& on = device(request.device);  // throws before anything is read
  Wanted wanted = open(request);
  make_room(request.device, wanted.files.name, wanted.options.scale,
            plan_of(wanted.files, wanted.options, on), nullptr);
  return load(request, std::move(wanted), progress, nullptr);
}

RunModels ModelStore::get_with_draft(const ModelRequest& request,
                                     const DraftResources& draft_resources,
                                     const std::string& decoder,
                                     const LoadProgress& progress,
                                     int draft_threads) {
  kernels::Device& on = device(request.device);
  LoadedModel* target = find_loaded(request);
  Wanted target_wanted;
  if (!target) target_wanted = open(request);
  const ModelFiles& files = target ? target->files : target_wanted.files;
  ModelRequest draft_request = request;
  draft_request.model = draft_resources.draft.empty()
                            ? draft_for(files, assets_dir_, request.limits)
                            : draft_resources.draft;
  const ModelScale scale = target ? target->model->scale() : target_wanted.options.scale;
  draft_request.scale =
      draft_resources.draft_scale.empty() ? name_of(scale) : draft_resources.draft_scale;
  draft_request.own_threads = draft_threads;
  draft_request.context = 0;
  draft_request.generation = GenerationUse::Silent;
  if (draft_request.model.empty()) {
    throw Error(
        ErrorCode::Usage,
        fmt::format(
            "{} needs a draft model: the card of {} names none, and no draft in the bundled models "
            "or the data folder shares its embedding; name one with --draft NAME|DIR",
            decoder, files.name));
  }

  LoadedModel* proposes = find_loaded(draft_request, &files);
  Wanted draft_wanted;
  if (!proposes) draft_wanted = open(draft_request, &files);
  refuse_other_vocabulary(decoder, files, proposes ? proposes->files : draft_wanted.files);
  MemoryPlan plan;
  if (!target) plan = plan + plan_of(target_wanted.files, target_wanted.options, on);
  if (!proposes) plan = plan + plan_of(draft_wanted.files, draft_wanted.options, on);
  const std::string name = fmt::format("{} with the draft model {}", files.name,
                                       proposes ? proposes->files.name : draft_wanted.files.name);
  if (!target) {
    make_room(request.device, name, target_wanted.options.scale, plan, proposes);
    target = &load(request, std::move(target_wanted), progress, proposes);
  }
  if (!proposes) {
    make_room(request.device, name, draft_wanted.options.scale,
              plan_of(draft_wanted.files, draft_wanted.options, on), target);
    proposes = &load(draft_request, std::move(draft_wanted), progress, target);
  }
  return {*target, proposes};
}

std::vector<LoadedModel*> ModelStore::get_ranks(const LoadedModel& target,
                                                int n_ranks,
                                                const LoadProgress& progress) {
  const bool on_cpu = kernels::is_cpu(target.request.device);
  const std::vector<std::string> devices = devices_from(target.request.device);
  const auto before = together_;
  together_.push_back(&target);
  std::vector<LoadedModel*> ranks;
  try {
    for (int rank = 1; rank < n_ranks; rank++) {
      ModelRequest request = target.request;
      request.rank = rank;
      request.device = devices[static_cast<std::size_t>(rank) % devices.size()];
      request.own_threads = on_cpu ? threads_of_rank(target.model->device(), n_ranks) : 1;
      ranks.push_back(&get(request, progress));
      together_.push_back(ranks.back());
    }
  } catch (...) {
    together_ = before;
    throw;
  }
  together_ = before;
  return ranks;
}

int threads_of_rank(const kernels::Device& device, int n_ranks) {
  return std::max(1, device.n_threads() / n_ranks);
}

namespace {

/// True if the first word of a text is decoded without the space that its piece begins with.
bool drops_first_space(const Tokenizer& tokenizer) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); id++) {
    const std::string piece = tokenizer.piece(id);
    if (!piece.starts_with(' ') || tokenizer.is_special(id)) continue;
    TextState state;
    if (tokenizer.extend(state, id) != piece) return true;
  }
  return false;
}

}  // namespace

ModelLoaded describe(const LoadedModel& loaded) {
  const Model& model = *loaded.model;
  ModelLoaded event;
  event.t = now_ns();
  event.model = loaded.id;
  event.name = model.name();
  event.dtype = model.weight_type();
  event.device = model.device().name();
  event.ops = model.device().ops().name;
  if (!model.device().title().empty()) event.ops += " on " + model.device().title();
  event.scale = name_of(model.scale());
  event.n_params = model.config().n_params();
  event.weight_bytes = model.weight_bytes();
  event.n_layers = model.config().n_layers;
  event.dim = model.config().dim;
  event.vocab_size = model.vocab_size();
  event.max_seq_len = model.max_seq_len();
  event.n_threads = kernels::active_threads(model.device());
  event.eos_ids = model.config().eos_ids;
  event.weights_hash = loaded.weights_hash;
  event.kv_bytes_per_token = kv_bytes_of(model);
  event.cache_type = kernels::name_of(model.cache_type());
  if (const Tokenizer* tokenizer = model.tokenizer()) {
    for (TokenId id = 0; id < tokenizer->vocab_size(); id++) {
      const bool special = tokenizer->is_special(id);
      event.pieces.push_back(special ? std::string() : tokenizer->piece(id));
      if (!special) continue;
      event.special_ids.push_back(id);
      event.special_names.push_back(tokenizer->piece(id));
    }
    event.drops_first_space = drops_first_space(*tokenizer);
  }
  return event;
}

namespace {

std::string ids_words(std::vector<TokenId> ids) {
  std::ranges::sort(ids);
  return ids.empty() ? "none" : fmt::format("{}", fmt::join(ids, ", "));
}

std::string ids_words(std::optional<TokenId> id) {
  return ids_words(id ? std::vector{*id} : std::vector<TokenId>{});
}

std::optional<TokenId> bos_of(const ModelFiles& files) {
  return files.tokenizer ? files.tokenizer->bos_id() : files.config.bos_id;
}

/// The first token that is special in only one of the two vocabularies.
std::optional<TokenId> first_special_to_one(const ModelFiles& target, const ModelFiles& draft) {
  if (!target.tokenizer || !draft.tokenizer) return std::nullopt;
  const int n = std::min(n_tokens_of(target), n_tokens_of(draft));
  for (TokenId id = 0; id < n; id++)
    if (target.tokenizer->is_special(id) != draft.tokenizer->is_special(id)) return id;
  return std::nullopt;
}

}  // namespace

std::vector<std::string> pair_notices(const RunModels& models) {
  if (!models.draft) return {};
  const ModelFiles &target = models.target.files, &draft = models.draft->files;
  const std::string names = fmt::format("draft model {} for {}: ", draft.name, target.name);
  std::vector<std::string> notices;
  const std::string ends = ids_words(target.config.eos_ids);
  if (const std::string own = ids_words(draft.config.eos_ids); own != ends)
    notices.push_back(
        fmt::format("{}its end tokens are {}, the target's {}; the target's end tokens are used",
                    names, own, ends));
  const std::string begins = ids_words(bos_of(target));
  if (const std::string own = ids_words(bos_of(draft)); own != begins)
    notices.push_back(
        fmt::format("{}its begin token is {}, the target's {}; the target's begin token is used",
                    names, own, begins));
  if (const auto id = first_special_to_one(target, draft))
    notices.push_back(fmt::format("{}token {} is special only in the {}; the target decides", names,
                                  *id, target.tokenizer->is_special(*id) ? "target" : "draft"));
  const int context = models.draft->model->max_seq_len(), all = models.target.model->max_seq_len();
  if (context < all)
    notices.push_back(
        fmt::format("{}its context holds {} tokens, the target's {}; beyond its context a text "
                    "continues without drafts, one token per step",
                    names, context, all));
  return notices;
}

DeviceInfo cpu_info() {
  DeviceInfo cpu{.name = "cpu", .kind = "cpu", .available = true, .ops = kernels::cpu_ops().name};
  struct sysinfo memory {};
  if (sysinfo(&memory) == 0)
    cpu.memory_bytes = static_cast<std::int64_t>(memory.totalram) * memory.mem_unit;
  return cpu;
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> all{cpu_info()};
  for (const kernels::CudaDeviceInfo& cuda : kernels::list_cuda())
    all.push_back({.name = cuda.name,
                   .kind = "cuda",
                   .available = cuda.available,
                   .reason = cuda.reason,
                   .memory_bytes = cuda.memory_bytes,
                   .ops = cuda.ops});
  return all;
}

kernels::GpuLoad load_of(const DeviceInfo& device) {
  return kernels::load_of_cuda({.name = device.name,
                                .available = device.available,
                                .reason = device.reason,
                                .memory_bytes = device.memory_bytes,
                                .ops = device.ops});
}

}  // namespace engine
