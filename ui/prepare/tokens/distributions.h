// Converts recorded distributions to another temperature, for the panel P/Q. The probabilities at T
// are proportional to the power T0 / T of those at T0. A recording contains only a few tokens of
// each distribution, so the probability of the other tokens is known only as an interval.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace engine {
class Timeline;
struct RejectionDetail;
struct RunRecord;
struct RunStarted;
struct StepRecord;
}  // namespace engine

namespace ui {

/// An interval that contains a number.
struct Interval {
  double low = 0, high = 0;

  /// Its length.
  double wide() const { return high - low; }
  /// Its middle.
  double middle() const { return (low + high) / 2; }
};
/// Returns "0.312", or "0.30 to 0.34" if the interval is wider than 0.001.
std::string words_of(const Interval& value);

/// Bounds on the tokens of a distribution that were not recorded.
struct Unrecorded {
  double n = 0;     // maximum number of tokens with a positive probability
  double most = 1;  // maximum probability of one of them
};

/// A distribution at another temperature.
struct DistributionAt {
  std::vector<Interval> of;  // [n_recorded] probability of each recorded token
  Interval rest;             // probability of all other tokens together
};
/// Converts recorded probabilities from one temperature to another.
/// @param distribution  recorded probabilities at temperature `from`; the other tokens share the rest
/// @param from, to      temperatures > 0
DistributionAt distribution_at(std::span<const float> distribution,
                               const Unrecorded& others,
                               double from,
                               double to);

/// The distributions of target and draft after one row.
struct DistributionsAt {
  DistributionAt p, q;  // q.of is empty if the proposal had no distribution
  Interval kept;        // probability that a token sampled from q is accepted: sum of min(p, q)
  Interval apart;       // total variation distance, 1 - kept
};

/// The settings that distributions were recorded with.
struct DistributionsSource {
  float temperature = 0, draft_temperature = 0;
  bool draft_follows = true;       // the draft uses the target's temperature
  int top_k = 0, draft_top_k = 0;  // 0: all tokens
  std::string cut, draft_cut;      // the filters: "top p", "top p and min p"; empty: none
  int vocab_size = 0;              // 0: unknown
};
/// Returns the settings of a run.
DistributionsSource distributions_source(const engine::Timeline& timeline,
                                         const engine::RunRecord& run);

/// Returns the distributions after one row at a temperature of the target; the draft follows unless it has its own temperature.
DistributionsAt distributions_at(const DistributionsSource& source,
                                 const engine::StepRecord& step,
                                 const engine::RejectionDetail& rejection_details,
                                 float temperature);

/// Returns the reason why a run's distributions cannot be converted to another temperature; empty if they
/// can.
std::string why_no_other_temperature(const engine::RunStarted& started,
                                     const engine::StepRecord& step);
/// Returns sentences on what the recomputed distributions omit; empty if nothing.
std::string omission_words(const DistributionsSource& source,
                           const DistributionsAt& distributions,
                           float temperature);

}  // namespace ui
