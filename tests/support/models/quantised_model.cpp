#include "tests/support/models/quantised_model.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/checkpoint/model_files.h"
#include "kernels/dtype.h"

namespace engine::test {
namespace {

// The places of a block's f16 scale and minimum, and the usual scale.
struct Halfs {
  GgmlType type;
  int scale, minimum;  // in bytes; minimum -1: none
  float usual;
};
constexpr Halfs kHalfs[] = {{GgmlType::Q4_0, 0, -1, 0.03F},    {GgmlType::Q4_1, 0, 2, 0.03F},
                            {GgmlType::Q5_0, 0, -1, 0.015F},   {GgmlType::Q5_1, 0, 2, 0.015F},
                            {GgmlType::Q8_0, 0, -1, 0.002F},   {GgmlType::Q2_K, 80, 82, 0.015F},
                            {GgmlType::Q3_K, 108, -1, 0.004F}, {GgmlType::Q4_K, 0, 2, 0.001F},
                            {GgmlType::Q5_K, 0, 2, 0.0005F},   {GgmlType::Q6_K, 208, -1, 0.0001F},
                            {GgmlType::IQ4_NL, 0, -1, 0.002F}, {GgmlType::IQ4_XS, 0, -1, 0.0001F}};

void set_half(std::string& block, int at, float value) {
  const std::uint16_t bits = kernels::f16_from_f32(value);
  std::memcpy(block.data() + at, &bits, sizeof bits);
}

class QuantisedMatrices : public TensorSource {
 public:
  QuantisedMatrices(std::shared_ptr<const TensorSource> vectors,
                    const ModelConfig& config,
                    const std::vector<GgmlType>& types,
                    std::uint64_t seed)
      : vectors_(std::move(vectors)) {
    for (const TensorSpec& spec : tensors_of(config)) {
      if (spec.shape.size() != 2) continue;
      const GgmlType type = types[matrices_.size() % types.size()];
      const auto n = static_cast<std::size_t>(spec.shape[0] * spec.shape[1]);
      const std::size_t n_blocks = n / static_cast<std::size_t>(info_of(type).block_size);
      matrices_[spec.name] = {type, spec.shape, random_blocks(type, n_blocks, seed++)};
    }
  }
  bool has(const std::string& name) const override { return vectors_->has(name); }
  std::vector<std::string> names() const override { return vectors_->names(); }
  std::string path() const override { return "quantised"; }

  Tensor read(const std::string& name) const override {
    const auto found = matrices_.find(name);
    if (found == matrices_.end()) return vectors_->read(name);
    const auto& [type, shape, blocks] = found->second;
    auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(shape[0]) *
                                                       static_cast<std::size_t>(shape[1]));
    dequantise(type, blocks, values->data());
    return {kernels::DType::F32, shape, values->data(), values};
  }
  std::optional<kernels::DType> quantised_format(const std::string& name) const override {
    const auto found = matrices_.find(name);
    if (found == matrices_.end()) return std::nullopt;
    return packed_format(found->second.type);
  }
  std::optional<QuantisedTensor> quantised(const std::string& name) const override {
    const auto found = matrices_.find(name);
    if (found == matrices_.end()) return std::nullopt;
    return unpack(found->second.type, found->second.blocks, found->second.shape);
  }

 private:
  struct Entry {
    GgmlType type;
    std::vector<std::int64_t> shape;
    std::string blocks;
  };
  std::shared_ptr<const TensorSource> vectors_;
  std::map<std::string, Entry> matrices_;
};

}  // namespace

std::vector<GgmlType> quantised_types() {
  std::vector<GgmlType> types;
  for (const Halfs& halfs : kHalfs) types.push_back(halfs.type);
  return types;
}

std::string random_blocks(GgmlType type, std::size_t n_blocks, std::uint64_t seed) {
  const Halfs* halfs = std::ranges::find(kHalfs, type, &Halfs::type);
  const auto block_bytes = static_cast<std::size_t>(info_of(type).block_bytes);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> share(0.5F, 1.5F);
  std::string all;
  for (std::size_t i = 0; i < n_blocks; i++) {
    std::string block(block_bytes, '\0');
    for (char& byte : block) byte = static_cast<char>(random());
    set_half(block, halfs->scale, halfs->usual * share(random));
    // About half of the largest q times the scale, so that values lie around 0.
    const bool added = type == GgmlType::Q4_1 || type == GgmlType::Q5_1;
    const float minimum = halfs->usual * (added ? type == GgmlType::Q4_1 ? -7.5F : -15.5F
                                          : type == GgmlType::Q2_K ? 1.5F
                                          : type == GgmlType::Q4_K ? 7.5F
                                                                   : 15.5F);
    if (halfs->minimum >= 0) set_half(block, halfs->minimum, minimum * share(random));
    all += block;
  }
  return all;
}

ModelFiles quantised_model(const ModelConfig& config,
                           const std::vector<GgmlType>& types,
                           std::uint64_t seed) {
  ModelFiles files;
  files.path = files.name = "quantised";
  files.config = config;
  files.stored_type = types.size() == 1 ? name_of(types[0]) : "mixed";
  files.stored_dtype = kernels::DType::BF16;
  files.quantised = true;
  files.tensors =
      std::make_shared<QuantisedMatrices>(random_tensors(config, seed), config, types, seed);
  return files;
}

}  // namespace engine::test
