#include "engine/train/heads/parameters.h"

#include <algorithm>
#include <cmath>

#include "engine/base/types.h"
#include "engine/checkpoint/shared/output_tokens.h"

namespace engine {
namespace {

void check_trainable(const HeadsConfig& c) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::BadInput, "heads: " + what);
  };
  if (c.dim % 16 || c.n_outputs() % 16) {
    refuse("the target's width and the number of ranked tokens must be multiples of 16, found " +
           std::to_string(c.dim) + " and " + std::to_string(c.n_outputs()));
  }
  if (c.kind == HeadsKind::Medusa) return;
  if (c.n_attention_heads < 1 || c.dim % c.n_attention_heads || c.head_dim() % 16 ||
      c.head_dim() > 256) {
    refuse("attention_heads: " + std::to_string(c.n_attention_heads) +
           " do not divide a width of " + std::to_string(c.dim) +
           " into multiples of 16, of at most 256");
  }
  if (c.hidden_dim % 16 || c.head_hidden_dim % 16)
    refuse("hidden_dim, head_hidden_dim: expected multiples of 16");
}

std::string residual_name(int head, int layer) {
  return std::to_string(head) + "." + std::to_string(layer) + ".linear.weight";
}

// The last matrix of a head of Chimera that the heads own.
bool is_last_own_matrix(const HeadsConfig& c, const std::string& name) {
  return name.starts_with("heads.") && !(c.target_output && name.ends_with(".0.weight"));
}

// Copies the target's output matrix to a head. If the head's input is [hidden state, f], it gets
// two copies side by side.
void fill_output(float* to, const std::vector<float>& output, const HeadsConfig& c, bool twice) {
  for (std::int64_t row = 0; row < c.vocab_size; row++) {
    const float* from = output.data() + row * c.dim;
    to = std::copy_n(from, c.dim, to);
    if (twice) to = std::copy_n(from, c.dim, to);
  }
}

}  // namespace

HeadsLayout::HeadsLayout(const HeadsConfig& c) {
  check_trainable(c);
  for (const TensorSpec& spec : tensors_of(c)) {
    std::int64_t size = 1;
    for (const std::int64_t d : spec.shape) size *= d;
    parts.push_back({spec.name, spec.shape, n});
    n += aligned_size(size);
  }
  if (c.kind == HeadsKind::Medusa) return;
  encoder = {.attn_norm = at("encoder.input_layernorm.weight"),
             .qkv = at("encoder.self_attn.q_proj.weight"),
             .attn_out = at("encoder.self_attn.o_proj.weight"),
             .mlp_norm = at("encoder.post_attention_layernorm.weight"),
             .gate_up = at("encoder.mlp.gate_proj.weight"),
             .down = at("encoder.mlp.down_proj.weight")};
  // One product reads the matrices of queries, keys and values as one, and another product those of
  // gate and up.
  const std::int64_t square = std::int64_t{c.dim} * c.dim;
  ensure(
      at("encoder.self_attn.k_proj.weight") == encoder.qkv + square &&
          at("encoder.self_attn.v_proj.weight") == encoder.qkv + 2 * square &&
          at("encoder.mlp.up_proj.weight") == encoder.gate_up + std::int64_t{c.hidden_dim} * c.dim,
      "the matrices of one product must be adjacent");
}

std::int64_t HeadsLayout::at(const std::string& name) const {
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const NamedPart& part) { return part.name == name; });
  ensure(found != parts.end(), "a tensor of the heads");
  return found->at;
}

int valid_outputs(const HeadsConfig& c, int n_valid) {
  if (c.output_tokens.empty()) return n_valid;
  return n_output_rows(c.output_tokens, n_valid);
}

std::vector<float> initial_heads(const HeadsConfig& c,
                                 const std::vector<float>& output,
                                 const std::vector<float>& embedding,
                                 float deviation,
                                 std::uint64_t seed) {
  const HeadsLayout layout(c);
  const auto size = static_cast<std::size_t>(c.vocab_size) * static_cast<std::size_t>(c.dim);
  ensure(
      (c.target_output || output.size() == size) && (!c.own_embedding || embedding.size() == size),
      "output and embedding must have vocab_size * dim values");
  std::vector<float> parameters(static_cast<std::size_t>(layout.n), 0.0f);
  const bool drawn = c.kind == HeadsKind::Chimera;
  for (const NamedPart& part : layout.parts) {
    float* to = parameters.data() + part.at;
    if (part.name == "embed_tokens.weight") {
      std::copy(embedding.begin(), embedding.end(), to);
    } else if (drawn && part.shape.size() == 1) {
      std::fill_n(to, part.shape[0], 1.0f);
    } else if (drawn && !is_last_own_matrix(c, part.name)) {
      const bool into_stream = part.name.find("o_proj") != std::string::npos ||
                               part.name.find("down_proj") != std::string::npos;
      // The encoder of k-grams has no residual path, so its initial weights preserve the scale of
      // the input; so do the first matrices of heads.
      const bool keeps = part.name.starts_with("gram.") || part.name.starts_with("heads.");
      const float scale = keeps         ? 1.0f / std::sqrt(static_cast<float>(part.shape[1]))
                          : into_stream ? deviation / std::sqrt(2.0f)
                                        : deviation;
      for (std::int64_t i = 0; i < part.shape[0] * part.shape[1]; i++)
        to[i] = scale * initial_weight(seed, part.at + i);
    }
  }
  for (int k = 0; !c.target_output && k < c.n_heads; k++)
    fill_output(parameters.data() + layout.at(own_output_name(c, k)), output, c,
                c.kind == HeadsKind::Chimera && c.residual);
  return parameters;
}

HeadsMatrices::HeadsMatrices(const HeadsConfig& c, const HeadsLayout& layout) {
  const bool medusa = c.kind == HeadsKind::Medusa;
  for (int k = 0; k < c.n_heads; k++) {
    residual.emplace_back();
    for (int j = 0; medusa && j < c.n_layers; j++)
      residual.back().push_back({layout.at(residual_name(k, j)), c.dim, c.dim});
    const int head_in = !medusa && c.residual ? 2 * c.dim : c.dim;
    if (!c.target_output) {
      output.push_back({layout.at(own_output_name(c, k)), c.vocab_size, head_in});
    } else if (!medusa) {
      const std::string head = "heads." + std::to_string(k);
      first.push_back({layout.at(head + ".0.weight"), c.head_hidden_dim, head_in});
      second.push_back({layout.at(head + ".1.weight"), c.dim, c.head_hidden_dim});
    }
  }
  of_target = {0, c.n_outputs(), c.dim};
  if (medusa) return;
  if (!c.by_first_layer) {
    gram_in = {layout.at("gram.0.weight"), c.dim, c.gram * c.dim};
    gram_out = {layout.at("gram.1.weight"), c.dim, c.dim};
  }
  encoder.emplace_back(encoder_of(c), layout.encoder);
}

std::vector<kernels::TrainMatrix> HeadsMatrices::all() const {
  std::vector<kernels::TrainMatrix> all = output;
  for (const auto& of_head : residual) all.insert(all.end(), of_head.begin(), of_head.end());
  all.insert(all.end(), first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  if (gram_in.n_out > 0) all.insert(all.end(), {gram_in, gram_out});
  for (const BlockMatrices& m : encoder)
    all.insert(all.end(), {m.qkv, m.attn_out, m.gate_up, m.down});
  return all;
}

}  // namespace engine
