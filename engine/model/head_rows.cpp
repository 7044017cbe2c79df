#include "engine/model/head_rows.h"
#include "engine/checkpoint/shared/output_tokens.h"

#include <algorithm>
#include <limits>

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

OutputTokens::OutputTokens(const HeadsConfig& config, int n_tokens)
    : n_tokens_(n_tokens),
      n_rows_(config.n_outputs()),
      n_valid_(n_tokens),
      tokens_(config.output_tokens) {
  if (!tokens_.empty()) n_valid_ = n_output_rows(tokens_, n_tokens);
}

std::vector<float> OutputTokens::download(kernels::Device& device,
                                          const float* logits,
                                          int n) const {
  std::vector<float> ranked = download_rows(device, logits, n_rows_, n, n_valid_);
  if (tokens_.empty()) return ranked;
  const auto n_tokens = static_cast<std::size_t>(n_tokens_);
  std::vector<float> all(static_cast<std::size_t>(n) * n_tokens,
                         -std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < ranked.size(); i++) {
    const std::size_t row = i / static_cast<std::size_t>(n_valid_);
    const TokenId token = tokens_[i % static_cast<std::size_t>(n_valid_)];
    all[row * n_tokens + static_cast<std::size_t>(token)] = ranked[i];
  }
  return all;
}

// The rows' order is that of their tokens, so equal logits rank by token id.
std::vector<RankedTokens> OutputTokens::ranked(kernels::Device& device,
                                               const float* logits,
                                               int n,
                                               int k) const {
  const std::vector<kernels::PickRow> rows(static_cast<std::size_t>(n));
  std::vector<kernels::Ranking> rankings(rows.size());
  std::vector<kernels::RankedToken> tokens(rows.size() * static_cast<std::size_t>(k));
  device.ops().rank(device, logits, n_rows_, n, n_rows_, n_valid_, rows.data(), k, rankings.data(),
                    tokens.data());
  std::vector<RankedTokens> ranked;
  for (std::size_t r = 0; r < rows.size(); r++)
    ranked.push_back(
        ranked_of(rankings[r], tokens.data() + r * static_cast<std::size_t>(k), /*temperature=*/1));
  if (tokens_.empty()) return ranked;
  for (RankedTokens& of_row : ranked)
    for (TokenId& token : of_row.token) token = tokens_[static_cast<std::size_t>(token)];
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
