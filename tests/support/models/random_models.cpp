#include "tests/support/models/random_models.h"

#include <random>

#include <fmt/format.h>

namespace engine::test {

Tensor MemoryTensors::read(const std::string& name) const {
  const auto found = entries.find(name);
  if (found == entries.end()) throw Error(ErrorCode::BadInput, "memory: no tensor " + name);
  return {.shape = found->second.shape, .data = found->second.data.data()};
}

std::vector<std::string> MemoryTensors::names() const {
  std::vector<std::string> all;
  for (const auto& entry : entries) all.push_back(entry.first);
  return all;
}

ModelConfig odd_config() {
  ModelConfig c;
  c.dim = 40;
  c.hidden_dim = 52;
  c.n_layers = 3;
  c.n_heads = 4;
  c.n_kv_heads = 4;
  c.head_dim = 10;
  c.vocab_size = 101;
  c.max_seq_len = 512;
  return c;
}

TestModel random_model(std::string name, const ModelConfig& c, std::uint64_t seed) {
  TestModel model{std::move(name), c, std::make_shared<MemoryTensors>()};
  std::mt19937_64 rng(seed);
  const auto fill = [&](const std::string& tensor, std::vector<std::int64_t> shape, double mean,
                        double deviation) {
    std::normal_distribution<double> normal(mean, deviation);
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    std::vector<float> data(static_cast<std::size_t>(n));
    for (float& x : data) x = static_cast<float>(normal(rng));
    model.tensors->entries[tensor] = {std::move(shape), std::move(data)};
  };
  const auto matrix = [&](const std::string& tensor, int n, int k) {
    fill(tensor, {n, k}, 0, 1.2 / std::sqrt(k));
  };
  const int n_q = c.n_heads * c.head_dim, n_kv = c.n_kv_heads * c.head_dim;
  fill("model.embed_tokens.weight", {c.vocab_size, c.dim}, 0, c.tied_embeddings ? 0.25 : 1);
  if (!c.tied_embeddings) matrix("lm_head.weight", c.n_outputs(), c.dim);
  const auto norm = [&](const std::string& tensor, int size) {
    fill(tensor, {size}, 1 - c.norm_offset, 0.2);
  };
  norm("model.norm.weight", c.dim);
  for (int l = 0; l < c.n_layers; l++) {
    const std::string at = fmt::format("model.layers.{}.", l);
    norm(at + "input_layernorm.weight", c.dim);
    norm(at + "post_attention_layernorm.weight", c.dim);
    if (c.fused_projections) {
      matrix(at + "self_attn.qkv_proj.weight", n_q + 2 * n_kv, c.dim);
      matrix(at + "mlp.gate_up_proj.weight", 2 * c.hidden_dim, c.dim);
    } else {
      matrix(at + "self_attn.q_proj.weight", n_q, c.dim);
      matrix(at + "self_attn.k_proj.weight", n_kv, c.dim);
      matrix(at + "self_attn.v_proj.weight", n_kv, c.dim);
    }
    matrix(at + "self_attn.o_proj.weight", c.dim, n_q);
    if (!c.fused_projections) {
      matrix(at + "mlp.gate_proj.weight", c.hidden_dim, c.dim);
      matrix(at + "mlp.up_proj.weight", c.hidden_dim, c.dim);
    }
    matrix(at + "mlp.down_proj.weight", c.dim, c.hidden_dim);
    if (c.qkv_bias) {
      fill(at + "self_attn.q_proj.bias", {n_q}, 0, 0.5);
      fill(at + "self_attn.k_proj.bias", {n_kv}, 0, 0.5);
      fill(at + "self_attn.v_proj.bias", {n_kv}, 0, 0.5);
    }
    if (c.qk_norm) norm(at + "self_attn.q_norm.weight", c.head_dim);
    if (c.qk_norm) norm(at + "self_attn.k_norm.weight", c.head_dim);
    if (c.post_norms) norm(at + "pre_feedforward_layernorm.weight", c.dim);
    if (c.post_norms) norm(at + "post_feedforward_layernorm.weight", c.dim);
    if (c.attn_out_bias) fill(at + "self_attn.o_proj.bias", {c.dim}, 0, 0.3);
    if (c.mlp_bias) {
      fill(at + "mlp.gate_proj.bias", {c.hidden_dim}, 0, 0.3);
      fill(at + "mlp.up_proj.bias", {c.hidden_dim}, 0, 0.3);
      fill(at + "mlp.down_proj.bias", {c.dim}, 0, 0.3);
    }
  }
  return model;
}

ModelConfig with_multipliers(ModelConfig c) {
  c.embedding_multiplier = 3;
  c.residual_multiplier = 0.22f;
  c.attention_scale = 0.4;
  c.logits_scaling = 0.7f;
  return c;
}

ModelConfig with_post_norms(ModelConfig c) {
  c.norm_offset = c.head_norm_offset = 1;
  c.post_norms = c.qk_norm = c.tied_embeddings = true;
  c.head_norm_eps = 1e-6f;
  c.gate = kernels::Gate::GeluTanh;
  c.embedding_multiplier = 6.3f;
  c.attention_scale = 0.25;
  c.attention_softcap = 2;
  c.logit_softcap = 3;
  c.sliding_window = 20;
  c.layer_kinds = {{.local = true}, {.local = false}};
  c.local_rope = RopeConfig{.theta = 100};
  return c;
}

std::vector<TestModel> models_of_every_kind() {
  std::vector<TestModel> models;
  const auto add = [&](const char* name, auto change) {
    ModelConfig c = odd_config();
    change(c);
    models.push_back(random_model(name, c, 100 + models.size()));
  };
  using Type = RopeConfig::Type;
  add("plain", [](ModelConfig&) {});
  add("tied", [](ModelConfig& c) { c.tied_embeddings = true; });
  add("gqa", [](ModelConfig& c) { c.n_kv_heads = 2; });
  add("mqa", [](ModelConfig& c) { c.n_kv_heads = 1; });
  add("wide_heads", [](ModelConfig& c) { c.head_dim = 16; });
  add("qkv_bias", [](ModelConfig& c) { c.qkv_bias = true; });
  add("all_biases", [](ModelConfig& c) { c.qkv_bias = c.attn_out_bias = c.mlp_bias = true; });
  add("window", [](ModelConfig& c) { c.sliding_window = 7; });
  add("window_in_upper_layers", [](ModelConfig& c) {
    c.sliding_window = 66;
    c.layer_kinds = global_then_local(1, c.n_layers);
  });
  add("linear", [](ModelConfig& c) { c.rope = {.type = Type::Linear, .factor = 4}; });
  add("dynamic", [](ModelConfig& c) {
    c.rope = {.type = Type::Dynamic, .factor = 2, .original_max_seq_len = 50};
  });
  add("yarn", [](ModelConfig& c) {
    c.rope = {.type = Type::Yarn, .factor = 4, .original_max_seq_len = 64};
  });
  add("llama3", [](ModelConfig& c) {
    c.rope = {.type = Type::Llama3, .factor = 8, .original_max_seq_len = 64};
  });
  add("head_norms", [](ModelConfig& c) { c.qk_norm = true; });
  add("layers_without_rope", [](ModelConfig& c) {
    c.layer_kinds = {{}, {.rotated = false}, {.local = false}};
    c.sliding_window = 30;
  });
  add("fused_projections", [](ModelConfig& c) {
    c.fused_projections = true;
    c.n_kv_heads = 2;
  });
  add("partial_rotation", [](ModelConfig& c) {
    c.rope = {.type = Type::Yarn, .rotary_dim = 6, .factor = 4, .original_max_seq_len = 64};
  });
  add("multipliers", [](ModelConfig& c) { c = with_multipliers(c); });
  add("post_norms", [](ModelConfig& c) { c = with_post_norms(c); });
  add("nearly_everything", [](ModelConfig& c) {
    c.n_heads = 6;
    c.n_kv_heads = 2;
    c.head_dim = 12;
    c.tied_embeddings = true;
    c.qkv_bias = c.attn_out_bias = true;
    c.sliding_window = 40;
    c.layer_kinds = global_then_local(1, c.n_layers);
    c.rope = {.type = Type::Yarn, .factor = 2, .original_max_seq_len = 128};
    c.norm_eps = 1e-6f;
  });
  return models;
}

std::vector<TokenId> random_tokens(int n, int vocab_size, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::uniform_int_distribution<TokenId> token(0, vocab_size - 1);
  std::vector<TokenId> tokens(static_cast<std::size_t>(n));
  for (TokenId& t : tokens) t = token(rng);
  return tokens;
}

TokenTree random_tree(int n, int vocab_size, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  TokenTree tree;
  tree.token = random_tokens(n, vocab_size, seed + 1);
  for (int r = 0; r < n; r++)
    tree.parent.push_back(std::uniform_int_distribution<int>(r < 2        ? -1
                                                             : r - 4 < -1 ? -1
                                                                          : r - 4,
                                                             r - 1)(rng));
  tree.tag.resize(static_cast<std::size_t>(n));
  return tree;
}

TokenTree chain_tree(std::span<const TokenId> tokens) {
  TokenTree tree;
  tree.token.assign(tokens.begin(), tokens.end());
  for (int r = 0; r < static_cast<int>(tokens.size()); r++) tree.parent.push_back(r - 1);
  tree.tag.resize(tokens.size());
  return tree;
}

}  // namespace engine::test
