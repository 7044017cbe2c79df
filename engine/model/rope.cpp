#include "engine/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace engine {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// theta^(-2i / head_dim)
std::vector<double> plain_frequencies(double theta, int head_dim) {
  std::vector<double> f(static_cast<std::size_t>(head_dim / 2));
  for (std::size_t i = 0; i < f.size(); i++)
    f[i] = 1.0 / std::pow(theta, 2.0 * static_cast<double>(i) / head_dim);
  return f;
}

// NTK-aware: the base grows so that the slowest pair is stretched over seq_len.
double dynamic_theta(const RopeConfig& rope, int head_dim, int seq_len) {
  const double original = rope.original_max_seq_len;
  const double length = std::max<double>(seq_len, original);
  const double stretch = rope.factor * length / original - (rope.factor - 1);
  return rope.theta * std::pow(stretch, static_cast<double>(head_dim) / (head_dim - 2));
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

// Pairs that turn often keep their frequency, pairs that turn less than once are interpolated, a
// ramp between the two in pair index (Peng et al. 2023, section 3.2).
std::vector<double> yarn_frequencies(const RopeConfig& rope, int head_dim) {
  const auto pair_of_turns = [&](double turns) {
    return head_dim * std::log(rope.original_max_seq_len / (turns * kTurn)) /
           (2 * std::log(rope.theta));
  };
  double low = pair_of_turns(rope.beta_fast), high = pair_of_turns(rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, head_dim - 1.0);
  if (low == high) high += 0.001;

  std::vector<double> f = plain_frequencies(rope.theta, head_dim);
  for (std::size_t i = 0; i < f.size(); i++) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    f[i] = f[i] / rope.factor * ramp + f[i] * (1 - ramp);
  }
  return f;
}

// Wavelengths beyond the original context are divided, short ones kept, a blend between.
std::vector<double> llama3_frequencies(const RopeConfig& rope, int head_dim) {
  std::vector<double> f = plain_frequencies(rope.theta, head_dim);
  const double original = rope.original_max_seq_len;
  for (double& x : f) {
    const double wavelength = kTurn / x;
    if (wavelength < original / rope.high_freq_factor) continue;
    if (wavelength > original / rope.low_freq_factor) {
      x /= rope.factor;
      continue;
    }
    const double smooth = (original / wavelength - rope.low_freq_factor) /
                          (rope.high_freq_factor - rope.low_freq_factor);
    x = (1 - smooth) * x / rope.factor + smooth * x;
  }
  return f;
}

}  // namespace

std::vector<double> rope_frequencies(const RopeConfig& rope, int head_dim, int seq_len) {
  ensure(head_dim >= 2 && head_dim % 2 == 0, "rotary embedding needs an even head_dim");
  ensure(rope.type == RopeConfig::Type::Default || rope.type == RopeConfig::Type::Linear ||
             rope.original_max_seq_len > 0,
         "this rotary embedding needs original_max_seq_len");
  switch (rope.type) {
    case RopeConfig::Type::Default:
      break;
    case RopeConfig::Type::Linear: {
      std::vector<double> f = plain_frequencies(rope.theta, head_dim);
      for (double& x : f) x /= rope.factor;
      return f;
    }
    case RopeConfig::Type::Dynamic:
      if (head_dim == 2) break;  // one pair, of frequency 1 whatever the base
      return plain_frequencies(dynamic_theta(rope, head_dim, seq_len), head_dim);
    case RopeConfig::Type::Yarn:
      return yarn_frequencies(rope, head_dim);
    case RopeConfig::Type::Llama3:
      return llama3_frequencies(rope, head_dim);
  }
  return plain_frequencies(rope.theta, head_dim);
}

double rope_attention_factor(const RopeConfig& rope) {
  if (rope.type != RopeConfig::Type::Yarn) return 1;
  if (rope.attention_factor != 0) return rope.attention_factor;
  if (rope.mscale != 0 && rope.mscale_all_dim != 0)
    return yarn_mscale(rope.factor, rope.mscale) / yarn_mscale(rope.factor, rope.mscale_all_dim);
  return yarn_mscale(rope.factor, 1);
}

RopeTable::RopeTable(kernels::Device& device,
                     const RopeConfig& rope,
                     int head_dim,
                     int original_max_seq_len)
    : device_(device), rope_(rope), head_dim_(head_dim), factor_(rope_attention_factor(rope)) {
  if (rope_.original_max_seq_len == 0) rope_.original_max_seq_len = original_max_seq_len;
  frequencies_ = rope_frequencies(rope_, head_dim_, 0);
}

void RopeTable::fill(int pos, float* row) const {
  const bool stretched =
      rope_.type == RopeConfig::Type::Dynamic && pos >= rope_.original_max_seq_len;
  const std::vector<double> longer =
      stretched ? rope_frequencies(rope_, head_dim_, pos + 1) : std::vector<double>();
  const std::vector<double>& frequencies = stretched ? longer : frequencies_;
  for (std::size_t i = 0; i < frequencies.size(); i++) {
    const double angle = pos * frequencies[i];
    row[2 * i] = static_cast<float>(std::cos(angle) * factor_);
    row[2 * i + 1] = static_cast<float>(std::sin(angle) * factor_);
  }
}

void RopeTable::reserve(int n) {
  if (n <= n_positions_) return;
  const int wanted = std::max({n, 2 * n_positions_, 512});
  host_.resize(static_cast<std::size_t>(wanted) * static_cast<std::size_t>(head_dim_));
  for (int pos = n_positions_; pos < wanted; pos++)
    fill(pos, host_.data() + static_cast<std::int64_t>(pos) * head_dim_);
  const auto bytes = static_cast<std::int64_t>(host_.size() * sizeof(float));
  table_ = kernels::DeviceBuffer();  // the old rows are in host_ too
  n_positions_ = 0;
  kernels::DeviceBuffer table(device_, bytes, "the table of positions");
  device_.ops().upload(device_, table.data(), host_.data(), bytes);
  table_ = std::move(table);
  n_positions_ = wanted;
}

}  // namespace engine
