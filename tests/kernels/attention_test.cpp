// Attention over random trees: against a double loop, and bit for bit wherever a position is
// stored, in any batch and for any split of rows among threads.
#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/error.h"
#include "tests/kernels/attention_scene.h"
#include "tests/kernels/commit_scene.h"

namespace kernels::test {
namespace {

TEST(Attention, equals_a_double_loop_over_ragged_sequences_and_trees) {
  for_each_device(
      [](Device& device) {
        for (const DType dtype : kAllDTypes) {
          for (const Heads heads : {Heads{4, 4, 64}, Heads{6, 2, 20}, Heads{4, 1, 48}}) {
            for (const int window : {0, 5, 64, 100}) {
              const Scene scene = ragged_scene(heads, dtype, 60);
              Forward forward(device, scene, rows_of(scene), prefixes_of(scene), window);
              forward.softcap = window == 64 ? 1.5f : 0;
              const std::vector<float> out = forward.attend();
              const std::size_t width = heads.n_heads * heads.head_dim;
              SquaredError error;
              for (std::size_t r = 0; r < out.size() / width; r++) {
                const std::vector<double> exact = forward.exact(r, window);
                // Scores near 1 have errors of head_dim 2^-24 sum |terms| ~ 1e-5, and so do the
                // weights; a weighted mean of values below 5 has five times that error.
                for (std::size_t i = 0; i < width; i++) {
                  ASSERT_NEAR(out[r * width + i], exact[i], 5e-5)
                      << name_of(dtype) << " head_dim " << heads.head_dim << " window " << window
                      << " row " << r;
                  error.add(out[r * width + i], exact[i]);
                }
              }
              ASSERT_LT(error.normalized(), kMostSquaredError) << name_of(dtype);
            }
          }
        }
      },
      {2});
}

// Several spans of 256 positions, which threads share. The numbers of query heads per key head give passes of one to six queries.
Scene long_scene(const Heads& heads, DType dtype) {
  return {heads,
          dtype,
          {random_seq(heads, dtype, 1000, 14, 70, 31), random_seq(heads, dtype, 511, 2, 70, 32),
           random_seq(heads, dtype, 256, 1, 70, 33)}};
}

TEST(Attention, equals_a_double_loop_over_many_spans) {
  for_each_device(
      [](Device& device) {
        for (const DType dtype : kAllDTypes) {
          const Heads heads{6, 2, 40};
          const Scene scene = long_scene(heads, dtype);
          for (const int window : {0, 300}) {
            Forward forward(device, scene, rows_of(scene), prefixes_of(scene), window);
            const std::vector<float> out = forward.attend();
            const std::size_t width = heads.n_heads * heads.head_dim;
            for (std::size_t r = 0; r < out.size() / width; r++) {
              const std::vector<double> exact = forward.exact(r, window);
              for (std::size_t i = 0; i < width; i++)
                ASSERT_NEAR(out[r * width + i], exact[i], 5e-5)
                    << name_of(dtype) << " window " << window << " row " << r;
            }
          }
        }
      },
      {1, 3});
}

TEST(Attention, attention_weights_equal_a_double_loop) {
  for_each_device(
      [](Device& device) {
        for (const DType dtype : kAllDTypes) {
          for (const Heads heads : {Heads{4, 4, 64}, Heads{6, 2, 20}}) {
            for (const int sees : {0, 5, 100}) {
              const Scene scene = ragged_scene(heads, dtype, 60);
              const std::vector<RowOf> rows = rows_of(scene);
              Forward forward(device, scene, rows, prefixes_of(scene), sees);
              forward.softcap = sees == 5 ? 0.7f : 0;
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

// One layout of heads with one storage type: sequences of several lengths together, and each alone.
struct Batch {
  Scene together;
  std::vector<Scene> apart;  // [n_seqs], one sequence each
  int window;

  Batch(Scene scene, int sees) : together(std::move(scene)), window(sees) {
    for (const Scene::Seq& seq : together.seqs)
      apart.push_back({together.heads, together.dtype, {seq}});
  }
};

std::vector<float> in_random_order(Device& device,
                                   const Batch& batch,
                                   const std::vector<RowOf>& rows,
                                   std::size_t width,
                                   std::uint32_t seed) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  std::vector<RowOf> shuffled;
  for (const std::size_t i : order) shuffled.push_back(rows[i]);
  const Scene& scene = batch.together;
  const std::vector<float> out =
      Forward(device, scene, shuffled, prefixes_of(scene), batch.window).attend();
  std::vector<float> in_order(out.size());
  for (std::size_t i = 0; i < order.size(); i++)
    std::copy_n(&out[i * width], width, &in_order[order[i] * width]);
  return in_order;
}

// A row with its ancestors alone, without the other sequences.
std::vector<float> alone(Device& device, const Batch& batch, RowOf row, std::size_t width) {
  const Scene& scene = batch.apart[row.seq];
  std::vector<RowOf> chain;
  for (int i = row.node; i >= scene.seqs[0].n_prefix; i = scene.seqs[0].nodes[i].parent)
    chain.push_back({0, i});
  std::vector<float> out = Forward(device, scene, chain, prefixes_of(scene), batch.window).attend();
  out.resize(width);
  return out;
}

void expect_batch_invariant(const Batch& batch, const Ops& ops) {
  const Scene& scene = batch.together;
  const std::size_t width = scene.heads.n_heads * scene.heads.head_dim;
  const auto rows = rows_of(scene);
  const auto one = open_cpu(1, ops), three = open_cpu(3, ops);
  const std::vector<float> all =
      Forward(*one, scene, rows, prefixes_of(scene), batch.window).attend();
  for (Device* device : {one.get(), three.get()}) {
    const auto shuffled = in_random_order(*device, batch, rows, width, device->n_threads());
    for (std::size_t r = 0; r < rows.size(); r++)
      ASSERT_EQ(0, std::memcmp(&shuffled[r * width], &all[r * width], 4 * width)) << "row " << r;
  }
  for (std::size_t r = 0; r < rows.size(); r += 13) {
    for (Device* device : {one.get(), three.get()}) {
      const auto out = alone(*device, batch, rows[r], width);
      ASSERT_EQ(0, std::memcmp(out.data(), &all[r * width], 4 * width)) << "row " << r << " alone";
    }
  }
}

void expect_same_bits_in_every_set(const Batch& batch) {
  const Heads& heads = batch.together.heads;
  for (const Ops* ops : all_cpu_ops()) {
    SCOPED_TRACE(std::string(ops->name) + " " + std::string(name_of(batch.together.dtype)) +
                 ", heads " + std::to_string(heads.n_heads) + "/" +
                 std::to_string(heads.n_kv_heads) + " of " + std::to_string(heads.head_dim));
    expect_batch_invariant(batch, *ops);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Attention, is_batch_invariant_for_any_thread_count) {
  struct Layout {
    Heads heads;
    int window;
  };
  // One, two, three and five query heads per key head; sizes that do not fill a vector.
  const Layout layouts[] = {
      {{4, 4, 64}, 0}, {{4, 2, 36}, 70}, {{6, 2, 80}, 0}, {{5, 1, 17}, 0}, {{2, 2, 33}, 50}};
  for (const auto& [heads, window] : layouts) {
    for (const DType dtype : kAllDTypes) {
      expect_same_bits_in_every_set({ragged_scene(heads, dtype, 70), window});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Attention, is_batch_invariant_over_many_spans) {
  for (const Heads heads : {Heads{9, 3, 16}, Heads{5, 1, 20}, Heads{4, 2, 32}}) {
    for (const DType dtype : kAllDTypes) {
      for (const int window : {0, 300}) {
        expect_same_bits_in_every_set({long_scene(heads, dtype), window});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// A cache of type q8_0 is an f32 cache of multiples of its scales.
TEST(Attention, q8_0_cache_equals_an_f32_cache_of_its_values) {
  for_each_device([](Device& device) {
    for (const Heads heads : {Heads{4, 2, 64}, Heads{6, 1, 32}, Heads{2, 2, 96}}) {
      for (Scene scene : {ragged_scene(heads, DType::Q8_0, 60), long_scene(heads, DType::Q8_0)}) {
        for (const int window : {0, 70}) {
          Forward q8(device, scene, rows_of(scene), prefixes_of(scene), window);
          Scene wide = scene;
          wide.dtype = DType::F32;
          Forward f32(device, wide, rows_of(scene), prefixes_of(scene), window);
          ASSERT_EQ(q8.attend(), f32.attend()) << "head_dim " << heads.head_dim;
          for (int r = 0; r < q8.n_rows(); r += 7) {
            const std::vector<float> weights = q8.weights(r), expected = f32.weights(r);
            ASSERT_EQ(weights.size(), expected.size());
            for (std::size_t i = 0; i < weights.size(); i++)
              ASSERT_NEAR(weights[i], expected[i], 1e-6) << "row " << r;
          }
        }
      }
    }
  });
}

TEST(Attention, q8_0_cache_is_batch_invariant) {
  for (const Heads heads : {Heads{4, 2, 64}, Heads{5, 1, 32}}) {
    expect_same_bits_in_every_set({ragged_scene(heads, DType::Q8_0, 70), 0});
    expect_same_bits_in_every_set({long_scene(heads, DType::Q8_0), 300});
    if (HasFatalFailure()) return;
  }
}

// Values and scale of each group of a staged row: int8 [64], then f16 [2].
TEST(Attention, q8_0_cache_rounds_to_the_nearest_multiple) {
  const auto device = open_cpu(1);
  const int dim = 64, n = 40;
  std::vector<float> x = normal_values(n * dim, 41);
  for (int i = 0; i < 32; i++) x[i] = 0;  // a scale of 0
  x[dim] = kNan;
  x[2 * dim + 40] = std::numeric_limits<float>::infinity();
  std::vector<char> staged(n * cache_bytes(DType::Q8_0, dim));
  device->ops().kv_stage(*device, x.data(), dim, n, 1, dim, DType::Q8_0, staged.data());
  for (int at = 0; at < n * dim; at++) {
    const char* row = staged.data() + at / dim * cache_bytes(DType::Q8_0, dim);
    const int d = at % dim, first = at / kCacheGroup * kCacheGroup;
    std::uint16_t bits;
    std::memcpy(&bits, row + dim + d / kCacheGroup * 2, 2);
    const float scale = f32_from_f16(bits);
    float most = 0;
    bool finite = true;
    for (int i = first; i < first + kCacheGroup; i++) {
      finite = finite && std::isfinite(x[i]);
      most = std::max(most, std::fabs(x[i]));
    }
    ASSERT_EQ(std::isfinite(scale), finite) << at;
    if (!finite) continue;
    ASSERT_EQ(scale, f32_from_f16(f16_from_f32(most / 127))) << at;
    const float value = static_cast<float>(static_cast<signed char>(row[d])) * scale;
    // Half a step, and at the largest magnitude the rounding of the scale: 127 scales 2^-11.
    ASSERT_LE(std::fabs(value - x[at]), scale * (0.5f + 127.0f / 2048)) << at;
  }
  EXPECT_THROW(cache_bytes(DType::Q8_0, 48), ContractError);
}

TEST(Attention, is_batch_invariant_among_256_rows_of_odd_lengths) {
  const Heads heads{3, 1, 23};
  for (const DType dtype : kAllDTypes) {
    const Scene scene{
        heads,
        dtype,
        {random_seq(heads, dtype, 1, 1, 70, 21), random_seq(heads, dtype, 63, 31, 70, 22),
         random_seq(heads, dtype, 65, 97, 70, 23), random_seq(heads, dtype, 129, 127, 70, 24)}};
    ASSERT_EQ(rows_of(scene).size(), 256u);
    expect_same_bits_in_every_set({scene, 77});
    if (HasFatalFailure()) return;
  }
}

TEST(Attention, cached_and_in_flight_positions_count_the_same) {
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

TEST(Attention, masked_rows_may_be_nan) {
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

TEST(Attention, rows_of_all_layers_go_to_their_slots) {
  for_each_device([](Device& device) {
    for (const DType dtype : kAllDTypes) {
      for (const CommitShape& shape :
           {CommitShape{1, 3, 10, 64}, CommitShape{3, 2, 33, 70}, CommitShape{2, 1, 130, 1}}) {
        Commit commit(device, shape, dtype);
        commit.ask();
        commit.expect_done();
      }
    }
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
  const StagedLayer both{staged.data(), staged.data()};
  ops.kv_commit(*device, &layer, &both, 1, src.data(), page.data(), slot.data(), kPageSize);
  ops.kv_copy_page(*device, layer, 2, 0);
  std::vector<float> read_k(rows.size()), read_v(rows.size());
  const int first = 0;
  ops.kv_read(*device, layer, &first, kPageSize, read_k.data(), read_v.data());
  EXPECT_EQ(read_k, rows);
  EXPECT_EQ(read_v, rows);
}

}  // namespace
}  // namespace kernels::test
