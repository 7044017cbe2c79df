#include "engine/model/head_rows.h"

namespace engine {

kernels::DeviceBuffer on_device(kernels::Device& device, std::span<const float> values) {
  const auto bytes = static_cast<std::int64_t>(values.size_bytes());
  kernels::DeviceBuffer buffer(device, bytes, "draft heads");
  device.ops().upload(device, buffer.data(), values.data(), bytes);
  return buffer;
}

std::vector<float> download_rows(
    kernels::Device& device, const float* rows, std::int64_t stride, int n_rows, int n) {
  std::vector<float> host(static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(n));
  std::vector<void*> to;
  for (int r = 0; r < n_rows; r++) to.push_back(host.data() + std::int64_t{r} * n);
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));
  device.ops().download_rows(device, to.data(), rows, kBytes * n, kBytes * stride, n_rows);
  return host;
}

std::vector<RankedTokens> ranked_rows(
    kernels::Device& device, const float* logits, int n_rows, int n_vocab, int n_valid, int k) {
  const std::vector<kernels::PickRow> rows(static_cast<std::size_t>(n_rows));
  std::vector<kernels::Ranking> rankings(rows.size());
  std::vector<kernels::RankedToken> tokens(rows.size() * static_cast<std::size_t>(k));
  device.ops().rank(device, logits, n_vocab, n_rows, n_vocab, n_valid, rows.data(), k,
                    rankings.data(), tokens.data());
  std::vector<RankedTokens> ranked;
  for (std::size_t r = 0; r < rows.size(); r++)
    ranked.push_back(
        ranked_of(rankings[r], tokens.data() + r * static_cast<std::size_t>(k), /*temperature=*/1));
  return ranked;
}

SiluRows::SiluRows(kernels::Device& device, int n_rows, int dim) : device_(device), dim_(dim) {
  const std::vector<float> ones(
      static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(2 * dim), 1.0f);
  in_ = on_device(device, ones);
  out_ = kernels::DeviceBuffer(
      device, static_cast<std::int64_t>(sizeof(float)) * n_rows * std::int64_t{dim}, "draft heads");
}

const float* SiluRows::apply(int n) {
  device_.ops().glu(device_, kernels::Gate::Silu, in_.f32(), out_.f32(), n, dim_);
  return out_.f32();
}

void SiluRows::apply_and_multiply(int n, const kernels::Projection& to) {
  device_.ops().glu_matmul(device_, kernels::Gate::Silu, in_.f32(), out_.f32(), n, to);
}

}  // namespace engine
