#include "engine/model/weights.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/checkpoint/tensor_source.h"

namespace engine {
namespace {

const char* const kWeights = "the weights";

Matrix packed(kernels::Device& device,
              const void* data,
              kernels::DType from,
              int n_outputs,
              int n_inputs,
              kernels::DType to) {
  const kernels::Ops& ops = device.ops();
  Matrix m;
  m.memory = kernels::DeviceBuffer(device, ops.packed_bytes(to, n_outputs, n_inputs), kWeights);
  ops.pack(device, data, from, n_outputs, n_inputs, to, m.memory.data());
  m.view = {.data = m.memory.data(), .n = n_outputs, .k = n_inputs, .dtype = to};
  return m;
}

// Gives every 16 elements their own scale and minimum.
void split_groups(QuantisedTensor& tensor) {
  const std::size_t n = tensor.q.size() / 16;
  const std::size_t per_group = static_cast<std::size_t>(tensor.group) / 16;
  std::vector<float> scale(n), minimum(n);
  for (std::size_t i = 0; i < n; i++) {
    scale[i] = tensor.scale[i / per_group];
    minimum[i] = tensor.minimum.empty() ? 0 : tensor.minimum[i / per_group];
  }
  tensor.group = 16;
  tensor.scale = std::move(scale);
  tensor.minimum = std::move(minimum);
  tensor.format = kernels::DType::Q8_G;
}

// The rows of several matrices as one, one matrix after another. Matrices of different types become Q8_G, which has
// the values of all types.
QuantisedTensor joined(std::vector<QuantisedTensor> parts) {
  const auto same_format = [&](const QuantisedTensor& part) {
    return part.format == parts.front().format && part.group == parts.front().group &&
           part.minimum.empty() == parts.front().minimum.empty();
  };
  if (!std::ranges::all_of(parts, same_format)) std::ranges::for_each(parts, split_groups);
  QuantisedTensor all = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); i++) {
    all.shape[0] += parts[i].shape[0];
    all.q.insert(all.q.end(), parts[i].q.begin(), parts[i].q.end());
    all.scale.insert(all.scale.end(), parts[i].scale.begin(), parts[i].scale.end());
    all.minimum.insert(all.minimum.end(), parts[i].minimum.begin(), parts[i].minimum.end());
  }
  return all;
}

Matrix packed(kernels::Device& device, const QuantisedTensor& tensor) {
  const kernels::Ops& ops = device.ops();
  const auto n = static_cast<int>(tensor.shape[0]), k = static_cast<int>(tensor.shape[1]);
  const kernels::QuantisedRows rows = {
      .q = tensor.q.data(),
      .scale = tensor.scale.data(),
      .minimum = tensor.minimum.empty() ? nullptr : tensor.minimum.data(),
      .group = tensor.group};
  Matrix m;
  m.memory = kernels::DeviceBuffer(device, ops.packed_bytes(tensor.format, n, k), kWeights);
  ops.pack_quantised(device, rows, n, k, tensor.format, m.memory.data());
  m.view = {.data = m.memory.data(), .n = n, .k = k, .dtype = tensor.format};
  return m;
}

class Loader {
 public:
  Loader(kernels::Device& device,
         const ModelConfig& config,
         const TensorSource& tensors,
         const WeightTypes& types,
         const std::function<bool(std::int64_t, std::int64_t)>& progress)
      : device_(device), c_(config), tensors_(tensors), types_(types), progress_(progress) {}

  Weights load();
  LayerWeights layer(const std::string& at);

 private:
  Tensor read(const std::string& name, const std::vector<std::int64_t>& shape);
  std::optional<QuantisedTensor> read_quantised(std::initializer_list<std::string> names,
                                                std::initializer_list<int> rows,
                                                int n_inputs);
  Matrix matrix(std::initializer_list<std::string> names,
                std::initializer_list<int> rows,
                int n_inputs,
                int n_rotated_heads = 0);
  void pair_rows(std::byte* rows, std::size_t row_bytes, int n_heads) const;
  void pair_rows(QuantisedTensor& tensor, int n_heads) const;
  kernels::DeviceBuffer vector(std::initializer_list<std::string> names,
                               std::initializer_list<int> sizes,
                               float offset = 0);
  kernels::DeviceBuffer norm(const std::string& name);
  void report(std::int64_t n_elements);

  kernels::Device& device_;  // these three belong to the caller and are valid during the call
  const ModelConfig& c_;
  const TensorSource& tensors_;
  const WeightTypes types_;
  const std::function<bool(std::int64_t, std::int64_t)>& progress_;
  std::int64_t n_loaded_ = 0;  // weights
  std::vector<std::byte> fused_;
};

void check_shape(const TensorSource& tensors,
                 const std::string& name,
                 const std::vector<std::int64_t>& found,
                 const std::vector<std::int64_t>& expected) {
  if (found == expected) return;
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: {}: found shape [{}], expected [{}]; does config.json belong to "
                          "these weights?",
                          tensors.path(), name, fmt::join(found, ", "), fmt::join(expected, ", ")));
}

Tensor Loader::read(const std::string& name, const std::vector<std::int64_t>& shape) {
  // Vectors are used in f32.
  Tensor t = shape.size() < 2 ? tensors_.read(name) : tensors_.read_for(name, types_.dtype);
  check_shape(tensors_, name, t.shape, shape);
  return t;
}

// The matrices as one, if all are quantised and will be computed so.
std::optional<QuantisedTensor> Loader::read_quantised(std::initializer_list<std::string> names,
                                                      std::initializer_list<int> rows,
                                                      int n_inputs) {
  const auto is_quantised = [&](const std::string& name) {
    return tensors_.quantised_format(name).has_value();
  };
  if (!types_.as_stored || !std::ranges::all_of(names, is_quantised)) return std::nullopt;
  std::vector<QuantisedTensor> parts;
  const int* n = rows.begin();
  for (const std::string& name : names) {
    parts.push_back(*tensors_.quantised(name));
    check_shape(tensors_, name, parts.back().shape, {*n++, n_inputs});
  }
  return joined(std::move(parts));
}

void Loader::report(std::int64_t n_elements) {
  n_loaded_ += n_elements;
  const std::int64_t bytes = kernels::bytes_of(types_.dtype), all = c_.n_params() * bytes;
  if (progress_ && !progress_(std::min(n_loaded_ * bytes, all), all))
    throw Error(ErrorCode::Cancelled, tensors_.path() + ": loading was cancelled");
}

// Moves the rows of queries and keys within each head. If only the first rotary_dim dimensions of a head are rotated, the
// model's pairs are (i, i + rotary_dim / 2), but the operation's pairs are (i, i + head_dim / 2). Products of queries and
// keys stay the same, because both are moved in the same way.
void Loader::pair_rows(std::byte* rows, std::size_t row_bytes, int n_heads) const {
  const int half = c_.head_dim / 2, n_pairs = c_.rope.rotary_dim / 2;
  std::vector<std::byte> head(static_cast<std::size_t>(c_.head_dim) * row_bytes);
  for (int h = 0; h < n_heads; h++, rows += head.size()) {
    std::copy_n(rows, head.size(), head.begin());
    int next_unrotated = c_.rope.rotary_dim;
    for (int i = 0; i < c_.head_dim; i++) {
      const int pair = i % half;
      const int from = pair >= n_pairs ? next_unrotated++ : i < half ? pair : n_pairs + pair;
      std::copy_n(head.begin() + static_cast<std::int64_t>(row_bytes) * from, row_bytes,
                  rows + static_cast<std::int64_t>(row_bytes) * i);
    }
  }
}

void Loader::pair_rows(QuantisedTensor& tensor, int n_heads) const {
  const auto n_rows = static_cast<std::size_t>(tensor.shape[0]);
  const auto pair = [&](auto& values) {
    const std::size_t row_bytes = values.size() / n_rows * sizeof values[0];
    if (row_bytes > 0) pair_rows(reinterpret_cast<std::byte*>(values.data()), row_bytes, n_heads);
  };
  pair(tensor.q), pair(tensor.scale), pair(tensor.minimum);
}

// Packs the rows of several tensors as one matrix, one tensor after another. Tensors of different types are converted to f32.
// @param n_rotated_heads  number of leading heads (of queries, then keys) that RoPE rotates; 0: none
Matrix Loader::matrix(std::initializer_list<std::string> names,
                      std::initializer_list<int> rows,
                      int n_inputs,
                      int n_rotated_heads) {
  const bool moves_rows = n_rotated_heads > 0 && c_.rope.rotary_dim > 0;
  if (auto tensor = read_quantised(names, rows, n_inputs)) {
    if (moves_rows) pair_rows(*tensor, n_rotated_heads);
    report(tensor->shape[0] * n_inputs);
    return packed(device_, *tensor);
  }
  std::vector<Tensor> parts;
  int n_outputs = 0;
  bool same_type = true;
  const int* n = rows.begin();
  for (const std::string& name : names) {
    parts.push_back(read(name, {*n, n_inputs}));
    same_type = same_type && parts.back().dtype == parts.front().dtype;
    n_outputs += *n++;
  }

  const void* data = parts.front().data;
  const kernels::DType from = same_type ? parts.front().dtype : kernels::DType::F32;
  if (parts.size() > 1 || moves_rows) {
    const auto row_bytes =
        static_cast<std::size_t>(n_inputs) * static_cast<std::size_t>(kernels::bytes_of(from));
    fused_.resize(static_cast<std::size_t>(n_outputs) * row_bytes);
    std::byte* to = fused_.data();
    for (const Tensor& part : parts) {
      convert_elements(part, 0, part.n_elements(), from, to);
      to += static_cast<std::size_t>(part.shape[0]) * row_bytes;
    }
    if (moves_rows) pair_rows(fused_.data(), row_bytes, n_rotated_heads);
    data = fused_.data();
  }

  Matrix m =
      packed(device_, data, from, n_outputs, n_inputs, types_.as_stored ? from : types_.dtype);
  report(std::int64_t{n_outputs} * n_inputs);
  return m;
}

// Concatenates several vectors as f32 and adds `offset` to each element.
kernels::DeviceBuffer Loader::vector(std::initializer_list<std::string> names,
                                     std::initializer_list<int> sizes,
                                     float offset) {
  std::vector<float> host;
  const int* n = sizes.begin();
  for (const std::string& name : names) {
    const Tensor t = read(name, {*n});
    const std::vector<float> part = f32_of(t);
    host.insert(host.end(), part.begin(), part.end());
    n++;
  }
  if (offset != 0)
    for (float& x : host) x += offset;
  const auto bytes = static_cast<std::int64_t>(host.size() * sizeof(float));
  kernels::DeviceBuffer buffer(device_, bytes, kWeights);
  device_.ops().upload(device_, buffer.data(), host.data(), bytes);
  report(static_cast<std::int64_t>(host.size()));
  return buffer;
}

kernels::DeviceBuffer Loader::norm(const std::string& name) {
  return vector({name + ".weight"}, {c_.dim}, c_.norm_offset);
}

LayerWeights Loader::layer(const std::string& at) {
  const std::string attn = at + "self_attn.", mlp = at + "mlp.";
  const int n_q = c_.n_heads * c_.head_dim, n_kv = c_.n_kv_heads * c_.head_dim;

  const int n_rotated_heads = c_.n_heads + c_.n_kv_heads;
  ensure(c_.rope.rotary_dim == 0 || (!c_.qk_norm && !c_.qkv_bias),
         "load: a partial rotation needs q and k without norms and biases");

  LayerWeights w;
  w.attn_norm = norm(at + "input_layernorm");
  if (c_.fused_projections)
    w.qkv = matrix({attn + "qkv_proj.weight"}, {n_q + 2 * n_kv}, c_.dim, n_rotated_heads);
  else
    w.qkv = matrix({attn + "q_proj.weight", attn + "k_proj.weight", attn + "v_proj.weight"},
                   {n_q, n_kv, n_kv}, c_.dim, n_rotated_heads);
  if (c_.qk_norm)
    w.head_norms = vector({attn + "q_norm.weight", attn + "k_norm.weight"},
                          {c_.head_dim, c_.head_dim}, c_.head_norm_offset);
  if (c_.qkv_bias)
    w.qkv_bias = vector({attn + "q_proj.bias", attn + "k_proj.bias", attn + "v_proj.bias"},
                        {n_q, n_kv, n_kv});
  w.out = matrix({attn + "o_proj.weight"}, {c_.dim}, n_q);
  if (c_.attn_out_bias) w.out_bias = vector({attn + "o_proj.bias"}, {c_.dim});
  // With post norms, post_attention_layernorm is the norm of attention's result.
  w.mlp_norm =
      norm(at + (c_.post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
  if (c_.post_norms) {
    w.attn_post_norm = norm(at + "post_attention_layernorm");
    w.mlp_post_norm = norm(at + "post_feedforward_layernorm");
  }
  if (c_.fused_projections)
    w.gate_up = matrix({mlp + "gate_up_proj.weight"}, {2 * c_.hidden_dim}, c_.dim);
  else
    w.gate_up = matrix({mlp + "gate_proj.weight", mlp + "up_proj.weight"},
                       {c_.hidden_dim, c_.hidden_dim}, c_.dim);
  w.down = matrix({mlp + "down_proj.weight"}, {c_.dim}, c_.hidden_dim);
  if (c_.mlp_bias) {
    w.gate_up_bias =
        vector({mlp + "gate_proj.bias", mlp + "up_proj.bias"}, {c_.hidden_dim, c_.hidden_dim});
    w.down_bias = vector({mlp + "down_proj.bias"}, {c_.dim});
  }
  return w;
}

Weights Loader::load() {
  Weights w;
  w.embedding = matrix({"model.embed_tokens.weight"}, {c_.vocab_size}, c_.dim);
  for (int l = 0; l < c_.n_layers; l++)
    w.layers.push_back(layer(fmt::format("model.layers.{}.", l)));
  w.norm = norm("model.norm");
  if (!c_.tied_embeddings) w.lm_head = matrix({"lm_head.weight"}, {c_.n_outputs()}, c_.dim);

  const auto add = [&w](const Matrix& m) {
    w.bytes_read += m.memory.bytes();
    w.n_multiplied += std::int64_t{m.view.n} * m.view.k;
  };
  w.bytes_read = w.norm.bytes();
  add(c_.tied_embeddings ? w.embedding : w.lm_head);
  for (const LayerWeights& l : w.layers) {
    for (const Matrix* m : {&l.qkv, &l.out, &l.gate_up, &l.down}) add(*m);
    for (const kernels::DeviceBuffer* v :
         {&l.attn_norm, &l.mlp_norm, &l.attn_post_norm, &l.mlp_post_norm, &l.head_norms,
          &l.qkv_bias, &l.out_bias, &l.gate_up_bias, &l.down_bias})
      w.bytes_read += v->bytes();
  }
  return w;
}

}  // namespace

Matrix pack_matrix(kernels::Device& device, const Tensor& tensor, kernels::DType dtype) {
  ensure(tensor.shape.size() == 2, "pack_matrix: the tensor must have two dimensions");
  if (kernels::is_quantised(dtype)) return packed(device, rounded(tensor, dtype));
  return packed(device, tensor.data, tensor.dtype, static_cast<int>(tensor.shape[0]),
                static_cast<int>(tensor.shape[1]), dtype);
}

LayerWeights load_layer(kernels::Device& device,
                        const ModelConfig& config,
                        const TensorSource& tensors,
                        const std::string& at,
                        kernels::DType dtype) {
  const std::function<bool(std::int64_t, std::int64_t)> no_progress;
  return Loader(device, config, tensors, {.dtype = dtype}, no_progress).layer(at);
}

Weights load_weights(kernels::Device& device,
                     const ModelConfig& config,
                     const TensorSource& tensors,
                     const WeightTypes& types,
                     const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  return Loader(device, config, tensors, types, progress).load();
}

}  // namespace engine
