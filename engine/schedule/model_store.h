// Models in memory, by name and by how they were loaded. A model stays until another takes its
// place.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/event/event.h"
#include "engine/model/model.h"

namespace engine {

/// Which model, and how. Two equal requests share one copy of the weights.
struct ModelRequest {
  std::string model = "demo-target";  // NAME under the assets, or a directory
  std::string scale = "1x1";          // WxD or "auto"
  std::string dtype;                  // empty: as stored
  std::string device = "auto";        // auto, cpu, cuda:N
  bool needs_tokenizer = true;
  bool allow_external_shards = false;
  FileLimits limits;  // of its files
  bool operator==(const ModelRequest&) const = default;
};

/// A model in memory with its device.
struct LoadedModel {
  ModelRequest request;
  ModelFiles files;
  std::unique_ptr<Model> model;
  std::uint32_t id = 0;  // of its ModelLoaded event
  double load_ms = 0;
  std::string weights_hash;  // of the tensors as stored
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
  /// @throws Error(Device)  if there is no such device here
  kernels::Device& device(const std::string& name);

 private:
  static constexpr std::size_t kMaxModels = 3;

  /// Lets go of models held, least recently used first, while what is to be loaded does not fit.
  /// @throws Error(Resources)  giving the sizes, if it would not fit even so
  void make_room(const ModelFiles& files, const LoadOptions& options);

  std::string assets_dir_;
  int n_threads_;
  std::unique_ptr<kernels::Device> cpu_;
  std::vector<std::unique_ptr<LoadedModel>> models_;  // least recently used first
  std::uint32_t n_loaded_ = 0;
};

/// What the event stream says of a loaded model, its vocabulary included.
ModelLoaded describe(const LoadedModel& loaded);

/// One device a person could name.
struct DeviceInfo {
  std::string name;  // "cpu"
  std::string kind;  // "cpu", "cuda"
  bool available = false;
  std::string reason;  // why not
  std::int64_t memory_bytes = 0;
  std::string ops;  // the table of kernels it would use
};
std::vector<DeviceInfo> list_devices();

}  // namespace engine
