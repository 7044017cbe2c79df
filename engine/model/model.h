// Models of the LLaMA family. The forward pass is in transformer.cpp; all arithmetic goes through kernels::Ops.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/checkpoint/config.h"
#include "engine/checkpoint/opened_model.h"
#include "engine/model/language_model.h"
#include "kernels/device.h"

namespace engine {

struct ChatTemplate;

/// Options of Model::load().
struct LoadOptions {
  kernels::DType dtype = kernels::DType::BF16;  // of weights unless as_stored
  /// Type of the KV cache; unset: dtype. Q8_0 only on the CPU and if kernels::kCacheGroup divides head_dim.
  std::optional<kernels::DType> cache;
  /// True: matrices are multiplied in the types of their file, quantised ones with activations of 8 bits. The
  /// device must have pack_quantised; has no effect on a scaled model.
  bool as_stored = false;
  ModelScale scale;
  int max_seq_len = 0;  // 0: as in the model's files
  /// Receives the bytes packed so far and the total; returns false to cancel.
  std::function<bool(std::int64_t, std::int64_t)> progress;
};

/// A loaded model with its weights on a device.
class Model : public LanguageModel {
 public:
  /// Loads and packs the weights. `device` must outlive the model.
  /// @throws Error(Cancelled)  if progress returned false
  static std::unique_ptr<Model> load(kernels::Device& device,
                                     const ModelFiles& files,
                                     const LoadOptions& options);
  /// Makes a second model that reads the weights of this one, which nothing changes after loading. It
  /// has its own cache and its own memory for forwards, so another thread may run it while this one
  /// works. Call it on the thread that uses this model.
  /// @param device  for its operations: the same processor or GPU as this model's. It outlives the
  ///                second model, and so does this model's device
  virtual std::unique_ptr<Model> share_weights(kernels::Device& device) = 0;

  virtual const ModelConfig& config() const = 0;   // scaled
  virtual kernels::DType dtype() const = 0;        // of weights unless quantised
  virtual kernels::DType cache_type() const = 0;   // of keys and values
  virtual kernels::DType matrix_type() const = 0;  // in which most weights are multiplied
  /// The type of the weights, for people: "bf16"; the type in the file if they are quantised: "Q4_1".
  virtual const std::string& weight_type() const = 0;
  virtual const ModelScale& scale() const = 0;     // of LoadOptions
  virtual const std::string& name() const = 0;     // "demo-target"
  virtual const Tokenizer* tokenizer() const = 0;  // null for a model without one
  /// The chat template; its text is empty if the model has none.
  virtual const ChatTemplate& chat_template() const = 0;
  /// Packed bytes of weights that a forward reads.
  virtual std::int64_t weight_bytes() const = 0;
  /// Elements of the matrices that a forward multiplies each row by.
  virtual std::int64_t n_multiplied() const = 0;
  /// Bytes of all KV pages in use; counts shared pages once.
  virtual std::int64_t cache_bytes() const = 0;
  virtual kernels::Device& device() const = 0;  // the caller's
  /// Reads the committed keys and values of one layer as f32, [length, n_kv_heads, head_dim]. For
  /// tests.
  virtual void read_cache(const SequenceCache& cache,
                          int layer,
                          std::vector<float>& k,
                          std::vector<float>& v) const = 0;
};

/// The smallest scale whose weights exceed three times `cache_bytes` (the last-level cache), so
/// that memory bandwidth limits a step. Returns 1x1 if the unscaled weights are large enough, and
/// the largest scale if no scale is large enough.
ModelScale auto_scale(const ModelConfig& config, kernels::DType dtype, std::int64_t cache_bytes);
/// Bytes of this machine's last-level cache; 0: unknown.
std::int64_t last_level_cache_bytes();

}  // namespace engine
