#include "engine/model/weights.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

class Loader {
 public:
  Loader(kernels::Device& device,
         const ModelConfig& config,
         const TensorSource& tensors,
         kernels::DType dtype,
         const std::function<bool(std::int64_t, std::int64_t)>& progress)
      : device_(device), c_(config), tensors_(tensors), dtype_(dtype), progress_(progress) {
    bytes_in_all_ = c_.n_params() * kernels::bytes_of(dtype);
  }

  Weights load();
  LayerWeights layer(const std::string& at);

 private:
  Tensor read(const std::string& name, const std::vector<std::int64_t>& shape);
  Matrix matrix(std::initializer_list<std::string> names,
                std::initializer_list<int> rows,
                int n_inputs,
                int n_rotated_heads = 0);
  void pair_rows(std::byte* rows, std::size_t row_bytes, int n_heads) const;
  kernels::DeviceBuffer vector(std::initializer_list<std::string> names,
                               std::initializer_list<int> sizes,
                               float offset = 0);
  kernels::DeviceBuffer norm(const std::string& name);
  void report(std::int64_t n_elements);

  kernels::Device& device_;  // these three belong to the caller and are valid during the call
  const ModelConfig& c_;
  const TensorSource& tensors_;
  const kernels::DType dtype_;
  const std::function<bool(std::int64_t, std::int64_t)>& progress_;
  std::int64_t bytes_ = 0;
  std::int64_t bytes_in_all_ = 0;
  std::vector<std::byte> fused_;
};

Tensor Loader::read(const std::string& name, const std::vector<std::int64_t>& shape) {
  // Vectors are used in f32.
  Tensor t = shape.size() < 2 ? tensors_.read(name) : tensors_.read_for(name, dtype_);
  if (t.shape != shape)
    throw Error(
        ErrorCode::BadInput,
        fmt::format("{}: {}: found shape [{}], expected [{}]; does config.json belong to "
                    "these weights?",
                    tensors_.path(), name, fmt::join(t.shape, ", "), fmt::join(shape, ", ")));
  return t;
}

void Loader::report(std::int64_t n_elements) {
  bytes_ += n_elements * kernels::bytes_of(dtype_);
  if (progress_ && !progress_(std::min(bytes_, bytes_in_all_), bytes_in_all_))
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

// Packs the rows of several tensors as one matrix, one tensor after another. Tensors of different types are converted to f32.
// @param n_rotated_heads  number of leading heads (of queries, then keys) that RoPE rotates; 0: none
Matrix Loader::matrix(std::initializer_list<std::string> names,
                      std::initializer_list<int> rows,
                      int n_inputs,
                      int n_rotated_heads) {
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
  const bool moves_rows = n_rotated_heads > 0 && c_.rope.rotary_dim > 0;
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

  Matrix m = packed(device_, data, from, n_outputs, n_inputs, dtype_);
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
  if (!c_.tied_embeddings) w.lm_head = matrix({"lm_head.weight"}, {c_.vocab_size}, c_.dim);

  w.bytes_read =
      w.norm.bytes() + (c_.tied_embeddings ? w.embedding.memory.bytes() : w.lm_head.memory.bytes());
  for (const LayerWeights& l : w.layers) {
    for (const Matrix* m : {&l.qkv, &l.out, &l.gate_up, &l.down}) w.bytes_read += m->memory.bytes();
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
  return packed(device, tensor.data, tensor.dtype, static_cast<int>(tensor.shape[0]),
                static_cast<int>(tensor.shape[1]), dtype);
}

LayerWeights load_layer(kernels::Device& device,
                        const ModelConfig& config,
                        const TensorSource& tensors,
                        const std::string& at,
                        kernels::DType dtype) {
  const std::function<bool(std::int64_t, std::int64_t)> no_progress;
  return Loader(device, config, tensors, dtype, no_progress).layer(at);
}

Weights load_weights(kernels::Device& device,
                     const ModelConfig& config,
                     const TensorSource& tensors,
                     kernels::DType dtype,
                     const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  return Loader(device, config, tensors, dtype, progress).load();
}

}  // namespace engine
