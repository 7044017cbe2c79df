#include "engine/decode/control/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/base/types.h"

namespace engine {
namespace {

/// The row counts whose times are estimated; others are interpolated.
constexpr std::array kAnchors{1,  2,  3,  4,  5,  6,  7,  8,  9,  10,  12,  14,
                              16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256};
constexpr std::size_t kN = kAnchors.size();

constexpr double kPriorSlope = 0.04;  // of each further row, relative to one row
/// Standard deviations of the logarithm of times: of one row; of the ratio of e rows to one row, a part
/// that grows evenly with the logarithm of the rows and a part that differs from one row count to the
/// next (Brownian motion).
struct Spread {
  double level, slope, rough;
};
constexpr Spread kPrior{10, 0.6, 0.15};
constexpr Spread kDrift{0.04, 0.006, 0.008};  // per step
constexpr Spread kChanged{0.3, 0.1, 0.05};    // after outliers in a row
constexpr double kNoise = 0.06;               // of one measurement
/// Deviations beyond this many standard deviations count as this many.
constexpr double kOutlier = 3;

double squared(double x) {
  return x * x;
}

double covariance_of(const Spread& spread, std::size_t i, std::size_t j) {
  static const std::array<double, kN> logs = [] {
    std::array<double, kN> values{};
    for (std::size_t a = 0; a < kN; a++) values[a] = std::log(static_cast<double>(kAnchors[a]));
    return values;
  }();
  return squared(spread.level) + squared(spread.slope) * logs[i] * logs[j] +
         squared(spread.rough) * logs[std::min(i, j)];
}

void add_spread(std::vector<double>& variance, const Spread& spread) {
  for (std::size_t i = 0; i < kN; i++)
    for (std::size_t j = 0; j < kN; j++) variance[i * kN + j] += covariance_of(spread, i, j);
}

}  // namespace

CostModel::CostModel() : log_ms_(kN), variance_(kN * kN), curve_(kN) {
  for (std::size_t i = 0; i < kN; i++) log_ms_[i] = std::log1p(kPriorSlope * (kAnchors[i] - 1));
  add_spread(variance_, kPrior);
  update_curve();
}

CostModel::CostModel(std::function<double(int)> curve) : known_(std::move(curve)) {}

CostModel::Place CostModel::place_of(int n_rows) {
  const auto* const above = std::upper_bound(kAnchors.begin(), kAnchors.end() - 1, n_rows);
  const auto at = std::min(static_cast<std::size_t>(above - kAnchors.begin()) - 1, kN - 2);
  const double low = kAnchors[at], high = kAnchors[at + 1];
  return {at, std::min((n_rows - low) / (high - low), 1.0)};
}

double CostModel::ms(int n_rows) const {
  ensure(n_rows >= 1, "a step has at least one row");
  if (known_) return known_(n_rows);
  const auto [at, share] = place_of(n_rows);
  const double inside = curve_[at] + share * (curve_[at + 1] - curve_[at]);
  return inside * std::max(1.0, static_cast<double>(n_rows) / kAnchors.back());
}

void CostModel::add(int n_rows, double ms) {
  ensure(n_rows >= 1, "a step has at least one row");
  if (known_ || !(ms > 0) || n_rows > kAnchors.back()) return;
  add_spread(variance_, kDrift);
  const auto [at, share] = place_of(n_rows);
  std::array<double, kN> covariance{};  // of the measured row count with each anchor
  for (std::size_t i = 0; i < kN; i++)
    covariance[i] = (1 - share) * variance_[i * kN + at] + share * variance_[i * kN + at + 1];
  const double expected = (1 - share) * log_ms_[at] + share * log_ms_[at + 1];
  const double total = (1 - share) * covariance[at] + share * covariance[at + 1] + squared(kNoise);
  const double most = kOutlier * std::sqrt(total);
  const double deviation = std::log(ms) - expected;
  const double error = std::clamp(deviation, -most, most);
  for (std::size_t i = 0; i < kN; i++) log_ms_[i] += covariance[i] / total * error;
  for (std::size_t i = 0; i < kN; i++)
    for (std::size_t j = 0; j < kN; j++)
      variance_[i * kN + j] -= covariance[i] * covariance[j] / total;
  n_slow_ = deviation > most ? n_slow_ + 1 : 0;
  n_fast_ = deviation < -most ? n_fast_ + 1 : 0;
  if (std::max(n_slow_, n_fast_) >= 2) add_spread(variance_, kChanged);
  n_measured_++;
  update_curve();
}

/// Makes the curve ascend: neighbours in the wrong order share their mean (isotonic regression).
void CostModel::update_curve() {
  struct Block {
    double sum = 0;
    std::size_t n = 0;
    double mean() const { return sum / static_cast<double>(n); }
  };
  std::vector<Block> blocks;
  for (const double log_ms : log_ms_) {
    blocks.push_back({std::exp(log_ms), 1});
    while (blocks.size() > 1 && blocks.back().mean() < blocks[blocks.size() - 2].mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum, blocks.back().n += last.n;
    }
  }
  curve_.clear();
  for (const Block& block : blocks) curve_.insert(curve_.end(), block.n, block.mean());
}

}  // namespace engine
