// Random trees of rows after cached prefixes, for tests of attention: masks, calls to a device, and
// the double loop as reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/unfused.h"
#include "tests/kernels/kernel_test_support.h"

namespace kernels::test {

inline const float kNan = std::numeric_limits<float>::quiet_NaN();

struct Heads {
  int n_heads, n_kv_heads, head_dim;
};

// Keys and values of one tree node of a sequence.
struct Node {
  int parent;  // -1: the first of the sequence
  int pos;
  std::vector<float> k, v, q;  // [n_kv_heads head_dim], q [n_heads head_dim]
};

// Sequences with cached prefixes and trees of rows in flight.
struct Scene {
  Heads heads;
  DType dtype;
  struct Seq {
    std::vector<Node> nodes;  // the first n_prefix are a cached chain
    int n_prefix;
  };
  std::vector<Seq> seqs;
};

// Rounds the values of a position as a cache of this type does.
inline void round_to_cache(std::vector<float>& row, DType dtype) {
  if (dtype != DType::Q8_0) {
    for (float& x : row) x = stored(x, dtype);
    return;
  }
  for (std::size_t first = 0; first < row.size(); first += kCacheGroup) {
    float most = 0;
    for (std::size_t i = first; i < first + kCacheGroup; i++)
      most = std::max(most, std::fabs(row[i]));
    const float scale = f32_from_f16(f16_from_f32(most / 127));
    for (std::size_t i = first; i < first + kCacheGroup; i++)
      row[i] = scale * std::clamp(std::nearbyint(row[i] / scale), -127.0f, 127.0f);
  }
}

inline Node random_node(const Heads& heads, DType dtype, int parent, int pos, std::uint32_t seed) {
  Node node{parent, pos, normal_values(heads.n_kv_heads * heads.head_dim, seed),
            normal_values(heads.n_kv_heads * heads.head_dim, seed + 1),
            normal_values(heads.n_heads * heads.head_dim, seed + 2)};
  round_to_cache(node.k, dtype);
  round_to_cache(node.v, dtype);
  return node;
}

// A prefix, then n_rows nodes; each node's parent is the one before it (with a chance of `chain`
// percent) or any earlier node.
inline Scene::Seq random_seq(
    const Heads& heads, DType dtype, int n_prefix, int n_rows, int chain, std::uint32_t seed) {
  std::mt19937 random(seed);
  Scene::Seq seq;
  seq.n_prefix = n_prefix;
  for (int i = 0; i < n_prefix + n_rows; i++) {
    int parent = i - 1;
    if (i > n_prefix && int(random() % 100) >= chain)
      parent = n_prefix - 1 + int(random() % (i - n_prefix + 1));
    const int pos = parent < 0 ? 0 : seq.nodes[parent].pos + 1;
    seq.nodes.push_back(random_node(heads, dtype, parent, pos, seed * 7919 + 3 * i));
  }
  return seq;
}

// One row of a forward: a node of a sequence.
struct RowOf {
  int seq, node;
};

// A forward over some rows. `n_cached` positions of each sequence are in pages; the other ancestors
// of each row must be among the rows.
class Forward {
 public:
  Forward(Device& device,
          const Scene& scene,
          std::vector<RowOf> rows,
          std::vector<int> n_cached,
          int window)
      : device_(device), scene_(scene), rows_(std::move(rows)), n_cached_(std::move(n_cached)) {
    plan(window);
    fill_pages();
    stage();
  }

  int width() const { return scene_.heads.n_heads * scene_.heads.head_dim; }
  int n_rows() const { return int(rows_.size()); }
  DeviceFloats queries() const {
    std::vector<float> values((rows_.size() - 1) * (width() + 3) + width(), kNan);
    for (std::size_t r = 0; r < rows_.size(); r++)
      std::copy_n(node(r).q.data(), width(), values.data() + r * (width() + 3));
    return {device_, values};
  }
  /// @param q  from queries();  out [n_rows, width] with a stride
  void attend(const DeviceFloats& q, float* out, std::int64_t stride) {
    device_.ops().attention(device_, layer_, plan_, q.data(), width() + 3, staged_k_.data(),
                            staged_v_.data(), scene_.heads.n_heads, scores(), out, stride);
  }
  /// Attention, then a product with its output: fused, or as the sequence of operations.
  /// @param out  [n_rows, width]
  void attend_and_multiply(const DeviceFloats& q, float* out, const Projection& to, bool fused) {
    const auto run = fused ? device_.ops().attention_matmul : unfused::attention_matmul;
    run(device_, layer_, plan_, q.data(), width() + 3, staged_k_.data(), staged_v_.data(),
        scene_.heads.n_heads, scores(), out, to);
  }
  std::vector<float> attend() {
    const DeviceFloats q = queries();
    const DeviceFloats out(device_, std::vector<float>(rows_.size() * width()));
    attend(q, out.data(), width());
    return out.read();
  }
  // Attention weights of a row over the rows of its chain, ending with the row itself.
  std::vector<float> weights(int r) {
    const DeviceFloats q(device_, node(static_cast<std::size_t>(r)).q);
    const DeviceFloats mean(
        device_, std::vector<float>(std::size_t(chain_begin_[r + 1] - chain_begin_[r]), kNan));
    device_.ops().attention_weights(device_, layer_, plan_, r, q.data(), staged_k_.data(),
                                    scene_.heads.n_heads, scores(), mean.data());
    return mean.read();
  }
  Scores scores() const {
    return {.scale = 1 / std::sqrt(float(scene_.heads.head_dim)), .softcap = softcap};
  }
  float softcap = 0;
  const Node& node(std::size_t r) const { return scene_.seqs[rows_[r].seq].nodes[rows_[r].node]; }

  // The nodes that a row attends to, starting with itself.
  std::vector<const Node*> seen_by(std::size_t r, int window) const {
    const auto& nodes = scene_.seqs[rows_[r].seq].nodes;
    std::vector<const Node*> seen;
    for (int i = rows_[r].node; i >= 0; i = nodes[i].parent)
      if (!window || nodes[i].pos > node(r).pos - window) seen.push_back(&nodes[i]);
    return seen;
  }
  // softmax(q k) of one head of a row over the nodes it attends to, in double
  std::vector<double> exact_weights(std::size_t r,
                                    int head,
                                    const std::vector<const Node*>& seen) const {
    const Heads& h = scene_.heads;
    const int kv = head / (h.n_heads / h.n_kv_heads) * h.head_dim;
    std::vector<double> score;
    for (const Node* other : seen) {
      double dot = 0;
      for (int d = 0; d < h.head_dim; d++)
        dot += double(node(r).q[head * h.head_dim + d]) * other->k[kv + d];
      dot *= scores().scale;
      score.push_back(softcap > 0 ? softcap * std::tanh(dot / softcap) : dot);
    }
    const double top = *std::max_element(score.begin(), score.end());
    double total = 0;
    for (double& s : score) total += s = std::exp(s - top);
    for (double& s : score) s /= total;
    return score;
  }
  // softmax(q k) v of a row over its ancestors, in double; [n_heads head_dim]
  std::vector<double> exact(std::size_t r, int window) const {
    const Heads& h = scene_.heads;
    const std::vector<const Node*> seen = seen_by(r, window);
    std::vector<double> out(h.n_heads * h.head_dim, 0);
    for (int head = 0; head < h.n_heads; head++) {
      const int kv = head / (h.n_heads / h.n_kv_heads) * h.head_dim;
      const std::vector<double> weight = exact_weights(r, head, seen);
      for (std::size_t i = 0; i < seen.size(); i++)
        for (int d = 0; d < h.head_dim; d++)
          out[head * h.head_dim + d] += weight[i] * seen[i]->v[kv + d];
    }
    return out;
  }

 private:
  void plan(int window) {
    const int n_seqs = int(scene_.seqs.size());
    int next_page = 2;  // pages in a shuffled order, the first two unused
    for (int s = 0; s < n_seqs; s++) {
      page_begin_.push_back(int(pages_.size()));
      for (int i = 0; i < (n_cached_[s] + kPageSize - 1) / kPageSize; i++)
        pages_.push_back(next_page++);
      std::reverse(pages_.begin() + page_begin_.back(), pages_.end());
    }
    page_begin_.push_back(int(pages_.size()));
    n_pages_ = next_page;
    for (std::size_t r = 0; r < rows_.size(); r++) {
      seq_.push_back(rows_[r].seq);
      pos_.push_back(node(r).pos);
      chain_begin_.push_back(int(chain_.size()));
      std::vector<int> up;
      for (int i = rows_[r].node; i >= n_cached_[rows_[r].seq];
           i = scene_.seqs[rows_[r].seq].nodes[i].parent)
        up.push_back(row_of(rows_[r].seq, i));
      chain_.insert(chain_.end(), up.rbegin(), up.rend());
    }
    chain_begin_.push_back(int(chain_.size()));
    plan_ = {
        int(rows_.size()),  n_seqs,        seq_.data(),         pos_.data(),   n_cached_.data(),
        page_begin_.data(), pages_.data(), chain_begin_.data(), chain_.data(), window};
  }
  int row_of(int seq, int node_index) const {
    for (std::size_t r = 0; r < rows_.size(); r++)
      if (rows_[r].seq == seq && rows_[r].node == node_index) return int(r);
    ADD_FAILURE() << "an ancestor is missing";
    return 0;
  }

  // Prefix keys are staged and committed; every other slot is NaN.
  void fill_pages() {
    const Heads& h = scene_.heads;
    const Ops& ops = device_.ops();
    const std::int64_t bytes = ops.page_bytes(scene_.dtype, h.n_kv_heads, h.head_dim);
    k_ = DeviceMemory(device_, n_pages_ * bytes, 64);
    v_ = DeviceMemory(device_, n_pages_ * bytes, 64);
    const std::vector<char> ones(n_pages_ * bytes, char(0xff));  // NaN in every type
    k_.write(ones.data());
    v_.write(ones.data());
    layer_ = {k_.data(), v_.data(), bytes, h.n_kv_heads, h.head_dim, scene_.dtype};
    for (std::size_t s = 0; s < scene_.seqs.size(); s++) {
      const int n = n_cached_[s], width = h.n_kv_heads * h.head_dim;
      if (!n) continue;
      std::vector<float> k, v;
      std::vector<int> src, page, slot;
      for (int i = 0; i < n; i++) {
        const Node& cached = scene_.seqs[s].nodes[i];
        k.insert(k.end(), cached.k.begin(), cached.k.end());
        v.insert(v.end(), cached.v.begin(), cached.v.end());
        src.push_back(i);
        page.push_back(pages_[page_begin_[s] + i / kPageSize]);
        slot.push_back(i % kPageSize);
      }
      const DeviceMemory staged_k = staged(k, width, n), staged_v = staged(v, width, n);
      const StagedLayer both{staged_k.data(), staged_v.data()};
      ops.kv_commit(device_, &layer_, &both, 1, src.data(), page.data(), slot.data(), n);
      Guarded read_k(k.size()), read_v(v.size());
      ops.kv_read(device_, layer_, pages_.data() + page_begin_[s], n, read_k.data(), read_v.data());
      EXPECT_TRUE(std::equal(k.begin(), k.end(), read_k.data()) && read_k.intact());
      EXPECT_TRUE(std::equal(v.begin(), v.end(), read_v.data()) && read_v.intact());
    }
  }

  DeviceMemory staged(const std::vector<float>& values, int stride, int n) {
    const Heads& h = scene_.heads;
    const DeviceFloats x(device_, values);
    DeviceMemory rows(device_,
                      std::size_t(n) * h.n_kv_heads * cache_bytes(scene_.dtype, h.head_dim));
    device_.ops().kv_stage(device_, x.data(), stride, n, h.n_kv_heads, h.head_dim, scene_.dtype,
                           rows.data());
    return rows;
  }

  void stage() {
    const int width = scene_.heads.n_kv_heads * scene_.heads.head_dim;
    std::vector<float> k((rows_.size() - 1) * (width + 5) + width), v(k.size());
    for (std::size_t r = 0; r < rows_.size(); r++) {
      std::copy_n(node(r).k.data(), width, k.data() + r * (width + 5));
      std::copy_n(node(r).v.data(), width, v.data() + r * (width + 5));
    }
    staged_k_ = staged(k, width + 5, int(rows_.size()));
    staged_v_ = staged(v, width + 5, int(rows_.size()));
  }

  Device& device_;
  const Scene& scene_;
  std::vector<RowOf> rows_;
  std::vector<int> n_cached_;
  std::vector<int> seq_, pos_, page_begin_, pages_, chain_begin_, chain_;
  int n_pages_ = 0;
  RowsPlan plan_;
  KvLayer layer_;
  DeviceMemory k_, v_, staged_k_, staged_v_;
};

inline std::vector<RowOf> rows_of(const Scene& scene) {
  std::vector<RowOf> rows;
  for (int s = 0; s < int(scene.seqs.size()); s++)
    for (int i = scene.seqs[s].n_prefix; i < int(scene.seqs[s].nodes.size()); i++)
      rows.push_back({s, i});
  return rows;
}
inline std::vector<int> prefixes_of(const Scene& scene) {
  std::vector<int> n;
  for (const auto& seq : scene.seqs) n.push_back(seq.n_prefix);
  return n;
}
inline Scene ragged_scene(const Heads& heads, DType dtype, int chain) {
  return {
      heads,
      dtype,
      {random_seq(heads, dtype, 0, 7, chain, 11), random_seq(heads, dtype, 61, 20, chain, 12),
       random_seq(heads, dtype, 128, 9, chain, 13), random_seq(heads, dtype, 200, 70, chain, 14)}};
}

}  // namespace kernels::test
