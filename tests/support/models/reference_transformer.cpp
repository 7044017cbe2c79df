// A second implementation of the forward pass, as plain as possible: double precision, one
// sequence, no cache, every position attends to all positions before it.
#include <algorithm>
#include <cmath>

#include "engine/model/rope.h"
#include "tests/support/models/random_models.h"

namespace engine::test {
namespace {

using Vector = std::vector<double>;

class Reference {
 public:
  explicit Reference(const TestModel& model) : c_(model.config), t_(*model.tensors) {}

  std::vector<Vector> logits(std::span<const TokenId> tokens) const {
    const std::size_t n = tokens.size(), dim = static_cast<std::size_t>(c_.dim);
    std::vector<Vector> x(n, Vector(dim));
    const std::vector<float>& table = data("model.embed_tokens.weight");
    for (std::size_t i = 0; i < n; i++)
      for (std::size_t j = 0; j < dim; j++)
        x[i][j] = c_.embedding_multiplier * table[static_cast<std::size_t>(tokens[i]) * dim + j];
    for (int l = 0; l < c_.n_layers; l++) layer(l, x);
    const std::string head = c_.tied_embeddings ? "model.embed_tokens" : "lm_head";
    std::vector<Vector> out;
    for (const Vector& row : x) {
      out.push_back(linear(head, normed("model.norm", row)));
      for (double& logit : out.back()) logit = capped(logit / c_.logits_scaling, c_.logit_softcap);
    }
    return out;
  }

 private:
  const std::vector<float>& data(const std::string& name) const { return t_.entries.at(name).data; }

  Vector linear(const std::string& name, const Vector& x) const {
    const std::vector<float>& w = data(name + ".weight");
    Vector y(w.size() / x.size());
    for (std::size_t i = 0; i < y.size(); i++)
      for (std::size_t j = 0; j < x.size(); j++) y[i] += w[i * x.size() + j] * x[j];
    if (t_.has(name + ".bias"))
      for (std::size_t i = 0; i < y.size(); i++) y[i] += data(name + ".bias")[i];
    return y;
  }

  static double capped(double x, double cap) { return cap > 0 ? cap * std::tanh(x / cap) : x; }

  Vector normed(const std::string& name, const Vector& x) const {
    return normed(name, x, c_.norm_eps, c_.norm_offset);
  }
  Vector normed(const std::string& name, const Vector& x, double eps, double offset) const {
    double sum = 0;
    for (const double v : x) sum += v * v;
    const double root = std::sqrt(sum / static_cast<double>(x.size()) + eps);
    Vector y(x.size());
    for (std::size_t i = 0; i < x.size(); i++)
      y[i] = x[i] / root * (data(name + ".weight")[i] + offset);
    return y;
  }
  void norm_heads(const std::string& name, Vector& x) const {
    const auto size = static_cast<long>(c_.head_dim);
    for (auto head = x.begin(); head != x.end(); head += size) {
      const Vector y =
          normed(name, Vector(head, head + size), c_.head_norm_eps, c_.head_norm_offset);
      std::copy(y.begin(), y.end(), head);
    }
  }

  // Rotates the pairs (i, i + rotary_dim / 2) of a head.
  void turn(Vector& x, int pos, const RopeConfig& rope) const {
    const auto size = static_cast<std::size_t>(c_.head_dim);
    const auto half =
        static_cast<std::size_t>(rope.rotary_dim > 0 ? rope.rotary_dim : c_.head_dim) / 2;
    const Vector frequency = rope_frequencies(rope, c_.head_dim, pos + 1);
    const double factor = rope_attention_factor(rope);
    for (std::size_t head = 0; head < x.size(); head += size)
      for (std::size_t i = 0; i < half; i++) {
        const double a = x[head + i], b = x[head + half + i], angle = pos * frequency[i];
        x[head + i] = (a * std::cos(angle) - b * std::sin(angle)) * factor;
        x[head + half + i] = (b * std::cos(angle) + a * std::sin(angle)) * factor;
      }
  }

  Vector attend(const Vector& q,
                const std::vector<Vector>& k,
                const std::vector<Vector>& v,
                std::size_t pos,
                int window) const {
    const auto head_dim = static_cast<std::size_t>(c_.head_dim);
    const auto group = static_cast<std::size_t>(c_.n_heads / c_.n_kv_heads);
    const std::size_t first = window > 0 && static_cast<int>(pos) >= window
                                  ? pos + 1 - static_cast<std::size_t>(window)
                                  : 0;
    Vector out(q.size());
    for (std::size_t head = 0; head < static_cast<std::size_t>(c_.n_heads); head++) {
      const std::size_t at = head * head_dim, kv = head / group * head_dim;
      Vector weight;
      for (std::size_t j = first; j <= pos; j++) {
        double dot = 0;
        for (std::size_t i = 0; i < head_dim; i++) dot += q[at + i] * k[j][kv + i];
        const double scale = c_.attention_scale > 0 ? c_.attention_scale
                                                    : 1 / std::sqrt(static_cast<double>(head_dim));
        weight.push_back(capped(dot * scale, c_.attention_softcap));
      }
      const double top = *std::max_element(weight.begin(), weight.end());
      double sum = 0;
      for (double& w : weight) sum += w = std::exp(w - top);
      for (std::size_t j = first; j <= pos; j++)
        for (std::size_t i = 0; i < head_dim; i++)
          out[at + i] += weight[j - first] / sum * v[j][kv + i];
    }
    return out;
  }

  void layer(int l, std::vector<Vector>& x) const {
    const std::string at = "model.layers." + std::to_string(l) + ".";
    const int window = c_.window_of(l);
    std::vector<Vector> q, k, v;
    for (std::size_t pos = 0; pos < x.size(); pos++) {
      const Vector h = normed(at + "input_layernorm", x[pos]);
      const std::vector<Vector> parts = projections(at + "self_attn.", {"q", "k", "v"}, "qkv", h);
      q.push_back(parts[0]);
      k.push_back(parts[1]);
      v.push_back(parts[2]);
      if (c_.qk_norm) norm_heads(at + "self_attn.q_norm", q.back());
      if (c_.qk_norm) norm_heads(at + "self_attn.k_norm", k.back());
      if (!c_.kind_of(l).rotated) continue;
      turn(q.back(), static_cast<int>(pos), c_.rope_of(l));
      turn(k.back(), static_cast<int>(pos), c_.rope_of(l));
    }
    for (std::size_t pos = 0; pos < x.size(); pos++) {
      add(x[pos], at + "post_attention_layernorm",
          linear(at + "self_attn.o_proj", attend(q[pos], k, v, pos, window)));
      const char* norm = c_.post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm";
      const Vector h = normed(at + norm, x[pos]);
      std::vector<Vector> parts = projections(at + "mlp.", {"gate", "up"}, "gate_up", h);
      for (std::size_t i = 0; i < parts[0].size(); i++) parts[1][i] *= activated(parts[0][i]);
      add(x[pos], at + "post_feedforward_layernorm", linear(at + "mlp.down_proj", parts[1]));
    }
  }

  // The results of several matrices, or the parts of the result of the matrix that holds their rows.
  std::vector<Vector> projections(const std::string& at,
                                  std::initializer_list<const char*> names,
                                  const std::string& fused,
                                  const Vector& x) const {
    std::vector<Vector> parts;
    if (!c_.fused_projections) {
      for (const char* name : names) parts.push_back(linear(at + name + "_proj", x));
      return parts;
    }
    const Vector all = linear(at + fused + "_proj", x);
    const auto width =
        static_cast<long>(fused == "qkv" ? c_.n_kv_heads * c_.head_dim : c_.hidden_dim);
    const auto first = static_cast<long>(all.size()) - width * static_cast<long>(names.size() - 1);
    parts.emplace_back(all.begin(), all.begin() + first);
    for (long begin = first; begin < static_cast<long>(all.size()); begin += width)
      parts.emplace_back(all.begin() + begin, all.begin() + begin + width);
    return parts;
  }

  double activated(double x) const {
    if (c_.gate == kernels::Gate::Silu) return x / (1 + std::exp(-x));
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }

  // x += m y, or x += m norm(y) with post norms
  void add(Vector& x, const std::string& post_norm, const Vector& y) const {
    const Vector z = c_.post_norms ? normed(post_norm, y) : y;
    for (std::size_t i = 0; i < x.size(); i++) x[i] += c_.residual_multiplier * z[i];
  }

  const ModelConfig& c_;
  const MemoryTensors& t_;
};

}  // namespace

std::vector<std::vector<double>> reference_logits(const TestModel& model,
                                                  std::span<const TokenId> tokens) {
  return Reference(model).logits(tokens);
}

}  // namespace engine::test
