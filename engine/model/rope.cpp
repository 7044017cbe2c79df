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

// NTK-aware scaling: a larger base lowers the frequencies of all pairs, and the lowest frequency by
// the factor `stretch`.
double dynamic_theta(const RopeConfig& rope, int head_dim, int seq_len) {
  const double original = rope.original_max_seq_len;
  const double length = std::max<double>(seq_len, original);
  const double stretch = rope.factor * length / original - (rope.factor - 1);
  return rope.theta * std::pow(stretch, static_cast<double>(head_dim) / (head_dim - 2));
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

// Pairs that make many turns keep their frequency, and pairs that make less than one turn are
// interpolated. Between these, a linear ramp over the pair index blends the two (Peng et al. 2023,
// section 3.2).
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

// Pairs with wavelengths beyond the original context get lower frequencies, pairs with short
// wavelengths keep theirs, and pairs between get a blend of both.
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

// The frequency of each pair is divided by its own factor (Ding et al. 2024).
std::vector<double> longrope_frequencies(const RopeConfig& rope, int head_dim, int seq_len) {
  std::vector<double> f = plain_frequencies(rope.theta, head_dim);
  const std::vector<double>& factor =
      seq_len > rope.original_max_seq_len ? rope.long_factor : rope.short_factor;
  ensure(factor.size() == f.size(),
         "longrope: there must be one factor for each pair of dimensions");
  for (std::size_t i = 0; i < f.size(); i++) f[i] /= factor[i];
  return f;
}

// The frequencies of a head whose dimensions are all rotated.
std::vector<double> frequencies_of_all(const RopeConfig& rope, int head_dim, int seq_len) {
  ensure(head_dim >= 2 && head_dim % 2 == 0, "RoPE: head_dim must be even");
  ensure(rope.type == RopeConfig::Type::Default || rope.type == RopeConfig::Type::Linear ||
             rope.original_max_seq_len > 0,
         "RoPE: this type needs original_max_seq_len");
  switch (rope.type) {
    case RopeConfig::Type::Default:
      break;
    case RopeConfig::Type::Linear: {
      std::vector<double> f = plain_frequencies(rope.theta, head_dim);
      for (double& x : f) x /= rope.factor;
      return f;
    }
    case RopeConfig::Type::Dynamic:
      if (head_dim == 2) break;  // one pair, whose frequency is 1 for any base
      return plain_frequencies(dynamic_theta(rope, head_dim, seq_len), head_dim);
    case RopeConfig::Type::Yarn:
      return yarn_frequencies(rope, head_dim);
    case RopeConfig::Type::Llama3:
      return llama3_frequencies(rope, head_dim);
    case RopeConfig::Type::Longrope:
      return longrope_frequencies(rope, head_dim, seq_len);
  }
  return plain_frequencies(rope.theta, head_dim);
}

}  // namespace

int RopeConfig::rotation_key(int n_prompt) const {
  if (n_prompt <= original_max_seq_len) return 0;
  if (type == Type::Dynamic) return n_prompt;
  return type == Type::Longrope ? 1 : 0;
}

std::vector<double> rope_frequencies(const RopeConfig& rope, int head_dim, int seq_len) {
  const int n_rotated = rope.rotary_dim > 0 ? rope.rotary_dim : head_dim;
  std::vector<double> f = frequencies_of_all(rope, n_rotated, seq_len);
  f.resize(static_cast<std::size_t>(head_dim / 2), 0.0);
  return f;
}

double rope_attention_factor(const RopeConfig& rope) {
  const bool longrope = rope.type == RopeConfig::Type::Longrope;
  if (rope.type != RopeConfig::Type::Yarn && !longrope) return 1;
  if (rope.attention_factor != 0) return rope.attention_factor;
  if (longrope)
    return rope.factor <= 1 ? 1
                            : std::sqrt(1 + std::log(rope.factor) /
                                                std::log(double{1} * rope.original_max_seq_len));
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

void RopeTable::fill(int pos, int seq_len, float* row) const {
  const bool own = rope_.rotation_key(seq_len) != 0;
  const std::vector<double> longer =
      own ? rope_frequencies(rope_, head_dim_, seq_len) : std::vector<double>();
  const std::vector<double>& frequencies = own ? longer : frequencies_;
  for (std::size_t i = 0; i < frequencies.size(); i++) {
    const double angle = pos * frequencies[i];
    const double factor = frequencies[i] == 0 ? 1 : factor_;  // a pair that is not rotated stays
    row[2 * i] = static_cast<float>(std::cos(angle) * factor);
    row[2 * i + 1] = static_cast<float>(std::sin(angle) * factor);
  }
}

void RopeTable::make_buffer(int n_positions, int n_extra) {
  const auto row_bytes = static_cast<std::int64_t>(sizeof(float)) * head_dim_;
  table_ = kernels::DeviceBuffer();  // uploads the old rows too, from host_
  n_positions_ = n_extra_ = 0;
  kernels::DeviceBuffer table(device_, row_bytes * (std::int64_t{n_positions} + n_extra),
                              "the table of positions");
  device_.ops().upload(device_, table.data(), host_.data(), row_bytes * n_positions);
  table_ = std::move(table);
  n_positions_ = n_positions;
  n_extra_ = n_extra;
}

void RopeTable::reserve(int n) {
  if (n <= n_positions_) return;
  const int wanted = std::max({n, 2 * n_positions_, 512});
  host_.resize(static_cast<std::size_t>(wanted) * static_cast<std::size_t>(head_dim_));
  for (int pos = n_positions_; pos < wanted; pos++)
    fill(pos, pos + 1, host_.data() + static_cast<std::int64_t>(pos) * head_dim_);
  make_buffer(wanted, n_extra_);
}

std::span<const int> RopeTable::rows_of(std::span<const int> pos, std::span<const int> n_prompt) {
  rows_.assign(pos.begin(), pos.end());
  extra_.clear();
  int n_extra = 0;
  for (std::size_t i = 0; i < pos.size(); i++) {
    if (n_prompt[i] <= pos[i] + 1 || rope_.rotation_key(n_prompt[i]) == 0) continue;
    extra_.resize(static_cast<std::size_t>(n_extra + 1) * static_cast<std::size_t>(head_dim_));
    fill(pos[i], n_prompt[i], extra_.data() + static_cast<std::int64_t>(n_extra) * head_dim_);
    rows_[i] = n_extra++;
  }
  if (n_extra == 0) return rows_;
  if (n_extra > n_extra_) make_buffer(n_positions_, std::max(n_extra, 2 * n_extra_));
  const auto row_bytes = static_cast<std::int64_t>(sizeof(float)) * head_dim_;
  auto* extra_rows = static_cast<char*>(table_.data()) + row_bytes * n_positions_;
  device_.ops().upload(device_, extra_rows, extra_.data(), row_bytes * n_extra);
  for (std::size_t i = 0; i < pos.size(); i++)
    if (n_prompt[i] > pos[i] + 1 && rope_.rotation_key(n_prompt[i]) != 0) rows_[i] += n_positions_;
  return rows_;
}

}  // namespace engine
