// Batch invariance of embedding, norm, activation, rope, staging and the choice of tokens, in every
// instruction set: a row has the same bits alone and among any number of rows, in any order, with
// any number of threads. Products and attention have this test in their own files.
#include <numeric>

#include "tests/kernels/kernel_test_support.h"

namespace kernels::test {
namespace {

constexpr int kRows = 256;

/// `n` distinct rows in random order.
std::vector<int> shuffled_rows(int n) {
  std::vector<int> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0);
  std::mt19937 random(static_cast<std::uint32_t>(n));
  std::shuffle(rows.begin(), rows.end(), random);
  rows.resize(static_cast<std::size_t>(n));
  return rows;
}

/// Runs every instruction set with 1 to 256 rows on one to three threads in turn.
/// @param body  (one thread, the device to compare with it, rows): checks these rows
template <class Body>
void for_any_rows(const Body& body) {
  for (const Ops* ops : all_cpu_ops()) {
    const auto one = open_cpu(1, *ops), two = open_cpu(2, *ops), three = open_cpu(3, *ops);
    Device* const devices[] = {one.get(), two.get(), three.get()};
    for (int n = 1; n <= kRows; n++) {
      SCOPED_TRACE(std::string(ops->name) + ", " + std::to_string(n) + " rows");
      body(*one, *devices[n % 3], shuffled_rows(n));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

bool same_bits(const void* a, const void* b, std::size_t n_bytes) {
  return std::memcmp(a, b, n_bytes) == 0;
}

TEST(Embed, is_batch_invariant) {
  const int vocab = 300, dim = 70;
  const auto table = normal_values(std::size_t(vocab) * dim, 1);
  for (const DType dtype : kAllDTypes) {
    for_any_rows([&](Device& one, Device& device, const std::vector<int>& rows) {
      const Packed packed = pack(device, table, vocab, dim, dtype);
      std::vector<std::int32_t> ids;
      for (const int row : rows) ids.push_back((row * 37) % vocab);
      Guarded many(ids.size() * dim), alone(dim);
      device.ops().embed(device, packed.matrix, ids.data(), int(ids.size()), many.data());
      ASSERT_TRUE(many.intact());
      for (std::size_t r = 0; r < ids.size(); r++) {
        one.ops().embed(one, packed.matrix, &ids[r], 1, alone.data());
        ASSERT_TRUE(same_bits(many.data() + r * dim, alone.data(), dim * sizeof(float))) << r;
        for (int i = 0; i < dim; i++) {
          ASSERT_EQ(alone[i], stored(table[std::size_t(ids[r]) * dim + i], dtype));
        }
      }
    });
  }
}

/// Runs an operation from [n_rows, n_in] to [n_rows, n_out] for any rows, and for each row alone.
/// @param op  (device, x, y, n_rows)
template <class Op>
void expect_batch_invariant(int n_in, int n_out, std::uint32_t seed, const Op& op) {
  const auto values = normal_values(std::size_t(kRows) * n_in, seed, 4);
  for_any_rows([&](Device& one, Device& device, const std::vector<int>& rows) {
    std::vector<float> x;
    for (const int row : rows) {
      const auto begin = values.begin() + std::ptrdiff_t(row) * n_in;
      x.insert(x.end(), begin, begin + n_in);
    }
    Guarded many(rows.size() * n_out), alone(n_out);
    op(device, x.data(), many.data(), int(rows.size()));
    ASSERT_TRUE(many.intact());
    for (std::size_t r = 0; r < rows.size(); r++) {
      op(one, &values[std::size_t(rows[r]) * n_in], alone.data(), 1);
      ASSERT_TRUE(same_bits(many.data() + r * n_out, alone.data(), n_out * sizeof(float))) << r;
    }
  });
}

TEST(RmsNorm, is_batch_invariant) {
  for (const int dim : {192, 301}) {
    const auto w = normal_values(dim, 6);
    expect_batch_invariant(dim, dim, 7, [&](Device& device, const float* x, float* y, int n) {
      device.ops().rms_norm(device, x, w.data(), y, n, dim, 1e-5f);
    });
  }
}

TEST(Glu, is_batch_invariant) {
  for (const int hidden : {96, 151}) {
    const Gate gate = hidden == 96 ? Gate::Silu : Gate::GeluTanh;
    const auto op = [&](Device& device, const float* x, float* y, int n) {
      device.ops().glu(device, gate, x, y, n, hidden);
    };
    expect_batch_invariant(2 * hidden, hidden, 8, op);
  }
}

TEST(Rope, is_batch_invariant) {
  const int n_heads = 3, head_dim = 26, width = n_heads * head_dim, stride = width + 5;
  Guarded table(normal_values(400 * head_dim, 2));
  const auto values = normal_values(std::size_t(kRows) * width, 3);
  for_any_rows([&](Device& one, Device& device, const std::vector<int>& rows) {
    const int n = int(rows.size());
    std::vector<float> many(std::size_t(n) * stride, 7.5f);
    std::vector<int> pos;
    for (int r = 0; r < n; r++) {
      std::copy_n(&values[std::size_t(rows[r]) * width], width, &many[std::size_t(r) * stride]);
      pos.push_back((rows[r] * 11) % 400);
    }
    device.ops().rope(device, many.data(), stride, n, n_heads, head_dim, pos.data(), table.data());
    for (int r = 0; r < n; r++) {
      std::vector<float> alone(values.begin() + rows[r] * width,
                               values.begin() + (rows[r] + 1) * width);
      one.ops().rope(one, alone.data(), width, 1, n_heads, head_dim, &pos[r], table.data());
      ASSERT_TRUE(same_bits(&many[std::size_t(r) * stride], alone.data(), width * sizeof(float)))
          << r;
    }
  });
}

TEST(CacheStaging, is_batch_invariant) {
  const int n_heads = 3, head_dim = 11, width = n_heads * head_dim, stride = width + 4;
  const auto values = normal_values(std::size_t(kRows) * width, 4, 30);
  for (const DType dtype : kAllDTypes) {
    const std::size_t row_bytes = std::size_t(width) * bytes_of(dtype);
    for_any_rows([&](Device& one, Device& device, const std::vector<int>& rows) {
      const int n = int(rows.size());
      std::vector<float> x(std::size_t(n) * stride);
      for (int r = 0; r < n; r++) {
        std::copy_n(&values[std::size_t(rows[r]) * width], width, &x[std::size_t(r) * stride]);
      }
      Fenced many(n * row_bytes), alone(row_bytes);
      device.ops().kv_stage(device, x.data(), stride, n, n_heads, head_dim, dtype, many.data());
      for (int r = 0; r < n; r++) {
        one.ops().kv_stage(one, &values[std::size_t(rows[r]) * width], width, 1, n_heads, head_dim,
                           dtype, alone.data());
        ASSERT_TRUE(same_bits(many.data() + r * row_bytes, alone.data(), row_bytes)) << r;
      }
    });
  }
}

constexpr int kVocab = 203;

/// Rows of every kind: equal largest logits, one NaN, and plain ones.
std::vector<float> logits_of_rows() {
  std::vector<float> logits = normal_values(std::size_t(kRows) * kVocab, 5, 3);
  for (int r = 0; r < kRows; r++) {
    float* row = &logits[std::size_t(r) * kVocab];
    if (r % 5 == 1) row[(r * 7) % kVocab] = row[(r * 3 + 1) % kVocab] = 20;
    if (r % 31 == 2) row[r % kVocab] = NAN;
  }
  return logits;
}

void expect_picks_batch_invariant(const std::vector<PickRow>& asked) {
  const std::vector<float> logits = logits_of_rows();
  const int stride = kVocab + 6;
  for_any_rows([&](Device& one, Device& device, const std::vector<int>& rows) {
    const int n = int(rows.size());
    std::vector<float> x(std::size_t(n) * stride, 1000.f);
    std::vector<PickRow> pick_rows;
    for (int r = 0; r < n; r++) {
      std::copy_n(&logits[std::size_t(rows[r]) * kVocab], kVocab, &x[std::size_t(r) * stride]);
      pick_rows.push_back(asked[rows[r]]);
    }
    std::vector<Picked> many(rows.size());
    device.ops().pick(device, x.data(), stride, n, kVocab, kVocab - 2, pick_rows.data(),
                      many.data());
    for (int r = 0; r < n; r++) {
      Picked alone;
      one.ops().pick(one, &logits[std::size_t(rows[r]) * kVocab], kVocab, 1, kVocab, kVocab - 2,
                     &asked[rows[r]], &alone);
      ASSERT_EQ(many[r].id, alone.id) << "row " << rows[r];
      ASSERT_EQ(many[r].bad_index, alone.bad_index);
      ASSERT_EQ(bits_of(many[r].score), bits_of(alone.score));
      ASSERT_EQ(bits_of(many[r].margin), bits_of(alone.margin));
      ASSERT_EQ(bits_of(many[r].logp), bits_of(alone.logp));
    }
  });
}

TEST(Pick, argmax_is_batch_invariant) {
  expect_picks_batch_invariant(std::vector<PickRow>(kRows));
}

TEST(Pick, sampling_is_batch_invariant) {
  static const std::int32_t kHistory[] = {3, 17, 17, 200, 5};
  std::vector<PickRow> asked(kRows);
  for (int r = 0; r < kRows; r++) {
    PickRow& row = asked[r];
    row.temperature = 0.4f + 0.01f * float(r % 100);
    row.seed = std::uint64_t(r % 3) << 40 | 9;
    row.position = std::uint32_t(r / 2);  // two rows of a tree may share a position
    row.stream = std::uint32_t(r % 2);
    if (r % 3 == 1) row.top_k = 1 + r % 50;
    if (r % 4 == 1) row.top_p = 0.9f;
    if (r % 5 == 2) row.min_p = 0.05f;
    if (r % 6 != 3) continue;
    row.repetition_penalty = 1.3f;
    row.history = kHistory;
    row.n_history = 1 + r % 5;
  }
  expect_picks_batch_invariant(asked);
}

}  // namespace
}  // namespace kernels::test
