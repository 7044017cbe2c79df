// Enlarges a model without changing the function it computes. W times the width: the new rows,
// columns and heads are zero. The mean square that RMSNorm computes is then 1/W of the old one, so
// its output is sqrt(W) times the old output. Dividing the weights by sqrt(W) and eps by W undoes
// this, and their offset is divided, too. Norms of single heads see the same values as before and stay.
// If W is a power of four, no bit of a mantissa changes. D times the depth: the new layers
// are copies of the old ones in which o_proj and down_proj are zero, so they add zero to the
// residual stream.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "engine/base/refuse.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"

namespace engine {
namespace {

// "model.layers.7.mlp.up_proj.weight" -> {7, "mlp.up_proj.weight"}; layer -1 for other names.
std::pair<int, std::string> split_layer(const std::string& name) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (!name.starts_with(kPrefix)) return {-1, name};
  const std::size_t dot = name.find('.', kPrefix.size());
  return {std::stoi(name.substr(kPrefix.size(), dot - kPrefix.size())), name.substr(dot + 1)};
}

bool writes_residual(const std::string& part) {
  return part.starts_with("self_attn.o_proj.") || part.starts_with("mlp.down_proj.");
}

// The operating system fills new pages with zeros at their first access, so the empty part of a
// tensor costs no time.
std::shared_ptr<void> zeros(std::int64_t n_bytes) {
  void* data = std::calloc(static_cast<std::size_t>(std::max<std::int64_t>(n_bytes, 1)), 1);
  if (!data) throw std::bad_alloc();
  return {data, std::free};
}

/// Rows of the matrices that are stored as one (Phi-3); empty: one matrix.
using RowBlocks = std::vector<std::int64_t>;

// The row of the enlarged matrix that receives this row: each block goes to the top of its enlarged block.
std::int64_t place_of_row(std::int64_t row, const RowBlocks& blocks, std::int64_t factor) {
  std::int64_t begin = 0;
  for (const std::int64_t n : blocks) {
    if (row < begin + n) return begin * factor + row - begin;
    begin += n;
  }
  return row;
}

// Copies [rows, cols] into the upper left corner of a zero matrix; if the columns form blocks, each
// block goes to the left of its enlarged block.
Tensor padded(const Tensor& tensor,
              const std::vector<std::int64_t>& shape,
              int n_blocks = 1,
              const RowBlocks& row_blocks = {}) {
  const int size = kernels::bytes_of(tensor.dtype);
  Tensor out{tensor.dtype, shape, nullptr, nullptr};
  const std::shared_ptr<void> data = zeros(out.n_elements() * size);
  const bool is_matrix = shape.size() == 2;
  const std::int64_t n_rows = is_matrix ? tensor.shape[0] : 1;
  const std::int64_t from_cols = tensor.shape.back() / n_blocks, to_cols = shape.back() / n_blocks;
  const std::int64_t factor = is_matrix ? shape[0] / tensor.shape[0] : 1;
  for (std::int64_t block = 0; block < n_rows * n_blocks; block++) {
    const std::int64_t to_block =
        place_of_row(block / n_blocks, row_blocks, factor) * n_blocks + block % n_blocks;
    std::memcpy(static_cast<char*>(data.get()) + to_block * to_cols * size,
                static_cast<const char*>(tensor.data) + block * from_cols * size,
                static_cast<std::size_t>(from_cols * size));
  }
  out.data = data.get();
  out.hold = data;
  return out;
}

void divide(Tensor& tensor, float divisor) {
  const auto n = static_cast<std::size_t>(tensor.n_elements());
  void* data = const_cast<void*>(tensor.data);  // allocated by padded()
  auto* f32 = static_cast<float*>(data);
  auto* bits = static_cast<std::uint16_t*>(data);
  for (std::size_t i = 0; i < n; i++) {
    switch (tensor.dtype) {
      case kernels::DType::F32:
        f32[i] /= divisor;
        break;
      case kernels::DType::BF16:
        bits[i] = kernels::bf16_from_f32(kernels::f32_from_bf16(bits[i]) / divisor);
        break;
      case kernels::DType::F16:
        bits[i] = kernels::f16_from_f32(kernels::f32_from_f16(bits[i]) / divisor);
        break;
      default:
        kernels::throw_contract_error("scale: a tensor is quantised");
    }
  }
}

// Provides tensors of the scaled shapes, each computed when it is read.
class ScaledSource : public TensorSource {
 public:
  ScaledSource(std::shared_ptr<const TensorSource> tensors, std::vector<TensorSpec> specs)
      : tensors_(std::move(tensors)) {
    for (TensorSpec& spec : specs) {
      names_.push_back(spec.name);
      shapes_.emplace(spec.name, std::move(spec.shape));
    }
  }

  bool has(const std::string& name) const override { return shapes_.contains(name); }
  std::vector<std::string> names() const override { return names_; }
  std::string path() const override { return tensors_->path(); }
  void check() const override { tensors_->check(); }

  Tensor read(const std::string& name) const override {
    const auto at = shapes_.find(name);
    if (at == shapes_.end()) refuse(path(), "tensor " + in_quotes(name), "none", "the tensor");
    return make(name, at->second);
  }

 protected:
  virtual Tensor make(const std::string& name, const std::vector<std::int64_t>& shape) const = 0;
  Tensor original(const std::string& name) const { return tensors_->read(name); }

 private:
  std::shared_ptr<const TensorSource> tensors_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::vector<std::int64_t>> shapes_;
};

class ScaledTensors : public ScaledSource {
 public:
  ScaledTensors(std::shared_ptr<const TensorSource> tensors,
                const ModelConfig& config,
                const ModelScale& scale)
      : ScaledSource(std::move(tensors), tensors_of(scaled(config, scale))),
        config_(config),
        scale_(scale) {}

 private:
  Tensor make(const std::string& name, const std::vector<std::int64_t>& shape) const override {
    const auto [layer, part] = split_layer(name);
    const bool is_new_layer = layer >= config_.n_layers;
    const Tensor tensor = original(
        is_new_layer ? fmt::format("model.layers.{}.{}", layer % config_.n_layers, part) : name);
    if (is_new_layer && writes_residual(part)) return blank(tensor.dtype, shape);
    if (scale_.width == 1 || is_head_norm(part)) return tensor;
    Tensor out = padded(tensor, shape, 1, row_blocks(part));
    const bool is_norm = name.ends_with("norm.weight");
    if (is_norm) divide(out, std::sqrt(static_cast<float>(scale_.width)));
    return out;
  }

  static bool is_head_norm(const std::string& part) {
    return part == "self_attn.q_norm.weight" || part == "self_attn.k_norm.weight";
  }
  RowBlocks row_blocks(const std::string& part) const {
    const std::int64_t n_kv = std::int64_t{config_.n_kv_heads} * config_.head_dim;
    if (part == "self_attn.qkv_proj.weight")
      return {std::int64_t{config_.n_heads} * config_.head_dim, n_kv, n_kv};
    if (part == "mlp.gate_up_proj.weight") return {config_.hidden_dim, config_.hidden_dim};
    return {};
  }

  static Tensor blank(kernels::DType dtype, const std::vector<std::int64_t>& shape) {
    Tensor out{dtype, shape, nullptr, nullptr};
    const std::shared_ptr<void> data = zeros(out.n_elements() * kernels::bytes_of(dtype));
    out.data = data.get();
    out.hold = data;
    return out;
  }

  ModelConfig config_;
  ModelScale scale_;
};

// A matrix whose input is a concatenation of several states (embeddings of a k-gram; a hidden state
// and an encoding) has one block of columns per state.
class ScaledHeads : public ScaledSource {
 public:
  ScaledHeads(std::shared_ptr<const TensorSource> tensors,
              const HeadsConfig& config,
              const ModelScale& scale)
      : ScaledSource(std::move(tensors), loaded_tensors_of(scaled(config, scale))),
        config_(config),
        scale_(scale) {}

 private:
  Tensor make(const std::string& name, const std::vector<std::int64_t>& shape) const override {
    int n_blocks = 1;
    if (name == "gram.0.weight") n_blocks = config_.gram;
    const bool is_second = config_.target_output && name.ends_with(".1.weight");
    if (name.starts_with("heads.") && config_.residual && !is_second) n_blocks = 2;
    Tensor out = padded(original(name), shape, n_blocks);
    if (name.ends_with("norm.weight")) divide(out, std::sqrt(static_cast<float>(scale_.width)));
    return out;
  }

  HeadsConfig config_;
  ModelScale scale_;
};

int times(int value, int factor) {
  int product = 0;
  if (__builtin_mul_overflow(value, factor, &product) || product > (1 << 24)) {
    throw Error(ErrorCode::Resources,
                fmt::format("--scale: found a dimension of {} x {}, expected at most {}", value,
                            factor, 1 << 24));
  }
  return product;
}

}  // namespace

ModelConfig scaled(const ModelConfig& config, const ModelScale& scale) {
  ModelConfig out = config;
  out.dim = times(config.dim, scale.width);
  out.hidden_dim = times(config.hidden_dim, scale.width);
  // Head h stays in its group h / (n_heads / n_kv_heads); new heads follow.
  out.n_heads = times(config.n_heads, scale.width);
  out.n_kv_heads = times(config.n_kv_heads, scale.width);
  out.norm_eps = config.norm_eps / static_cast<float>(scale.width);
  out.norm_offset = config.norm_offset / std::sqrt(static_cast<float>(scale.width));
  out.n_layers = times(config.n_layers, scale.depth);
  return out;
}

std::shared_ptr<const TensorSource> scaled(std::shared_ptr<const TensorSource> tensors,
                                           const ModelConfig& config,
                                           const ModelScale& scale) {
  if (scale == ModelScale{}) return tensors;
  return std::make_shared<ScaledTensors>(std::move(tensors), config, scale);
}

HeadsConfig scaled(const HeadsConfig& config, const ModelScale& scale) {
  HeadsConfig out = config;
  out.dim = times(config.dim, scale.width);
  out.hidden_dim = times(config.hidden_dim, scale.width);
  out.n_attention_heads = times(config.n_attention_heads, scale.width);
  out.norm_eps = config.norm_eps / static_cast<float>(scale.width);
  return out;
}

std::shared_ptr<const TensorSource> scaled(std::shared_ptr<const TensorSource> tensors,
                                           const HeadsConfig& config,
                                           const ModelScale& scale) {
  if (scale.width == 1) return tensors;
  return std::make_shared<ScaledHeads>(std::move(tensors), config, scale);
}

}  // namespace engine
