// The time of a step by its number of rows and the length of its context, learned from measured steps.
//   time     f(rows) + a * (positions whose keys and values are read) + b * (the same, times the rows that
//            attend to them)
//   state    the logarithms of f for each of some row counts, of a and of b, estimated by an extended
//            Kalman filter, which assumes that a common drift of all of them (the load of the machine) is
//            fast and a change of their ratios slow. So a step with any number of rows also corrects the
//            times of all other row counts
//   robust   a step that takes much longer than expected counts as a moderately slow one. Two such
//            steps in a row mean that the machine has changed; then the estimate moves fast
//   prior    before measurements, each further row adds 4 % of the time of one row. A position adds the
//            share of that time that its keys and values have in the bytes of the weights
#pragma once

#include <functional>
#include <vector>

namespace engine {

/// The work of a step.
struct StepWork {
  int n_rows = 1;            // of all sequences
  double positions = 0;      // cached positions, summed over the sequences
  double row_positions = 0;  // cached positions that a row attends to, summed over the rows
};
/// The work of `n_sequences` with equally many rows and cached positions each.
/// @param n_rows  of one sequence
StepWork step_work(int n_rows, int n_positions, int n_sequences = 1);

/// Estimates the time of a step.
class CostModel {
 public:
  /// The prior, to be corrected by add().
  CostModel();
  /// Known times that measurements do not change, for simulations: by rows only, or by the work.
  explicit CostModel(std::function<double(int n_rows)> curve);
  explicit CostModel(std::function<double(const StepWork&)> time) : known_(std::move(time)) {}

  /// Sets the prior of a and b. Must be called before the first measurement.
  /// @param share  the time of a position / the time of a step of one row without a context
  void set_position_share(double share);
  /// The expected time of a step in ms (before the first measurement relative to one row). It never
  /// decreases with the number of rows or positions.
  double ms(const StepWork& work) const;
  /// The same without a context.
  double ms(int n_rows) const { return ms(StepWork{.n_rows = n_rows}); }
  /// Corrects the estimate by a step that took `ms`.
  void add(const StepWork& work, double ms);
  void add(int n_rows, double ms) { add(StepWork{.n_rows = n_rows}, ms); }
  /// Number of steps added.
  int n_measured() const { return n_measured_; }

 private:
  /// The position of a row count among the anchors: `share` of anchor `at + 1`, the rest of `at`.
  struct Place {
    std::size_t at = 0;
    double share = 0;
  };
  static Place place_of(int n_rows);
  double rows_ms(int n_rows) const;
  std::vector<double> shares_of(const StepWork& work, double& log_ms) const;
  void update_curve();

  std::function<double(const StepWork&)> known_;
  std::vector<double> log_ms_;    // [anchors + 2] f, then a and b
  std::vector<double> variance_;  // [anchors + 2, anchors + 2] covariance of log_ms_
  std::vector<double> curve_;     // [anchors] ms, ascending
  int n_measured_ = 0;
  int n_slow_ = 0, n_fast_ = 0;  // outliers in a row
};

}  // namespace engine
