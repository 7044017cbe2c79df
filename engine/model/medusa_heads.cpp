// Medusa heads: x + SiLU(W x + b) for each residual layer, then an output matrix per head, or one
// for all. The hidden state is uploaded; ids and probabilities, or logits, are downloaded.
#include <cmath>

#include <fmt/format.h>

#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/shared/target_output.h"
#include "engine/checkpoint/tensor_source.h"
#include "engine/model/draft_heads.h"
#include "engine/model/head_rows.h"
#include "engine/model/weights.h"

namespace engine {
namespace {

struct ResidualLayer {
  Matrix linear;               // [dim, dim]
  kernels::DeviceBuffer bias;  // [dim] f32
};

struct Head {
  std::vector<ResidualLayer> layers;
  Matrix output;  // [outputs, dim]; empty if the heads share one
};

class PackedMedusa final : public MedusaHeads {
 public:
  PackedMedusa(kernels::Device& device,
               const HeadsConfig& config,
               const TensorSource& tensors,
               const HeadsOptions& options);
  int n_heads() const override { return c_.n_heads; }
  int vocab_size() const override { return tokens_.n_tokens(); }
  std::int64_t weight_bytes() const override {
    std::int64_t n = shared_.memory.bytes();
    for (const Head& head : heads_) {
      n += head.output.memory.bytes();
      for (const ResidualLayer& layer : head.layers) n += layer.linear.memory.bytes();
    }
    return n;
  }
  std::vector<float> logits(std::span<const float> hidden, int n_heads) override;
  std::vector<RankedTokens> ranked(std::span<const float> hidden, int n_heads, int k) override;

 private:
  void run(std::span<const float> hidden, int n_heads);
  void run_layer(std::size_t layer, int n_heads);

  kernels::Device& device_;  // the caller's, outlives the heads
  const kernels::Ops& ops_;
  HeadsConfig c_;
  OutputTokens tokens_;
  std::vector<Head> heads_;
  Matrix shared_;                 // [outputs, dim]; empty if each head has its own
  kernels::DeviceBuffer x_;       // [n_heads, dim] the state of each head
  SiluRows silu_;                 // [n_heads, dim]
  kernels::DeviceBuffer logits_;  // [n_heads, outputs]
};

PackedMedusa::PackedMedusa(kernels::Device& device,
                           const HeadsConfig& config,
                           const TensorSource& tensors,
                           const HeadsOptions& options)
    : device_(device),
      ops_(device.ops()),
      c_(config),
      tokens_(config, options.vocab_size),
      silu_(device, config.n_heads, config.dim) {
  const kernels::DType type = options.guess_type.value_or(options.dtype);
  for (int k = 0; k < c_.n_heads; k++) {
    Head head;
    for (int j = 0; j < c_.n_layers; j++) {
      const std::string at = fmt::format("{}.{}.linear.", k, j);
      ResidualLayer layer;
      layer.linear = pack_matrix(device, tensors.read(at + "weight"), type);
      layer.bias = on_device(device, f32_of(tensors.read(at + "bias")));
      head.layers.push_back(std::move(layer));
    }
    if (!c_.target_output) {
      const std::string output = own_output_name(c_, k);
      head.output = pack_matrix(device, tensors.read(output), type);
    }
    heads_.push_back(std::move(head));
  }
  if (c_.target_output) shared_ = pack_matrix(device, tensors.read(kTargetOutput), type);
  const std::int64_t row_bytes = sizeof(float) * static_cast<std::int64_t>(c_.n_heads);
  x_ = kernels::DeviceBuffer(device, row_bytes * c_.dim, "draft heads");
  logits_ = kernels::DeviceBuffer(device, row_bytes * tokens_.n_rows(), "draft heads' logits");
}

// Applies a residual layer to the states of the first n_heads heads.
void PackedMedusa::run_layer(std::size_t layer, int n_heads) {
  const std::int64_t dim = c_.dim;
  for (int k = 0; k < n_heads; k++) {
    const ResidualLayer& own = heads_[static_cast<std::size_t>(k)].layers[layer];
    ops_.matmul(device_, own.linear.view, x_.f32() + k * dim, dim, 1, silu_.row(k), silu_.stride(),
                own.bias.f32(), /*add=*/false);
  }
  ops_.add(device_, silu_.apply(n_heads), x_.f32(), n_heads * dim);
}

// Computes the logits of the first n_heads heads; they stay on the device.
void PackedMedusa::run(std::span<const float> hidden, int n_heads) {
  ensure(static_cast<int>(hidden.size()) == c_.dim, "logits: hidden must have dim elements");
  ensure(n_heads > 0 && n_heads <= c_.n_heads, "logits: n_heads must be 1 to the number of heads");
  std::vector<float> states;
  for (int k = 0; k < n_heads; k++) states.insert(states.end(), hidden.begin(), hidden.end());
  ops_.upload(device_, x_.data(), states.data(),
              static_cast<std::int64_t>(states.size() * sizeof(float)));
  for (int j = 0; j < c_.n_layers; j++) run_layer(static_cast<std::size_t>(j), n_heads);
  const std::int64_t dim = c_.dim, n_rows = tokens_.n_rows();
  if (c_.target_output) {
    ops_.matmul(device_, shared_.view, x_.f32(), dim, n_heads, logits_.f32(), n_rows, nullptr,
                /*add=*/false);
    return;
  }
  for (int k = 0; k < n_heads; k++)
    ops_.matmul(device_, heads_[static_cast<std::size_t>(k)].output.view, x_.f32() + k * dim, dim,
                1, logits_.f32() + k * n_rows, n_rows, nullptr, /*add=*/false);
}

std::vector<float> PackedMedusa::logits(std::span<const float> hidden, int n_heads) {
  run(hidden, n_heads);
  return tokens_.download(device_, logits_.f32(), n_heads);
}

std::vector<RankedTokens> PackedMedusa::ranked(std::span<const float> hidden, int n_heads, int k) {
  run(hidden, n_heads);
  return tokens_.ranked(device_, logits_.f32(), n_heads, k);
}

}  // namespace

std::unique_ptr<MedusaHeads> load_medusa(kernels::Device& device,
                                         const HeadsFiles& files,
                                         const HeadsOptions& options) {
  ensure(files.config.kind == HeadsKind::Medusa, "load_medusa: the files hold other heads");
  const auto tensors = scaled(files.tensors, files.config, options.scale);
  auto heads = std::make_unique<PackedMedusa>(device, scaled(files.config, options.scale), *tensors,
                                              options);
  tensors->check();
  return heads;
}

}  // namespace engine
