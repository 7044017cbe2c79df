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
        x[i][j] = table[static_cast<std::size_t>(tokens[i]) * dim + j];
    for (int l = 0; l < c_.n_layers; l++) layer(l, x);
    const std::string head = c_.tied_embeddings ? "model.embed_tokens" : "lm_head";
    std::vector<Vector> out;
    for (const Vector& row : x) out.push_back(linear(head, normed("model.norm", row)));
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

  Vector normed(const std::string& name, const Vector& x) const {
    double sum = 0;
    for (const double v : x) sum += v * v;
    const double root = std::sqrt(sum / static_cast<double>(x.size()) + c_.norm_eps);
    Vector y(x.size());
    for (std::size_t i = 0; i < x.size(); i++) y[i] = x[i] / root * data(name + ".weight")[i];
    return y;
  }

  // Rotates the pairs (i, i + head_dim / 2) of a head.
  void turn(Vector& x, int pos) const {
    const auto half = static_cast<std::size_t>(c_.head_dim / 2);
    const Vector frequency = rope_frequencies(c_.rope, c_.head_dim, pos + 1);
    const double factor = rope_attention_factor(c_.rope);
    for (std::size_t head = 0; head < x.size(); head += 2 * half)
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
        weight.push_back(dot / std::sqrt(static_cast<double>(head_dim)));
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
      q.push_back(linear(at + "self_attn.q_proj", h));
      k.push_back(linear(at + "self_attn.k_proj", h));
      v.push_back(linear(at + "self_attn.v_proj", h));
      turn(q.back(), static_cast<int>(pos));
      turn(k.back(), static_cast<int>(pos));
    }
    for (std::size_t pos = 0; pos < x.size(); pos++) {
      add(x[pos], linear(at + "self_attn.o_proj", attend(q[pos], k, v, pos, window)));
      const Vector h = normed(at + "post_attention_layernorm", x[pos]);
      Vector gate = linear(at + "mlp.gate_proj", h);
      const Vector up = linear(at + "mlp.up_proj", h);
      for (std::size_t i = 0; i < gate.size(); i++) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
      add(x[pos], linear(at + "mlp.down_proj", gate));
    }
  }

  static void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); i++) x[i] += y[i];
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
