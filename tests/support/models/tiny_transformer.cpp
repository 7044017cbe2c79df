#include "tests/support/models/tiny_transformer.h"

#include <utility>

#include "engine/checkpoint/model_files.h"

namespace engine::test {
namespace {

/// Multiplies another source's matrices by ten: weights from N(0, 0.02) give a tiny model nearly
/// equal logits.
class Amplified : public TensorSource {
 public:
  explicit Amplified(std::shared_ptr<const TensorSource> from) : from_(std::move(from)) {}
  bool has(const std::string& name) const override { return from_->has(name); }
  std::vector<std::string> names() const override { return from_->names(); }
  std::string path() const override { return from_->path(); }
  Tensor read(const std::string& name) const override {
    Tensor tensor = from_->read(name);
    ensure(tensor.dtype == kernels::DType::F32, "random tensors are f32");
    if (name.ends_with("norm.weight")) return tensor;
    const auto* values = static_cast<const float*>(tensor.data);
    auto larger = std::make_shared<std::vector<float>>(values, values + tensor.n_elements());
    for (float& value : *larger) value *= 10;
    tensor.data = larger->data();
    tensor.hold = std::move(larger);
    return tensor;
  }

 private:
  std::shared_ptr<const TensorSource> from_;
};

}  // namespace

ModelConfig tiny_config() {
  ModelConfig config;
  config.dim = 32;
  config.hidden_dim = 48;
  config.n_layers = 2;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 8;
  config.vocab_size = 24;
  config.max_seq_len = 160;
  return config;
}

std::unique_ptr<Model> tiny_transformer(kernels::Device& device,
                                        kernels::DType dtype,
                                        std::uint64_t seed,
                                        const ModelConfig& config,
                                        const ModelScale& scale) {
  ModelFiles files;
  files.path = files.name = "tiny";
  files.config = config;
  files.tensors = std::make_shared<Amplified>(random_tensors(config, seed));
  return Model::load(device, files, {.dtype = dtype, .scale = scale, .progress = {}});
}

std::unique_ptr<Model> tiny_draft(kernels::Device& device,
                                  kernels::DType dtype,
                                  std::uint64_t seed) {
  ModelConfig config = tiny_config();
  config.n_layers = 1;
  return tiny_transformer(device, dtype, seed, config);
}

}  // namespace engine::test
