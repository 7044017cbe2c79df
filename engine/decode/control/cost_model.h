// The time of a step by its number of rows, learned from measured steps.
//   state    the logarithm of the time for each of some row counts, estimated by a Kalman filter.
//            A drift that is common to all row counts (the load of the machine, the length of the
//            context) is assumed to be fast, a change of their ratios slow. So a step with any number
//            of rows also corrects the times of all other row counts
//   robust   a step that takes much longer than expected counts as a moderately slow one. Two such
//            steps in a row mean that the machine has changed; then the estimate moves fast
//   prior    before measurements, each row adds 4 % of the time of one row
#pragma once

#include <functional>
#include <vector>

namespace engine {

/// Estimates the time of a step.
class CostModel {
 public:
  /// The prior, to be corrected by add().
  CostModel();
  /// A known curve that measurements do not change, for simulations.
  explicit CostModel(std::function<double(int n_rows)> curve);

  /// The expected time of a step in ms (before the first measurement relative to one row). It never
  /// decreases with the number of rows.
  double ms(int n_rows) const;
  /// Corrects the estimate by a step that took `ms`.
  void add(int n_rows, double ms);
  /// Number of steps added.
  int n_measured() const { return n_measured_; }

 private:
  /// The position of a row count among the anchors: `share` of anchor `at + 1`, the rest of `at`.
  struct Place {
    std::size_t at = 0;
    double share = 0;
  };
  static Place place_of(int n_rows);
  void update_curve();

  std::function<double(int)> known_;
  std::vector<double> log_ms_;    // [anchors]
  std::vector<double> variance_;  // [anchors, anchors] covariance of log_ms_
  std::vector<double> curve_;     // [anchors] ms, ascending
  int n_measured_ = 0;
  int n_slow_ = 0, n_fast_ = 0;  // outliers in a row
};

}  // namespace engine
