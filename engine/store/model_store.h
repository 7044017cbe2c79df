// Models in memory, by name and by how they were loaded. A model stays until another takes its
// place.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/decode/draft/tree_tuner.h"
#include "engine/event/event.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/model/model.h"
#include "engine/store/memory_plan.h"
#include "kernels/cuda/monitor/gpu_monitor.h"

namespace engine {

/// Which model, and how. Two equal requests share one copy of the weights.
struct ModelRequest {
  std::string model = "demo-target";  // NAME under the assets, or a directory
  std::string scale = "1x1";          // WxD or "auto"
  std::string dtype;                  // empty: as stored
  std::string device = "auto";        // auto (the CPU), cpu, cuda:N, cuda:emulated
  bool needs_tokenizer = true;
  bool allow_external_shards = false;
  FileLimits limits;  // of its files
  int context = 0;    // positions a sequence may fill; 0: what the model's files say
  GenerationUse generation = GenerationUse::NotApplied;  // of the defaults in its files
  /// Above 0: on a device of its own, a CPU with so many threads or a GPU with its own stream, to
  /// work beside another model. 0: on the device all share, one model at a time.
  int own_threads = 0;
  int rank = 0;  // of several that decode one text together; each has a copy of its own
  bool operator==(const ModelRequest&) const = default;
};

/// Draft heads in memory.
struct LoadedHeads {
  HeadsFiles files;
  std::unique_ptr<DraftHeads> heads;
  std::string tree;      // the file of the tree beside them; empty: there is none
  std::uint32_t id = 0;  // of their ModelLoaded event
  double load_ms = 0;
  std::string weights_hash;
};

/// A model in memory with its device.
struct LoadedModel {
  ModelRequest request;
  ModelFiles files;
  std::unique_ptr<kernels::Device> own_device;  // of request.own_threads; null: the store's
  std::unique_ptr<Model> model;
  std::uint32_t id = 0;  // of its ModelLoaded event
  double load_ms = 0;
  std::string weights_hash;  // of the tensors as stored
  /// Heads loaded for it, in its dtype and width; they go with it.
  std::vector<std::unique_ptr<LoadedHeads>> heads;

  /// What runs of this target with that draft have learnt of trees (k_config=auto).
  TreeTuner& tree_tuner_with(const LoadedModel& draft) {
    std::unique_ptr<TreeTuner>& tuner = tree_tuners[draft.id];
    if (!tuner) tuner = std::make_unique<TreeTuner>();
    return *tuner;
  }
  std::map<std::uint32_t, std::unique_ptr<TreeTuner>> tree_tuners = {};  // by the draft's id
  std::mutex at_work = {};  // of a rank's: lanes that share it follow each other
};

/// The models of a run.
struct RunModels {
  RunModels(LoadedModel& decides, LoadedModel* proposes = nullptr)
      : target(decides), draft(proposes) {}
  LoadedModel& target;
  LoadedModel* draft;             // null: there is none
  LoadedHeads* medusa = nullptr;  // likewise
  LoadedHeads* chimera = nullptr;
  std::string trees_dir;                 // where the trees lie that are known by name
  std::vector<LoadedModel*> ranks = {};  // but the target, of decoders whose rows are shared

  /// The heads that a decoder asks, null where it asks none or there are none.
  LoadedHeads* heads_of(const std::string& decoder) const;
};

/// What else than the target a run's decoders may need, as a person named it: a NAME under the
/// assets or a directory; empty: what the target's card names.
struct DraftResources {
  std::string draft;
  std::vector<std::string> heads;  // each says itself whose they are; at most one of a kind
};

using LoadProgress = std::function<bool(std::int64_t done_bytes, std::int64_t total_bytes)>;

class ModelStore {
 public:
  /// @param assets_dir  where NAMEs are looked up: assets_dir/models/NAME
  /// @param n_threads   of the CPU device; 0: all
  ModelStore(std::string assets_dir, int n_threads)
      : assets_dir_(std::move(assets_dir)), n_threads_(n_threads) {}

  /// The model asked for, loaded if it is not there yet. At most `kMaxModels` stay; the least
  /// recently used goes first, and earlier where memory is short.
  /// @throws Error(BadInput, Resources, Device, Usage, Cancelled)  the models held before stay
  /// usable
  LoadedModel& get(const ModelRequest& request, const LoadProgress& progress = {});
  /// The same with the model that drafts for it: unscaled, on the same device, in the same dtype if
  /// one is given, with the context of its own files. Checks memory for both before loading.
  /// @param draft          NAME or directory; empty: what the model's card names
  /// @param decoder        that needs it, for messages
  /// @param draft_threads  above 0: both may work at the same time, the draft on so many threads of
  ///                       its own
  /// @throws Error(Usage)  if no draft is named, or the two do not share their vocabulary: naming
  /// both counts, or the first token that differs
  RunModels get_with_draft(const ModelRequest& request,
                           const std::string& draft,
                           const std::string& decoder,
                           const LoadProgress& progress = {},
                           int draft_threads = 0);
  /// The target with what these decoders need beside it: a draft model, heads, both. Memory for
  /// all is asked for before anything is loaded.
  /// @throws Error(Usage, BadInput)  as get_with_draft(), and where heads are not named or are
  /// another model's
  RunModels get_for(const ModelRequest& request,
                    const DraftResources& draft_resources,
                    const std::vector<std::string>& decoders,
                    const LoadProgress& progress = {},
                    int draft_threads = 0);
  /// The target once more for each further rank of a text (engine/run/lookahead_ranks.h), on a
  /// device of its own: of a CPU so many of its threads as there are for each rank; of "cuda:N" the
  /// devices behind it, from N on again where there are too few; the emulated one again.
  /// @param n_ranks  with the target, which is the first
  /// @throws Error(Resources, Device, Cancelled)
  std::vector<LoadedModel*> get_ranks(const LoadedModel& target,
                                      int n_ranks,
                                      const LoadProgress& progress = {});
  /// Models that shall stay while others are asked for, until the next call; none: all may go.
  void keep_together(std::vector<const LoadedModel*> models) { together_ = std::move(models); }
  /// @throws Error(Resources)  if memory does not hold all of these at once,
  ///         whatever else is let go
  void expect_room(const std::vector<ModelRequest>& requests);
  /// @throws Error(Device)  if there is no such device here, or it failed before and cannot be
  /// opened again: then with the first cause
  kernels::Device& device(const std::string& name);
  /// Lets go of devices that answer no call any more, and of every model on them; asked for again
  /// they are opened anew. Nothing else may use these models: not while a run is under way.
  void let_go_of_failed();
  /// What its devices, and those that are closed, did otherwise than asked since this was last
  /// called, a line each.
  std::vector<std::string> take_notes();

 private:
  static constexpr std::size_t kMaxModels = 3;

  /// What is loaded for a request.
  struct Wanted {
    ModelFiles files;
    LoadOptions options;
    Nanoseconds begun = 0;
  };
  /// @return  the model held for this request, now the most recently used, or null
  LoadedModel* held(const ModelRequest& request);
  Wanted opened(const ModelRequest& request) const;
  std::unique_ptr<kernels::Device> opened_gpu(const std::string& name);
  /// Bytes that a device may still take: of its own memory, or of this process.
  std::int64_t free_bytes(kernels::Device& device) const;
  bool may_go(const LoadedModel& model, const LoadedModel* kept) const;
  /// Lets go of the least recently used model but `kept` and those kept together.
  /// @param device  of those on it alone; null: of all
  /// @return  false  if there is none
  bool let_go(const LoadedModel* kept, const kernels::Device* device = nullptr);
  /// Lets go of models held but `kept`, least recently used first, while what is to be loaded does
  /// not fit.
  /// @param device  it is to be loaded on
  /// @param name    of what is to be loaded
  /// @throws Error(Resources)  giving the sizes, if it would not fit even so
  void make_room(const std::string& device,
                 const std::string& name,
                 const ModelScale& scale,
                 const MemoryPlan& plan,
                 const LoadedModel* kept);
  LoadedModel& load(const ModelRequest& request,
                    Wanted wanted,
                    const LoadProgress& progress,
                    const LoadedModel* kept);
  /// Heads that are to be loaded.
  struct WantedHeads {
    HeadsFiles files;
    MemoryPlan plan;
  };
  /// The heads of a kind that a decoder needs, opened; nullopt where they are held already.
  /// @throws Error(Resources)  on a GPU, where the host has no room for what stays there
  std::optional<WantedHeads> opened_heads(const LoadedModel* held,
                                          const ModelFiles& target,
                                          const LoadOptions& options,
                                          const std::vector<std::string>& given,
                                          HeadsKind kind,
                                          bool on_cpu);
  std::string heads_directory(const ModelFiles& target,
                              const std::vector<std::string>& given,
                              HeadsKind kind,
                              const FileLimits& limits) const;
  void load_heads(LoadedModel& target, WantedHeads wanted);

  std::string assets_dir_;
  int n_threads_;
  std::unique_ptr<kernels::Device> cpu_;
  std::map<std::string, std::unique_ptr<kernels::Device>> gpus_;  // by name, real and emulated
  std::map<std::string, std::string> failed_;                     // of these, and why
  std::vector<std::unique_ptr<LoadedModel>> models_;              // least recently used first
  std::vector<const LoadedModel*> together_;                      // not let go for another
  std::uint32_t n_loaded_ = 0;
  MemoryPlan beside_;  // what will be loaded beside the models asked for, while they are
};

/// Threads of a CPU that each of so many ranks of a text has.
int threads_of_rank(const kernels::Device& device, int n_ranks);

/// What the event stream says of a loaded model, its vocabulary included.
ModelLoaded describe(const LoadedModel& loaded);

/// Likewise of heads: n_layers is their number, and their vocabulary is the target's.
ModelLoaded describe(const LoadedHeads& heads, const LoadedModel& target);

/// What a person should know of a draft model beside its target, a line each. The same vocabulary
/// may have other special tokens: such a draft is taken, for the target alone says how a text
/// begins and where it ends. Behind a shorter context nothing is drafted.
/// Without a draft there is nothing.
std::vector<std::string> pair_notices(const RunModels& models);

/// One device a person could name.
struct DeviceInfo {
  std::string name;  // "cpu", "cuda:0", "cuda:emulated"
  std::string kind;  // "cpu", "cuda"
  bool available = false;
  std::string reason;  // why not
  std::int64_t memory_bytes = 0;
  std::string ops;  // the table of kernels it would use
};
/// The one that is always here; no driver is asked.
DeviceInfo cpu_info();
/// It, and those that drivers tell of, which takes them up to a second.
std::vector<DeviceInfo> list_devices();
/// How busy a "cuda:N" is now, as its driver tells, or the reason why that is not known.
kernels::GpuLoad load_of(const DeviceInfo& device);

}  // namespace engine
