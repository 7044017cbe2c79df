// Attention in training and its backward on CUDA devices, against double loops: packed sequences,
// chains that see a prefix, padding, grouped heads, head sizes on both sides of the tile widths.
#include <cmath>

#include "tests/kernels/cuda/train/kit.h"

namespace kernels::test {
namespace {

// Texts of 19, 1 and 40 rows with padding between and after them. In the last text, rows 30 on are
// chains after its row 9; they do not attend to rows 10 to 29.
std::vector<AttentionSpan> texts_and_chains() {
  std::vector<AttentionSpan> spans(69);
  for (int row = 0; row < 69; row++) spans[row] = {row, row, row + 1, row};
  for (int row = 0; row < 19; row++) spans[row] = {0, 0, 0, 19};
  spans[21] = {21, 21, 21, 22};
  for (int row = 24; row < 64; row++) spans[row] = {24, 24, 24, 64};
  for (int row = 54; row < 64; row++) spans[row] = {24, 24 + 10, 54 + (row - 54) / 4 * 4, 64};
  return spans;
}
bool sees(const AttentionSpan& s, int row, int other) {
  return (other >= s.begin && other < s.prefix_end) || (other >= s.own_begin && other <= row);
}

struct Exact {
  std::vector<double> out, lse, d_qkv;
};
// The definition computed in double. d_out is the gradient of the rounded `out`.
Exact attention_in_double(const AttentionRows& h,
                          const std::vector<AttentionSpan>& spans,
                          const std::vector<float>& qkv,
                          const std::vector<float>& d_out) {
  const int width = (h.n_heads + 2 * h.n_kv_heads) * h.head_dim, dim = h.head_dim;
  const double scale = 1 / std::sqrt(double(dim));
  Exact e{std::vector<double>(h.n_rows * h.n_heads * dim),
          std::vector<double>(h.n_rows * h.n_heads), std::vector<double>(qkv.size())};
  for (int head = 0; head < h.n_heads; head++) {
    const int kv = head / (h.n_heads / h.n_kv_heads);
    const auto q = [&](int row) { return row * width + head * dim; };
    const auto k = [&](int row) { return row * width + (h.n_heads + kv) * dim; };
    const auto v = [&](int row) { return row * width + (h.n_heads + h.n_kv_heads + kv) * dim; };
    for (int row = 0; row < h.n_rows; row++) {
      std::vector<double> p(h.n_rows);
      double total = 0, dot = 0;
      for (int t = 0; t < h.n_rows; t++) {
        if (!sees(spans[row], row, t)) continue;
        double score = 0;
        for (int d = 0; d < dim; d++) score += double(qkv[q(row) + d]) * qkv[k(t) + d];
        total += p[t] = std::exp(score * scale);
      }
      if (total == 0) continue;
      e.lse[row * h.n_heads + head] = std::log(total);
      const int out = (row * h.n_heads + head) * dim;
      for (int t = 0; t < h.n_rows; t++) {
        p[t] /= total;
        for (int d = 0; d < dim; d++) e.out[out + d] += p[t] * qkv[v(t) + d];
      }
      for (int d = 0; d < dim; d++) dot += e.out[out + d] * d_out[out + d];
      for (int t = 0; t < h.n_rows; t++) {
        if (p[t] == 0) continue;
        double d_p = 0;
        for (int d = 0; d < dim; d++) d_p += double(d_out[out + d]) * qkv[v(t) + d];
        const double d_s = p[t] * (d_p - dot) * scale;
        for (int d = 0; d < dim; d++) {
          e.d_qkv[q(row) + d] += d_s * qkv[k(t) + d];
          e.d_qkv[k(t) + d] += d_s * qkv[q(row) + d];
          e.d_qkv[v(t) + d] += p[t] * d_out[out + d];
        }
      }
    }
  }
  return e;
}

class CudaTrainAttention : public ::testing::TestWithParam<TrainCase> {};
INSTANTIATE_TEST_SUITE_P(Types,
                         CudaTrainAttention,
                         ::testing::ValuesIn(train_cases()),
                         name_of_train_case);

TEST_P(CudaTrainAttention, forward_and_backward_equal_double_loops) {
  const auto& [name, type] = GetParam();
  const OpenedCuda device(name);
  const TrainKernels& kernels = train_kernels(*device);
  const std::vector<AttentionSpan> spans = texts_and_chains();
  for (const AttentionRows h :
       {AttentionRows{69, 3, 1, 5}, {69, 2, 2, 64}, {69, 2, 1, 72}, {23, 1, 1, 256}}) {
    SCOPED_TRACE(h.head_dim);
    const int width = (h.n_heads + 2 * h.n_kv_heads) * h.head_dim,
              out_width = h.n_heads * h.head_dim;
    const auto qkv = kept_values(h.n_rows * width, 50, type),
               d_out = kept_values(h.n_rows * out_width, 51, type);
    const Exact exact = attention_in_double(h, spans, qkv, d_out);
    const TypedArray in(*device, type, qkv), d(*device, type, d_out),
        out(*device, type, std::vector<float>(d_out.size(), 7)),
        d_in(*device, type, std::vector<float>(qkv.size(), 7));
    const DeviceFloats lse(*device, std::vector<float>(h.n_rows * h.n_heads, 7));
    const DeviceList<AttentionSpan> there(*device, spans);
    kernels.attention(*device, type, h, in.data(), there.data(), out.data(), lse.data());
    kernels.attention_backward(*device, type, h, in.data(), there.data(), out.data(), d.data(),
                               lse.data(), d_in.data());
    const auto found = out.read(), logs = lse.read(), gradient = d_in.read();
    for (std::size_t i = 0; i < found.size(); i++)
      ASSERT_NEAR(found[i], exact.out[i], 5e-6 + rounding(exact.out[i], type)) << i;
    for (std::size_t i = 0; i < logs.size(); i++) ASSERT_NEAR(logs[i], exact.lse[i], 1e-5) << i;
    // In bf16 `dot` is a sum of head_dim outputs rounded to 2^-9, each times a d_out near 1: below
    // 0.02 for these sizes. It is multiplied by p k / sqrt(head_dim).
    const double loose = type == DType::F32 ? 2e-5 : 2e-2;
    for (std::size_t i = 0; i < gradient.size(); i++)
      ASSERT_NEAR(gradient[i], exact.d_qkv[i], loose + rounding(exact.d_qkv[i], type)) << i;
  }
}

TEST_P(CudaTrainAttention, a_sequence_is_batch_invariant) {
  const auto& [name, type] = GetParam();
  const OpenedCuda device(name, emulation::Watch::Once);
  const AttentionRows h{40, 2, 1, 24};
  const int width = 4 * 24;
  std::vector<AttentionSpan> spans(40);
  for (int row = 0; row < 40; row++)
    spans[row] = row < 17 ? AttentionSpan{0, 0, 0, 17} : AttentionSpan{17, 17, 17, 40};
  auto qkv = kept_values(h.n_rows * width, 52, type);
  const auto run = [&] {
    const TypedArray in(*device, type, qkv), out(*device, type, std::vector<float>(40 * 48));
    const DeviceFloats lse(*device, std::vector<float>(40 * 2));
    const DeviceList<AttentionSpan> there(*device, spans);
    train_kernels(*device).attention(*device, type, h, in.data(), there.data(), out.data(),
                                     lse.data());
    return out.read();
  };
  const auto before = run();
  for (int i = 0; i < 17 * width; i++) qkv[i] = stored(qkv[i] + 1, type);
  const auto after = run();
  EXPECT_NE(before[0], after[0]);
  for (int i = 17 * 48; i < 40 * 48; i++) ASSERT_EQ(before[i], after[i]);
}

}  // namespace
}  // namespace kernels::test
