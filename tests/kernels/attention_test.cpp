// Attention over random trees: against a double loop, and bit for bit wherever a position is
// stored, whatever stands beside it, however the rows are cut among threads.
#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/kernels/kernel_test_support.h"

namespace kernels::test {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();

struct Heads {
  int n_heads, n_kv_heads, head_dim;
};

// Keys and values of one sequence by (tree node); a node is a position's content.
struct Node {
  int parent;  // -1: the first of the sequence
  int pos;
  std::vector<float> k, v, q;  // [n_kv_heads head_dim], q [n_heads head_dim]
};

// Sequences of cached prefixes with trees of rows in flight behind them.
struct Scene {
  Heads heads;
  DType dtype;
  struct Seq {
    std::vector<Node> nodes;  // the first n_prefix are a chain, cached
    int n_prefix;
  };
  std::vector<Seq> seqs;
};

Node random_node(const Heads& heads, DType dtype, int parent, int pos, std::uint32_t seed) {
  Node node{parent, pos, normal_values(heads.n_kv_heads * heads.head_dim, seed),
            normal_values(heads.n_kv_heads * heads.head_dim, seed + 1),
            normal_values(heads.n_heads * heads.head_dim, seed + 2)};
  for (float& x : node.k) x = stored(x, dtype);
  for (float& x : node.v) x = stored(x, dtype);
  return node;
}

// A prefix, then n_rows nodes; each hangs on the one before it (chance `chain` of 100) or anywhere.
Scene::Seq random_seq(
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

// A forward over some rows. `n_cached` positions of each sequence are in pages, the rest of each
// row's ancestors must be among the rows.
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

  std::vector<float> attend() {
    const Heads& h = scene_.heads;
    const int width = h.n_heads * h.head_dim;
    Guarded q((rows_.size() - 1) * (width + 3) + width, kNan);
    for (std::size_t r = 0; r < rows_.size(); r++)
      std::copy_n(node(r).q.data(), width, q.data() + r * (width + 3));
    Guarded out(rows_.size() * width);
    device_.ops().attention(device_, layer_, plan_, q.data(), width + 3, staged_k_.data(),
                            staged_v_.data(), h.n_heads, scale(), out.data(), width);
    EXPECT_TRUE(out.intact());
    return {out.data(), out.data() + rows_.size() * width};
  }
  // What a row attends to among the rows of its chain, the row itself last.
  std::vector<float> weights(int r) {
    const Node& asked = node(static_cast<std::size_t>(r));
    Guarded mean(chain_begin_[r + 1] - chain_begin_[r], kNan);
    device_.ops().attention_weights(device_, layer_, plan_, r, asked.q.data(), staged_k_.data(),
                                    scene_.heads.n_heads, scale(), mean.data());
    EXPECT_TRUE(mean.intact());
    return {mean.data(), mean.data() + (chain_begin_[r + 1] - chain_begin_[r])};
  }
  float scale() const { return 1 / std::sqrt(float(scene_.heads.head_dim)); }
  const Node& node(std::size_t r) const { return scene_.seqs[rows_[r].seq].nodes[rows_[r].node]; }

  // What a row sees, itself first.
  std::vector<const Node*> seen_by(std::size_t r, int window) const {
    const auto& nodes = scene_.seqs[rows_[r].seq].nodes;
    std::vector<const Node*> seen;
    for (int i = rows_[r].node; i >= 0; i = nodes[i].parent)
      if (!window || nodes[i].pos > node(r).pos - window) seen.push_back(&nodes[i]);
    return seen;
  }
  // softmax(q k) of one head of a row over what it sees, in double
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
      score.push_back(dot * scale());
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
    int next_page = 2;  // pages in an odd order, the first two unused
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

  // Prefix keys go through stage and commit; every other slot is NaN.
  void fill_pages() {
    const Heads& h = scene_.heads;
    const Ops& ops = device_.ops();
    const std::int64_t bytes = ops.page_bytes(scene_.dtype, h.n_kv_heads, h.head_dim);
    k_ = Fenced(n_pages_ * bytes, 64);
    v_ = Fenced(n_pages_ * bytes, 64);
    for (const Fenced* memory : {&k_, &v_})
      std::fill_n(memory->data(), n_pages_ * bytes, char(0xff));  // all ones: NaN in every type
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
      const Fenced staged_k(n * width * bytes_of(scene_.dtype)),
          staged_v(n * width * bytes_of(scene_.dtype));
      ops.kv_stage(device_, k.data(), width, n, h.n_kv_heads, h.head_dim, scene_.dtype,
                   staged_k.data());
      ops.kv_stage(device_, v.data(), width, n, h.n_kv_heads, h.head_dim, scene_.dtype,
                   staged_v.data());
      ops.kv_commit(device_, layer_, staged_k.data(), staged_v.data(), src.data(), page.data(),
                    slot.data(), n);
      Guarded read_k(k.size()), read_v(v.size());
      ops.kv_read(device_, layer_, pages_.data() + page_begin_[s], n, read_k.data(), read_v.data());
      EXPECT_TRUE(std::equal(k.begin(), k.end(), read_k.data()) && read_k.intact());
      EXPECT_TRUE(std::equal(v.begin(), v.end(), read_v.data()) && read_v.intact());
    }
  }

  void stage() {
    const Heads& h = scene_.heads;
    const int width = h.n_kv_heads * h.head_dim;
    Guarded k((rows_.size() - 1) * (width + 5) + width),
        v((rows_.size() - 1) * (width + 5) + width);
    for (std::size_t r = 0; r < rows_.size(); r++) {
      std::copy_n(node(r).k.data(), width, k.data() + r * (width + 5));
      std::copy_n(node(r).v.data(), width, v.data() + r * (width + 5));
    }
    staged_k_ = Fenced(rows_.size() * width * bytes_of(scene_.dtype));
    staged_v_ = Fenced(rows_.size() * width * bytes_of(scene_.dtype));
    const int n = int(rows_.size());
    const Ops& ops = device_.ops();
    ops.kv_stage(device_, k.data(), width + 5, n, h.n_kv_heads, h.head_dim, scene_.dtype,
                 staged_k_.data());
    ops.kv_stage(device_, v.data(), width + 5, n, h.n_kv_heads, h.head_dim, scene_.dtype,
                 staged_v_.data());
  }

  Device& device_;
  const Scene& scene_;
  std::vector<RowOf> rows_;
  std::vector<int> n_cached_;
  std::vector<int> seq_, pos_, page_begin_, pages_, chain_begin_, chain_;
  int n_pages_ = 0;
  RowsPlan plan_;
  KvLayer layer_;
  Fenced k_, v_, staged_k_, staged_v_;
};

std::vector<RowOf> rows_of(const Scene& scene) {
  std::vector<RowOf> rows;
  for (int s = 0; s < int(scene.seqs.size()); s++)
    for (int i = scene.seqs[s].n_prefix; i < int(scene.seqs[s].nodes.size()); i++)
      rows.push_back({s, i});
  return rows;
}
std::vector<int> prefixes_of(const Scene& scene) {
  std::vector<int> n;
  for (const auto& seq : scene.seqs) n.push_back(seq.n_prefix);
  return n;
}
Scene ragged_scene(const Heads& heads, DType dtype, int chain) {
  return {
      heads,
      dtype,
      {random_seq(heads, dtype, 0, 7, chain, 11), random_seq(heads, dtype, 61, 20, chain, 12),
       random_seq(heads, dtype, 128, 9, chain, 13), random_seq(heads, dtype, 200, 70, chain, 14)}};
}

TEST(Attention, agrees_with_a_double_loop_over_ragged_sequences_and_trees) {
  for_each_device(
      [](Device& device) {
        for (const DType dtype : kAllDTypes) {
          for (const Heads heads : {Heads{4, 4, 64}, Heads{6, 2, 20}, Heads{4, 1, 48}}) {
            for (const int window : {0, 5, 64, 100}) {
              const Scene scene = ragged_scene(heads, dtype, 60);
              Forward forward(device, scene, rows_of(scene), prefixes_of(scene), window);
              const std::vector<float> out = forward.attend();
              const std::size_t width = heads.n_heads * heads.head_dim;
              for (std::size_t r = 0; r < out.size() / width; r++) {
                const std::vector<double> exact = forward.exact(r, window);
                // Scores of size about 1 err by head_dim 2^-24 sum |terms| ~ 1e-5, so do weights; a
                // weighted mean of values below 5 errs by that times 5.
                for (std::size_t i = 0; i < width; i++)
                  ASSERT_NEAR(out[r * width + i], exact[i], 5e-5)
                      << name_of(dtype) << " head_dim " << heads.head_dim << " window " << window
                      << " row " << r;
              }
            }
          }
        }
      },
      {2});
}

TEST(Attention, weights_of_a_row_agree_with_a_double_loop) {
  for_each_device(
      [](Device& device) {
        for (const DType dtype : kAllDTypes) {
          for (const Heads heads : {Heads{4, 4, 64}, Heads{6, 2, 20}}) {
            for (const int sees : {0, 5, 100}) {
              const Scene scene = ragged_scene(heads, dtype, 60);
              const std::vector<RowOf> rows = rows_of(scene);
              Forward forward(device, scene, rows, prefixes_of(scene), sees);
              for (std::size_t r = 0; r < rows.size(); r += 5) {
                const std::vector<float> found = forward.weights(static_cast<int>(r));
                const auto seen = forward.seen_by(r, sees);
                std::vector<double> mean(std::max(seen.size(), found.size()));
                for (int head = 0; head < heads.n_heads; head++) {
                  const std::vector<double> weight = forward.exact_weights(r, head, seen);
                  for (std::size_t i = 0; i < seen.size(); i++)
                    mean[i] += weight[i] / heads.n_heads;
                }
                for (std::size_t i = 0; i < found.size(); i++)  // from the row itself upwards
                  ASSERT_NEAR(found[found.size() - 1 - i], mean[i], 1e-6)
                      << name_of(dtype) << " window " << sees << " row " << r;
              }
            }
          }
        }
      },
      {2});
}

// One layout of heads on one storage type: sequences of several lengths together, and each alone.
struct Company {
  Scene together;
  std::vector<Scene> apart;  // [n_seqs], one sequence each
  int window;

  Company(const Heads& heads, DType dtype, int sees)
      : together(ragged_scene(heads, dtype, 70)), window(sees) {
    for (const Scene::Seq& seq : together.seqs) apart.push_back({heads, dtype, {seq}});
  }
};

std::vector<float> in_random_order(Device& device,
                                   const Company& company,
                                   const std::vector<RowOf>& rows,
                                   std::size_t width,
                                   std::uint32_t seed) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  std::vector<RowOf> shuffled;
  for (const std::size_t i : order) shuffled.push_back(rows[i]);
  const Scene& scene = company.together;
  const std::vector<float> out =
      Forward(device, scene, shuffled, prefixes_of(scene), company.window).attend();
  std::vector<float> in_order(out.size());
  for (std::size_t i = 0; i < order.size(); i++)
    std::copy_n(&out[i * width], width, &in_order[order[i] * width]);
  return in_order;
}

// A row with its ancestors alone, the other sequences gone.
std::vector<float> alone(Device& device, const Company& company, RowOf row, std::size_t width) {
  const Scene& scene = company.apart[row.seq];
  std::vector<RowOf> chain;
  for (int i = row.node; i >= scene.seqs[0].n_prefix; i = scene.seqs[0].nodes[i].parent)
    chain.push_back({0, i});
  std::vector<float> out =
      Forward(device, scene, chain, prefixes_of(scene), company.window).attend();
  out.resize(width);
  return out;
}

void expect_same_bits_in_any_company(const Company& company, const Ops& ops) {
  const Scene& scene = company.together;
  const std::size_t width = scene.heads.n_heads * scene.heads.head_dim;
  const auto rows = rows_of(scene);
  const auto one = open_cpu(1, ops), three = open_cpu(3, ops);
  const std::vector<float> all =
      Forward(*one, scene, rows, prefixes_of(scene), company.window).attend();
  for (Device* device : {one.get(), three.get()}) {
    const auto shuffled = in_random_order(*device, company, rows, width, device->n_threads());
    for (std::size_t r = 0; r < rows.size(); r++)
      ASSERT_EQ(0, std::memcmp(&shuffled[r * width], &all[r * width], 4 * width)) << "row " << r;
  }
  for (std::size_t r = 0; r < rows.size(); r += 13) {
    const auto out = alone(*one, company, rows[r], width);
    ASSERT_EQ(0, std::memcmp(out.data(), &all[r * width], 4 * width)) << "row " << r << " alone";
  }
}

TEST(Attention, a_row_has_the_same_bits_in_any_company_order_and_number_of_threads) {
  struct Layout {
    Heads heads;
    int window;
  };
  // Every head its own keys; two, three and five heads on one; sizes that fill no vector.
  const Layout layouts[] = {
      {{4, 4, 64}, 0}, {{4, 2, 36}, 70}, {{6, 2, 80}, 0}, {{5, 1, 17}, 0}, {{2, 2, 33}, 50}};
  for (const auto& [heads, window] : layouts) {
    for (const DType dtype : kAllDTypes) {
      const Company company(heads, dtype, window);
      for (const Ops* ops : all_cpu_ops()) {
        SCOPED_TRACE(std::string(ops->name) + " " + std::string(name_of(dtype)) + ", heads " +
                     std::to_string(heads.n_heads) + "/" + std::to_string(heads.n_kv_heads) +
                     " of " + std::to_string(heads.head_dim));
        expect_same_bits_in_any_company(company, *ops);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Attention, a_position_counts_the_same_cached_or_in_flight) {
  for_each_device([](Device& device) {
    for (const DType dtype : kAllDTypes) {
      for (const int window : {0, 50}) {
        const Heads heads{4, 2, 64};
        const Scene scene{heads, dtype, {random_seq(heads, dtype, 150, 1, 100, 15)}};
        const std::vector<float> all_cached =
            Forward(device, scene, {{0, 150}}, {150}, window).attend();
        for (const int n_cached : {149, 130, 128, 127, 64, 63, 1, 0}) {
          std::vector<RowOf> rows;
          for (int i = n_cached; i <= 150; i++) rows.push_back({0, i});
          const std::vector<float> out = Forward(device, scene, rows, {n_cached}, window).attend();
          const std::size_t width = heads.n_heads * heads.head_dim;
          ASSERT_EQ(0, std::memcmp(&out[(rows.size() - 1) * width], all_cached.data(), 4 * width))
              << name_of(dtype) << " cached " << n_cached << " window " << window;
        }
      }
    }
  });
}

TEST(Attention, what_a_row_does_not_see_may_be_nan) {
  for_each_device([](Device& device) {
    const Heads heads{2, 1, 32};
    Scene scene{heads, DType::F32, {random_seq(heads, DType::F32, 70, 30, 50, 16)}};
    auto& nodes = scene.seqs[0].nodes;
    const auto rows = rows_of(scene);
    const std::size_t width = heads.n_heads * heads.head_dim;
    const std::vector<float> clean = Forward(device, scene, rows, {70}, 0).attend();
    const int poisoned = 84;
    for (auto* values : {&nodes[poisoned].k, &nodes[poisoned].v})
      std::fill(values->begin(), values->end(), kNan);
    const std::vector<float> out = Forward(device, scene, rows, {70}, 0).attend();
    int n_blind = 0;
    for (std::size_t r = 0; r < rows.size(); r++) {
      bool sees = false;
      for (int i = rows[r].node; i >= 0; i = nodes[i].parent) sees |= i == poisoned;
      const bool same = !std::memcmp(&out[r * width], &clean[r * width], 4 * width);
      ASSERT_EQ(same, !sees) << "row " << r;
      n_blind += !sees;
    }
    ASSERT_GT(n_blind, 5);
  });
}

TEST(Attention, a_copied_page_reads_the_same) {
  const auto device = open_cpu(1);
  const Ops& ops = device->ops();
  const int n_kv = 3, dim = 10;
  const std::int64_t bytes = ops.page_bytes(DType::F16, n_kv, dim);
  std::vector<char> k(3 * (bytes + 64), 0), v(k);
  const KvLayer layer{k.data(), v.data(), bytes + 64, n_kv, dim, DType::F16};
  std::vector<float> rows = normal_values(kPageSize * n_kv * dim, 17);
  for (float& x : rows) x = stored(x, DType::F16);
  std::vector<std::uint16_t> staged(rows.size());
  ops.kv_stage(*device, rows.data(), n_kv * dim, kPageSize, n_kv, dim, DType::F16, staged.data());
  std::vector<int> src(kPageSize), page(kPageSize, 2), slot(kPageSize);
  std::iota(src.begin(), src.end(), 0);
  slot = src;
  ops.kv_commit(*device, layer, staged.data(), staged.data(), src.data(), page.data(), slot.data(),
                kPageSize);
  ops.kv_copy_page(*device, layer, 2, 0);
  std::vector<float> read_k(rows.size()), read_v(rows.size());
  const int first = 0;
  ops.kv_read(*device, layer, &first, kPageSize, read_k.data(), read_v.data());
  EXPECT_EQ(read_k, rows);
  EXPECT_EQ(read_v, rows);
}

}  // namespace
}  // namespace kernels::test
