// ModelStore's part for draft heads: finds, checks and loads them for their target.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "engine/checkpoint/found/found_heads.h"
#include "engine/checkpoint/found/found_models.h"
#include "engine/checkpoint/shared/target_output.h"
#include "engine/decode/registry.h"
#include "engine/event/clock.h"
#include "engine/store/memory_plan.h"
#include "engine/store/model_store.h"
#include "engine/store/weights_hash.h"
#include "kernels/cuda/cuda.h"

namespace engine {
namespace {

/// Until the end of the scope, the store's memory checks reserve room for models that are loaded
/// later.
class ReservedMemory {
 public:
  ReservedMemory(MemoryPlan& slot, const MemoryPlan& plan) : slot_(slot) { slot_ = plan; }
  ~ReservedMemory() { slot_ = {}; }
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;

 private:
  MemoryPlan& slot_;
};

bool is_there(const LoadedModel& target, const std::string& directory) {
  return std::ranges::any_of(target.heads,
                             [&](const auto& heads) { return heads->files.path == directory; });
}

}  // namespace

LoadedHeads* RunModels::heads_of(const std::string& decoder) const {
  if (decoder == name_of(HeadsKind::Medusa)) return medusa;
  return decoder == name_of(HeadsKind::Chimera) ? chimera : nullptr;
}

std::string ModelStore::heads_directory(const ModelFiles& target,
                                        const std::vector<std::string>& given,
                                        HeadsKind kind,
                                        const FileLimits& limits) const {
  for (const std::string& name : given) {
    const std::string directory = find_model(name, assets_dir_);
    const auto found = heads_kind(directory, limits);
    // throws an error that names the content of the folder
    if (!found) open_heads(directory, &target, limits);
    if (found == kind) return directory;
  }
  const std::string named = heads_of_card(target.path, kind, limits);
  if (!named.empty())
    return find_model(beside_or_named(target.path, named, assets_dir_), assets_dir_);
  const std::string found = find_heads(target.name, kind, heads_folders(assets_dir_), limits);
  if (!found.empty()) return found;
  throw Error(
      ErrorCode::Usage,
      fmt::format(
          "{} needs draft heads: the card of {} names none, and no heads in the bundled "
          "models or the data folder name it as their base; name them with --heads NAME|DIR",
          name_of(kind), target.name));
}

std::optional<ModelStore::WantedHeads> ModelStore::open_missing_heads(
    const LoadedModel* loaded,
    const ModelFiles& target,
    const LoadOptions& options,
    const std::vector<std::string>& given,
    HeadsKind kind,
    kernels::Device& device) {
  const FileLimits limits = loaded ? loaded->request.limits : FileLimits{};
  const std::string directory = heads_directory(target, given, kind, limits);
  if (loaded && is_there(*loaded, directory)) return std::nullopt;
  WantedHeads wanted{.files = open_heads(directory, &target, limits), .plan = {}};
  for (const std::string& name : given) {
    std::string notice = ambiguous_name_notice(name, assets_dir_);
    if (!notice.empty() && find_model(name, assets_dir_) == directory)
      wanted.files.notices.push_back(std::move(notice));
  }
  const HeadsConfig config = scaled(wanted.files.config, options.scale);
  wanted.plan = memory_plan(config, scaled(target.config, options.scale), options.dtype, device);
  if (!kernels::is_cpu(device.name())) {
    const MemoryPlan table{.workspace = static_cast<double>(gram_table_bytes(config))};
    check_memory(wanted.files.name, options.scale, table, available_memory_bytes());
  }
  return wanted;
}

void ModelStore::load_heads(LoadedModel& target, WantedHeads wanted) {
  const Nanoseconds begun = now_ns();
  const Model& model = *target.model;
  std::optional<kernels::DType> type;
  if (kernels::is_quantised(model.matrix_type())) type = guess_type(target.files);
  const HeadsOptions options{.dtype = model.dtype(),
                             .guess_type = type,
                             .scale = model.scale(),
                             .vocab_size = n_tokens_of(target.files),
                             .max_seq_len = model.max_seq_len()};
  auto loaded = std::make_unique<LoadedHeads>();
  loaded->files = std::move(wanted.files);
  loaded->weights_hash =
      weights_hash(*loaded->files.tensors, hashed_tensors_of(loaded->files.config));
  const std::string tree = loaded->files.path + "/tree.json";
  std::error_code error;
  if (std::filesystem::exists(tree, error)) loaded->tree = tree;
  if (loaded->files.config.kind == HeadsKind::Medusa)
    loaded->heads = load_medusa(model.device(), loaded->files, options);
  else
    loaded->heads = load_chimera(model.device(), loaded->files, target.files, options);
  loaded->id = ++n_loaded_;
  loaded->load_ms = static_cast<double>(now_ns() - begun) * 1e-6;
  target.heads.push_back(std::move(loaded));
}

RunModels ModelStore::get_for(const ModelRequest& request,
                              const DraftResources& draft_resources,
                              const std::vector<std::string>& decoders,
                              const LoadProgress& progress,
                              int draft_threads) {
  std::string drafts;
  std::vector<HeadsKind> kinds;
  for (const std::string& decoder : decoders) {
    const DecoderInfo& info = decoder_named(decoder);
    if (info.needs_draft && drafts.empty()) drafts = decoder;
    for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera})
      if (info.needs_heads && decoder == name_of(kind)) kinds.push_back(kind);
  }
  std::vector<WantedHeads> wanted;
  MemoryPlan plan;
  const LoadedModel* const target = find_loaded(request);
  if (!kinds.empty()) {
    kernels::Device& used = device(request.device);  // throws before anything is read
    const Wanted files = target ? Wanted{} : open(request);
    for (const HeadsKind kind : kinds) {
      LoadOptions options = files.options;
      if (target) options.dtype = target->model->dtype(), options.scale = target->model->scale();
      auto heads = open_missing_heads(target, target ? target->files : files.files, options,
                                      draft_resources.heads, kind, used);
      if (!heads) continue;
      plan = plan + heads->plan;
      wanted.push_back(std::move(*heads));
    }
  }
  const ReservedMemory reserved(reserved_, plan);
  // Keeps a target that is already loaded while other models are unloaded to make room for its
  // heads.
  if (target && !wanted.empty())
    make_room(request.device,
              fmt::format("{} with {}", target->files.name, wanted.front().files.name),
              target->model->scale(), {}, target);
  RunModels models =
      drafts.empty() ? RunModels(get(request, progress))
                     : get_with_draft(request, draft_resources, drafts, progress, draft_threads);
  for (WantedHeads& heads : wanted) load_heads(models.target, std::move(heads));
  models.trees_dir = assets_dir_ + "/trees";
  for (const HeadsKind kind : kinds) {
    const std::string directory =
        heads_directory(models.target.files, draft_resources.heads, kind, request.limits);
    for (const auto& heads : models.target.heads) {
      if (heads->files.path != directory) continue;
      (kind == HeadsKind::Medusa ? models.medusa : models.chimera) = heads.get();
    }
  }
  return models;
}

ModelLoaded describe(const LoadedHeads& heads, const LoadedModel& target) {
  const HeadsConfig config = scaled(heads.files.config, target.model->scale());
  ModelLoaded event = describe(target);
  event.model = heads.id;
  event.name = heads.files.name;
  event.n_params = config.n_params();
  event.weight_bytes = config.n_params() * kernels::bytes_of(target.model->dtype());
  event.n_layers = config.n_heads;
  event.weights_hash = heads.weights_hash;
  event.kv_bytes_per_token = static_cast<std::int64_t>(
      memory_plan(config, target.model->config(), target.model->dtype(), target.model->device())
          .cache_per_token);
  return event;
}

}  // namespace engine
