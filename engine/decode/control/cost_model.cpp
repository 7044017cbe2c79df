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
constexpr std::size_t kN = kAnchors.size(), kState = kN + 2;

// Relative to one row: each further row, and a position.
constexpr double kPriorSlope = 0.04, kPriorPosition = 1.0 / 16000;
/// Standard deviations of the logarithm of times: of one row; of the ratio of e rows to one row, a part
/// that grows evenly with the logarithm of the rows and a part that differs from one row count to the
/// next (Brownian motion).
struct Deviations {
  double level, slope, rough;
  double position;  // of the ratios of a and b to one row
};
constexpr Deviations kPrior{10, 0.6, 0.15, 0.8};
constexpr Deviations kDrift{0.04, 0.006, 0.008, 0.004};  // per step
constexpr Deviations kChanged{0.3, 0.1, 0.05, 0.1};      // after outliers in a row
constexpr double kNoise = 0.06;                          // of one measurement
/// Deviations beyond this many standard deviations count as this many.
constexpr double kOutlier = 3;

double squared(double x) {
  return x * x;
}

double covariance_of(const Deviations& spread, std::size_t i, std::size_t j) {
  static const std::array<double, kN> logs = [] {
    std::array<double, kN> values{};
    for (std::size_t a = 0; a < kN; a++) values[a] = std::log(static_cast<double>(kAnchors[a]));
    return values;
  }();
  if (std::max(i, j) >= kN) return squared(spread.level) + (i == j ? squared(spread.position) : 0);
  return squared(spread.level) + squared(spread.slope) * logs[i] * logs[j] +
         squared(spread.rough) * logs[std::min(i, j)];
}

void add_spread(std::vector<double>& variance, const Deviations& spread) {
  for (std::size_t i = 0; i < kState; i++)
    for (std::size_t j = 0; j < kState; j++)
      variance[i * kState + j] += covariance_of(spread, i, j);
}

}  // namespace

StepWork step_work(int n_rows, int n_positions, int n_sequences) {
  const double positions = static_cast<double>(n_positions) * n_sequences;
  return {n_rows * n_sequences, positions, positions * n_rows};
}

CostModel::CostModel() : log_ms_(kState), variance_(kState * kState), curve_(kN) {
  for (std::size_t i = 0; i < kN; i++) log_ms_[i] = std::log1p(kPriorSlope * (kAnchors[i] - 1));
  add_spread(variance_, kPrior);
  update_curve();
  set_position_share(kPriorPosition);
}

CostModel::CostModel(std::function<double(int)> curve)
    : known_([curve = std::move(curve)](const StepWork& work) { return curve(work.n_rows); }) {}

void CostModel::set_position_share(double share) {
  ensure(share > 0 && n_measured_ == 0, "the prior of a position's time comes before measurements");
  if (!known_) log_ms_[kN] = log_ms_[kN + 1] = std::log(share);
}

CostModel::Place CostModel::place_of(int n_rows) {
  const auto* const above = std::upper_bound(kAnchors.begin(), kAnchors.end() - 1, n_rows);
  const auto at = std::min(static_cast<std::size_t>(above - kAnchors.begin()) - 1, kN - 2);
  const double low = kAnchors[at], high = kAnchors[at + 1];
  return {at, std::min((n_rows - low) / (high - low), 1.0)};
}

double CostModel::ms(const StepWork& work) const {
  ensure(work.n_rows >= 1, "a step has at least one row");
  if (known_) return known_(work);
  return rows_ms(work.n_rows) + std::exp(log_ms_[kN]) * work.positions +
         std::exp(log_ms_[kN + 1]) * work.row_positions;
}

/// f: the time without a context.
double CostModel::rows_ms(int n_rows) const {
  const auto [at, share] = place_of(n_rows);
  const double inside = curve_[at] + share * (curve_[at + 1] - curve_[at]);
  return inside * std::max(1.0, static_cast<double>(n_rows) / kAnchors.back());
}

/// The share of each part of the expected time: the derivatives of its logarithm by the state.
/// @param log_ms  that logarithm
/// @return        [anchors + 2]
std::vector<double> CostModel::shares_of(const StepWork& work, double& log_ms) const {
  std::vector<double> parts(kState);
  const auto [at, share] = place_of(work.n_rows);
  const double rows = std::exp((1 - share) * log_ms_[at] + share * log_ms_[at + 1]);
  parts[at] = (1 - share) * rows;
  parts[at + 1] = share * rows;
  parts[kN] = std::exp(log_ms_[kN]) * work.positions;
  parts[kN + 1] = std::exp(log_ms_[kN + 1]) * work.row_positions;
  const double sum = rows + parts[kN] + parts[kN + 1];
  for (double& part : parts) part /= sum;
  log_ms = std::log(sum);
  return parts;
}

void CostModel::add(const StepWork& work, double ms) {
  ensure(work.n_rows >= 1, "a step has at least one row");
  if (known_ || !(ms > 0) || work.n_rows > kAnchors.back()) return;
  add_spread(variance_, kDrift);
  double expected = 0;
  const std::vector<double> shares = shares_of(work, expected);
  std::array<double, kState> covariance{};  // of the measured time with the state
  double total = squared(kNoise);
  for (std::size_t i = 0; i < kState; i++) {
    for (std::size_t j = 0; j < kState; j++) covariance[i] += variance_[i * kState + j] * shares[j];
    total += shares[i] * covariance[i];
  }
  const double most = kOutlier * std::sqrt(total);
  const double deviation = std::log(ms) - expected;
  const double error = std::clamp(deviation, -most, most);
  for (std::size_t i = 0; i < kState; i++) log_ms_[i] += covariance[i] / total * error;
  for (std::size_t i = 0; i < kState; i++)
    for (std::size_t j = 0; j < kState; j++)
      variance_[i * kState + j] -= covariance[i] * covariance[j] / total;
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
  for (std::size_t i = 0; i < kN; i++) {
    blocks.push_back({std::exp(log_ms_[i]), 1});
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
