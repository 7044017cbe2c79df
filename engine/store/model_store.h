// Models in memory, by name and loading options. A model stays loaded until the store unloads it to
// make room for another one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/heads_files.h"
#include "engine/event/event.h"
#include "engine/model/draft_heads.h"
#include "engine/model/model.h"
#include "engine/store/memory_plan.h"

namespace kernels {
struct GpuLoad;
}

namespace engine {

class EarlierTexts;    // engine/decode/guess/earlier_texts.h
class KeptSuccessors;  // engine/decode/guess/successor_table.h
class StepControl;     // engine/decode/control/step_control.h

/// A model's name and loading options. Equal requests share one copy of the weights.
struct ModelRequest {
  std::string model = "demo-target";  // NAME under the assets, or a directory
  std::string scale = "1x1";          // WxD or "auto"
  std::string dtype;                  // empty: as stored
  std::string cache_type;             // of keys and values; empty: as dtype
  std::string device = "auto";        // auto (the CPU), cpu, cuda:N, cuda:emulated
  bool needs_tokenizer = true;
  bool allow_external_shards = false;
  FileLimits limits;  // limits of the model's files
  int context = 0;    // number of positions that a sequence may fill; 0: as the model's files say
  // how the sampling defaults in the model's files are used
  GenerationUse generation = GenerationUse::NotApplied;
  /// Above 0: loads the model on a separate device (a CPU device with this many threads, or a GPU
  /// device with its own stream), so it can work at the same time as another model. 0: loads it on
  /// the shared device, where one model works at a time.
  int own_threads = 0;
  int rank = 0;  // rank in Lookahead parallelism; each rank has its own copy of the weights
  bool operator==(const ModelRequest&) const = default;
};

/// Draft heads in memory.
struct LoadedHeads {
  HeadsFiles files;
  std::unique_ptr<DraftHeads> heads;
  std::string tree;      // the file of the tree beside them; empty: there is none
  std::uint32_t id = 0;  // the id in their ModelLoaded event
  double load_ms = 0;
  std::string weights_hash;  // of the tensors as stored
};

/// A model in memory with its device.
struct LoadedModel {
  ModelRequest request;
  ModelFiles files;
  // the model's separate device, if request.own_threads > 0; null: the model is on the store's
  // device
  std::unique_ptr<kernels::Device> own_device;
  std::unique_ptr<Model> model;
  std::uint32_t id = 0;  // of its ModelLoaded event
  double load_ms = 0;
  std::string weights_hash;  // of the tensors as stored
  /// Heads that were loaded for this model, in its dtype and width; they are unloaded together with
  /// it.
  std::vector<std::unique_ptr<LoadedHeads>> heads;

  /// Times of steps and statistics of guesses, shared by all runs of this target.
  std::shared_ptr<StepControl> control = {};
  bool is_timed = false;  // the time of its steps was measured or read (engine/store/calibration.h)
  std::shared_ptr<KeptSuccessors> successors = {};  // shared by all runs of this target (recycling)
  /// Texts of the runs of a session with this model; null: none are kept.
  std::shared_ptr<EarlierTexts> texts = {};
  // locked while a rank of Lookahead parallelism works: lanes that share the model take turns
  std::mutex at_work = {};
};

/// The models of a run.
struct RunModels {
  /// @param decides   the target
  /// @param proposes  the draft model, or null
  RunModels(LoadedModel& decides, LoadedModel* proposes = nullptr)
      : target(decides), draft(proposes) {}
  LoadedModel& target;
  LoadedModel* draft;  // null: there is none
  // a second model with the draft's weights that drafts in its place (Model::share_weights); null:
  // draft->model drafts
  Model* drafts_with = nullptr;
  LoadedHeads* medusa = nullptr;  // likewise
  LoadedHeads* chimera = nullptr;
  std::string trees_dir;                 // directory of the bundled trees
  std::vector<LoadedModel*> ranks = {};  // of Lookahead parallelism, without the target
  /// Texts that decoders copy from (suffix), of this target's vocabulary; null: runs do not share
  /// their texts.
  std::shared_ptr<EarlierTexts> texts = {};

  /// The heads that a decoder uses; null if it uses none or there are none.
  LoadedHeads* heads_of(const std::string& decoder) const;
};

/// The draft model and draft heads that a user chose, each as a NAME under the assets or a
/// directory. Empty: those that the target's card names, else those found by the target's name.
struct DraftResources {
  std::string draft = {};
  // at most one folder for each kind of heads, which its files determine
  std::vector<std::string> heads = {};
  std::string draft_scale = {};  // scale of the draft model, WxD; empty: the target's
};

/// Receives the progress of loading a model, in bytes. @return  false cancels the load
using LoadProgress = std::function<bool(std::int64_t done_bytes, std::int64_t total_bytes)>;

/// Loads models on demand. Checks the memory before each load, and unloads the least recently used
/// model if necessary.
class ModelStore {
 public:
  /// @param assets_dir  NAMEs are looked up as assets_dir/models/NAME
  /// @param n_threads   of the CPU device; 0: the number that is fastest with the first model loaded
  ///                     on it (engine/store/thread_choice.h)
  ModelStore(std::string assets_dir, int n_threads)
      : assets_dir_(std::move(assets_dir)), n_threads_(n_threads) {}

  /// Returns the requested model, loading it if necessary. At most `kMaxModels` stay loaded; the
  /// least recently used is unloaded first, and earlier if memory is short.
  /// @throws Error(BadInput, Resources, Device, Usage, Cancelled) after an error, models that were
  ///                                                               loaded before stay usable
  LoadedModel& get(const ModelRequest& request, const LoadProgress& progress = {});
  /// Returns the model and its draft model: the draft model has the target's scale unless
  /// draft_scale is set, is on the same device, in the same dtype if the request sets one, and has
  /// the context of its own files. Checks memory for both before loading.
  /// @param decoder        the decoder that needs it, for messages
  /// @param draft_threads  above 0: both models may work at the same time, the draft on this many
  ///                       threads of its own
  /// @throws Error(Usage)  if no draft is named, or if the vocabularies differ: names both sizes,
  ///                       or the first token that differs
  RunModels get_with_draft(const ModelRequest& request,
                           const DraftResources& draft_resources,
                           const std::string& decoder,
                           const LoadProgress& progress = {},
                           int draft_threads = 0);
  /// Returns the target and the draft model and heads that these decoders need. Checks memory for
  /// all before loading.
  /// @throws Error(Usage, BadInput)  as get_with_draft(), and if heads are not named or belong to
  ///                                 another model
  RunModels get_for(const ModelRequest& request,
                    const DraftResources& draft_resources,
                    const std::vector<std::string>& decoders,
                    const LoadProgress& progress = {},
                    int draft_threads = 0);
  /// Loads a copy of the target for each further rank of Lookahead parallelism
  /// (engine/decode/ranks/lookahead_ranks.h), on a separate device. On a CPU, each rank gets an equal share
  /// of the threads. For "cuda:N", the ranks use the GPUs N + 1, N + 2, ..., and start over at N if
  /// there are too few. For the emulated device, all ranks use it.
  /// @param n_ranks  including the target, which is rank 0
  /// @throws Error(Resources, Device, Cancelled)
  std::vector<LoadedModel*> get_ranks(const LoadedModel& target,
                                      int n_ranks,
                                      const LoadProgress& progress = {});
  /// Sets the models that must stay loaded until the next call of this function. Empty: any model
  /// may be unloaded.
  void keep_together(std::vector<const LoadedModel*> models) { together_ = std::move(models); }
  /// Checks that memory can hold all of these models at the same time, after unloading others.
  /// @throws Error(Resources)  if it cannot
  void require_room(const std::vector<ModelRequest>& requests);
  /// The shared device with this name, opened on first use.
  /// @throws Error(Device)  if there is no such device, or if it failed before and cannot be opened
  ///                        again (the message then gives the first cause)
  kernels::Device& device(const std::string& name);
  /// Closes devices that have failed for good, and unloads every model on them. The next request
  /// opens them again. No run may be using these models.
  void drop_failed_devices();
  /// Returns the warnings that devices (open or closed) made since the last call, one line each. An
  /// example: kernels were launched one by one because the memory did not suffice for a graph.
  std::vector<std::string> take_notes();

 private:
  static constexpr std::size_t kMaxModels = 3;

  /// An opened model that is not loaded yet.
  struct Wanted {
    ModelFiles files;
    LoadOptions options;
    Nanoseconds begun = 0;
  };
  /// @return  the loaded model for this request, now the most recently used, or null
  /// @param target  of a draft; null: the model is no draft. A draft that shares the embedding of another target is not found
  LoadedModel* find_loaded(const ModelRequest& request, const ModelFiles* target = nullptr);
  Wanted open(const ModelRequest& request, const ModelFiles* target = nullptr) const;
  std::unique_ptr<kernels::Device> open_gpu(const std::string& name);
  /// Bytes that can still be allocated for a device: in its own memory, or in this process.
  std::int64_t free_bytes(kernels::Device& device) const;
  bool may_unload(const LoadedModel& model, const LoadedModel* kept) const;
  /// Unloads the least recently used model, except `kept` and the models of keep_together().
  /// @param device  only models on this device; null: on any
  /// @return        false  if there is none
  bool unload_oldest(const LoadedModel* kept, const kernels::Device* device = nullptr);
  /// Unloads models other than `kept`, least recently used first, until the new model fits.
  /// @param device  device of the new model
  /// @param name    of the new model, for messages
  /// @throws Error(Resources)  with the sizes, if the new model would not fit even after that
  void make_room(const std::string& device,
                 const std::string& name,
                 const ModelScale& scale,
                 const MemoryPlan& plan,
                 const LoadedModel* kept);
  LoadedModel& load(const ModelRequest& request,
                    Wanted wanted,
                    const LoadProgress& progress,
                    const LoadedModel* kept);
  /// Opened heads that are not loaded yet.
  struct WantedHeads {
    HeadsFiles files;
    MemoryPlan plan;
  };
  /// Opens the heads of a kind; nullopt if they are loaded already.
  /// @param loaded  the loaded target, or null
  /// @throws Error(Resources)  on a GPU, if the host has no room for the heads' table, which stays
  ///                           in host memory
  std::optional<WantedHeads> open_missing_heads(const LoadedModel* loaded,
                                                const ModelFiles& target,
                                                const LoadOptions& options,
                                                const std::vector<std::string>& given,
                                                HeadsKind kind,
                                                kernels::Device& device);
  std::string heads_directory(const ModelFiles& target,
                              const std::vector<std::string>& given,
                              HeadsKind kind,
                              const FileLimits& limits) const;
  void load_heads(LoadedModel& target, WantedHeads wanted);

  std::string assets_dir_;
  int n_threads_;
  std::unique_ptr<kernels::Device> cpu_;
  std::map<std::string, std::unique_ptr<kernels::Device>> gpus_;  // real and emulated GPUs by name
  // failed devices and their first causes
  std::map<std::string, std::string> failed_;
  std::vector<std::unique_ptr<LoadedModel>> models_;  // least recently used first
  std::vector<const LoadedModel*> together_;          // must stay loaded
  std::uint32_t n_loaded_ = 0;
  MemoryPlan reserved_;  // reserved for heads, which are loaded after the models
};

/// Number of a CPU's threads for each of `n_ranks` ranks.
int threads_of_rank(const kernels::Device& device, int n_ranks);

/// The event that describes a loaded model, including its vocabulary.
ModelLoaded describe(const LoadedModel& loaded);

/// The event that describes loaded heads: n_layers is their number, and the vocabulary is the
/// target's.
ModelLoaded describe(const LoadedHeads& heads, const LoadedModel& target);

/// Notices about a draft model that differs from its target, one line each: it has other special
/// tokens or a shorter context. Such a draft model is allowed, because only the target decides how
/// a sequence begins and ends, and nothing is drafted beyond the draft's context. Empty without a
/// draft model.
std::vector<std::string> pair_notices(const RunModels& models);

/// A device that a user can name.
struct DeviceInfo {
  std::string name;  // "cpu", "cuda:0", "cuda:emulated"
  std::string kind;  // "cpu", "cuda"
  bool available = false;
  std::string reason;  // the reason why the device is not available
  std::int64_t memory_bytes = 0;
  std::string ops;  // name of the table of kernels that it uses
};
/// The CPU, which is always available; queries no driver.
DeviceInfo cpu_info();
/// The CPU and all GPUs that drivers list. This may take a second.
std::vector<DeviceInfo> list_devices();
/// The current load of a device "cuda:N" as its driver reports it, or the reason why it is unknown.
kernels::GpuLoad load_of(const DeviceInfo& device);

}  // namespace engine
